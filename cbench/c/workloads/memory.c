/*
 * memory: n random reads from a buffer.
 *
 * The address comes from the linear congruential generator of the C library,
 * x = 1103515245 x + 12345 (mod 2^32), and each value read is added to x, so
 * that a read cannot start before the last one has ended. Stresses the cache
 * level that holds the buffer, and the TLB. Should cost that level's load
 * latency plus about 6 cycles a read. Reads only: every trial sees the same
 * buffer and returns the same number.
 *
 * Source: D. Kozak, "Chasing Zero Variability in Software Performance", MIT.
 */
#include "workloads.h"

/* Word i holds i * 2654435761 mod 2^32 (Knuth's multiplicative hash). */
void cb_memory_fill(const cb_memory *memory)
{
	for (uint64_t i = 0; i < memory->count; i++)
		memory->words[i] = (uint32_t)(i * 2654435761u);
}

__attribute__((noinline)) uint64_t cb_memory_run(void *state, uint64_t n)
{
	const cb_memory *memory = state;
	const uint32_t *words = memory->words;
	uint64_t count = memory->count;
	uint32_t x = 0, value = 0;

	for (uint64_t i = 0; i < n; i++) {
		x = x * 1103515245u + 12345u + value;
		value = words[((uint64_t)x * count) >> 32];
	}
	return x ^ value;
}

#ifndef __KERNEL__ /* the state, in the C library's memory; cbench/kmod/states.c has it in the kernel's */
#include <errno.h>
#include <stdlib.h>

/* The buffer is in huge pages by default: with small ones two processes measure different numbers. */
#define MOST_OFFSET 4096u

/*
 * params: n, size in bytes, pages (1: huge, 0: small), offset from the beginning of a page in bytes; the last
 * two may be left out.
 */
static int create(const uint64_t *params, size_t count, void **ret)
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

static void destroy(void *state)
{
	cb_memory *memory = state;

	if (!memory)
		return;
	cb_buffer_unmap((char *)memory->words - memory->offset, memory->offset + memory->count * sizeof(uint32_t));
	free(memory);
}

static void region(const void *state, void **start, size_t *len)
{
	const cb_memory *memory = state;

	*start = memory->words;
	*len = memory->count * sizeof(uint32_t);
}

CB_WORKLOAD(memory, .run = cb_memory_run, .create = create, .destroy = destroy, .region = region);
#endif
