/*
 * Counters: the source of a trial's number, and the additionally counted
 * events.
 *
 *   CB_READ_TICKS    x86 time stamp counter or arm64 cntvct: a clock, not cycles
 *   CB_READ_USER     perf_event counter read from user space (rdpmc, pmccntr)
 *   CB_READ_SYSCALL  perf_event counter read with read()
 *
 * The first event gives the trial's number; up to CB_MAX_OTHERS further ones
 * are in the same perf_event group, so all of them count or none does.
 *
 * The read sequence for CB_READ_USER is the one documented at struct
 * perf_event_mmap_page in linux/perf_event.h and, for arm64, in
 * Documentation/arch/arm64/perf.rst. The reads themselves are in reads.h.
 */
#ifndef CB_COUNTERS_H
#define CB_COUNTERS_H

#include "chain.h"
#include "reads.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

enum { CB_READ_TICKS = 0, CB_READ_USER = 1, CB_READ_SYSCALL = 2 };
enum { CB_EXCLUDE_KERNEL = 1, CB_EXCLUDE_USER = 2, CB_MUST_COUNT = 4 };
enum { CB_MAX_OTHERS = 7, CB_MAX_EVENTS = 1 + CB_MAX_OTHERS };

typedef struct cb_event {
	int fd;
	int user; /* whether its page lets user space read it */
	size_t page_len;
	struct perf_event_mmap_page *page;
} cb_event;

/* events[0] gives the trial's number, except with CB_READ_TICKS: there it is unused. */
typedef struct cb_counter {
	int mode;
	uint64_t chain; /* length of the chains around each trial, 0: none */
	unsigned int others; /* the number of events in use, from events[1] on */
	unsigned int called; /* the number of these that only read() can read */
	cb_event events[CB_MAX_EVENTS];
} cb_counter;

/* One read() of the whole group. `values` are in the order of opening. */
struct cb_group {
	uint64_t events;
	uint64_t enabled;
	uint64_t running;
	uint64_t values[CB_MAX_EVENTS];
};

/* A consistent view of an event's page: `value` is the full 64-bit count. */
struct cb_view {
	uint64_t value;
	int64_t offset;
	uint32_t lock;
	uint32_t index;
	uint16_t width;
	uint64_t lag; /* time enabled minus time running: grows while the event is not on the PMU */
};

int cb_ticks_create(cb_counter **ret);

/* Run chains of this length around each trial from now on; 0: none. -EINVAL: not a multiple of QN_CHAIN_BODY. */
int cb_counter_chain(cb_counter *counter, uint64_t length);

/* `how`: the flags above. With CB_MUST_COUNT, returns -ENODATA if the event does not count a short loop. */
int cb_perf_create(uint32_t type, uint64_t config, uint64_t config1, int how, cb_counter **ret);
void cb_counter_destroy(cb_counter *counter);

/*
 * Add an event to the group. -EBUSY: the PMU has no counter left for it;
 * -E2BIG: the group already has CB_MAX_OTHERS additional events.
 */
int cb_counter_add(cb_counter *counter, uint32_t type, uint64_t config, uint64_t config1, int how);

/* -EBUSY: the group is not on the PMU. -EOPNOTSUPP: there is no event at all. */
int cb_group_read(const cb_counter *counter, struct cb_group *ret);

/* -EAGAIN: user space cannot read the event now. */
int cb_event_view(const cb_event *event, struct cb_view *ret);

/* Measure the ticks of k dependent multiplications, for k = 0..63 in turn, to determine the step of the clock. */
int cb_ticks_deltas(uint64_t *deltas, size_t n);

/*
 * Read one leaf of CPUID on the current x86 CPU: EAX, EBX, ECX, EDX into
 * ret[0..3]. -ENOENT above the highest leaf of its range, -ENOSYS on other
 * processors. In a virtual machine each call traps, so do not call this near a
 * timed region.
 */
int cb_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t *ret);

/* A raw hardware count of `width` bits as the signed number that perf adds to `offset`. */
static inline int64_t cb_sign_extend(uint64_t raw, uint16_t width)
{
	unsigned int shift = width && width < 64 ? 64u - width : 0;

	return (int64_t)(raw << shift) >> shift;
}

#endif
