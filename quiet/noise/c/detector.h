/*
 * The detector: a loop that only reads the clock and records every gap, that
 * is, every interval at least as long as a threshold in which the loop did not
 * run.
 *
 * The clock is the processor's own counter: the time stamp counter on x86,
 * cntvct on arm64, CLOCK_MONOTONIC_RAW in nanoseconds elsewhere. All times in
 * this file are in ticks of this clock, except those named `..._ns`. The loop
 * cannot detect interruptions shorter than a few of its own periods, or
 * contention that does not stop the core (a busy shared cache or memory bus).
 *
 * Functions that return an int return 0 or a negative error number.
 */
#ifndef QN_DETECTOR_H
#define QN_DETECTOR_H

#include <stddef.h>
#include <stdint.h>

/*
 * Histogram: 16 buckets for each power of two, so the width of a bucket is at
 * most 1/16 of its values. Each value below 16 has its own bucket.
 */
enum { QN_SUB_BITS = 4, QN_SUB = 1 << QN_SUB_BITS, QN_BUCKETS = (64 - QN_SUB_BITS + 1) * QN_SUB };

enum { QN_TURN = 64 }; /* readings between two checks of the stop flag */

/* qn_gap.flags */
enum { QN_SWITCHED = 1, QN_FAULTED = 2, QN_LOOKED = 4 };

typedef struct qn_gap {
	uint64_t begin; /* the last reading before the gap */
	uint64_t length;
	uint32_t flags; /* QN_LOOKED: the thread's counters were read after the gap; otherwise no flag is known */
	uint32_t pad;
} qn_gap;

/* Shared by the parent and the detector, so that no data is lost if either process ends. */
typedef struct qn_watch {
	/* the request */
	uint64_t threshold; /* a gap is kept from this length on */
	uint64_t look;	    /* read the thread's own counters after gaps from this length on; 0: never */
	uint64_t duration;
	uint64_t capacity;
	volatile uint32_t go;	/* set by the parent: start watching */
	volatile uint32_t stop; /* set by the parent: end early */
	volatile uint32_t leave; /* set by the parent after its last read of the counts: the detector may end */
	/* the result */
	volatile uint32_t ready; /* on its CPU, all memory touched, waiting for `go` */
	volatile uint32_t done;
	uint64_t begin; /* first and last reading */
	uint64_t end;
	uint64_t readings;
	uint64_t gaps; /* number of gaps, min(gaps, capacity) are kept */
	uint64_t lost; /* the sum of all gaps' lengths */
	uint64_t longest;
	uint64_t shortest; /* the shortest gap */
	uint64_t looking;  /* ticks spent keeping gaps and reading counters, without detecting gaps; not in `lost` */
	uint64_t voluntary, involuntary, faults; /* counts of the detector's thread over the whole time */
	int32_t cpu;		     /* CPU at the end; the same as at the start unless `moved` */
	int32_t moved;
	uint64_t histogram[QN_BUCKETS]; /* of all gaps' lengths, kept or not */
	uint64_t keeping; /* the shortest time that keeping a gap took; at first a much longer time (QN_COLD) */
} qn_watch;

/* The bucket of a value, and the lowest value of a bucket. */
size_t qn_bucket(uint64_t value);
uint64_t qn_bucket_floor(size_t bucket);

/* Allocate anonymous memory that children share: a qn_watch, followed by `capacity` gaps. */
int qn_watch_create(uint64_t capacity, qn_watch **ret);
void qn_watch_destroy(qn_watch *watch);
qn_gap *qn_watch_gaps(qn_watch *watch);

/*
 * Run the detector on the calling thread, which must already be on the CPU to
 * watch. It first touches all memory, sets `ready` and waits for `go`; at the
 * end, it sets `done` and waits for `leave`.
 */
int qn_watch_run(qn_watch *watch);

/* Measure `n` successive differences between two readings of the loop. */
void qn_periods(uint64_t *periods, size_t n);

/*
 * Measure `n` times how long one timer interrupt stops the loop, with a timer
 * whose signal is blocked. A length is 0 if the interrupt did not arrive.
 */
int qn_interruptions(uint64_t *lengths, size_t n);

/*
 * Measure `n` times how long it takes to touch an unmapped page. If page faults
 * are traced, each measurement causes one event.
 */
int qn_faults(uint64_t *lengths, size_t n);

/* Use this instead of exit() in a forked child: it runs none of the parent's exit handlers and flushes no buffers. */
void qn_exit(int code);

int qn_lock_memory(void);
int qn_fifo(int priority);
int qn_die_with_parent(int parent);

uint64_t qn_now(void);
const char *qn_clock_name(void);

/* One moment as read on three clocks; `ticks` is accurate to `spread` ticks. */
typedef struct qn_moment {
	uint64_t ticks;
	uint64_t spread;
	uint64_t raw_ns;       /* CLOCK_MONOTONIC_RAW */
	uint64_t monotonic_ns; /* CLOCK_MONOTONIC */
} qn_moment;
void qn_moment_now(qn_moment *ret);

#endif
