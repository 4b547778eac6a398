// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* What the workloads run on, as NAME.c of cbench/c/workloads makes it, with the kernel's memory. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "internal.h"

/* Left to everybody else, in bytes. */
#define SPARE (64ull << 20)
#define LINKS_MAX (4ull << 20) /* linked in a second or so, and nobody may interrupt that */
#define BRANCHES_MAX (64ull << 20)
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

/* params: n, size and stride in bytes, pages (1: huge, 0: small), fit (0: pages as they come). */
int cb_kernel_chase_create(const u64 *params, size_t count, int node, void **ret)
{
	cb_chase *chase;
	void *start;
	int err;

	if (count != 5 || params[1] > CBENCH_SIZE_MAX || params[2] < sizeof(cb_link) ||
	    params[2] % sizeof(char *) || params[1] < params[2] ||
	    params[1] / params[2] > LINKS_MAX || params[3] > 1 || params[4])
		return -EINVAL;
	chase = kzalloc(sizeof(*chase), GFP_KERNEL);
	if (!chase)
		return -ENOMEM;
	chase->stride = params[2];
	chase->count = params[1] / params[2];
	chase->mapped = chase->count * chase->stride;
	err = buffer(chase->mapped, params[3], node, &start);
	if (err) {
		kfree(chase);
		return err;
	}
	chase->start = start;
	cb_chase_fill(chase);
	*ret = chase;
	return 0;
}

void cb_kernel_chase_destroy(void *state)
{
	cb_chase *chase = state;

	kvfree(chase->start);
	kfree(chase);
}

/* params: n, pattern, period. */
int cb_kernel_branch_create(const u64 *params, size_t count, int node, void **ret)
{
	cb_branch *branch;
	void *start;
	int err;

	if (count != 3 || !params[0] || params[0] > BRANCHES_MAX ||
	    params[1] > CB_BRANCH_RANDOM || !params[2])
		return -EINVAL;
	branch = kzalloc(sizeof(*branch), GFP_KERNEL);
	if (!branch)
		return -ENOMEM;
	branch->count = params[0];
	err = buffer(branch->count, true, node, &start);
	if (err) {
		kfree(branch);
		return err;
	}
	branch->taken = start;
	cb_branch_fill(branch, params[1], params[2]);
	*ret = branch;
	return 0;
}

void cb_kernel_branch_destroy(void *state)
{
	cb_branch *branch = state;

	kvfree(branch->taken);
	kfree(branch);
}
