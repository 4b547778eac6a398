/*
 * chase: n loads, each of which reads the address of the next.
 *
 * One link every `stride` bytes of the buffer, led by Sattolo's algorithm into
 * one random cycle through all of them, so that no prefetcher
 * can guess the next and no load can start before the last one has ended.
 * Stresses the load latency of the cache level that holds the buffer, and,
 * with small pages, the TLB. Should cost that latency and nothing else: on Zen 3
 * 4 cycles in the first level and 12 in the second; 200 ns and more in what a
 * busy host leaves of the third, and in memory.
 *
 * Sources: S. Sattolo, "An algorithm to generate a random cyclic permutation",
 * Information Processing Letters 22 (1986); G. Steele, D. Lea, C. Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64).
 */
#include "workloads.h"

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static cb_link *link_at(const cb_chase *chase, uint64_t i)
{
	uint64_t per_page = CB_CHASE_PAGE / chase->stride;

	if (!chase->pages)
		return (cb_link *)(chase->start + i * chase->stride);
	return (cb_link *)(chase->pages[i / per_page] + i % per_page * chase->stride);
}

/* Each link first leads to itself; then it is exchanged with one before it. */
void cb_chase_fill(const cb_chase *chase)
{
	uint64_t random = CB_CHASE_SEED;

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

/* Which link the walk from the first one has come to. */
__attribute__((noinline)) uint64_t cb_chase_run(void *state, uint64_t n)
{
	const cb_link *at = link_at(state, 0);

	for (uint64_t i = 0; i < n; i++)
		at = at->next;
	return at->index;
}
