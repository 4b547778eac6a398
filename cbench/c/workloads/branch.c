/*
 * branch: n conditional branches whose outcomes are read from a table.
 *
 * The table states for each of the n branches whether it is taken; the code and
 * its data accesses are the same for every pattern, so two patterns differ only
 * in how well the branch predictor handles them. Branches that are always taken,
 * alternate or have a short period should cost 1 to 2 cycles each. Half of the
 * random outcomes are mispredicted, which cost 10 cycles per branch on Zen 3. A
 * predictor may memorize a short random table that all trials repeat; use a
 * large n to prevent this.
 */
#include "workloads.h"

enum { TAKEN, ALTERNATING, PERIODIC, RANDOM };

typedef struct cb_branch {
	cb_buffer buffer; /* a byte for each outcome: 0 or 1 */
	uint64_t count;
} cb_branch;

/* xorshift64 of G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003). */
static uint64_t xorshift(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void fill(const cb_branch *branch, uint64_t pattern, uint64_t period)
{
	uint8_t *taken = (uint8_t *)branch->buffer.start;
	uint64_t random = 88172645463325252u; /* the seed */

	for (uint64_t i = 0; i < branch->count; i++) {
		switch (pattern) {
		case TAKEN:
			taken[i] = 1;
			break;
		case ALTERNATING:
			taken[i] = i % 2 == 0;
			break;
		case PERIODIC:
			taken[i] = i % period == 0;
			break;
		default:
			taken[i] = (uint8_t)(xorshift(&random) >> 63);
			break;
		}
	}
}

/*
 * An empty asm pins each path, so that the compiler uses neither a conditional
 * move nor a sum over the table.
 */
__attribute__((noinline)) uint64_t cb_branch_run(void *state, uint64_t n)
{
	const cb_branch *branch = state;
	const uint8_t *taken = (const uint8_t *)branch->buffer.start;
	uint64_t x = 0;

	if (n > branch->count)
		n = branch->count;
	for (uint64_t i = 0; i < n; i++) {
		if (taken[i]) {
			x += 3;
			__asm__ volatile("" : "+r"(x));
		} else {
			x ^= 5;
			__asm__ volatile("" : "+r"(x));
		}
	}
	return x;
}

/* params: n, pattern, period. */
static int create_branch(const uint64_t *params, size_t count, void **ret)
{
	cb_branch *branch;
	int err;

	if (count != 3 || !params[0] || params[0] > CB_BRANCHES_MOST || params[1] > RANDOM || !params[2])
		return -EINVAL;
	err = cb_state_create(sizeof(*branch), params[0], 1, ret);
	if (err)
		return err;
	branch = *ret;
	branch->count = params[0];
	fill(branch, params[1], params[2]);
	return 0;
}

CB_WORKLOAD(branch, .run = cb_branch_run, .create = create_branch, .destroy = cb_state_destroy, .locked = 1);
