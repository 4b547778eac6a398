/*
 * Chains of additions, which measure the current number of clock ticks per core
 * cycle.
 *
 * The narrow chain is dependent: each addition waits for the previous one and
 * takes one core cycle on every x86-64 and 64-bit Arm core. It adds a register
 * and not a constant, because Golden Cove and later cores execute additions of
 * small constants during register renaming, in no cycle at all.
 *
 * The wide chain consists of four dependent chains, which run in parallel. It
 * uses all the additions that the core can execute in a cycle, so it takes
 * longer when another thread runs on the same core. The other thread hardly
 * affects the narrow chain.
 *
 * The carry chain adds with carry, which also takes a cycle per addition (two
 * on x86 before 2014). An emulator that translates instructions has the host's
 * latencies in the other two chains, but needs several instructions for each
 * addition with carry; an emulator that counts instructions takes as long for
 * the wide chain as for the narrow one.
 */
#ifndef QN_CHAIN_H
#define QN_CHAIN_H

#include <stddef.h>
#include <stdint.h>

/* Additions in the body of a loop; the loop itself adds two instructions that depend on no addition. */
#define QN_CHAIN_BODY 16

/* The time at which the first chain began, and the durations of both chains, in ticks of the clock. */
typedef struct qn_chain {
	uint64_t begin;
	uint64_t wide;
	uint64_t narrow;
} qn_chain;

/* Execute `length` additions, a positive multiple of QN_CHAIN_BODY; nothing on other processors. */
void qn_chain_narrow(uint64_t length);
void qn_chain_wide(uint64_t length);
void qn_chain_carry(uint64_t length);

/* Time both chains, the narrow one last (`narrow_last`) or first, so that it is next to the measured code. */
void qn_chain_run(uint64_t length, int narrow_last, qn_chain *ret);

/* Time both chains n times, back to back. -EINVAL: invalid length; -ENOSYS: a processor without chains. */
int qn_chains_run(uint64_t length, size_t n, qn_chain *chains);

/* Time the carry chain n times, in ticks. Same errors as qn_chains_run. */
int qn_carries_run(uint64_t length, size_t n, uint64_t *ticks);

#endif
