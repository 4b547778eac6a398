/*
 * The fenced reads of a clock and of a hardware counter: the two ends of the timed region.
 *
 * User space and the kernel module (cbench/kmod) compile the same text, so that
 * both time the same instructions. The fences follow Intel 324264-001 with
 * lfence in place of cpuid, which a hypervisor would trap; on arm64 an isb
 * holds a system register read in its place (Arm ARM, DDI 0487).
 *
 * `index` is the field of struct perf_event_mmap_page; 0 means "not on the PMU".
 *   x86    index - 1 is the operand of rdpmc (fixed counters have bit 30 set)
 *   arm64  1..31 is PMEVCNTR<index - 1>_EL0, 32 is the cycle counter
 */
#ifndef CB_READS_H
#define CB_READS_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

/* The compiler may move nothing across this. */
#define cb_barrier() __asm__ volatile("" ::: "memory")

#if defined(__x86_64__)

static inline uint64_t cb_ticks_now(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

static inline uint64_t cb_pmc_now(uint32_t index)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdpmc\n\tlfence" : "=a"(low), "=d"(high) : "c"(index - 1) : "memory");
	return (uint64_t)high << 32 | low;
}

/* rdpmc accepts every index that the kernel provides. */
static inline int cb_pmc_readable(uint32_t index)
{
	return index != 0;
}

#elif defined(__aarch64__)

#define CB_FENCED_MRS(name, value) __asm__ volatile("isb\n\tmrs %0, " name "\n\tisb" : "=r"(value)::"memory")
#define CB_PMEVCNTR(n)                                    \
	case (n) + 1:                                     \
		CB_FENCED_MRS("pmevcntr" #n "_el0", value); \
		break

static inline uint64_t cb_ticks_now(void)
{
	uint64_t value;

	CB_FENCED_MRS("cntvct_el0", value);
	return value;
}

/* The instruction contains the number of an event counter. Not inlined: too long for the timed region of cycles. */
__attribute__((__noinline__, __unused__)) static uint64_t cb_pmevcntr_now(uint32_t index)
{
	uint64_t value = 0;

	switch (index) {
		CB_PMEVCNTR(0);
		CB_PMEVCNTR(1);
		CB_PMEVCNTR(2);
		CB_PMEVCNTR(3);
		CB_PMEVCNTR(4);
		CB_PMEVCNTR(5);
		CB_PMEVCNTR(6);
		CB_PMEVCNTR(7);
		CB_PMEVCNTR(8);
		CB_PMEVCNTR(9);
		CB_PMEVCNTR(10);
		CB_PMEVCNTR(11);
		CB_PMEVCNTR(12);
		CB_PMEVCNTR(13);
		CB_PMEVCNTR(14);
		CB_PMEVCNTR(15);
		CB_PMEVCNTR(16);
		CB_PMEVCNTR(17);
		CB_PMEVCNTR(18);
		CB_PMEVCNTR(19);
		CB_PMEVCNTR(20);
		CB_PMEVCNTR(21);
		CB_PMEVCNTR(22);
		CB_PMEVCNTR(23);
		CB_PMEVCNTR(24);
		CB_PMEVCNTR(25);
		CB_PMEVCNTR(26);
		CB_PMEVCNTR(27);
		CB_PMEVCNTR(28);
		CB_PMEVCNTR(29);
		CB_PMEVCNTR(30);
	}
	return value;
}

static inline uint64_t cb_pmc_now(uint32_t index)
{
	uint64_t value;

	if (index != 32)
		return cb_pmevcntr_now(index);
	CB_FENCED_MRS("pmccntr_el0", value);
	return value;
}

/*
 * Whether an index is readable in principle; cap_user_rdpmc reports whether the
 * kernel permits it in user space.
 */
static inline int cb_pmc_readable(uint32_t index)
{
	return index >= 1 && index <= 32;
}

#else
#error "cbench supports only the counters of x86-64 and arm64"
#endif

#endif
