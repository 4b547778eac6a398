/*
 * hash: x = ((x ^ 0x123) + 3x) mod 123456, n times from x = 0.
 *
 * Stresses only the integer pipeline: each round depends on the previous one
 * and has one well-predicted branch and no memory access. Should cost the
 * latency of xor, add and a multiplication by the reciprocal: 8 to 12 cycles per
 * round, and exactly the same number in every undisturbed trial.
 */
#include "workloads.h"

__attribute__((noinline)) uint64_t cb_hash_run(void *state, uint64_t n)
{
	uint64_t x = 0;

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		x = ((x ^ 0x123) + 3 * x) % 123456;
	return x;
}

CB_WORKLOAD(hash, .run = cb_hash_run);
