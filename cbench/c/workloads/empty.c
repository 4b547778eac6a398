/*
 * empty: nothing.
 *
 * Measures the cost of a trial that does nothing: one call through a pointer
 * between the two counter reads. Should cost at most 60 ticks or cycles, and the
 * same in every trial.
 */
#include "workloads.h"

__attribute__((noinline)) uint64_t cb_empty_run(void *state, uint64_t n)
{
	(void)state;
	__asm__ volatile("" ::: "memory");
	return n;
}

CB_WORKLOAD(empty, .run = cb_empty_run);
