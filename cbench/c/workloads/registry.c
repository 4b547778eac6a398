/* The list of all workloads. */
#include "workloads.h"

#include <errno.h>
#include <string.h>

static const cb_workload workloads[] = {
	{.name = "hash", .run = cb_hash_run},
	{.name = "sieve", .run = cb_sieve_run},
	{"memory", cb_memory_run, cb_memory_create, cb_memory_destroy, cb_memory_region},
};

int cb_workload_find(const char *name, const cb_workload **ret)
{
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		if (!strcmp(workloads[i].name, name)) {
			*ret = &workloads[i];
			return 0;
		}
	}
	return -ENOENT;
}
