/*
 * Start a program and time it.
 *
 * With vfork(2), the cost of a start does not depend on the size of the caller.
 * The child sets its own CPUs, so that the caller never has to run on them. A
 * pidfd and not a signal reports the end of the program, which is then still a
 * zombie, so /proc still has its statistics.
 */
#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLOSE_ON_EXEC = 4 }; /* CLOSE_RANGE_CLOEXEC, since Linux 5.11 */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Write this process's ID, right-aligned in a line, to the beginning of a file. Returns 0 or errno. */
static int write_group(int file)
{
	char line[21];
	size_t at = sizeof(line) - 1;

	memset(line, ' ', sizeof(line));
	line[at] = '\n';
	for (pid_t rest = getpid(); rest; rest /= 10)
		line[--at] = (char)('0' + rest % 10);
	return pwrite(file, line, sizeof(line), 0) == sizeof(line) ? 0 : errno;
}

/*
 * Prepare the child and execute the program. Only async-signal-safe calls are
 * allowed, because the child borrows the caller's memory.
 */
static int become(const char *path, char *const *argv, char *const *envp, const int *files, const uint8_t *cpus,
		  size_t cpus_size, const sigset_t *mask, pid_t parent)
{
	static const int ignored_by_python[] = { SIGPIPE, SIGXFSZ };
	struct sigaction usual = { .sa_handler = SIG_DFL };

	if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || write_group(files[3]))
		return errno;
	/* 0: the parent is in another PID namespace. Otherwise, it was killed before the kernel knew of PDEATHSIG. */
	if (getppid() != parent && getppid() != 0)
		return ESRCH;
	for (int i = 0; i < 3; i++)
		if (dup2(files[i], i) < 0)
			return errno;
	/*
	 * Close descriptors that the caller has left open. Old kernels reject
	 * the call; the program then inherits the descriptors.
	 */
	syscall(SYS_close_range, 3, ~0U, CLOSE_ON_EXEC);
	if (cpus && syscall(SYS_sched_setaffinity, 0, cpus_size, cpus) < 0)
		return errno;
	for (size_t i = 0; i < sizeof(ignored_by_python) / sizeof(*ignored_by_python); i++)
		sigaction(ignored_by_python[i], &usual, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execve(path, argv, envp);
	return errno;
}

int cb_process_start(const char *path, char *const *argv, char *const *envp, const int *files, const uint8_t *cpus,
		     size_t cpus_size, cb_process *ret)
{
	volatile int error = 0; /* the child writes it */
	sigset_t all, before;
	pid_t parent = getpid(), pid;

	memset(ret, 0, sizeof(*ret));
	ret->pidfd = -1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* no signal handler of the caller may run in the child */
	ret->begin_ns = now_ns();
	pid = vfork();
	if (pid == 0) {
		error = become(path, argv, envp, files, cpus, cpus_size, &before, parent);
		_exit(127);
	}
	if (pid < 0)
		error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid > 0 && !error && (ret->pidfd = (int)syscall(SYS_pidfd_open, pid, 0)) < 0) {
		error = errno;
		kill(pid, SIGKILL);
	}
	if (pid > 0 && error)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	ret->pid = pid;
	return -error;
}

int cb_process_wait(cb_process *process, int timeout_ms)
{
	struct pollfd end = { .fd = process->pidfd, .events = POLLIN };
	int ready = poll(&end, 1, timeout_ms);

	if (ready < 0)
		return -errno;
	if (ready)
		process->end_ns = now_ns();
	return ready;
}

static int64_t microseconds(struct timeval time)
{
	return (int64_t)time.tv_sec * 1000000 + time.tv_usec;
}

int cb_process_reap(cb_process *process)
{
	struct rusage usage;
	int status;

	while (wait4(process->pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return -errno;
	close(process->pidfd);
	process->pidfd = -1;
	process->status = status;
	process->user_us = microseconds(usage.ru_utime);
	process->system_us = microseconds(usage.ru_stime);
	process->voluntary = usage.ru_nvcsw;
	process->involuntary = usage.ru_nivcsw;
	process->minor_faults = usage.ru_minflt;
	process->major_faults = usage.ru_majflt;
	return 0;
}
