/* The additions are written in assembly, so that no compiler can shorten them. */
#include "chain.h"

#include <errno.h>

#define FOUR(x) x x x x
#if defined(__x86_64__)
#define ADD(register) "add %[one], %[" register "]\n\t"
#define CARRY "adc %[one], %[a]\n\t"
#define AGAIN "sub $1, %[rounds]\n\tjnz 1b\n\t"

/*
 * Fenced: the chain must not begin before the first clock read or end after the
 * second.
 */
static inline uint64_t now(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}
#elif defined(__aarch64__)
#define ADD(register) "add %[" register "], %[" register "], %[one]\n\t"
#define CARRY "adcs %[a], %[a], %[one]\n\t"
#define AGAIN "subs %[rounds], %[rounds], #1\n\tb.ne 1b\n\t"

static inline uint64_t now(void)
{
	uint64_t value;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(value)::"memory");
	return value;
}
#endif

#if defined(AGAIN)

__attribute__((noinline)) void qn_chain_narrow(uint64_t length)
{
	uint64_t rounds = length / QN_CHAIN_BODY, one = 1, a = 0;

	__asm__ volatile(".p2align 6\n1:\n\t" FOUR(FOUR(ADD("a"))) AGAIN
			 : [a] "+r"(a), [rounds] "+r"(rounds)
			 : [one] "r"(one)
			 : "cc");
}

__attribute__((noinline)) void qn_chain_wide(uint64_t length)
{
	uint64_t rounds = length / QN_CHAIN_BODY, one = 1, a = 0, b = 0, c = 0, d = 0;

	__asm__ volatile(".p2align 6\n1:\n\t" FOUR(ADD("a") ADD("b") ADD("c") ADD("d")) AGAIN
			 : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [rounds] "+r"(rounds)
			 : [one] "r"(one)
			 : "cc");
}

__attribute__((noinline)) void qn_chain_carry(uint64_t length)
{
	uint64_t rounds = length / QN_CHAIN_BODY, one = 1, a = 0;

	__asm__ volatile(".p2align 6\n1:\n\t" FOUR(FOUR(CARRY)) AGAIN
			 : [a] "+r"(a), [rounds] "+r"(rounds)
			 : [one] "r"(one)
			 : "cc");
}

void qn_chain_run(uint64_t length, int narrow_last, qn_chain *ret)
{
	uint64_t begin, middle, end;

	begin = now();
	if (narrow_last)
		qn_chain_wide(length);
	else
		qn_chain_narrow(length);
	middle = now();
	if (narrow_last)
		qn_chain_narrow(length);
	else
		qn_chain_wide(length);
	end = now();
	ret->begin = begin;
	ret->wide = narrow_last ? middle - begin : end - middle;
	ret->narrow = narrow_last ? end - middle : middle - begin;
}

int qn_chains_run(uint64_t length, size_t n, qn_chain *chains)
{
	if (!length || length % QN_CHAIN_BODY)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		qn_chain_run(length, 1, &chains[i]);
	return 0;
}

int qn_carries_run(uint64_t length, size_t n, uint64_t *ticks)
{
	if (!length || length % QN_CHAIN_BODY)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		uint64_t begin = now();

		qn_chain_carry(length);
		ticks[i] = now() - begin;
	}
	return 0;
}

#else
void qn_chain_narrow(uint64_t length)
{
	(void)length;
}

void qn_chain_wide(uint64_t length)
{
	(void)length;
}

void qn_chain_carry(uint64_t length)
{
	(void)length;
}

void qn_chain_run(uint64_t length, int narrow_last, qn_chain *ret)
{
	(void)length, (void)narrow_last;
	*ret = (qn_chain){ 0 };
}

int qn_chains_run(uint64_t length, size_t n, qn_chain *chains)
{
	(void)length, (void)n, (void)chains;
	return -ENOSYS;
}

int qn_carries_run(uint64_t length, size_t n, uint64_t *ticks)
{
	(void)length, (void)n, (void)ticks;
	return -ENOSYS;
}
#endif
