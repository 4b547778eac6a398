/*
 * memory: n random reads from a buffer.
 *
 * The address comes from the linear congruential generator of the C library,
 * x = 1103515245 x + 12345 (mod 2^32), and each value read is added to x, so
 * that a read cannot start before the last one has ended. Stresses the cache
 * level that holds the buffer, and the TLB. Should cost that level's load
 * latency plus about 6 cycles a read. Reads only: every trial sees the same
 * buffer and returns the same number.
 *
 * The buffer asks for huge pages: with small ones the physical pages decide
 * which cache sets are used, and two processes measure different numbers.
 */
#define _GNU_SOURCE
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* Word i holds i * 2654435761 mod 2^32 (Knuth's multiplicative hash). */
static void fill(cb_memory *memory)
{
	for (uint64_t i = 0; i < memory->count; i++)
		memory->words[i] = (uint32_t)(i * 2654435761u);
}

/* A mapping that starts on a huge page's boundary: map one page more, return the ends. */
static int map_aligned(size_t len, void **ret)
{
	char *raw = mmap(NULL, len + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t head;

	if (raw == MAP_FAILED)
		return -errno;
	head = (HUGE_PAGE - ((uintptr_t)raw & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
	if (head)
		munmap(raw, head);
	munmap(raw + head + len, HUGE_PAGE - head);
	*ret = raw + head;
	return 0;
}

int cb_memory_create(uint64_t bytes, cb_memory **ret)
{
	cb_memory *memory;
	void *start = NULL;
	int err;

	if (bytes < sizeof(uint32_t) || bytes > (uint64_t)1 << 34)
		return -EINVAL;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	memory->count = bytes / sizeof(uint32_t);
	memory->mapped = ((size_t)bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	err = map_aligned(memory->mapped, &start);
	if (err) {
		free(memory);
		return err;
	}
	memory->words = start;
	/* Refused where the kernel has no huge pages; the worker reports what it got. */
	(void)madvise(start, memory->mapped, MADV_HUGEPAGE);
	fill(memory);
	*ret = memory;
	return 0;
}

void cb_memory_destroy(cb_memory *memory)
{
	if (!memory)
		return;
	munmap(memory->words, memory->mapped);
	free(memory);
}

__attribute__((noinline)) uint64_t cb_memory_run(void *state, uint64_t n)
{
	const cb_memory *memory = state;
	const uint32_t *words = memory->words;
	uint64_t count = memory->count;
	uint32_t x = 0, value = 0;

	for (uint64_t i = 0; i < n; i++) {
		x = x * 1103515245u + 12345u + value;
		value = words[((uint64_t)x * count) >> 32];
	}
	return x ^ value;
}
