// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Warm-up, trials, and their limits.
 *
 * The duration of the function is measured with interrupts on, by doubling n,
 * before any interrupt is held back. Between two trials, interrupts are on and
 * other tasks may run. A timer, RCU or a watchdog therefore waits for this CPU
 * for at most one trial, 0.5 s; the shortest of their limits is 10 s.
 */
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>
#include <linux/timekeeping.h>

#include "internal.h"

#define PROBE_FIRST 1024
#define PROBE_TRIES 3
#define EMPTY_TRIALS 64
#define TRIES 3 /* trials in a row that are too long, or during which perf wrote to the counter */

/* Called with interrupts off. Nothing but the function runs between the two reads. */
static int one_trial(void *data)
{
	struct cb_job *job = data;
	struct cb_ends ends;
	u64 began = ktime_get_mono_fast_ns();
	u64 epoch = 0;
	u32 index = 0;

	job->err = -ENODEV;
	if (smp_processor_id() != job->request->cpu)
		return 0;
	job->err = -EIO;
	if (job->event) {
		index = cb_pmu_index(job->event);
		if (!index)
			return 0;
		epoch = cb_pmu_epoch(job->event);
	}
	if (job->rewarm)
		job->now->workload->run(job->state, job->rewarm);
	if (job->event)
		job->now->cycles(index, job->state, job->n, &ends);
	else
		job->now->ticks(0, job->state, job->n, &ends);
	job->value = (ends.stop - ends.start) & job->mask;
	job->result = ends.result;
	job->took_ns = ktime_get_mono_fast_ns() - began;
	job->err = job->event && cb_pmu_epoch(job->event) != epoch ? -EAGAIN : 0;
	return 0;
}

/* -ENODEV: not on the requested CPU. -EIO: no counter. -EAGAIN: perf wrote to the counter. */
static int run_trial(struct cb_job *job)
{
	unsigned long flags;
	int err = 0;

	job->err = -ENODEV; /* stop_machine() calls nothing if the CPU has gone offline */
	if (job->request->flags & CBENCH_STOP_MACHINE) {
		err = stop_machine(one_trial, job, cpumask_of(job->request->cpu));
	} else {
		local_irq_save(flags);
		one_trial(job);
		local_irq_restore(flags);
	}
	return err ?: job->err;
}

/* Let other tasks run. With full preemption, cond_resched() does nothing and is not needed. */
static void let_others(void)
{
	cond_resched_tasks_rcu_qs();
}

static u64 time_once(const struct cb_job *job, u64 n)
{
	u64 began = ktime_get_mono_fast_ns();

	job->workload->workload->run(job->state, n);
	return ktime_get_mono_fast_ns() - began;
}

/* A duration includes interrupts and other tasks, so a run that seems too long is repeated; the shortest counts. */
static u64 shortest(const struct cb_job *job, u64 n, u64 limit)
{
	u64 took = time_once(job, n);
	int i;

	for (i = 1; i < PROBE_TRIES && took > limit && !fatal_signal_pending(current); i++) {
		let_others();
		took = min(took, time_once(job, n));
	}
	return took;
}

static u64 saturated(u64 a, u64 b)
{
	return b && a > div64_u64(U64_MAX, b) ? U64_MAX : a * b;
}

/*
 * Measure the total time of the calls with n and with rewarm; -ETIME, with an
 * estimate, if it is too long. Doubling n keeps each step short.
 */
static int probe(struct cb_job *job)
{
	struct cbench_request *request = job->request;
	u64 limit = request->max_region_ns, longest = max(request->params[0], request->rewarm);
	u64 n = min_t(u64, longest, PROBE_FIRST), total;

	for (;;) {
		u64 took = shortest(job, n, limit);

		if (signal_pending(current)) {
			request->reason = CBENCH_SIGNAL;
			return -EINTR;
		}
		/* rewarm is usually a fraction of n, and then takes no longer than this fraction of the time. */
		total = saturated(took, DIV64_U64_ROUND_UP(longest, max_t(u64, n, 1)));
		if (n == longest && request->rewarm)
			total = took + (request->rewarm < request->params[0] ?
						shortest(job, request->rewarm, limit) :
						shortest(job, request->params[0], limit));
		if (took > limit || (n == longest && total > limit)) {
			request->reason = CBENCH_TOO_LONG;
			request->region_ns = total;
			request->fitting_n = n / 4;
			return -ETIME;
		}
		if (n == longest)
			return 0;
		n = n > longest / 2 ? longest : 2 * n;
		let_others();
	}
}

static int empty_region(struct cb_job *job)
{
	u64 lowest = U64_MAX;
	int i, err;

	job->now = cb_kernel_workload_find("empty");
	job->n = 1;
	job->rewarm = 0;
	for (i = 0; i < EMPTY_TRIALS; i++) {
		err = run_trial(job);
		if (err == -EAGAIN)
			continue;
		if (err)
			return err;
		lowest = min(lowest, job->value);
	}
	job->request->overhead = lowest;
	return 0;
}

static int cut_short(struct cb_job *job, int err)
{
	switch (err) {
	case -ENODEV:
		job->request->reason = CBENCH_CPU_GONE;
		return 0;
	case -EIO:
	case -EAGAIN:
		job->request->reason = CBENCH_COUNTER_LOST;
		return 0;
	case -ETIME:
		job->request->reason = CBENCH_TOO_LONG;
		return 0;
	case -EINTR:
		job->request->reason = CBENCH_SIGNAL;
		return 0;
	default:
		return err;
	}
}

/* Run `count` trials, and write them to `trials` unless that is NULL. */
static int series(struct cb_job *job, struct cbench_trial *trials, u32 count, u32 *done)
{
	struct cbench_request *request = job->request;
	unsigned int bad = 0;

	job->now = job->workload;
	job->n = request->params[0];
	job->rewarm = request->rewarm;
	for (*done = 0; *done < count;) {
		int err;

		let_others();
		if (signal_pending(current))
			return -EINTR;
		err = run_trial(job);
		if (err && err != -EAGAIN)
			return err;
		request->region_ns = max(request->region_ns, job->took_ns);
		bad = err || job->took_ns > request->max_region_ns ? bad + 1 : 0;
		if (bad >= TRIES)
			return err ?: -ETIME;
		if (err)
			continue;
		if (trials) {
			trials[*done].value = job->value;
			trials[*done].result = job->result;
		}
		(*done)++;
	}
	return 0;
}

int cb_job_run(struct cb_job *job, struct cbench_trial *trials)
{
	u32 ignored;
	int err = probe(job);

	if (err)
		return err;
	err = empty_region(job);
	if (!err)
		err = series(job, NULL, job->request->warmup, &ignored);
	if (!err)
		err = series(job, trials, job->request->trials, &job->request->done);
	return err ? cut_short(job, err) : 0;
}
