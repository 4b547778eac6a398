/*
 * The workloads exported by CB_WORKLOAD(), their states, and memory for them.
 *
 * In a physically indexed cache, the sets of a small page depend on the page
 * frame that the kernel happened to allocate, so two processes with the same
 * buffer have different cache misses. Within a huge page, the virtual address
 * determines the sets, in every process.
 */
#define _GNU_SOURCE
#include "workloads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

static size_t whole_pages(size_t len)
{
	return (len + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

static int map(size_t len, int huge, char **ret)
{
	size_t size = whole_pages(len), head;
	char *raw;

	/* Map one additional huge page, then unmap the unaligned ends. */
	raw = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw == MAP_FAILED)
		return -errno;
	head = (HUGE_PAGE - ((uintptr_t)raw & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
	if (head)
		munmap(raw, head);
	munmap(raw + head + size, HUGE_PAGE - head);
	*ret = raw + head;
	/*
	 * Kernels without huge pages support neither kind of advice; the worker
	 * reports the pages that the buffer has.
	 */
	if (!huge) {
		(void)madvise(*ret, size, MADV_NOHUGEPAGE);
		return 0;
	}
	(void)madvise(*ret, size, MADV_HUGEPAGE);
	for (size_t at = 0; at < size; at += HUGE_PAGE)
		((volatile char *)*ret)[at] = 0;
	/* Collapse small pages, which faults got if no huge page was free. */
	(void)madvise(*ret, size, MADV_COLLAPSE);
	return 0;
}

int cb_state_create(size_t size, size_t len, int huge, void **ret)
{
	cb_buffer *buffer = calloc(1, size);
	int err;

	if (!buffer)
		return -ENOMEM;
	buffer->len = len;
	err = map(len, huge, &buffer->start);
	if (err) {
		free(buffer);
		return err;
	}
	*ret = buffer;
	return 0;
}

void cb_state_destroy(void *state)
{
	cb_buffer *buffer = state;

	if (buffer)
		munmap(buffer->start, whole_pages(buffer->len));
	free(state);
}

/* Defined by the linker: the beginning and the end of the section. */
extern const cb_workload *const __start_cb_workloads[] __attribute__((visibility("hidden")));
extern const cb_workload *const __stop_cb_workloads[] __attribute__((visibility("hidden")));

int cb_workload_find(const char *name, const cb_workload **ret)
{
	for (const cb_workload *const *at = __start_cb_workloads; at < __stop_cb_workloads; at++) {
		if (!strcmp((*at)->name, name)) {
			*ret = *at;
			return 0;
		}
	}
	return -ENOENT;
}
