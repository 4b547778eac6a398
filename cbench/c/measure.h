/* One trial: a function called once between two counter reads, and the kernel's account of that time. */
#ifndef CB_MEASURE_H
#define CB_MEASURE_H

#include "counters.h"
#include "irq.h"

typedef uint64_t (*cb_run_fn)(void *state, uint64_t n);

enum {
	CB_RESCHEDULED = 1, /* the counter was descheduled and scheduled again */
	CB_MULTIPLEXED = 2, /* the counter did not count all of the time: the value is not a measurement */
	CB_IRQ_UNKNOWN = 4, /* the interrupt lines changed, or could not be read */
};

enum { CB_IRQ_MAX = 6 };

typedef struct cb_reading {
	uint64_t value;
	uint64_t result;
	uint32_t flags;
	uint64_t others[CB_MAX_OTHERS]; /* the counter's further events, in the order of cb_counter_add() */
	uint64_t beside; /* counted while the first further event is read; 0 unless read in user space */
} cb_reading;

typedef struct cb_trial {
	uint64_t value;  /* counter units */
	uint64_t result; /* return value of the function */
	uint32_t flags;
	int32_t cpu_before;
	int32_t cpu_after;
	uint64_t begin; /* just before the first counter read and just after the second one, or around the chains, */
	uint64_t end;   /* by the clock of quiet's detector; trace times convert to it */
	int64_t nvcsw; /* this and the next three: increases of getrusage(RUSAGE_THREAD) */
	int64_t nivcsw;
	int64_t minflt;
	int64_t majflt;
	uint32_t irq_lines; /* the number of the following pairs that are used; further lines are not kept */
	uint32_t irq_line[CB_IRQ_MAX];
	uint64_t irq_count[CB_IRQ_MAX];
	uint64_t others[CB_MAX_OTHERS];
	uint64_t beside; /* as in cb_reading */
	qn_chain before; /* the chains around the trial, all 0 if the counter has none */
	qn_chain after;
} cb_trial;

/* The only timed region (timed.c). */
int cb_measure(const cb_counter *counter, cb_run_fn run, void *state, uint64_t n, cb_reading *ret);

/*
 * cb_measure() between two readings of rusage, the CPU number and `irqs` (may be NULL).
 *
 * Reading the interrupt counts runs so much kernel code that the workload's
 * data are evicted from caches and predictors. So run(state, rewarm) is called
 * once between that reading and the trial, through the same timed region, which
 * has to be warm as well; its value is discarded.
 */
int cb_trial_run(const cb_counter *counter, cb_irq_source *irqs, cb_run_fn run, void *state, uint64_t n,
		 uint64_t rewarm, cb_trial *ret);

/*
 * Run at least one and at most `max` trials, and begin none later than `budget_ns` after the start. *ret: the number
 * of trials. `stack_offset`: the number of bytes (up to 64 KiB) by which the stack of the trials is shifted down.
 */
int cb_trials_run(const cb_counter *counter, cb_irq_source *irqs, cb_run_fn run, void *state, uint64_t n,
		  uint64_t rewarm, uint64_t budget_ns, size_t stack_offset, size_t max, cb_trial *trials, size_t *ret);

/* Measure n times the difference between two successive reads of the counter. */
int cb_empty_regions(const cb_counter *counter, uint64_t *values, size_t n);

#endif
