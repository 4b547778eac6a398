/*
 * fault: n page faults.
 *
 * Writes once to each of n fresh pages of a private anonymous mapping, then
 * returns them with madvise(MADV_DONTNEED), so that they are fresh again for
 * the next trial. Stresses the page fault: exception, allocation, clearing of
 * a page, page table. Cost 8,300 cycles per page on Zen 3 in a virtual machine,
 * where page table walks are two-dimensional; less on bare metal. Uses only
 * small, unlocked pages, because the faults are the measured work.
 *
 * mlockall() also locks this mapping, so that madvise() fails. The mapping is
 * unlocked as soon as this occurs, which is in the untimed call before the first
 * trial.
 */
#define _GNU_SOURCE
#include "workloads.h"

#include <sys/mman.h>
#include <unistd.h>

#define MOST_PAGES 262144u

typedef struct cb_fault {
	cb_buffer buffer;
	size_t page;
	size_t count;
} cb_fault;

/* params: n. */
static int create(const uint64_t *params, size_t count, void **ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	cb_fault *fault;
	int err;

	if (count != 1 || !params[0] || params[0] > MOST_PAGES)
		return -EINVAL;
	err = cb_state_create(sizeof(*fault), params[0] * page, 0, ret);
	if (err)
		return err;
	fault = *ret;
	fault->page = page;
	fault->count = params[0];
	return 0;
}

/* The sum of 1..n, unless a page was not fresh or the pages could not be returned. */
static __attribute__((noinline)) uint64_t run(void *state, uint64_t n)
{
	const cb_fault *fault = state;
	char *start = fault->buffer.start;
	uint64_t sum = 0;

	if (n > fault->count)
		n = fault->count;
	for (uint64_t i = 0; i < n; i++) {
		volatile uint64_t *words = (volatile uint64_t *)(start + i * fault->page);

		words[0] = i + 1;
		sum += words[0] + words[1];
		words[1] = 1;
	}
	if (n && madvise(start, n * fault->page, MADV_DONTNEED)) {
		munlock(start, fault->buffer.len);
		if (madvise(start, n * fault->page, MADV_DONTNEED))
			return 0;
	}
	return sum;
}

/* Not locked: locked pages do not fault. */
CB_WORKLOAD(fault, .run = run, .create = create, .destroy = cb_state_destroy);
