/*
 * float: n rounds of one chain of double operations: add, multiply, divide, square root.
 *
 * A round replaces s by sqrt(x / (1 - x)) with x = 3.9 u / (1 + u)^2 and
 * u = s^2. This is the logistic map in another coordinate. It is chaotic, so the
 * operands change from round to round. s stays between 0.3 and 6.3, so that no
 * denormal, infinity or NaN occurs. Stresses the latency of the scalar floating
 * point unit. Should cost three multiplications, two additions, two divisions
 * and a square root: 50 to 90 cycles per round (59 on Zen 3).
 *
 * Each operation is rounded individually, as IEEE 754 requires, because the
 * code is compiled without contraction to fused multiply-add.
 */
#include "workloads.h"

#include <string.h>

static inline double root(double x)
{
#if defined(__x86_64__)
	__asm__("sqrtsd %0, %0" : "+x"(x));
#else
	__asm__("fsqrt %d0, %d0" : "+w"(x));
#endif
	return x;
}

/* The 64 bits of the last s. */
static __attribute__((noinline)) uint64_t run(void *state, uint64_t n)
{
	uint64_t bits;
	double s = 0.5;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		double u = s * s;
		double t = 1.0 + u;
		double x = 3.9 * u / (t * t);

		s = root(x / (1.0 - x));
	}
	memcpy(&bits, &s, sizeof(bits));
	return bits;
}

CB_WORKLOAD(float, .run = run);
