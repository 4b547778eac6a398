/*
 * aliquot [START]: compute the aliquot sequence from START (default: 10,000,000).
 *
 * Each term is the sum of the proper divisors of the previous term, determined
 * by dividing it by every number up to its square root. Prints the number of
 * terms, including the first term and the final 0, and the largest term. The
 * sequence from 10,000,000 has 154 terms, the largest is 32,812,701,817,256;
 * any other result is an error, and the program exits with 1.
 *
 * Each division is a function call, so the cost of a frame pointer arises 76
 * million times.
 *
 * Source: workload 0 of D. Flater, "Screening for Factors Affecting
 * Application Performance in Profiling Measurements", NIST TN 1855 (2014).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST 1000000000000000u /* a larger term would have too many candidates */

/* The contribution of a candidate and its counterpart to the sum. */
__attribute__((noinline)) static uint64_t share(uint64_t number, uint64_t d)
{
	uint64_t other = number / d;

	if (other * d != number)
		return 0;
	return other == d ? d : d + other;
}

__attribute__((noinline)) static uint64_t proper_divisors(uint64_t number)
{
	uint64_t sum = number > 1;

	for (uint64_t d = 2; d * d <= number; d++)
		sum += share(number, d);
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t start = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	uint64_t largest = 0;
	int terms = 0;

	for (uint64_t term = start;; term = proper_divisors(term)) {
		terms++;
		if (term > largest)
			largest = term;
		if (!term || term > LARGEST || terms == 10000)
			break;
	}
	printf("%llu %d\n", (unsigned long long)largest, terms);
	return start == 10000000 && (terms != 154 || largest != 32812701817256u);
}
