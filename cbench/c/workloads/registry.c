/* The list of all workloads. */
#include "workloads.h"

#include <errno.h>
#include <string.h>

static const cb_workload workloads[] = {
	{.name = "hash", .run = cb_hash_run},
	{.name = "sieve", .run = cb_sieve_run},
	{"memory", cb_memory_run, cb_memory_create, cb_memory_destroy, cb_memory_region},
	{.name = "empty", .run = cb_nothing_run},
	{"chase", cb_chase_run, cb_chase_create, cb_chase_destroy, cb_chase_region},
	{"copy", cb_copy_run, cb_stream_create, cb_stream_destroy, cb_stream_region},
	{"scale", cb_scale_run, cb_stream_create, cb_stream_destroy, cb_stream_region},
	{"add", cb_add_run, cb_stream_create, cb_stream_destroy, cb_stream_region},
	{"triad", cb_triad_run, cb_stream_create, cb_stream_destroy, cb_stream_region},
	{.name = "float", .run = cb_float_run},
	{.name = "vector", .run = cb_vector_run},
	{"branch", cb_branch_run, cb_branch_create, cb_branch_destroy, cb_branch_region},
	{.name = "syscall", .run = cb_syscall_run},
	{"fault", cb_fault_run, cb_fault_create, cb_fault_destroy, NULL}, /* locked pages do not fault */
	{"aliquot", cb_aliquot_run, cb_aliquot_create, cb_aliquot_destroy, NULL},
	{.name = "etalon", .run = cb_etalon_run},
	{"perfect", cb_perfect_run, cb_perfect_create, cb_perfect_destroy, NULL},
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
