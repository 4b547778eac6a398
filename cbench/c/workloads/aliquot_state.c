/* What aliquot starts from. */
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>

/* params: n, start. */
int cb_aliquot_create(const uint64_t *params, size_t count, void **ret)
{
	uint64_t *start;

	if (count != 2 || !params[1] || params[1] > CB_ALIQUOT_MOST)
		return -EINVAL;
	start = malloc(sizeof(*start));
	if (!start)
		return -ENOMEM;
	*start = params[1];
	*ret = start;
	return 0;
}

void cb_aliquot_destroy(void *state)
{
	free(state);
}
