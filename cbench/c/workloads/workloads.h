/*
 * Every workload: how it is run, and how the state it runs on is made.
 *
 * NAME.c, or NAME_run.c beside NAME_state.c, holds the timed function and the
 * filling of its state. They use no library, and compile in the kernel as they
 * are. NAME_state.c and buffer.c ask the C library for the memory.
 */
#ifndef CB_WORKLOADS_H
#define CB_WORKLOADS_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

/* What a trial times: returns the same number for the same state and n. */
typedef uint64_t (*cb_run_fn)(void *state, uint64_t n);

/*
 * create: `params` are the Python workload's parameters, in that order, `count`
 * of them; 0 or -errno, *ret is what run wants as its state. destroy takes NULL.
 * region: what of the memory behind the state a trial touches, so that it can
 * be locked. All three are NULL where there is no state, region also where the
 * memory must not be locked.
 */
typedef struct cb_workload {
	const char *name;
	cb_run_fn run;
	int (*create)(const uint64_t *params, size_t count, void **ret);
	void (*destroy)(void *state);
	void (*region)(const void *state, void **start, size_t *len);
} cb_workload;

/* 0, or -ENOENT. */
int cb_workload_find(const char *name, const cb_workload **ret);

/*
 * `len` bytes of private memory that starts on a huge page's boundary: huge
 * pages asked for and touched, or forbidden. 0 or -errno.
 */
int cb_buffer_map(size_t len, int huge, void **ret);
void cb_buffer_unmap(void *start, size_t len);

uint64_t cb_hash_run(void *state, uint64_t n);
uint64_t cb_sieve_run(void *state, uint64_t n);

typedef struct cb_memory {
	uint32_t *words;
	uint64_t count;
} cb_memory;

void cb_memory_fill(const cb_memory *memory);
uint64_t cb_memory_run(void *state, uint64_t n);
int cb_memory_create(const uint64_t *params, size_t count, void **ret);
void cb_memory_destroy(void *state);
void cb_memory_region(const void *state, void **start, size_t *len);

#endif
