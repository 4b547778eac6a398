/*
 * perfect: looks for the divisors of 2^(p-1) (2^p - 1) by trial division.
 *
 * Where 2^p - 1 is prime their sum without the number itself is the number.
 * Tries first, first + step, first + 2 step, ... up to the square root or n of
 * them, so that several processes can share the work: stresses the 64-bit
 * divider, and with as many processes as CPUs all of their dividers. Should
 * cost one division (11 cycles with its loop on Zen 3, more on older CPUs) a
 * candidate; p = 31 has 1,518,500,249 of them, p = 19 has 370,727.
 *
 * Source: workload 2 of D. Flater, NIST TN 1855 (2014), section 3.2, there in
 * Ruby with eight processes: 2^30 (2^31 - 1) = 2,305,843,008,139,952,128.
 */
#include "workloads.h"

/* The sum of the divisors found, each with its counterpart; the number itself is none. */
__attribute__((noinline)) uint64_t cb_perfect_run(void *state, uint64_t n)
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
