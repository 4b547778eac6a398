/* The buffer of memory. By default in huge pages: with small ones two processes measure different numbers. */
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>

#define MOST_OFFSET 4096u

/*
 * params: n, size in bytes, pages (1: huge, 0: small), offset from the beginning of a page in bytes; the last
 * two may be left out.
 */
int cb_memory_create(const uint64_t *params, size_t count, void **ret)
{
	cb_memory *memory;
	void *start;
	int err;
	size_t offset = count == 4 ? params[3] : 0;

	if ((count != 2 && count != 4) || params[1] < sizeof(uint32_t) || params[1] > (uint64_t)1 << 34 || offset > MOST_OFFSET ||
	    offset % sizeof(uint32_t))
		return -EINVAL;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	memory->count = params[1] / sizeof(uint32_t);
	memory->offset = offset;
	err = cb_buffer_map(memory->offset + memory->count * sizeof(uint32_t), count == 2 || params[2] != 0, &start);
	if (err) {
		free(memory);
		return err;
	}
	memory->words = (uint32_t *)((char *)start + memory->offset);
	cb_memory_fill(memory);
	*ret = memory;
	return 0;
}

void cb_memory_destroy(void *state)
{
	cb_memory *memory = state;

	if (!memory)
		return;
	cb_buffer_unmap((char *)memory->words - memory->offset, memory->offset + memory->count * sizeof(uint32_t));
	free(memory);
}

void cb_memory_region(const void *state, void **start, size_t *len)
{
	const cb_memory *memory = state;

	*start = memory->words;
	*len = memory->count * sizeof(uint32_t);
}
