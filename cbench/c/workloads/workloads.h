/* The workloads of the thesis: D. Kozak, "Chasing Zero Variability in Software Performance", MIT. */
#ifndef CB_WORKLOADS_H
#define CB_WORKLOADS_H

#include <stddef.h>
#include <stdint.h>

uint64_t cb_hash_run(void *state, uint64_t n);
uint64_t cb_sieve_run(void *state, uint64_t n);

typedef struct cb_memory {
	uint32_t *words;
	uint64_t count;
	size_t mapped; /* bytes, a multiple of 2 MiB */
} cb_memory;

int cb_memory_create(uint64_t bytes, cb_memory **ret);
void cb_memory_destroy(cb_memory *memory);
uint64_t cb_memory_run(void *state, uint64_t n);

#endif
