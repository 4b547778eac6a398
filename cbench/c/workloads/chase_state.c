/* The buffer of chase, with huge or small pages. */
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>

#define POOL 4 /* times the size: what cb_chase_fit() may choose from */

/* params: n, size and stride in bytes, pages (1: huge, 0: small), fit (1: choose pages, 0: take them as they come). */
int cb_chase_create(const uint64_t *params, size_t count, void **ret)
{
	cb_chase *chase;
	void *start;
	int err;

	if (count != 5 || params[1] > (uint64_t)1 << 34 || params[2] < sizeof(cb_link) ||
	    params[2] % sizeof(char *) || params[1] < params[2])
		return -EINVAL;
	if (params[4] && (params[1] > CB_CHASE_FIT_MOST || params[1] % CB_CHASE_PAGE || CB_CHASE_PAGE % params[2]))
		return -EINVAL;
	chase = calloc(1, sizeof(*chase));
	if (!chase)
		return -ENOMEM;
	chase->stride = params[2];
	chase->count = params[1] / params[2];
	chase->mapped = chase->count * chase->stride * (params[4] ? POOL : 1);
	err = cb_buffer_map(chase->mapped, params[3] != 0, &start);
	if (err) {
		free(chase);
		return err;
	}
	chase->start = start;
	if (params[4])
		err = cb_chase_fit(chase);
	if (err) {
		cb_chase_destroy(chase);
		return err;
	}
	cb_chase_fill(chase);
	*ret = chase;
	return 0;
}

void cb_chase_destroy(void *state)
{
	cb_chase *chase = state;

	if (!chase)
		return;
	cb_buffer_unmap(chase->start, chase->mapped);
	free(chase->pages);
	free(chase);
}

void cb_chase_region(const void *state, void **start, size_t *len)
{
	const cb_chase *chase = state;

	*start = chase->start;
	*len = chase->mapped;
}
