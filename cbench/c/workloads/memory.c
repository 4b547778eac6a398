/*
 * memory: n random reads from a buffer.
 *
 * The address comes from the linear congruential generator of the C library,
 * x = 1103515245 x + 12345 (mod 2^32), and each value read is added to x, so
 * that a read cannot start before the last one has ended. Stresses the cache
 * level that holds the buffer, and the TLB. Should cost that level's load
 * latency plus about 6 cycles per read. Reads only: every trial sees the same
 * buffer and returns the same number.
 *
 * Source: D. Kozak, "Chasing Zero Variability in Software Performance", MIT.
 */
#include "workloads.h"

typedef struct cb_memory {
	cb_buffer buffer;
	uint32_t *words;
	uint64_t count;
} cb_memory;

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

#define MOST_OFFSET 4096u

/*
 * params: n, size in bytes, pages (1: huge, 0: small), offset from the beginning of a page in bytes; the last
 * two are optional. Huge pages are the default, because two processes with small pages measure different
 * numbers. Word i holds i * 2654435761 mod 2^32 (Knuth's multiplicative hash).
 */
static int create_memory(const uint64_t *params, size_t count, void **ret)
{
	size_t offset = count == 4 ? params[3] : 0;
	uint64_t words = count > 1 ? params[1] / sizeof(uint32_t) : 0;
	cb_memory *memory;
	int err;

	if ((count != 2 && count != 4) || !words || params[1] > CB_SIZE_MOST || offset > MOST_OFFSET ||
	    offset % sizeof(uint32_t))
		return -EINVAL;
	err = cb_state_create(sizeof(*memory), offset + words * sizeof(uint32_t), count == 2 || params[2] != 0, ret);
	if (err)
		return err;
	memory = *ret;
	memory->words = (uint32_t *)(memory->buffer.start + offset);
	memory->count = words;
	for (uint64_t i = 0; i < words; i++)
		memory->words[i] = (uint32_t)(i * 2654435761u);
	return 0;
}

CB_WORKLOAD(memory, .run = cb_memory_run, .create = create_memory, .destroy = cb_state_destroy, .locked = 1);
