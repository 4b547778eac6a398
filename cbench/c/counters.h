/*
 * Counters: where a trial's number comes from.
 *
 *   CB_READ_TICKS    x86 time stamp counter or arm64 cntvct: a clock, not cycles
 *   CB_READ_USER     perf_event counter read from user space (rdpmc, pmccntr)
 *   CB_READ_SYSCALL  perf_event counter read with read()
 *
 * The read sequence for CB_READ_USER is the one documented at struct
 * perf_event_mmap_page in linux/perf_event.h and, for arm64, in
 * Documentation/arch/arm64/perf.rst. The fences follow Intel 324264-001 with
 * lfence in place of cpuid, which a hypervisor would trap.
 */
#ifndef CB_COUNTERS_H
#define CB_COUNTERS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

enum { CB_READ_TICKS = 0, CB_READ_USER = 1, CB_READ_SYSCALL = 2 };

typedef struct cb_counter {
	int mode;
	int fd;
	size_t page_len;
	struct perf_event_mmap_page *page;
} cb_counter;

/* What one read of a perf_event counter returns. */
struct cb_count {
	uint64_t value;
	uint64_t enabled;
	uint64_t running;
};

/* A consistent view of the counter's page: `value` is the full 64-bit count. */
struct cb_view {
	uint64_t value;
	int64_t offset;
	uint32_t lock;
	uint32_t index;
	uint16_t width;
	int multiplexed;
};

int cb_ticks_create(cb_counter **ret);
int cb_perf_create(uint32_t type, uint64_t config, uint64_t config1, int exclude_kernel, cb_counter **ret);
void cb_counter_destroy(cb_counter *counter);
int cb_counter_mode(const cb_counter *counter);

int cb_perf_read(const cb_counter *counter, struct cb_count *ret);
int cb_perf_view(const cb_counter *counter, struct cb_view *ret);

/* Ticks that pass over k dependent multiplications, k = 0..63 in turn: shows the counter's step. */
int cb_ticks_deltas(uint64_t *deltas, size_t n);

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

/* rdpmc takes any index that the kernel hands out (fixed counters carry bit 30). */
static inline int cb_pmc_readable(uint32_t index)
{
	return index != 0;
}

#elif defined(__aarch64__)

static inline uint64_t cb_ticks_now(void)
{
	uint64_t value;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(value)::"memory");
	return value;
}

static inline uint64_t cb_pmc_now(uint32_t index)
{
	uint64_t value;

	(void)index;
	__asm__ volatile("isb\n\tmrs %0, pmccntr_el0\n\tisb" : "=r"(value)::"memory");
	return value;
}

/* Index 32 is the cycle counter; the numbered event counters are left to read(). */
static inline int cb_pmc_readable(uint32_t index)
{
	return index == 32;
}

#else
#error "cbench knows the counters of x86-64 and arm64 only"
#endif

/* A raw hardware count of `width` bits as the signed number that perf adds to `offset`. */
static inline int64_t cb_sign_extend(uint64_t raw, uint16_t width)
{
	unsigned int shift = width && width < 64 ? 64u - width : 0;

	return (int64_t)(raw << shift) >> shift;
}

#endif
