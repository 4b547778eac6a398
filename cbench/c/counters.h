/*
 * Counters: where a trial's number comes from.
 *
 *   CB_READ_TICKS    x86 time stamp counter or arm64 cntvct: a clock, not cycles
 *   CB_READ_USER     perf_event counter read from user space (rdpmc, pmccntr)
 *   CB_READ_SYSCALL  perf_event counter read with read()
 *
 * The read sequence for CB_READ_USER is the one documented at struct
 * perf_event_mmap_page in linux/perf_event.h and, for arm64, in
 * Documentation/arch/arm64/perf.rst. The reads themselves are in reads.h.
 */
#ifndef CB_COUNTERS_H
#define CB_COUNTERS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "reads.h"

enum { CB_READ_TICKS = 0, CB_READ_USER = 1, CB_READ_SYSCALL = 2 };

typedef struct cb_counter {
	int mode;
	int fd;
	size_t page_len;
	struct perf_event_mmap_page *page;
} cb_counter;

/* What one read of a perf_event counter returns. */
struct cb_count {
	uint64_t value;
	uint64_t enabled;
	uint64_t running;
};

/* A consistent view of the counter's page: `value` is the full 64-bit count. */
struct cb_view {
	uint64_t value;
	int64_t offset;
	uint32_t lock;
	uint32_t index;
	uint16_t width;
	int multiplexed;
};

int cb_ticks_create(cb_counter **ret);
int cb_perf_create(uint32_t type, uint64_t config, uint64_t config1, int exclude_kernel, cb_counter **ret);
void cb_counter_destroy(cb_counter *counter);
int cb_counter_mode(const cb_counter *counter);

int cb_perf_read(const cb_counter *counter, struct cb_count *ret);
int cb_perf_view(const cb_counter *counter, struct cb_view *ret);

/* Ticks that pass over k dependent multiplications, k = 0..63 in turn: shows the counter's step. */
int cb_ticks_deltas(uint64_t *deltas, size_t n);

/* A raw hardware count of `width` bits as the signed number that perf adds to `offset`. */
static inline int64_t cb_sign_extend(uint64_t raw, uint16_t width)
{
	unsigned int shift = width && width < 64 ? 64u - width : 0;

	return (int64_t)(raw << shift) >> shift;
}

#endif
