/*
 * A workload with known effects: the number of rounds depends on the levels,
 * which are environment variables.
 *
 *     PLANTED_WORK   0 or 1      1: 10 % more rounds
 *     PLANTED_STEP   0, 1 or 2   1: 3 % more, 2: 6 % more
 *     both                       PLANTED_WORK=1 and PLANTED_STEP=2: another 10 %
 *     PLANTED_INERT  0 or 1      no effect: the program does not read it
 *
 * Noise with a long tail (exponential, with a mean of 1 %) and a drift (up and
 * down by 2 % within two minutes) are derived from the clock, so they differ
 * in each trial.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define DRIFT_NS 120000000000u

static uint64_t level(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Exponential with mean 1, in steps of 1/64: failures before a success with probability 1/64. */
static double exponential(uint64_t seed)
{
	unsigned int failures = 0;

	while (failures < 1024 && (mixed(seed + failures) & 63))
		failures++;
	return failures / 64.0;
}

uint64_t planted(void *state, uint64_t n)
{
	uint64_t work = level("PLANTED_WORK"), step = level("PLANTED_STEP");
	struct timespec now;
	uint64_t ns, phase, rounds, x = 1;
	double share;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	phase = ns % DRIFT_NS;
	share = 1 + 0.10 * (double)work + 0.03 * (double)step + (work == 1 && step == 2 ? 0.10 : 0);
	share += 0.01 * exponential(mixed(ns));
	share += 0.04 * (double)(phase < DRIFT_NS / 2 ? phase : DRIFT_NS - phase) / DRIFT_NS;
	rounds = (uint64_t)(share * (double)n);
	for (uint64_t i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + (x >> 33) + 1;
	return x;
}
