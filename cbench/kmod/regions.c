// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * The timed regions: the reads of cbench/c/reads.h around a call.
 *
 * One function for each workload and counter, so that the call is direct. In
 * user space the call goes through a pointer; in the kernel, speculation
 * mitigations would add a thunk to such a call.
 */
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/string.h>

#include "../c/reads.h"
#include "internal.h"

#define CB_REGION(which, now, name)                                                                \
	static noinline notrace void which##_##name(u32 index, void *state, u64 n,                 \
						    struct cb_ends *ret)                           \
	{                                                                                          \
		u64 start, stop, result;                                                           \
                                                                                                   \
		start = now;                                                                       \
		result = cb_##name##_run(state, n);                                                \
		stop = now;                                                                        \
		ret->start = start;                                                                \
		ret->stop = stop;                                                                  \
		ret->result = result;                                                              \
	}

#define CB_REGIONS(name)                                                                           \
	extern const cb_workload cb_workload_##name;                                               \
	CB_REGION(cycles, cb_pmc_now(index), name)                                                 \
	CB_REGION(ticks, cb_ticks_now(), name)

#define CB_FUNCTIONS(name)                                                                         \
	.workload = &cb_workload_##name, .cycles = cycles_##name, .ticks = ticks_##name

CB_REGIONS(empty)
CB_REGIONS(hash)
CB_REGIONS(sieve)
CB_REGIONS(memory)
CB_REGIONS(chase)
CB_REGIONS(branch)

static const struct cb_kernel_workload workloads[] = {
	{ CB_FUNCTIONS(empty), .max_n = U64_MAX },
	{ CB_FUNCTIONS(hash), .max_n = U64_MAX },
	{ CB_FUNCTIONS(sieve), .max_n = U32_MAX },
	{ CB_FUNCTIONS(memory), .max_n = U64_MAX },
	{ CB_FUNCTIONS(chase), .max_n = U64_MAX },
	{ CB_FUNCTIONS(branch), .max_n = U64_MAX },
};

const struct cb_kernel_workload *cb_kernel_workload_find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(workloads); i++)
		if (!strcmp(name, workloads[i].workload->name))
			return &workloads[i];
	return NULL;
}
