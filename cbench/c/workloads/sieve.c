/*
 * sieve: counts the primes among 3..n by trial division.
 *
 * Stresses the divider and the branch predictor, because the inner loop's length
 * differs from number to number. Does not access memory. Should cost one 32-bit
 * division (6 to 26 cycles, depending on the CPU) for each divisor tried, and a
 * mispredicted branch for most numbers; undisturbed trials differ by the state
 * of the predictor.
 */
#include "workloads.h"

__attribute__((noinline)) uint64_t cb_sieve_run(void *state, uint64_t n)
{
	uint64_t primes = 0;

	(void)state;
	for (uint64_t i = 3; i <= n; i++) {
		uint32_t number = (uint32_t)i;
		uint32_t divisor = 2;

		while ((uint64_t)divisor * divisor <= number && number % divisor)
			divisor++;
		primes += (uint64_t)divisor * divisor > number;
	}
	return primes;
}

CB_WORKLOAD(sieve, .run = cb_sieve_run);
