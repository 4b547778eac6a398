// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* What the workloads run on: NAME_state.c of cbench/c/workloads, with the kernel's memory. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "internal.h"

/* Left to everybody else, in bytes. */
#define SPARE (64ull << 20)
#define QUIETLY (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/*
 * Huge pages: up to some MiB are contiguous and seen through the kernel's own
 * mapping of all memory, which is one of large pages; what is larger gets them
 * where the architecture has them for vmalloc.
 */
static int buffer(u64 bytes, bool huge, int node, void **ret)
{
	if (((u64)si_mem_available() << PAGE_SHIFT) < bytes + SPARE)
		return -ENOMEM;
	*ret = huge ? kvmalloc_node(bytes, QUIETLY, node) : vmalloc_node(bytes, node);
	return *ret ? 0 : -ENOMEM;
}

/* params: n, size in bytes. */
int cb_kernel_memory_create(const u64 *params, size_t count, int node, void **ret)
{
	cb_memory *memory;
	void *start;
	int err;

	if (count != 2 || params[1] < sizeof(u32) || params[1] > CBENCH_SIZE_MAX)
		return -EINVAL;
	memory = kzalloc(sizeof(*memory), GFP_KERNEL);
	if (!memory)
		return -ENOMEM;
	memory->count = params[1] / sizeof(u32);
	err = buffer(memory->count * sizeof(u32), true, node, &start);
	if (err) {
		kfree(memory);
		return err;
	}
	memory->words = start;
	cb_memory_fill(memory);
	*ret = memory;
	return 0;
}

void cb_kernel_memory_destroy(void *state)
{
	cb_memory *memory = state;

	kvfree(memory->words);
	kfree(memory);
}
