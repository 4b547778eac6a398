/*
 * fault: n page faults.
 *
 * Writes once to each of n fresh pages of a private anonymous mapping, then
 * gives them back with madvise(MADV_DONTNEED), so that the next trial finds
 * them fresh again. Stresses the page fault: exception, allocation, clearing
 * of a page, page table. Cost 8,300 cycles a page on Zen 3 in a virtual
 * machine, where a walk of the page table is one in two dimensions; less
 * without. Small pages only, and never locked: the faults are what is measured.
 *
 * mlockall() also locks this mapping, and then madvise() refuses; it is
 * unlocked when that happens, which is in the untimed call before the first
 * trial.
 */
#define _GNU_SOURCE
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_PAGES 262144u

typedef struct cb_fault {
	char *start;
	size_t page;
	size_t count;
} cb_fault;

/* params: n. */
static int create(const uint64_t *params, size_t count, void **ret)
{
	cb_fault *fault;
	void *start;
	int err;

	if (count != 1 || !params[0] || params[0] > MOST_PAGES)
		return -EINVAL;
	fault = calloc(1, sizeof(*fault));
	if (!fault)
		return -ENOMEM;
	fault->page = (size_t)sysconf(_SC_PAGESIZE);
	fault->count = params[0];
	err = cb_buffer_map(fault->count * fault->page, 0, &start);
	if (err) {
		free(fault);
		return err;
	}
	fault->start = start;
	*ret = fault;
	return 0;
}

static void destroy(void *state)
{
	cb_fault *fault = state;

	if (!fault)
		return;
	cb_buffer_unmap(fault->start, fault->count * fault->page);
	free(fault);
}

/* The sum of 1..n, unless a page was not fresh or the pages could not be given back. */
static __attribute__((noinline)) uint64_t run(void *state, uint64_t n)
{
	const cb_fault *fault = state;
	uint64_t sum = 0;

	if (n > fault->count)
		n = fault->count;
	for (uint64_t i = 0; i < n; i++) {
		volatile uint64_t *words = (volatile uint64_t *)(fault->start + i * fault->page);

		words[0] = i + 1;
		sum += words[0] + words[1];
		words[1] = 1;
	}
	if (n && madvise(fault->start, n * fault->page, MADV_DONTNEED)) {
		munlock(fault->start, fault->count * fault->page);
		if (madvise(fault->start, n * fault->page, MADV_DONTNEED))
			return 0;
	}
	return sum;
}

/* No region: locked pages do not fault. */
CB_WORKLOAD(fault, .run = run, .create = create, .destroy = destroy);
