/*
 * Chains of additions: how many ticks of the clock a core cycle takes now.
 *
 * The narrow chain is dependent: each addition waits for the one before, one
 * core cycle each on every x86-64 and 64-bit Arm core. It adds a register, for
 * Golden Cove and later eliminate additions of small constants when they
 * rename registers, at no cycle at all.
 *
 * The wide chain is four such chains side by side. It takes all that the core
 * can execute in a cycle, so it takes longer when another thread runs on the
 * same core, which the narrow one hardly notices.
 *
 * The carry chain adds with carry, a cycle each too (two on x86 before 2014).
 * An emulator that translates instructions has the host's latencies in the
 * other two, but needs several instructions for each addition with carry; one
 * that counts instructions takes as long for the wide chain as for the narrow.
 */
#ifndef QN_CHAIN_H
#define QN_CHAIN_H

#include <stddef.h>
#include <stdint.h>

/* Additions in a loop's body; the loop itself adds two instructions, which wait for nothing. */
#define QN_CHAIN_BODY 16

/* In ticks of the clock. */
typedef struct qn_chain {
	uint64_t begin;
	uint64_t wide;
	uint64_t narrow;
} qn_chain;

/* Each takes `length` additions, a multiple of QN_CHAIN_BODY and more than 0. On x86-64 and 64-bit Arm only. */
void qn_chain_narrow(uint64_t length);
void qn_chain_wide(uint64_t length);
void qn_chain_carry(uint64_t length);

/* Both, the narrow one last (`narrow_last`) or first: next to the measured code. */
void qn_chain_run(uint64_t length, int narrow_last, qn_chain *ret);

/* n times both, back to back. -EINVAL for another length, -ENOSYS on other processors. */
int qn_chains_run(uint64_t length, size_t n, qn_chain *chains);

/* n times the carry chain: its ticks. Errors as above. */
int qn_carries_run(uint64_t length, size_t n, uint64_t *ticks);

#endif
