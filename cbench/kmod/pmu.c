// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * CPU cycles from perf's own counter, pinned to one CPU and read as user space
 * reads it.
 *
 * perf sets up the counter and shares the PMU with other users; this file takes
 * only the number of the hardware counter from it. Values that are read directly
 * are compared with perf's own count before they are trusted.
 */
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/version.h>

#include "../c/reads.h"
#include "internal.h"

#ifdef CONFIG_X86
/* Every PMU has at least 40 bits, and most have 48; the low 40 bits overflow only after minutes. */
const unsigned int cb_pmu_width = 40;
#else
/* perf counts in 32 bits by default; a region is shorter than 2^32 cycles at frequencies below 8 GHz. */
const unsigned int cb_pmu_width = 32;
#endif

static u32 hardware_index(const struct perf_event *event)
{
#ifdef CONFIG_X86
	return event->hw.event_base_rdpmc + 1;
#else
	/* drivers/perf/arm_pmuv3.c: the cycle counter was 0 and event counters began at 1 before Linux 6.12. */
	if (LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0))
		return event->hw.idx == 0 ? 32 : event->hw.idx;
	return event->hw.idx + 1;
#endif
}

u32 cb_pmu_index(const struct perf_event *event)
{
	if (READ_ONCE(event->state) != PERF_EVENT_STATE_ACTIVE ||
	    event->oncpu != smp_processor_id() || event->hw.idx < 0)
		return 0;
	return cb_pmc_readable(hardware_index(event)) ? hardware_index(event) : 0;
}

u64 cb_pmu_epoch(struct perf_event *event)
{
	return local64_read(&event->hw.prev_count);
}

/* The cycles of a short loop, read directly. -EBUSY: the event is not on the PMU. */
static int spin(const struct perf_event *event, u64 *ret)
{
	unsigned long flags;
	u64 start;
	unsigned int i;
	u32 index;

	local_irq_save(flags);
	index = cb_pmu_index(event);
	if (index) {
		start = cb_pmc_now(index);
		for (i = 0; i < 1000; i++)
			cb_barrier();
		*ret = (cb_pmc_now(index) - start) & GENMASK_ULL(cb_pmu_width - 1, 0);
	}
	local_irq_restore(flags);
	return index ? 0 : -EBUSY;
}

static int believable(struct perf_event *event)
{
	u64 enabled, running, before, after, passed = 0;
	int err;

	before = perf_event_read_value(event, &enabled, &running);
	err = spin(event, &passed);
	after = perf_event_read_value(event, &enabled, &running);
	if (err)
		return err;
	/* Some virtual machines offer a PMU whose counters never move. */
	return passed && passed < after - before ? 0 : -ENODATA;
}

int cb_pmu_open(u32 cpu, u32 pmu_type, struct perf_event **ret)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = (u64)pmu_type << 32 | PERF_COUNT_HW_CPU_CYCLES,
		.pinned = 1,
		.exclude_hv = 1,
	};
	struct perf_event *event;
	int err;

#ifdef CONFIG_X86
	/* rdpmc faults in a Xen PV guest; its kernel reads the counter in another way. */
	if (boot_cpu_has(X86_FEATURE_XENPV))
		return -EOPNOTSUPP;
#endif
	event = perf_event_create_kernel_counter(&attr, cpu, NULL, NULL, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event);
	err = believable(event);
	if (err) {
		cb_pmu_close(event);
		return err;
	}
	*ret = event;
	return 0;
}

void cb_pmu_close(struct perf_event *event)
{
	if (event)
		perf_event_release_kernel(event);
}
