// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* The states of workloads, as in cbench/c/workloads/states.c, in the kernel's memory. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "internal.h"

/* Memory reserved for the rest of the system, in bytes. */
#define SPARE (64ull << 20)
#define QUIETLY (GFP_KERNEL_ACCOUNT | __GFP_NOWARN)

/*
 * Allocate memory on the node of this CPU, to which the thread is bound. Huge
 * pages: up to some MiB are contiguous and use the kernel's direct mapping of
 * all memory, which has large pages; larger areas get huge pages if the
 * architecture supports them for vmalloc.
 */
int cb_state_create(size_t size, size_t len, int huge, void **ret)
{
	cb_buffer *buffer;

	if (((u64)si_mem_available() << PAGE_SHIFT) < len + SPARE)
		return -ENOMEM;
	buffer = kzalloc(size, GFP_KERNEL);
	if (!buffer)
		return -ENOMEM;
	buffer->len = len;
	buffer->start = huge ? kvmalloc_node(len, QUIETLY, numa_node_id()) :
			       vmalloc_node(len, numa_node_id());
	if (!buffer->start) {
		kfree(buffer);
		return -ENOMEM;
	}
	*ret = buffer;
	return 0;
}

void cb_state_destroy(void *state)
{
	cb_buffer *buffer = state;

	if (buffer)
		kvfree(buffer->start);
	kfree(buffer);
}
