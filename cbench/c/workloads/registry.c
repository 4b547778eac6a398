/* All workloads: what CB_WORKLOAD() has exported. */
#include "workloads.h"

#include <string.h>

/* Made by the linker: where the section begins and ends. */
extern const cb_workload *const __start_cb_workloads[] __attribute__((visibility("hidden")));
extern const cb_workload *const __stop_cb_workloads[] __attribute__((visibility("hidden")));

int cb_workload_find(const char *name, const cb_workload **ret)
{
	for (const cb_workload *const *at = __start_cb_workloads; at < __stop_cb_workloads; at++) {
		if (!strcmp((*at)->name, name)) {
			*ret = *at;
			return 0;
		}
	}
	return -ENOENT;
}
