/* The buffer of memory. It asks for huge pages: with small ones two processes measure different numbers. */
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>

/* params: n, size in bytes. */
int cb_memory_create(const uint64_t *params, size_t count, void **ret)
{
	cb_memory *memory;
	void *start;
	int err;

	if (count != 2 || params[1] < sizeof(uint32_t) || params[1] > (uint64_t)1 << 34)
		return -EINVAL;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	memory->count = params[1] / sizeof(uint32_t);
	err = cb_buffer_map(memory->count * sizeof(uint32_t), 1, &start);
	if (err) {
		free(memory);
		return err;
	}
	memory->words = start;
	cb_memory_fill(memory);
	*ret = memory;
	return 0;
}

void cb_memory_destroy(void *state)
{
	cb_memory *memory = state;

	if (!memory)
		return;
	cb_buffer_unmap(memory->words, memory->count * sizeof(uint32_t));
	free(memory);
}

void cb_memory_region(const void *state, void **start, size_t *len)
{
	const cb_memory *memory = state;

	*start = memory->words;
	*len = memory->count * sizeof(uint32_t);
}
