/*
 * Runs the detector's functions once under AddressSanitizer and
 * UndefinedBehaviorSanitizer. Exit code 0: nothing was found.
 */
#include "detector.h"
#include "wake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);         \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int check_buckets(void)
{
	uint64_t last = 0;

	for (size_t index = 0; index < QN_BUCKETS; index++) {
		uint64_t low = qn_bucket_floor(index);

		CHECK(qn_bucket(low) == index);
		CHECK(!index || low > last);
		CHECK(!index || qn_bucket(low - 1) == index - 1);
		last = low;
	}
	CHECK(qn_bucket(UINT64_MAX) == QN_BUCKETS - 1);
	for (unsigned int shift = 0; shift < 64; shift++)
		CHECK(qn_bucket_floor(qn_bucket(1ull << shift)) == 1ull << shift);
	return 0;
}

static int check_moments(void)
{
	qn_moment first, second;

	qn_moment_now(&first);
	qn_moment_now(&second);
	CHECK(second.raw_ns >= first.raw_ns && second.monotonic_ns >= first.monotonic_ns);
	CHECK(first.spread != UINT64_MAX);
	CHECK(strlen(qn_clock_name()) > 2);
	CHECK(qn_now() != 0);
	return 0;
}

/* What a watch has seen agrees with itself. */
static int check_sums(qn_watch *watch)
{
	uint64_t sum = 0, longest = 0, kept = watch->gaps < watch->capacity ? watch->gaps : watch->capacity;
	const qn_gap *gaps = qn_watch_gaps(watch);

	for (size_t index = 0; index < QN_BUCKETS; index++)
		sum += watch->histogram[index];
	CHECK(sum == watch->gaps);
	CHECK(!watch->duration || watch->readings);
	CHECK(watch->ready && watch->done && watch->end >= watch->begin);
	sum = 0;
	for (uint64_t index = 0; index < kept; index++) {
		CHECK(gaps[index].length >= watch->threshold);
		CHECK(gaps[index].begin >= watch->begin && gaps[index].begin + gaps[index].length <= watch->end);
		CHECK(!index || gaps[index].begin >= gaps[index - 1].begin + gaps[index - 1].length);
		CHECK(!watch->look || gaps[index].length < watch->look || gaps[index].flags & QN_LOOKED);
		CHECK(watch->look || !gaps[index].flags);
		sum += gaps[index].length;
		if (gaps[index].length > longest)
			longest = gaps[index].length;
	}
	CHECK(kept < watch->gaps || (sum == watch->lost && longest == watch->longest));
	CHECK(sum <= watch->lost && longest <= watch->longest);
	CHECK(!watch->gaps || watch->shortest <= watch->longest);
	return 0;
}

static int watch_once(uint64_t capacity, uint64_t threshold, uint64_t look, uint64_t duration, int stopped)
{
	qn_watch *watch;

	CHECK(qn_watch_create(capacity, &watch) == 0);
	CHECK(watch->capacity == capacity && !watch->ready && !watch->done);
	watch->threshold = threshold;
	watch->look = look;
	watch->duration = duration;
	watch->go = !stopped;
	watch->stop = stopped ? 1 : 0;
	watch->leave = 1;
	CHECK(qn_watch_run(watch) == 0);
	if (stopped)
		CHECK(!watch->gaps && !watch->readings && watch->done);
	else if (check_sums(watch))
		return 1;
	CHECK(watch->moved || watch->cpu >= 0);
	/* The last gap's last byte is ours. */
	qn_watch_gaps(watch)[capacity - 1].pad = 1;
	qn_watch_destroy(watch);
	return 0;
}

static int wake_once(uint64_t stop_above, int stopped)
{
	uint64_t sum = 0;
	qn_wake *wake;

	CHECK(qn_wake_create(&wake) == 0);
	wake->period = 1000000;
	wake->duration = 20000000;
	wake->stop_above = stop_above;
	wake->go = !stopped;
	wake->stop = stopped ? 1 : 0;
	CHECK(qn_wake_run(wake) == 0);
	CHECK(wake->ready && wake->done && wake->end >= wake->begin && wake->slack == 1);
	CHECK(wake->wakes + wake->missed <= 20 && (stopped ? !wake->wakes : wake->wakes > 0));
	CHECK(!stop_above || wake->wakes == 1);
	for (int i = 0; i < QN_WAKE_BINS; i++)
		sum += wake->bins[i];
	CHECK(sum + wake->beyond == wake->wakes);
	CHECK(!wake->wakes || wake->least <= wake->most);
	/* The last bin is ours, and what is later is counted apart. */
	qn_wake_note(wake, 1, (uint64_t)QN_WAKE_BINS * QN_WAKE_BIN_NS - 1);
	CHECK(wake->bins[QN_WAKE_BINS - 1] >= 1);
	sum = wake->beyond;
	qn_wake_note(wake, 1, (uint64_t)QN_WAKE_BINS * QN_WAKE_BIN_NS);
	qn_wake_note(wake, 1, UINT64_MAX);
	CHECK(wake->beyond == sum + 2 && wake->most == UINT64_MAX);
	qn_wake_destroy(wake);
	return 0;
}

int main(void)
{
	uint64_t periods[500], lengths[3], none_of[1] = {7};
	qn_watch *none;

	if (check_buckets() || check_moments())
		return 1;
	CHECK(qn_watch_create(0, &none) == -EINVAL);
	CHECK(qn_watch_create((1ull << 32) + 1, &none) == -EINVAL);
	qn_watch_destroy(NULL);
	qn_periods(periods, 500);
	qn_periods(periods, 0);
	CHECK(qn_interruptions(lengths, 3) == 0);
	CHECK(lengths[0] && lengths[1] && lengths[2]);
	CHECK(qn_faults(lengths, 3) == 0);
	CHECK(lengths[0] && lengths[1] && lengths[2]);
	CHECK(qn_interruptions(none_of, 0) == 0 && qn_faults(none_of, 0) == 0 && none_of[0] == 7);
	/* A full ring, one that is not, with and without looking, and one that is ended before it begins. */
	if (watch_once(1, 1, 0, 2000000, 0) || watch_once(170, 1, 1, 2000000, 0) ||
	    watch_once(100000, 500, 2000, 20000000, 0) || watch_once(10, UINT64_MAX >> 1, 0, 2000000, 0) ||
	    watch_once(10, 1, 0, 2000000, 1) || watch_once(10, 1, 0, 0, 0))
		return 1;
	qn_wake_destroy(NULL);
	if (wake_once(0, 0) || wake_once(1, 0) || wake_once(0, 1))
		return 1;
	CHECK(qn_die_with_parent(-1) == -ESRCH);
	CHECK(qn_die_with_parent(getppid()) == 0);
	CHECK(qn_fifo(1000) == -EINVAL);
	return 0;
}
