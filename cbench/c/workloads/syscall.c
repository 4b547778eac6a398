/*
 * syscall: n calls of getppid(2), by syscall(2), so that no library returns a cached result.
 *
 * getppid() does almost nothing in the kernel. Stresses entry and exit:
 * mode switch, entry code, speculation mitigations. Cost 600 cycles per call on
 * Zen 3 in a virtual machine; costs less without mitigations, and several times
 * as much with page table isolation or in a sandbox that inspects each call.
 */
#define _GNU_SOURCE
#include "workloads.h"

#include <sys/syscall.h>
#include <unistd.h>

/* The number of calls with the same result as the first one. */
static __attribute__((noinline)) uint64_t run(void *state, uint64_t n)
{
	uint64_t same = 0;
	long first = 0;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		long parent = syscall(SYS_getppid);

		if (i == 0)
			first = parent;
		same += parent == first && parent >= 0;
	}
	return same;
}

CB_WORKLOAD(syscall, .run = run);
