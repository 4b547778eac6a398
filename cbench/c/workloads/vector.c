/*
 * vector: n rounds of x = 3.9 x (1 - x) in 16 doubles, two per vector.
 *
 * Eight independent vectors of 128 bits, which every x86-64 and arm64 CPU has:
 * enough of them to fill the pipelines of two multipliers. Stresses the
 * throughput of the vector unit. Should cost 16 multiplications and 8
 * subtractions per round: 8 to 12 cycles on a CPU with two multipliers (10 on
 * Zen 3). The map is chaotic, and its values stay between 0.03 and 0.98, so that
 * no denormals occur.
 *
 * Each operation is rounded individually, as IEEE 754 requires, because the
 * code is compiled without contraction to fused multiply-add.
 */
#include "workloads.h"

#include <string.h>

#define VECTORS 8

typedef double pair __attribute__((vector_size(16)));


#define ROUND(x) (x = (r * x) * (one - x))

/* Lane k starts at (k + 1) / 32; the lanes' bits are mixed in order: result = 31 * result + bits (mod 2^64). */
static __attribute__((noinline)) uint64_t run(void *state, uint64_t n)
{
	const pair r = {3.9, 3.9}, one = {1.0, 1.0};
	pair x0 = {1 / 32.0, 2 / 32.0}, x1 = {3 / 32.0, 4 / 32.0}, x2 = {5 / 32.0, 6 / 32.0}, x3 = {7 / 32.0, 8 / 32.0};
	pair x4 = {9 / 32.0, 10 / 32.0}, x5 = {11 / 32.0, 12 / 32.0}, x6 = {13 / 32.0, 14 / 32.0},
	     x7 = {15 / 32.0, 16 / 32.0};
	uint64_t bits[2 * VECTORS], result = 0;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		ROUND(x0);
		ROUND(x1);
		ROUND(x2);
		ROUND(x3);
		ROUND(x4);
		ROUND(x5);
		ROUND(x6);
		ROUND(x7);
	}
	memcpy(bits, (pair[VECTORS]){x0, x1, x2, x3, x4, x5, x6, x7}, sizeof(bits));
	for (size_t k = 0; k < 2 * VECTORS; k++)
		result = 31 * result + bits[k];
	return result;
}

CB_WORKLOAD(vector, .run = run);
