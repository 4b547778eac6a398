/*
 * Every workload: how it is run, and how the state it runs on is made.
 *
 * NAME.c holds all of a workload: the timed function, the filling of its
 * state, how that is made, and the descriptor that exports it. What the kernel
 * module has too is declared here; those files compile in the kernel, where the
 * part that asks the C library for memory is left out.
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

/*
 * Exports a workload: CB_WORKLOAD(name, .run = ..., .create = ...);
 * cb_workload_find() looks through this section, so that no list is needed.
 */
#ifdef __KERNEL__
#define CB_WORKLOAD(id, ...) _Static_assert(1, #id)
#else
#define CB_WORKLOAD(id, ...)                                                                                           \
	static const cb_workload cb_descriptor_##id = {.name = #id, __VA_ARGS__};                                      \
	static const cb_workload *const cb_exported_##id                                                               \
		__attribute__((used, section("cb_workloads"))) = &cb_descriptor_##id
#endif

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
	size_t offset; /* of the words in what was mapped, in bytes */
} cb_memory;

void cb_memory_fill(const cb_memory *memory);
uint64_t cb_memory_run(void *state, uint64_t n);

#define CB_CHASE_SEED 1u

#define CB_CHASE_PAGE 4096u
#define CB_CHASE_FIT_MOST ((uint64_t)4 << 20)

typedef struct cb_link {
	const struct cb_link *next;
	uint64_t index;
} cb_link;

typedef struct cb_chase {
	char *start;
	uint64_t stride; /* bytes from one link to the next in memory */
	uint64_t count;
	char **pages;  /* where links are when not one after the other: on these pages, chosen by cb_chase_fit() */
	size_t mapped; /* bytes at start */
} cb_chase;

void cb_chase_fill(const cb_chase *chase);
uint64_t cb_chase_run(void *state, uint64_t n);
int cb_chase_fit(cb_chase *chase);

#define CB_BRANCH_SEED 88172645463325252u
enum { CB_BRANCH_TAKEN, CB_BRANCH_ALTERNATING, CB_BRANCH_PERIODIC, CB_BRANCH_RANDOM };

typedef struct cb_branch {
	uint8_t *taken; /* 0 or 1 */
	uint64_t count;
} cb_branch;

void cb_branch_fill(const cb_branch *branch, uint64_t pattern, uint64_t period);
uint64_t cb_branch_run(void *state, uint64_t n);

#endif
