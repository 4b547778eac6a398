#define _GNU_SOURCE
#include "clock.h"
#include "detector.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { QN_TIMER_NS = 50000, QN_LOOKS = 100000 };

/*
 * The longest absence of the loop until the timer's signal arrives. Checking
 * for the signal counts as absence.
 */
static uint64_t interruption(timer_t timer)
{
	const struct itimerspec soon = {.it_value = {.tv_nsec = QN_TIMER_NS}};
	const struct timespec none = {0, 0};
	uint64_t last = now(), longest = 0;
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGALRM);
	if (timer_settime(timer, 0, &soon, NULL))
		return 0;
	last = now();
	for (int looks = 0; looks < QN_LOOKS; looks++) {
		int fired = sigtimedwait(&wanted, NULL, &none) == SIGALRM;

		for (int i = 0; i < QN_TURN; i++) {
			uint64_t t = now();

			if (t - last > longest)
				longest = t - last;
			last = t;
		}
		if (fired)
			return longest;
	}
	return 0;
}

int qn_interruptions(uint64_t *lengths, size_t n)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct sigaction ignored = {.sa_handler = SIG_IGN}, handled;
	sigset_t blocked, before;
	timer_t timer;
	int err = 0;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	if (sigprocmask(SIG_BLOCK, &blocked, &before))
		return -errno;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer)) {
		err = -errno;
	} else {
		for (size_t i = 0; i < n; i++)
			lengths[i] = interruption(timer);
		timer_delete(timer);
	}
	/* The last signal may still be pending, even if its timer was deleted; ignoring the signal discards it. */
	if (sigaction(SIGALRM, &ignored, &handled) || sigprocmask(SIG_SETMASK, &before, NULL) ||
	    sigaction(SIGALRM, &handled, NULL))
		return err ? err : -errno;
	return err;
}

int qn_faults(uint64_t *lengths, size_t n)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		uint64_t before;

		madvise((void *)page, size, MADV_DONTNEED);
		before = now();
		*page = 1;
		lengths[i] = now() - before;
	}
	return munmap((void *)page, size) ? -errno : 0;
}
