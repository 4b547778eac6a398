/* The table of branch: one byte for each outcome. */
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>

/* params: n, pattern, period. */
int cb_branch_create(const uint64_t *params, size_t count, void **ret)
{
	cb_branch *branch;
	void *start;
	int err;

	if (count != 3 || !params[0] || params[0] > (uint64_t)1 << 30 || params[1] > CB_BRANCH_RANDOM || !params[2])
		return -EINVAL;
	branch = calloc(1, sizeof(*branch));
	if (!branch)
		return -ENOMEM;
	branch->count = params[0];
	err = cb_buffer_map(branch->count, 1, &start);
	if (err) {
		free(branch);
		return err;
	}
	branch->taken = start;
	cb_branch_fill(branch, params[1], params[2]);
	*ret = branch;
	return 0;
}

void cb_branch_destroy(void *state)
{
	cb_branch *branch = state;

	if (!branch)
		return;
	cb_buffer_unmap(branch->taken, branch->count);
	free(branch);
}

void cb_branch_region(const void *state, void **start, size_t *len)
{
	const cb_branch *branch = state;

	*start = branch->taken;
	*len = branch->count;
}
