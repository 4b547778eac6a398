/*
 * branch: n conditional branches whose outcomes are read from a table.
 *
 * The table says for each of the n branches whether it is taken; the code and
 * what it reads are the same for every pattern, so two patterns differ by what
 * the branch predictor makes of them. Always taken, alternating and short
 * periods should cost 1 to 2 cycles a branch; random outcomes a misprediction
 * every second time, which made it 10 cycles a branch on Zen 3. A predictor
 * may learn a short random table by heart when trials repeat it: take a large
 * n against that.
 */
#include "workloads.h"

/* xorshift64 of G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003). */
static uint64_t xorshift(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

void cb_branch_fill(const cb_branch *branch, uint64_t pattern, uint64_t period)
{
	uint64_t random = CB_BRANCH_SEED;

	for (uint64_t i = 0; i < branch->count; i++) {
		switch (pattern) {
		case CB_BRANCH_TAKEN:
			branch->taken[i] = 1;
			break;
		case CB_BRANCH_ALTERNATING:
			branch->taken[i] = i % 2 == 0;
			break;
		case CB_BRANCH_PERIODIC:
			branch->taken[i] = i % period == 0;
			break;
		default:
			branch->taken[i] = (uint8_t)(xorshift(&random) >> 63);
			break;
		}
	}
}

/* Each path is pinned by an empty asm: neither a conditional move nor a sum over the table will do. */
__attribute__((noinline)) uint64_t cb_branch_run(void *state, uint64_t n)
{
	const cb_branch *branch = state;
	const uint8_t *taken = branch->taken;
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

#ifndef __KERNEL__ /* the state, in the C library's memory; cbench/kmod/states.c has it in the kernel's */
#include <errno.h>
#include <stdlib.h>

/* The table has one byte for each outcome. */
/* params: n, pattern, period. */
static int create(const uint64_t *params, size_t count, void **ret)
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

static void destroy(void *state)
{
	cb_branch *branch = state;

	if (!branch)
		return;
	cb_buffer_unmap(branch->taken, branch->count);
	free(branch);
}

static void region(const void *state, void **start, size_t *len)
{
	const cb_branch *branch = state;

	*start = branch->taken;
	*len = branch->count;
}

CB_WORKLOAD(branch, .run = cb_branch_run, .create = create, .destroy = destroy, .region = region);
#endif
