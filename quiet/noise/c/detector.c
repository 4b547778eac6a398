#define _GNU_SOURCE
#include "clock.h"
#include "detector.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { QN_SPIN = 1024 };

/*
 * Wait for one of two flags. While waiting, yield on x86 to the sibling thread,
 * and on arm64 to the other CPUs of an emulator, where each yield is expensive.
 */
static void wait_for(const volatile uint32_t *one, const volatile uint32_t *other)
{
	for (uint32_t turn = 1; !*one && !*other; turn++) {
#if defined(__x86_64__)
		_mm_pause();
#elif defined(__aarch64__)
		if (!(turn % QN_SPIN))
			__asm__ volatile("yield" ::: "memory");
#endif
	}
}

uint64_t qn_now(void)
{
	return now();
}

const char *qn_clock_name(void)
{
#if defined(__x86_64__)
	return "tsc";
#elif defined(__aarch64__)
	return "cntvct";
#else
	return "monotonic_raw";
#endif
}

static inline size_t bucket(uint64_t value)
{
	unsigned int log;

	if (value < QN_SUB)
		return value;
	log = 63u - (unsigned int)__builtin_clzll(value);
	return (size_t)(log - QN_SUB_BITS + 1) * QN_SUB + (size_t)((value >> (log - QN_SUB_BITS)) & (QN_SUB - 1));
}

size_t qn_bucket(uint64_t value)
{
	return bucket(value);
}

uint64_t qn_bucket_floor(size_t index)
{
	uint64_t power = index / QN_SUB, sub = index % QN_SUB;

	return power ? (QN_SUB + sub) << (power - 1) : sub;
}

static size_t mapped(uint64_t capacity)
{
	return sizeof(qn_watch) + capacity * sizeof(qn_gap);
}

