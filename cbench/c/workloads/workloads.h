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
	size_t offset; /* of the words in what was mapped, in bytes */
} cb_memory;

void cb_memory_fill(const cb_memory *memory);
uint64_t cb_memory_run(void *state, uint64_t n);
int cb_memory_create(const uint64_t *params, size_t count, void **ret);
void cb_memory_destroy(void *state);
void cb_memory_region(const void *state, void **start, size_t *len);

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
int cb_chase_create(const uint64_t *params, size_t count, void **ret);
void cb_chase_destroy(void *state);
void cb_chase_region(const void *state, void **start, size_t *len);

#define CB_BRANCH_SEED 88172645463325252u
enum { CB_BRANCH_TAKEN, CB_BRANCH_ALTERNATING, CB_BRANCH_PERIODIC, CB_BRANCH_RANDOM };

typedef struct cb_branch {
	uint8_t *taken; /* 0 or 1 */
	uint64_t count;
} cb_branch;

void cb_branch_fill(const cb_branch *branch, uint64_t pattern, uint64_t period);
uint64_t cb_branch_run(void *state, uint64_t n);
int cb_branch_create(const uint64_t *params, size_t count, void **ret);
void cb_branch_destroy(void *state);
void cb_branch_region(const void *state, void **start, size_t *len);

#define CB_ALIQUOT_MOST 1000000000000000u /* a larger term ends the sequence: 16 million divisions at most */

uint64_t cb_aliquot_run(void *state, uint64_t n); /* state: the start, a uint64_t */
int cb_aliquot_create(const uint64_t *params, size_t count, void **ret);
void cb_aliquot_destroy(void *state);

#define CB_PERFECT_MOST 32 /* exponent: the number has 63 bits */

typedef struct cb_perfect {
	uint64_t number;
	uint64_t root; /* the largest whole number whose square is not larger */
	uint64_t first;
	uint64_t step;
} cb_perfect;

uint64_t cb_perfect_run(void *state, uint64_t n); /* state: a cb_perfect */
int cb_perfect_create(const uint64_t *params, size_t count, void **ret);
void cb_perfect_destroy(void *state);

#define CB_STREAM_PROBES 64
#define CB_STREAM_LEAST 512 /* bytes: an element for each probe */

typedef struct cb_stream {
	double *a;
	double *b;
	double *c;
	uint64_t count;
} cb_stream;

void cb_stream_fill(const cb_stream *stream);
uint64_t cb_copy_run(void *state, uint64_t n);
uint64_t cb_scale_run(void *state, uint64_t n);
uint64_t cb_add_run(void *state, uint64_t n);
uint64_t cb_triad_run(void *state, uint64_t n);
int cb_stream_create(const uint64_t *params, size_t count, void **ret);
void cb_stream_destroy(void *state);
void cb_stream_region(const void *state, void **start, size_t *len);

#define CB_FAULT_MOST 262144u

uint64_t cb_fault_run(void *state, uint64_t n);
int cb_fault_create(const uint64_t *params, size_t count, void **ret);
void cb_fault_destroy(void *state);

uint64_t cb_nothing_run(void *state, uint64_t n);
uint64_t cb_float_run(void *state, uint64_t n);
uint64_t cb_vector_run(void *state, uint64_t n);
uint64_t cb_syscall_run(void *state, uint64_t n);
uint64_t cb_etalon_run(void *state, uint64_t n);

#endif
