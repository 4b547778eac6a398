/* Opening, reading and closing counters. Nothing here runs between two reads of a trial except cb_group_read(). */
#define _GNU_SOURCE
#include "counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static cb_counter *counter_new(int mode)
{
	cb_counter *counter = calloc(1, sizeof(*counter));

	if (!counter)
		return NULL;
	counter->mode = mode;
	for (size_t i = 0; i < CB_MAX_EVENTS; i++)
		counter->events[i].fd = -1;
	return counter;
}

int cb_ticks_create(cb_counter **ret)
{
	cb_counter *counter = counter_new(CB_READ_TICKS);

	if (!counter)
		return -ENOMEM;
	*ret = counter;
	return 0;
}

int cb_counter_chain(cb_counter *counter, uint64_t length)
{
	if (length % QN_CHAIN_BODY)
		return -EINVAL;
	counter->chain = length;
	return 0;
}

/* The group leader: reading it reads all events. */
static int leader(const cb_counter *counter)
{
	return counter->events[counter->mode == CB_READ_TICKS ? 1 : 0].fd;
}

int cb_group_read(const cb_counter *counter, struct cb_group *ret)
{
	unsigned int events = counter->others + (counter->mode != CB_READ_TICKS);
	size_t size = offsetof(struct cb_group, values) + events * sizeof(ret->values[0]);
	ssize_t got;

	if (!events)
		return -EOPNOTSUPP;
	got = read(leader(counter), ret, size);
	if (got < 0)
		return -errno;
	/* A pinned group that could not be put on the PMU reads as end of file. */
	return got == (ssize_t)size ? 0 : -EBUSY;
}

int cb_event_view(const cb_event *event, struct cb_view *ret)
{
	volatile struct perf_event_mmap_page *page = event->page;
	int readable;
	uint64_t raw;
	uint32_t lock;

	do {
		lock = page->lock;
		cb_barrier();
		ret->index = page->index;
		ret->offset = page->offset;
		ret->width = page->pmc_width;
		ret->lag = page->time_enabled - page->time_running;
		readable = page->cap_user_rdpmc && cb_pmc_readable(ret->index);
		raw = readable ? cb_pmc_now(ret->index) : 0;
		cb_barrier();
	} while (page->lock != lock);
	if (!readable)
		return -EAGAIN;
	ret->lock = lock;
	ret->value = (uint64_t)ret->offset + (uint64_t)cb_sign_extend(raw, ret->width);
	return 0;
}

/*
 * Mapping the page enables user reads (x86: CR4.PCE for this process); without
 * it, read() is used.
 */
static void map_page(cb_event *event)
{
	struct cb_view view;
	void *page;

	event->page_len = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, event->page_len, PROT_READ, MAP_SHARED, event->fd, 0);
	if (page == MAP_FAILED)
		return;
	event->page = page;
	event->user = cb_event_view(event, &view) == 0;
}

static void event_close(cb_event *event)
{
	if (event->page)
		munmap(event->page, event->page_len);
	if (event->fd >= 0)
		close(event->fd);
	*event = (cb_event){.fd = -1};
}

static int event_open(uint32_t type, uint64_t config, uint64_t config1, int how, int group, cb_event *ret)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = config;
	attr.config1 = config1;
	attr.pinned = group < 0; /* pins the whole group: never rotated; reads fail if it cannot count */
	attr.exclude_kernel = !!(how & CB_EXCLUDE_KERNEL);
	attr.exclude_user = !!(how & CB_EXCLUDE_USER);
	attr.exclude_hv = 1;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	ret->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
	return ret->fd < 0 ? -errno : 0;
}

/* Some virtual machines offer a PMU whose counters never move. */
static int counts_at_all(const cb_counter *counter)
{
	struct cb_group before, after;
	volatile unsigned int spin;
	int err;

	err = cb_group_read(counter, &before);
	if (err)
		return err;
	for (spin = 0; spin < 1000; spin++)
		;
	err = cb_group_read(counter, &after);
	if (err)
		return err;
	return after.values[0] > before.values[0] ? 0 : -ENODATA;
}

int cb_perf_create(uint32_t type, uint64_t config, uint64_t config1, int how, cb_counter **ret)
{
	cb_counter *counter = counter_new(CB_READ_SYSCALL);
	int err;

	if (!counter)
		return -ENOMEM;
	err = event_open(type, config, config1, how, -1, &counter->events[0]);
	if (!err && how & CB_MUST_COUNT)
		err = counts_at_all(counter);
	if (err) {
		cb_counter_destroy(counter);
		return err;
	}
	map_page(&counter->events[0]);
	if (counter->events[0].user)
		counter->mode = CB_READ_USER;
	*ret = counter;
	return 0;
}

int cb_counter_add(cb_counter *counter, uint32_t type, uint64_t config, uint64_t config1, int how)
{
	cb_event *event = &counter->events[1 + counter->others];
	struct cb_group group;
	int first = leader(counter); /* -1 for the first event besides ticks */
	int err;

	if (counter->others == CB_MAX_OTHERS)
		return -E2BIG;
	err = event_open(type, config, config1, how, first, event);
	if (err) {
		event_close(event);
		return err == -EINVAL && first >= 0 ? -EBUSY : err; /* the kernel's error for a full group */
	}
	counter->others++;
	err = cb_group_read(counter, &group);
	if (err) {
		counter->others--;
		event_close(event);
		if (first >= 0) { /* clears the group's error state */
			ioctl(first, PERF_EVENT_IOC_DISABLE, 0);
			ioctl(first, PERF_EVENT_IOC_ENABLE, 0);
		}
		return err;
	}
	if (counter->mode != CB_READ_TICKS) /* with a clock, read() reads all events at once */
		map_page(event);
	counter->called += !event->user;
	return 0;
}

void cb_counter_destroy(cb_counter *counter)
{
	if (!counter)
		return;
	for (size_t i = CB_MAX_EVENTS; i--;) /* the leader last */
		event_close(&counter->events[i]);
	free(counter);
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

int cb_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t *ret)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	if (__get_cpuid_max(leaf & 0x80000000u, 0) < leaf)
		return -ENOENT;
	__cpuid_count(leaf, subleaf, a, b, c, d);
	ret[0] = a;
	ret[1] = b;
	ret[2] = c;
	ret[3] = d;
	return 0;
#else
	(void)leaf;
	(void)subleaf;
	(void)ret;
	return -ENOSYS;
#endif
}