int qn_watch_create(uint64_t capacity, qn_watch **ret)
{
	qn_watch *watch;

	if (!capacity || capacity > (1ull << 32))
		return -EINVAL;
	watch = mmap(NULL, mapped(capacity), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (watch == MAP_FAILED)
		return -errno;
	watch->capacity = capacity;
	*ret = watch;
	return 0;
}

void qn_watch_destroy(qn_watch *watch)
{
	if (watch)
		munmap(watch, mapped(watch->capacity));
}

qn_gap *qn_watch_gaps(qn_watch *watch)
{
	return (qn_gap *)(watch + 1);
}

/* Unless the memory is locked, the kernel allocates it only when it is touched. */
static void touch(qn_watch *watch)
{
	memset(qn_watch_gaps(watch), 0, watch->capacity * sizeof(qn_gap));
	memset(watch->histogram, 0, sizeof(watch->histogram));
}

static void look(uint32_t *flags, struct rusage *before)
{
	struct rusage after;

	if (getrusage(RUSAGE_THREAD, &after))
		return;
	*flags |= QN_LOOKED;
	if (after.ru_nivcsw != before->ru_nivcsw || after.ru_nvcsw != before->ru_nvcsw)
		*flags |= QN_SWITCHED;
	if (after.ru_minflt != before->ru_minflt || after.ru_majflt != before->ru_majflt)
		*flags |= QN_FAULTED;
	*before = after;
}

enum { QN_INTERRUPTED = 4 };

/* Record a gap; separate from the loop, to keep the loop small. */
__attribute__((noinline)) static uint64_t keep(qn_watch *watch, uint64_t begin, uint64_t length,
					       struct rusage *usage)
{
	qn_gap gap = {begin, length, 0, 0};
	uint64_t after, took;

	if (watch->look && length >= watch->look)
		look(&gap.flags, usage);
	if (watch->gaps < watch->capacity)
		qn_watch_gaps(watch)[watch->gaps] = gap;
	watch->gaps++;
	watch->histogram[bucket(length)]++;
	watch->lost += length;
	if (length > watch->longest)
		watch->longest = length;
	if (length < watch->shortest)
		watch->shortest = length;
	after = now();
	took = after - (begin + length);
	if (took < watch->keeping)
		watch->keeping = took;
	/*
	 * The loop does not detect gaps while this code runs. The duration of this code must not count as a gap merely
	 * because it exceeds the threshold: then each gap would cause the next one, forever. But if the code took much
	 * longer than its shortest time so far, it was interrupted, and a new gap begins.
	 */
	if (!(gap.flags & QN_LOOKED) && took >= watch->threshold && took > QN_INTERRUPTED * watch->keeping)
		return begin + length;
	watch->looking += took;
	return after;
}

/* The loop also detects no gap during the return from keep(), which takes longer than the threshold in an emulator. */
static inline uint64_t returned(qn_watch *watch, uint64_t since)
{
	uint64_t t = now(), took = t - since;

	if (took >= QN_INTERRUPTED * watch->keeping)
		return since;
	watch->looking += took;
	return t;
}

enum { QN_WARM = 16, QN_COLD = 16 };

/*
 * Initialize `keeping` to QN_COLD times the duration of keep() with warm caches. Otherwise, an interruption of the
 * first keep() would be mistaken for part of it, however long the interruption is.
 */
static void warm_up(qn_watch *watch, struct rusage *usage)
{
	watch->keeping = UINT64_MAX;
	for (int i = 0; i < QN_WARM; i++)
		returned(watch, keep(watch, now(), 0, usage));
	watch->keeping = QN_COLD * (watch->keeping + 1);
	memset(watch->histogram, 0, sizeof(watch->histogram));
	watch->gaps = watch->lost = watch->longest = watch->looking = 0;
	watch->shortest = UINT64_MAX;
}

/*
 * The loop: read, compare, record. On machines with a clock step of 10 ns, even
 * a histogram of the short differences would make the loop miss the next step,
 * so they are only counted, and their distribution is measured beforehand
 * (qn_periods). A difference is signed, so that a clock that goes back by a tick
 * does not look like a gap. The loop checks for the end only occasionally,
 * because it detects no gap while it checks.
 */
static void watch_loop(qn_watch *watch, struct rusage *usage)
{
	const int64_t threshold = (int64_t)watch->threshold;
	uint64_t last = now(), readings = 0;
	const uint64_t end = last + watch->duration;

	watch->begin = last;
	while (last < end && !watch->stop) {
		for (int i = 0; i < QN_TURN; i++) {
			uint64_t t = now();
			int64_t away = (int64_t)(t - last);

			if (__builtin_expect(away >= threshold, 0))
				t = returned(watch, keep(watch, last, (uint64_t)away, usage));
			last = t;
		}
		readings += QN_TURN;
	}
	watch->end = last;
	watch->readings = readings;
}

/* The same loop as watch_loop(), but it records every difference. */
void qn_periods(uint64_t *periods, size_t n)
{
	uint64_t last = now();

	for (size_t i = 0; i < n; i++) {
		uint64_t t = now();

		periods[i] = t - last;
		last = t;
	}
}

int qn_watch_run(qn_watch *watch)
{
	struct rusage first, usage;
	int cpu;

	touch(watch);
	if (getrusage(RUSAGE_THREAD, &first))
		return -errno;
	warm_up(watch, &first);
	watch->ready = 1;
	wait_for(&watch->go, &watch->stop);
	cpu = sched_getcpu();
	if (getrusage(RUSAGE_THREAD, &first))
		return -errno;
	usage = first;
	watch_loop(watch, &usage);
	if (getrusage(RUSAGE_THREAD, &usage))
		return -errno;
	watch->voluntary = (uint64_t)(usage.ru_nvcsw - first.ru_nvcsw);
	watch->involuntary = (uint64_t)(usage.ru_nivcsw - first.ru_nivcsw);
	watch->faults = (uint64_t)(usage.ru_minflt - first.ru_minflt + usage.ru_majflt - first.ru_majflt);
	watch->cpu = sched_getcpu();
	watch->moved = cpu != watch->cpu;
	watch->done = 1;
	/*
	 * The end of a process wakes a kernel thread on its CPU, and with two tasks the tick returns: wait, so that the
	 * measurement does not include this.
	 */
	wait_for(&watch->leave, &watch->leave);
	return 0;
}

void qn_exit(int code)
{
	_exit(code);
}

int qn_lock_memory(void)
{
	return mlockall(MCL_CURRENT) ? -errno : 0;
}

int qn_fifo(int priority)
{
	struct sched_param param = {.sched_priority = priority};

	return sched_setscheduler(0, SCHED_FIFO, &param) ? -errno : 0;
}

int qn_die_with_parent(int parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void qn_moment_now(qn_moment *ret)
{
	ret->spread = UINT64_MAX;
	/*
	 * The tightest of several readings, because an interruption widens only
	 * one of them.
	 */
	for (int i = 0; i < 100; i++) {
		uint64_t before = now(), raw = nanoseconds(CLOCK_MONOTONIC_RAW);
		uint64_t monotonic = nanoseconds(CLOCK_MONOTONIC), after = now();

		if (after - before >= ret->spread)
			continue;
		ret->spread = after - before;
		ret->ticks = before + (after - before) / 2;
		ret->raw_ns = raw;
		ret->monotonic_ns = monotonic;
	}
}
