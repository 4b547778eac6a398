/*
 * The timed region, and the bookkeeping around it.
 *
 * The function is called through a pointer that the compiler cannot see
 * through, with barriers on both sides: nothing is hoisted out of the region
 * and nothing is moved into it. All looks at the kernel lie outside of it.
 */
#define _GNU_SOURCE
#include "measure.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

__attribute__((noinline)) uint64_t cb_empty_run(void *state, uint64_t n)
{
	(void)state;
	cb_barrier();
	return n;
}

__attribute__((noinline)) static int timed_ticks(cb_run_fn run, void *state, uint64_t n, cb_reading *ret)
{
	uint64_t start, stop, result;

	start = cb_ticks_now();
	result = run(state, n);
	stop = cb_ticks_now();
	ret->value = stop - start;
	ret->result = result;
	return 0;
}

__attribute__((noinline)) static int timed_user(const cb_counter *counter, cb_run_fn run, void *state,
						uint64_t n, cb_reading *ret)
{
	volatile struct perf_event_mmap_page *page = counter->page;
	struct cb_view begin, end;
	uint64_t start, stop, result;
	int err = cb_perf_view(counter, &begin);

	if (err)
		return err;
	start = cb_pmc_now(begin.index);
	result = run(state, n);
	stop = cb_pmc_now(begin.index);
	ret->result = result;
	if (page->lock == begin.lock && page->index == begin.index && page->offset == begin.offset) {
		/* Same stint on the CPU: the raw difference, modulo the counter's width. */
		ret->value = begin.width && begin.width < 64 ? (stop - start) & ((1ull << begin.width) - 1)
							     : stop - start;
		ret->flags |= begin.multiplexed ? CB_MULTIPLEXED : 0;
		return 0;
	}
	/* Rescheduled meanwhile: the full counts still hold, plus what their own reads cost. */
	err = cb_perf_view(counter, &end);
	if (err)
		return err;
	ret->value = end.value - begin.value;
	ret->flags |= CB_RESCHEDULED | (end.multiplexed ? CB_MULTIPLEXED : 0);
	return 0;
}

__attribute__((noinline)) static int timed_syscall(const cb_counter *counter, cb_run_fn run, void *state,
						   uint64_t n, cb_reading *ret)
{
	struct cb_count start, stop;
	uint64_t result;
	int err = cb_perf_read(counter, &start);

	if (err)
		return err;
	cb_barrier();
	result = run(state, n);
	cb_barrier();
	err = cb_perf_read(counter, &stop);
	if (err)
		return err;
	ret->value = stop.value - start.value;
	ret->result = result;
	ret->flags |= stop.enabled - start.enabled != stop.running - start.running ? CB_MULTIPLEXED : 0;
	return 0;
}

int cb_measure(const cb_counter *counter, cb_run_fn run, void *state, uint64_t n, cb_reading *ret)
{
	memset(ret, 0, sizeof(*ret));
	switch (counter->mode) {
	case CB_READ_TICKS:
		return timed_ticks(run, state, n, ret);
	case CB_READ_USER:
		return timed_user(counter, run, state, n, ret);
	case CB_READ_SYSCALL:
		return timed_syscall(counter, run, state, n, ret);
	default:
		return -EINVAL;
	}
}

/* Not fenced, for the counter reads beside it are. */
static inline uint64_t clock_now(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
#else
	uint64_t ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
	return ticks;
#endif
}

uint64_t cb_clock_now(void)
{
	return clock_now();
}

static void note_irqs(const cb_irq_source *irqs, const cb_irq_table *before, const cb_irq_table *after,
		      cb_trial *ret)
{
	if (before->lines != after->lines || before->labels != after->labels) {
		ret->flags |= CB_IRQ_UNKNOWN;
		return;
	}
	for (size_t i = 0; i < after->lines && ret->irq_lines < CB_IRQ_MAX; i++) {
		if (irqs->after[i] == irqs->before[i])
			continue;
		ret->irq_line[ret->irq_lines] = (uint32_t)i;
		ret->irq_count[ret->irq_lines++] = irqs->after[i] - irqs->before[i];
	}
}

int cb_trial_run(const cb_counter *counter, cb_irq_source *irqs, cb_run_fn run, void *state, uint64_t n,
		 uint64_t rewarm, cb_trial *ret)
{
	cb_irq_table table_before = {0, 0}, table_after = {0, 0};
	struct rusage before, after;
	cb_reading reading;
	int err, irq_err = 0;

	memset(ret, 0, sizeof(*ret));
	if (irqs)
		irq_err = cb_irq_read(irqs, irqs->before, &table_before);
	(void)run(state, rewarm);
	ret->cpu_before = sched_getcpu();
	if (getrusage(RUSAGE_THREAD, &before))
		return -errno;
	ret->begin = clock_now();
	err = cb_measure(counter, run, state, n, &reading);
	ret->end = clock_now();
	if (getrusage(RUSAGE_THREAD, &after))
		return -errno;
	ret->cpu_after = sched_getcpu();
	if (err)
		return err;
	if (irqs && !irq_err)
		irq_err = cb_irq_read(irqs, irqs->after, &table_after);
	ret->value = reading.value;
	ret->result = reading.result;
	ret->flags = reading.flags;
	ret->nvcsw = after.ru_nvcsw - before.ru_nvcsw;
	ret->nivcsw = after.ru_nivcsw - before.ru_nivcsw;
	ret->minflt = after.ru_minflt - before.ru_minflt;
	ret->majflt = after.ru_majflt - before.ru_majflt;
	if (!irqs || irq_err)
		ret->flags |= CB_IRQ_UNKNOWN;
	else
		note_irqs(irqs, &table_before, &table_after, ret);
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int cb_trials_run(const cb_counter *counter, cb_irq_source *irqs, cb_run_fn run, void *state, uint64_t n,
		  uint64_t rewarm, uint64_t budget_ns, size_t max, cb_trial *trials, size_t *ret)
{
	uint64_t begun = now_ns();

	*ret = 0;
	while (*ret < max && (*ret == 0 || now_ns() - begun < budget_ns)) {
		int err = cb_trial_run(counter, irqs, run, state, n, rewarm, &trials[*ret]);

		if (err)
			return err;
		(*ret)++;
	}
	return 0;
}
