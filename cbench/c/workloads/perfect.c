/*
 * perfect: looks for the divisors of 2^(p-1) (2^p - 1) by trial division.
 *
 * If 2^p - 1 is prime, the divisors without the number itself add up to the
 * number. Tries the candidates first, first + step, first + 2 step, ... up to
 * the square root of the number, but at most n of them, so that several
 * processes can share the work. Stresses the 64-bit divider, or the dividers of
 * all CPUs with one process per CPU. Should cost one division (11 cycles with
 * its loop on Zen 3, more on older CPUs) per candidate; p = 31 has
 * 1,518,500,249 candidates, and p = 19 has 370,727.
 *
 * Source: workload 2 of D. Flater, NIST TN 1855 (2014), section 3.2, which uses
 * Ruby, eight processes, and 2^30 (2^31 - 1) = 2,305,843,008,139,952,128.
 */
#include "workloads.h"

#include <stdlib.h>

#define MOST 32 /* exponent: the number has 63 bits */

typedef struct cb_perfect {
	uint64_t number;
	uint64_t root; /* the integer square root of `number` */
	uint64_t first;
	uint64_t step;
} cb_perfect;

/* The sum of the divisors found and their counterparts, without the number itself. */
static __attribute__((noinline)) uint64_t run(void *state, uint64_t n)
{
	const cb_perfect *job = state;
	uint64_t number = job->number, step = job->step;
	uint64_t d = job->first, sum = 0;

	for (uint64_t i = 0; i < n && d <= job->root; i++, d += step) {
		if (number % d)
			continue;
		sum += d;
		if (d != 1 && d != number / d)
			sum += number / d;
	}
	return sum;
}

/* params: n, exponent, first, step. */
static int create(const uint64_t *params, size_t count, void **ret)
{
	cb_perfect *job;
	uint64_t p = count == 4 ? params[1] : 0;

	if (p < 2 || p > MOST || !params[2] || !params[3])
		return -EINVAL;
	job = malloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->number = ((1ull << p) - 1) << (p - 1);
	job->first = params[2];
	job->step = params[3];
	job->root = 0;
	for (uint64_t bit = 1ull << 31; bit; bit >>= 1) /* the root is below 2^31.5 */
		if ((job->root | bit) * (job->root | bit) <= job->number)
			job->root |= bit;
	*ret = job;
	return 0;
}

CB_WORKLOAD(perfect, .run = run, .create = create, .destroy = free);
