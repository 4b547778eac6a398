/* The bookkeeping around the timed region: all reads of kernel data lie outside it. */
#define _GNU_SOURCE
#include "measure.h"

#include <alloca.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Read as in quiet/noise/c/detector.c. rdtsc is unfenced, because the adjacent counter reads are fenced. */
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
	err = cb_measure(counter, run, state, rewarm, &reading);
	if (err)
		return err;
	ret->cpu_before = sched_getcpu();
	if (getrusage(RUSAGE_THREAD, &before))
		return -errno;
	ret->begin = clock_now();
	if (counter->chain)
		qn_chain_run(counter->chain, 1, &ret->before);
	err = cb_measure(counter, run, state, n, &reading);
	if (counter->chain)
		qn_chain_run(counter->chain, 0, &ret->after);
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
	memcpy(ret->others, reading.others, sizeof(ret->others));
	ret->beside = reading.beside;
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

__attribute__((noinline)) static int run_trials(const cb_counter *counter, cb_irq_source *irqs, cb_run_fn run,
						void *state, uint64_t n, uint64_t rewarm, uint64_t budget_ns,
						size_t max, cb_trial *trials, size_t *ret)
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

int cb_trials_run(const cb_counter *counter, cb_irq_source *irqs, cb_run_fn run, void *state, uint64_t n,
		  uint64_t rewarm, uint64_t budget_ns, size_t stack_offset, size_t max, cb_trial *trials, size_t *ret)
{
	volatile char *below;

	if (stack_offset > 65536)
		return -EINVAL;
	below = alloca(stack_offset + 1);
	below[0] = 0; /* use the memory, so that the compiler keeps it */
	return run_trials(counter, irqs, run, state, n, rewarm, budget_ns, max, trials, ret);
}
