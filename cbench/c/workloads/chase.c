/*
 * chase: n loads; each reads the address of the next.
 *
 * The buffer has one link every `stride` bytes. Sattolo's algorithm connects
 * all links to a single random cycle, so that no prefetcher can predict the
 * next link, and no load can start before the previous one has ended. Stresses
 * the load latency of the cache level that holds the buffer, and, with small
 * pages, the TLB. Should cost exactly that latency: on Zen 3, 4 cycles in the
 * L1 cache and 12 in the L2 cache; 200 ns or more in memory, or in an L3 cache
 * shared with a busy host.
 *
 * Sources: S. Sattolo, "An algorithm to generate a random cyclic permutation",
 * Information Processing Letters 22 (1986); G. Steele, D. Lea, C. Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64).
 */
#include "workloads.h"

typedef struct cb_link {
	const struct cb_link *next;
	uint64_t index;
} cb_link;

typedef struct cb_chase {
	cb_buffer buffer;
	uint64_t stride; /* bytes from one link to the next in memory */
	uint64_t count;
} cb_chase;

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static cb_link *link_at(const cb_chase *chase, uint64_t i)
{
	return (cb_link *)(chase->buffer.start + i * chase->stride);
}

/* Each link first leads to itself; then its target is exchanged with the target of a random earlier link. */
static void fill_chase(const cb_chase *chase)
{
	uint64_t random = 1; /* the seed */

	for (uint64_t i = 0; i < chase->count; i++) {
		link_at(chase, i)->next = link_at(chase, i);
		link_at(chase, i)->index = i;
	}
	for (uint64_t i = chase->count - 1; i > 0; i--) {
		cb_link *one = link_at(chase, i);
		cb_link *other = link_at(chase, splitmix(&random) % i);
		const cb_link *kept = one->next;

		one->next = other->next;
		other->next = kept;
	}
}

/* Returns the number of the link that n steps from the first one lead to. */
__attribute__((noinline)) uint64_t cb_chase_run(void *state, uint64_t n)
{
	const cb_link *at = link_at(state, 0);

	for (uint64_t i = 0; i < n; i++)
		at = at->next;
	return at->index;
}

/* params: n, size and stride in bytes, pages (1: huge, 0: small). */
static int create_chase(const uint64_t *params, size_t count, void **ret)
{
	uint64_t links;
	cb_chase *chase;
	int err;

	if (count != 4 || params[1] > CB_SIZE_MOST || params[2] < sizeof(cb_link) || params[2] % sizeof(char *) ||
	    params[1] < params[2] || params[1] / params[2] > CB_LINKS_MOST)
		return -EINVAL;
	links = params[1] / params[2];
	err = cb_state_create(sizeof(*chase), links * params[2], params[3] != 0, ret);
	if (err)
		return err;
	chase = *ret;
	chase->stride = params[2];
	chase->count = links;
	fill_chase(chase);
	return 0;
}

CB_WORKLOAD(chase, .run = cb_chase_run, .create = create_chase, .destroy = cb_state_destroy, .locked = 1);
