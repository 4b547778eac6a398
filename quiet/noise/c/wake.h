/*
 * Wake-up latency: a pinned thread sleeps until absolute times, one period
 * apart, and records how much later than requested it runs again. This includes
 * delays that a spinning loop (detector.h) cannot detect: the exit from an idle
 * state, a late timer interrupt, and the scheduler.
 *
 * Functions that return an int return 0 or a negative error number.
 */
#ifndef QN_WAKE_H
#define QN_WAKE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The histogram: bins of 100 ns up to 10 ms. Later wake-ups are counted in
 * `beyond`.
 */
enum { QN_WAKE_BIN_NS = 100, QN_WAKE_BINS = 100000, QN_WAKE_WORST = 16 };

typedef struct qn_wake_up {
	uint64_t ticks; /* when the thread ran again, by qn_now() */
	uint64_t latency; /* ns */
	uint64_t number;
} qn_wake_up;

/* Shared by the parent and the sleeping process, so that no data is lost if either process ends. */
typedef struct qn_wake {
	/* the request, in ns */
	uint64_t period;
	uint64_t duration;
	uint64_t stop_above; /* end after the first wake-up later than this; 0: never */
	volatile uint32_t go;
	volatile uint32_t stop;
	/* the result */
	volatile uint32_t ready;
	volatile uint32_t done;
	uint64_t begin, end; /* ticks at the start and after the last wake-up */
	uint64_t wakes;
	uint64_t missed; /* periods skipped because they had passed when the thread ran again */
	uint64_t sum, least, most; /* of the latencies, ns */
	uint64_t beyond;
	uint64_t slack;	 /* timer slack of the thread, ns; does not apply to a real-time thread */
	uint64_t faults; /* page faults of the sleeping thread */
	int32_t cpu;	 /* CPU at the end; the same as at the start unless `moved` */
	int32_t moved;
	int32_t error; /* error number of clock_nanosleep; 0: none */
	int32_t pad;
	qn_wake_up worst[QN_WAKE_WORST]; /* unordered; an entry with latency 0 is unused */
	uint64_t bins[QN_WAKE_BINS];
} qn_wake;

/* Allocate anonymous memory that children share. */
int qn_wake_create(qn_wake **ret);
void qn_wake_destroy(qn_wake *wake);

/*
 * Sleep on the calling thread, which must already be pinned. It first touches all memory, sets `ready` and waits for
 * `go`; at the end, it sets `done`.
 */
int qn_wake_run(qn_wake *wake);

/* Add one wake-up to the counts. */
void qn_wake_note(qn_wake *wake, uint64_t ticks, uint64_t latency);

#endif
