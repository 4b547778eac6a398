/*
 * Declares every workload: its timed function and the construction of its
 * state.
 *
 * NAME.c contains a whole workload: the timed function, the creation and the
 * initialization of its state, and the descriptor that exports it. The
 * workloads that the kernel module also has are declared here; the module
 * compiles the same files with its own memory allocation
 * (cbench/kmod/states.c) and lower limits.
 */
#ifndef CB_WORKLOADS_H
#define CB_WORKLOADS_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/types.h>

#define CB_SIZE_MOST ((uint64_t)1 << 30)
#define CB_LINKS_MOST ((uint64_t)4 << 20) /* linking takes about a second, without interruption */
#define CB_BRANCHES_MOST ((uint64_t)64 << 20)
#else
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define CB_SIZE_MOST ((uint64_t)1 << 34)
#define CB_LINKS_MOST CB_SIZE_MOST
#define CB_BRANCHES_MOST ((uint64_t)1 << 30)
#endif

/* The timed work of a trial; deterministic for a given state and n. */
typedef uint64_t (*cb_run_fn)(void *state, uint64_t n);

/*
 * create: `params` are the `count` parameters of the workload, in the order of
 * its definition in Python. Returns 0 or -errno; *ret is the state for run.
 * destroy accepts NULL. Both are NULL if there is no state. locked: the state
 * begins with a cb_buffer, which trials touch and which must be locked.
 */
typedef struct cb_workload {
	const char *name;
	cb_run_fn run;
	int (*create)(const uint64_t *params, size_t count, void **ret);
	void (*destroy)(void *state);
	int locked;
} cb_workload;

/*
 * Export a workload: CB_WORKLOAD(name, .run = ..., .create = ...). The
 * descriptors are in a section that cb_workload_find() searches, so that no list
 * is needed.
 */
#ifdef __KERNEL__
#define CB_WORKLOAD(id, ...) const cb_workload cb_workload_##id = {.name = #id, __VA_ARGS__}
#else
#define CB_WORKLOAD(id, ...)                                                                                           \
	static const cb_workload cb_workload_##id = {.name = #id, __VA_ARGS__};                                        \
	static const cb_workload *const cb_exported_##id                                                               \
		__attribute__((used, section("cb_workloads"))) = &cb_workload_##id
#endif

/* Find a workload by its name. Returns 0 or -ENOENT. */
int cb_workload_find(const char *name, const cb_workload **ret);

/* The beginning of a state that has its own memory. */
typedef struct cb_buffer {
	char *start;
	size_t len;
} cb_buffer;

/*
 * Create a zeroed state of `size` bytes that begins with a cb_buffer, and a
 * buffer of `len` bytes at a huge page boundary. `huge`: whether to request and
 * touch huge pages; otherwise they are forbidden. Returns 0 or -errno.
 */
int cb_state_create(size_t size, size_t len, int huge, void **ret);
void cb_state_destroy(void *state);

uint64_t cb_empty_run(void *state, uint64_t n);
uint64_t cb_hash_run(void *state, uint64_t n);
uint64_t cb_sieve_run(void *state, uint64_t n);
uint64_t cb_memory_run(void *state, uint64_t n);
uint64_t cb_branch_run(void *state, uint64_t n);
uint64_t cb_chase_run(void *state, uint64_t n);

#endif
