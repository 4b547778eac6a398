/*
 * Chooses pages for chase that do not compete for the same sets of the cache.
 *
 * Which sets a page uses depends on its physical address. Huge pages settle
 * that on bare metal; in a virtual machine whose host backs them with small
 * ones they settle nothing, and the floor differs with the pages that one
 * happened to get. So pages of a larger pool are tried one by one: a walk
 * through those chosen so far and the new one takes visibly longer when the
 * new one finds all ways of its sets in use, and then it is left out.
 */
#define _GNU_SOURCE
#include "workloads.h"

#include <time.h>

#define FIRST 32 /* pages: more than a first level cache, and a small share of a second level one */
#define WINDOWS 8 /* sets of that many pages of which the fastest is begun with */
#define SLOWER 4 /* percent: one page too many costs more */
#define RISE 1	 /* percent that a page may cost that is none too many, as where the TLB ends */
#define BUDGET_NS ((uint64_t)3000000000)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The least time of a load, in picoseconds, of some walks three times through the first `pages` pages. */
static uint64_t least_ps(const cb_chase *chase, uint64_t pages, int walks)
{
	cb_chase part = *chase;
	uint64_t least = UINT64_MAX;

	part.count = pages * (CB_CHASE_PAGE / part.stride);
	cb_chase_fill(&part);
	for (int i = 0; i < walks; i++) {
		uint64_t begin = now_ns(), took;

		(void)cb_chase_run(&part, 3 * part.count);
		took = (now_ns() - begin) * 1000 / (3 * part.count);
		least = took < least ? took : least;
	}
	return least;
}

/* Begin with the fastest of some windows of the pool: its first page's number. */
static uint64_t first_pages(cb_chase *chase, uint64_t pool, uint64_t first, uint64_t *least)
{
	uint64_t best = 0;

	*least = UINT64_MAX;
	for (uint64_t at = 0; at + first <= pool && at < WINDOWS * first; at += first) {
		uint64_t took;

		for (uint64_t i = 0; i < first; i++)
			chase->pages[i] = chase->buffer.start + (at + i) * CB_CHASE_PAGE;
		took = least_ps(chase, first, 50);
		if (took < *least) {
			*least = took;
			best = at;
		}
	}
	for (uint64_t i = 0; i < first; i++)
		chase->pages[i] = chase->buffer.start + (best + i) * CB_CHASE_PAGE;
	return best;
}

/* -ENOSPC: no such pages found; the cache is smaller than the buffer, or too busy to tell. */
int cb_chase_fit(cb_chase *chase)
{
	uint64_t wanted = chase->count * chase->stride / CB_CHASE_PAGE, pool = chase->buffer.len / CB_CHASE_PAGE;
	uint64_t first = wanted < FIRST ? wanted : FIRST, have = first, least, begun, begin = now_ns();

	begun = first_pages(chase, pool, first, &least);
	for (uint64_t i = 0; i < pool && have < wanted && now_ns() - begin < BUDGET_NS; i++) {
		uint64_t took = UINT64_MAX, limit = least + least * SLOWER / 100;

		if (i >= begun && i < begun + first)
			continue;
		chase->pages[have] = chase->buffer.start + i * CB_CHASE_PAGE;
		for (int k = 0; k < 8 && took > limit; k++) {
			uint64_t once = least_ps(chase, have + 1, 12);

			took = once < took ? once : took;
		}
		if (took > limit)
			continue;
		have++;
		limit = least + least * RISE / 100;
		if (took > least)
			least = took < limit ? took : limit;
	}
	return have == wanted ? 0 : -ENOSPC;
}
