/*
 * aliquot: the aliquot sequence from a start, at most n terms of it.
 *
 * Each term is the sum of the proper divisors of the one before. The divisors
 * are found by dividing by 2 and the odd numbers up to the square root of the
 * remaining factor. Stresses the 64-bit divider. Should cost one 64-bit
 * division (11 cycles with its loop on Zen 3, more on older CPUs) for each odd
 * number up to the second largest prime factor of a term or the square root of
 * its largest, whichever is more. From 10^7 the sequence has 154 terms,
 * including the start and the final 0; the largest is 32,812,701,817,256.
 *
 * Source: workload 0 of D. Flater, "Screening for Factors Affecting
 * Application Performance in Profiling Measurements", NIST TN 1855 (2014).
 */
#include "workloads.h"

#include <stdlib.h>

#define MOST 1000000000000000u /* a larger term ends the sequence: 16 million divisions at most */

/* Divide *rest by p as often as possible; return the factor that p contributes to the sum of all divisors. */
static uint64_t divide_out(uint64_t *rest, uint64_t p)
{
	uint64_t sum = 1, power = 1;

	while (*rest % p == 0) {
		*rest /= p;
		power *= p;
		sum += power;
	}
	return sum;
}

static uint64_t proper_divisors(uint64_t number)
{
	uint64_t rest = number;
	uint64_t sum = divide_out(&rest, 2);

	for (uint64_t p = 3; p * p <= rest; p += 2)
		sum *= divide_out(&rest, p);
	if (rest > 1)
		sum *= rest + 1;
	return sum - number;
}

/* The result depends on all terms and their order: result = 31 * result + term (mod 2^64). */
static __attribute__((noinline)) uint64_t run(void *state, uint64_t n)
{
	uint64_t term = *(const uint64_t *)state;
	uint64_t result = 0;

	for (uint64_t i = 0; i < n; i++) {
		result = 31 * result + term;
		if (term == 0 || term > MOST)
			break;
		term = proper_divisors(term);
	}
	return result;
}

/* params: n, start. */
static int create(const uint64_t *params, size_t count, void **ret)
{
	uint64_t *start;

	if (count != 2 || !params[1] || params[1] > MOST)
		return -EINVAL;
	start = malloc(sizeof(*start));
	if (!start)
		return -ENOMEM;
	*start = params[1];
	*ret = start;
	return 0;
}

CB_WORKLOAD(aliquot, .run = run, .create = create, .destroy = free);
