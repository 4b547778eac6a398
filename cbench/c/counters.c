/* Opening, reading and closing counters. Nothing here runs between two reads of a trial except cb_perf_read(). */
#define _GNU_SOURCE
#include "counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int cb_ticks_create(cb_counter **ret)
{
	cb_counter *counter = calloc(1, sizeof(*counter));

	if (!counter)
		return -ENOMEM;
	counter->mode = CB_READ_TICKS;
	counter->fd = -1;
	*ret = counter;
	return 0;
}

int cb_perf_read(const cb_counter *counter, struct cb_count *ret)
{
	ssize_t got = read(counter->fd, ret, sizeof(*ret));

	if (got < 0)
		return -errno;
	/* A pinned event that could not be put on the PMU reads as end of file. */
	return got == (ssize_t)sizeof(*ret) ? 0 : -EBUSY;
}

int cb_perf_view(const cb_counter *counter, struct cb_view *ret)
{
	volatile struct perf_event_mmap_page *page = counter->page;
	uint64_t raw;
	uint32_t lock;

	do {
		lock = page->lock;
		cb_barrier();
		ret->index = page->index;
		ret->offset = page->offset;
		ret->width = page->pmc_width;
		ret->multiplexed = page->time_enabled != page->time_running;
		raw = page->cap_user_rdpmc && cb_pmc_readable(ret->index) ? cb_pmc_now(ret->index) : 0;
		cb_barrier();
	} while (page->lock != lock);
	if (!page->cap_user_rdpmc || !cb_pmc_readable(ret->index))
		return -EAGAIN;
	ret->lock = lock;
	ret->value = (uint64_t)ret->offset + (uint64_t)cb_sign_extend(raw, ret->width);
	return 0;
}

/* The page is what switches user reads on (x86: CR4.PCE for this process); without it the counter is read with read(). */
static void map_page(cb_counter *counter)
{
	struct cb_view view;
	void *page;

	counter->page_len = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, counter->page_len, PROT_READ, MAP_SHARED, counter->fd, 0);
	if (page == MAP_FAILED)
		return;
	counter->page = page;
	if (cb_perf_view(counter, &view) == 0)
		counter->mode = CB_READ_USER;
}

/* Some virtual machines offer a PMU whose counters never move. */
static int counts_at_all(const cb_counter *counter)
{
	struct cb_count before, after;
	volatile unsigned int spin;
	int err;

	err = cb_perf_read(counter, &before);
	if (err)
		return err;
	for (spin = 0; spin < 1000; spin++)
		;
	err = cb_perf_read(counter, &after);
	if (err)
		return err;
	return after.value > before.value ? 0 : -ENODATA;
}

int cb_perf_create(uint32_t type, uint64_t config, uint64_t config1, int exclude_kernel, cb_counter **ret)
{
	struct perf_event_attr attr;
	cb_counter *counter = calloc(1, sizeof(*counter));
	int err;

	if (!counter)
		return -ENOMEM;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = config;
	attr.config1 = config1;
	attr.pinned = 1;
	attr.exclude_kernel = !!exclude_kernel;
	attr.exclude_hv = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	counter->mode = CB_READ_SYSCALL;
	counter->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (counter->fd < 0) {
		err = -errno;
		free(counter);
		return err;
	}
	err = counts_at_all(counter);
	if (err) {
		cb_counter_destroy(counter);
		return err;
	}
	map_page(counter);
	*ret = counter;
	return 0;
}

void cb_counter_destroy(cb_counter *counter)
{
	if (!counter)
		return;
	if (counter->page)
		munmap(counter->page, counter->page_len);
	if (counter->fd >= 0)
		close(counter->fd);
	free(counter);
}

int cb_counter_mode(const cb_counter *counter)
{
	return counter->mode;
}

int cb_ticks_deltas(uint64_t *deltas, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t start = cb_ticks_now();
		uint64_t x = start | 1;

		for (size_t k = i % 64; k; k--) {
			x *= x;
			__asm__ volatile("" : "+r"(x));
		}
		deltas[i] = cb_ticks_now() - start;
	}
	return 0;
}
