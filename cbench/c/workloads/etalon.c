/*
 * etalon: reads a clock until n milliseconds have passed.
 *
 * The work has a known duration and so checks the counter. Should cost n
 * milliseconds of CLOCK_MONOTONIC_RAW at any CPU frequency. If the etalon
 * varies little and a fixed amount of work varies much, the work varies and not
 * the clock.
 *
 * Source: the clock etalon (workload 4) of D. Flater, NIST TN 1855 (2014),
 * section 3.2, where it takes ten seconds and is checked with a wristwatch.
 */
#define _GNU_SOURCE
#include "workloads.h"

#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Returns n if the deadline lay between the last two readings and the clock
 * never went backward: n milliseconds elapsed, to the resolution at which a
 * program can read the clock. Otherwise returns the elapsed nanoseconds.
 */
static __attribute__((noinline)) uint64_t run(void *state, uint64_t n)
{
	uint64_t begin = now_ns(), deadline = begin + n * 1000000u;
	uint64_t last = begin, now = begin;
	int steady = 1;

	(void)state;
	while (now < deadline) {
		last = now;
		now = now_ns();
		steady &= now >= last;
	}
	return steady && last <= deadline && now >= deadline ? n : now - begin;
}

CB_WORKLOAD(etalon, .run = run);
