/* The buffer of chase, with huge or small pages. */
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>

/* params: n, size and stride in bytes, pages (1: huge, 0: small). */
int cb_chase_create(const uint64_t *params, size_t count, void **ret)
{
	cb_chase *chase;
	void *start;
	int err;

	if (count != 4 || params[1] > (uint64_t)1 << 34 || params[2] < sizeof(char *) ||
	    params[2] % sizeof(char *) || params[1] < params[2])
		return -EINVAL;
	chase = calloc(1, sizeof(*chase));
	if (!chase)
		return -ENOMEM;
	chase->stride = params[2];
	chase->count = params[1] / params[2];
	err = cb_buffer_map(chase->count * chase->stride, params[3] != 0, &start);
	if (err) {
		free(chase);
		return err;
	}
	chase->start = start;
	cb_chase_fill(chase);
	*ret = chase;
	return 0;
}

void cb_chase_destroy(void *state)
{
	cb_chase *chase = state;

	if (!chase)
		return;
	cb_buffer_unmap(chase->start, chase->count * chase->stride);
	free(chase);
}

void cb_chase_region(const void *state, void **start, size_t *len)
{
	const cb_chase *chase = state;

	*start = chase->start;
	*len = chase->count * chase->stride;
}
