/* Start a program and time it: the clock is read right before the start and right after the end. */
#ifndef CB_PROCESS_H
#define CB_PROCESS_H

#include <stddef.h>
#include <stdint.h>

typedef struct cb_process {
	int32_t pid;
	int32_t pidfd;
	int32_t status;     /* of wait4(2), after cb_process_reap() */
	uint64_t begin_ns;  /* CLOCK_MONOTONIC */
	uint64_t end_ns;
	/* The following fields are from wait4(2), for the program and the children that it waited for. */
	int64_t user_us;
	int64_t system_us;
	int64_t voluntary;  /* context switches */
	int64_t involuntary;
	int64_t minor_faults;
	int64_t major_faults;
} cb_process;

/*
 * Execute `path` in a new session, with the first three descriptors in `files`
 * as its standard streams; it is killed when the calling thread ends. Before it
 * executes `path`, the child writes its process group as a line to the beginning
 * of the fourth file. `cpus`: a bit for each CPU that it may use, NULL for the
 * caller's CPUs. Returns 0 or a negative errno, also for failures in the child.
 */
int cb_process_start(const char *path, char *const *argv, char *const *envp, const int *files, const uint8_t *cpus,
		     size_t cpus_size, cb_process *ret);

/*
 * Wait at most this long for the program's end: 1 if it has ended, 0 if not,
 * -EINTR if a signal arrived. The program stays a zombie.
 */
int cb_process_wait(cb_process *process, int timeout_ms);

/* Collect the program's exit status and resource usage; blocks until it has ended. Returns 0 or -errno. */
int cb_process_reap(cb_process *process);

#endif
