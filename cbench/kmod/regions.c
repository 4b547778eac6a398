// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * The timed regions: the reads of cbench/c/reads.h around a call.
 *
 * One function for each workload, so that the call is direct. In user space it
 * goes through a pointer; here the kernel's speculation mitigations would put
 * a thunk between.
 */
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/string.h>

#include "../c/reads.h"
#include "internal.h"

u64 cb_empty_run(void *state, u64 n);

noinline notrace u64 cb_empty_run(void *state, u64 n)
{
	cb_barrier();
	return n;
}

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
	CB_REGION(cycles, cb_pmc_now(index), name)                                                 \
	CB_REGION(ticks, cb_ticks_now(), name)

#define CB_STATE(function)                                                                         \
	.create = cb_kernel_##function##_create, .destroy = cb_kernel_##function##_destroy

#define CB_FUNCTIONS(function)                                                                     \
	.name = #function, .run = cb_##function##_run, .cycles = cycles_##function,                \
	.ticks = ticks_##function

CB_REGIONS(empty)
CB_REGIONS(hash)
CB_REGIONS(sieve)
CB_REGIONS(memory)
CB_REGIONS(chase)
CB_REGIONS(branch)

const struct cb_kernel_workload cb_empty = { CB_FUNCTIONS(empty), .max_n = U64_MAX };

static const struct cb_kernel_workload workloads[] = {
	{ CB_FUNCTIONS(hash), .max_n = U64_MAX },
	{ CB_FUNCTIONS(sieve), .max_n = U32_MAX },
	{ CB_FUNCTIONS(memory), CB_STATE(memory), .max_n = U64_MAX },
	{ CB_FUNCTIONS(chase), CB_STATE(chase), .max_n = U64_MAX },
	{ CB_FUNCTIONS(branch), CB_STATE(branch), .max_n = U64_MAX },
};

const struct cb_kernel_workload *cb_kernel_workload_find(const char *name)
{
	size_t i;

	if (!strcmp(name, cb_empty.name))
		return &cb_empty;
	for (i = 0; i < ARRAY_SIZE(workloads); i++)
		if (!strcmp(name, workloads[i].name))
			return &workloads[i];
	return NULL;
}
