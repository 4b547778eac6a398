/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Declarations shared by the module's files. */
#ifndef CBENCH_INTERNAL_H
#define CBENCH_INTERNAL_H

#include <linux/types.h>

#include "../c/workloads/workloads.h"
#include "cbench_kmod.h"

struct perf_event;

/* The results of the two reads and the call between them. */
struct cb_ends {
	u64 start;
	u64 stop;
	u64 result;
};

typedef void (*cb_region_fn)(u32 index, void *state, u64 n, struct cb_ends *ret);

/* A workload of user space, and the regions that time it here. */
struct cb_kernel_workload {
	const cb_workload *workload;
	cb_region_fn cycles;
	cb_region_fn ticks;
	u64 max_n;
};

struct cb_job {
	struct cbench_request *request;
	const struct cb_kernel_workload *workload;
	void *state;
	struct perf_event *event; /* NULL: ticks */
	u64 mask; /* of the counter's width */
	/* The trial that is running or has just been run. */
	const struct cb_kernel_workload *now;
	u64 n;
	u64 rewarm;
	u64 value;
	u64 result;
	u64 took_ns;
	int err;
};

/* regions.c */
const struct cb_kernel_workload *cb_kernel_workload_find(const char *name);

/* pmu.c: cycles on one CPU, read without asking perf. */
int cb_pmu_open(u32 cpu, u32 pmu_type, struct perf_event **ret);
void cb_pmu_close(struct perf_event *event);
/*
 * With interrupts off on that CPU: the index as defined in reads.h, or 0 if the
 * event is not on the PMU now.
 */
u32 cb_pmu_index(const struct perf_event *event);
/* A value that changes when perf writes to the counter. */
u64 cb_pmu_epoch(struct perf_event *event);
/* The number of bits that every counter has at least. */
extern const unsigned int cb_pmu_width;

/* trials.c: 0 or -errno, with the reason in the request; the trials done are in `trials`. */
int cb_job_run(struct cb_job *job, struct cbench_trial *trials);

#endif
