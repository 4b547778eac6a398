/* What perfect shares out: a number, and which candidates are tried. */
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>

/* params: n, exponent, first, step. */
int cb_perfect_create(const uint64_t *params, size_t count, void **ret)
{
	cb_perfect *job;
	uint64_t p = count == 4 ? params[1] : 0;

	if (p < 2 || p > CB_PERFECT_MOST || !params[2] || !params[3])
		return -EINVAL;
	job = malloc(sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->number = ((1ull << p) - 1) << (p - 1);
	job->first = params[2];
	job->step = params[3];
	job->root = 0;
	for (uint64_t bit = 1ull << 31; bit; bit >>= 1) /* the root is below 2^31.5 */
		if ((job->root | bit) * (job->root | bit) <= job->number)
			job->root |= bit;
	*ret = job;
	return 0;
}

void cb_perfect_destroy(void *state)
{
	free(state);
}
