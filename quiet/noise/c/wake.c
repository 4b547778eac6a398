#define _GNU_SOURCE
#include "wake.h"

#include "detector.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define SECOND 1000000000ull

/* The smallest timer slack that can be requested: 0 requests the default, which the task inherits from its creator. */
enum { QN_SLACK_NS = 1, QN_LOOK_NS = 1000000 };

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
}

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

int qn_wake_create(qn_wake **ret)
{
	qn_wake *wake = mmap(NULL, sizeof(*wake), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (wake == MAP_FAILED)
		return -errno;
	*ret = wake;
	return 0;
}

void qn_wake_destroy(qn_wake *wake)
{
	if (wake)
		munmap(wake, sizeof(*wake));
}

void qn_wake_note(qn_wake *wake, uint64_t ticks, uint64_t latency)
{
	uint64_t bin = latency / QN_WAKE_BIN_NS;
	qn_wake_up *least = wake->worst;

	if (bin < QN_WAKE_BINS)
		wake->bins[bin]++;
	else
		wake->beyond++;
	wake->sum += latency;
	if (latency < wake->least)
		wake->least = latency;
	if (latency > wake->most)
		wake->most = latency;
	for (int i = 1; i < QN_WAKE_WORST; i++) {
		if (wake->worst[i].latency < least->latency)
			least = &wake->worst[i];
	}
	if (latency > least->latency)
		*least = (qn_wake_up){.ticks = ticks, .latency = latency, .number = wake->wakes};
	wake->wakes++;
}

/*
 * The loop. Between two sleeps it only reads two clocks and updates the counts: no allocation, no other call. It skips
 * times that have already passed, because otherwise one delay would count again for each period in it.
 */
static void wake_loop(qn_wake *wake)
{
	uint64_t due = monotonic();
	const uint64_t last = due + wake->duration;

	wake->begin = wake->end = qn_now();
	for (due += wake->period; due <= last && !wake->stop; due += wake->period) {
		const struct timespec until = timespec_of(due);
		uint64_t woke, ticks, latency, passed, left;

		/*
		 * EINTR: a signal arrived; sleep again, because the time is
		 * absolute.
		 */
		do {
			wake->error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		} while (wake->error == EINTR);
		if (wake->error)
			break;
		woke = monotonic();
		ticks = qn_now();
		latency = woke > due ? woke - due : 0;
		qn_wake_note(wake, ticks, latency);
		wake->end = ticks;
		if (wake->stop_above && latency > wake->stop_above)
			break;
		passed = latency / wake->period;
		left = (last - due) / wake->period;
		wake->missed += passed < left ? passed : left;
		due += passed * wake->period;
	}
}

int qn_wake_run(qn_wake *wake)
{
	const struct timespec look = {.tv_nsec = QN_LOOK_NS};
	struct rusage before, after;
	int cpu, slack;

	memset(wake->worst, 0, sizeof(wake->worst));
	memset(wake->bins, 0, sizeof(wake->bins));
	wake->wakes = wake->missed = wake->sum = wake->most = wake->beyond = wake->faults = 0;
	wake->least = UINT64_MAX;
	wake->error = 0;
	prctl(PR_SET_NAME, "quiet-wake");
	prctl(PR_SET_TIMERSLACK, (unsigned long)QN_SLACK_NS);
	slack = prctl(PR_GET_TIMERSLACK);
	wake->slack = slack > 0 ? (uint64_t)slack : 0;
	wake->ready = 1;
	/*
	 * Do not spin, so that the CPU is idle before the first wake-up, as
	 * before all others.
	 */
	while (!wake->go && !wake->stop)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &look, NULL);
	cpu = sched_getcpu();
	if (getrusage(RUSAGE_THREAD, &before))
		return -errno;
	wake_loop(wake);
	if (getrusage(RUSAGE_THREAD, &after))
		return -errno;
	wake->faults = (uint64_t)(after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt);
	wake->cpu = sched_getcpu();
	wake->moved = cpu != wake->cpu;
	wake->done = 1;
	return -wake->error;
}
