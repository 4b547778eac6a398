/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only WITH Linux-syscall-note */
/*
 * The only interface of cbench's kernel module: an ioctl on /dev/cbench.
 *
 * The calling thread must be bound to the CPU that it names. The module
 * measures in that thread, with interrupts off from before a trial's first
 * counter read until after its second one.
 *
 * Whenever the ioctl knows why it did not complete a request, it writes
 * `reason`, even if it returns an error. If it returns 0, `done` trials have
 * been written, and reason is CBENCH_DONE or the cause of the early end.
 */
#ifndef CBENCH_KMOD_H
#define CBENCH_KMOD_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define CBENCH_VERSION 1
#define CBENCH_NAME_LEN 32
#define CBENCH_PARAMS_MAX 6
#define CBENCH_TRIALS_MAX 1000000u
#define CBENCH_REGION_DEFAULT_NS 100000000ull
#define CBENCH_REGION_MAX_NS 500000000ull

/* flags */
#define CBENCH_STOP_MACHINE 1u /* hold every other CPU, by stop_machine(), during each trial */

/* counter */
#define CBENCH_BEST 0u /* cycles if available, else ticks */
#define CBENCH_CYCLES 1u
#define CBENCH_TICKS 2u

/* reason, with the result of the ioctl */
#define CBENCH_DONE 0u
#define CBENCH_BAD_VERSION 1u /* EINVAL */
#define CBENCH_BAD_REQUEST 2u /* EINVAL: flags, counter, warmup or region */
#define CBENCH_BAD_WORKLOAD 3u /* EINVAL: no workload has this name */
#define CBENCH_BAD_PARAM 4u /* EINVAL: one of params, their number, or rewarm */
#define CBENCH_BAD_TRIALS 5u /* EINVAL */
#define CBENCH_CPU_OFFLINE 6u /* ENODEV */
#define CBENCH_NOT_BOUND 7u /* EINVAL: the calling thread may run on another CPU */
#define CBENCH_BUSY 8u /* EBUSY: another process measures */
#define CBENCH_NO_MEMORY 9u /* ENOMEM */
#define CBENCH_NO_CYCLES 10u /* perf's error, or EBUSY, ENODATA or EOPNOTSUPP */
#define CBENCH_TOO_LONG 11u /* ETIME if found before the warm-up; 0 if trials then took longer than allowed */
#define CBENCH_SIGNAL 12u /* EINTR before the warm-up, else 0 */
#define CBENCH_CPU_GONE 13u /* 0: the CPU went offline, or the thread was moved */
#define CBENCH_COUNTER_LOST 14u /* 0: perf took the counter away */

struct cbench_trial {
	__u64 value; /* in the unit of `counter` */
	__u64 result; /* return value of the workload */
};

struct cbench_request {
	/* In. */
	__u32 version; /* CBENCH_VERSION */
	__u32 flags;
	char workload[CBENCH_NAME_LEN]; /* the name, with its final zero */
	__aligned_u64 params[CBENCH_PARAMS_MAX]; /* as in user space: n, then buffer parameters */
	__aligned_u64 rewarm; /* n of an extra untimed call before each trial; 0: none */
	__u32 param_count;
	__u32 cpu;
	__u32 wanted; /* counter */
	__u32 pmu_type; /* the PMU's number on hybrid CPUs, else 0 */
	__u32 trials; /* 1 .. CBENCH_TRIALS_MAX */
	__u32 warmup; /* trials before these, not written; at most CBENCH_TRIALS_MAX */
	__aligned_u64 max_region_ns; /* time with interrupts off; 0: the default */
	__aligned_u64 trials_at; /* address of struct cbench_trial[trials] */
	/* Out. */
	__u32 reason;
	__u32 counter; /* CBENCH_CYCLES or CBENCH_TICKS */
	__u32 width; /* of the counter, bits: a difference is modulo 2^width */
	__u32 done;
	__aligned_u64 overhead; /* the lowest value of an empty region */
	__aligned_u64 region_ns; /* longest time with interrupts off; with ETIME: an estimate of it */
	__aligned_u64 fitting_n; /* with ETIME: an n that is short enough */
	__s32 pmu_error; /* why there are no cycles: -errno */
	__u32 pad;
};

#define CBENCH_RUN _IOWR(0xC8, 1, struct cbench_request)

#endif
