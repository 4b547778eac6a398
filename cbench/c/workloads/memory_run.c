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
