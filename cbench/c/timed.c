/*
 * The timed region.
 *
 * The function is called through a pointer that the compiler cannot resolve,
 * with barriers on both sides, so that no code is moved out of the region or
 * into it. The main event, which gives the trial's number, is read last before
 * the call and first after it. The adjacent reads are those of the first
 * further event, which shows whether the kernel ran in between. The main event
 * is also read outside these two reads: its count between the outer and the
 * inner read reveals an interrupt that occurred there, outside the trial.
 */
#include "measure.h"

#include <errno.h>
#include <string.h>

/* Read the group by system call, if some of its events require it. */
struct called {
	struct cb_group before, after;
};

static int call(const cb_counter *counter, struct cb_group *ret)
{
	return counter->called ? cb_group_read(counter, ret) : 0;
}

static void note_called(const cb_counter *counter, const struct called *called, cb_reading *ret)
{
	size_t first = counter->mode == CB_READ_TICKS ? 0 : 1; /* of the group's values */

	for (size_t i = 0; i < counter->others; i++)
		if (!counter->events[1 + i].user)
			ret->others[i] = called->after.values[first + i] - called->before.values[first + i];
	if (counter->called &&
	    called->after.enabled - called->before.enabled != called->after.running - called->before.running)
		ret->flags |= CB_MULTIPLEXED;
}

__attribute__((noinline)) static int timed_ticks(const cb_counter *counter, cb_run_fn run, void *state,
						 uint64_t n, cb_reading *ret)
{
	struct called called;
	uint64_t start, stop, result;
	int err = call(counter, &called.before);

	if (err)
		return err;
	start = cb_ticks_now();
	result = run(state, n);
	stop = cb_ticks_now();
	ret->result = result;
	err = call(counter, &called.after);
	if (err)
		return err;
	ret->value = stop - start;
	note_called(counter, &called, ret);
	return 0;
}

/* The count between two raw reads without rescheduling in between, modulo the counter's width. */
static uint64_t raw_difference(uint64_t start, uint64_t stop, uint16_t width)
{
	return width && width < 64 ? (stop - start) & ((1ull << width) - 1) : stop - start;
}

/*
 * The event's count. If lock, index and offset are unchanged, the event stayed
 * on the CPU and the raw counts are used; otherwise the full counts are still
 * valid, but include the cost of their own reads.
 */
static int difference(const cb_event *event, const struct cb_view *begin, uint64_t start, uint64_t stop,
		      uint32_t *flags, uint64_t *ret)
{
	const volatile struct perf_event_mmap_page *page = event->page;
	struct cb_view end;
	int err;

	if (page->lock == begin->lock && page->index == begin->index && page->offset == begin->offset) {
		*ret = raw_difference(start, stop, begin->width);
		return 0;
	}
	err = cb_event_view(event, &end);
	if (err)
		return err;
	*ret = end.value - begin->value;
	*flags |= CB_RESCHEDULED | (end.lag != begin->lag ? CB_MULTIPLEXED : 0);
	return 0;
}

__attribute__((noinline)) static int timed_user(const cb_counter *counter, cb_run_fn run, void *state,
						uint64_t n, cb_reading *ret)
{
	struct cb_view begin[CB_MAX_EVENTS];
	uint64_t start[CB_MAX_EVENTS], stop[CB_MAX_EVENTS], before, after;
	const cb_event *events = counter->events;
	size_t last = counter->others;
	uint64_t result;
	struct called called;
	int err = call(counter, &called.before);

	for (size_t i = 0; !err && i <= last; i++)
		err = events[i].user ? cb_event_view(&events[i], &begin[i]) : 0;
	if (err)
		return err;
	for (size_t i = last; i > 1; i--)
		start[i] = events[i].user ? cb_pmc_now(begin[i].index) : 0;
	before = cb_pmc_now(begin[0].index);
	start[1] = last && events[1].user ? cb_pmc_now(begin[1].index) : 0;
	start[0] = cb_pmc_now(begin[0].index);
	result = run(state, n);
	stop[0] = cb_pmc_now(begin[0].index);
	stop[1] = last && events[1].user ? cb_pmc_now(begin[1].index) : 0;
	after = cb_pmc_now(begin[0].index);
	for (size_t i = 2; i <= last; i++)
		stop[i] = events[i].user ? cb_pmc_now(begin[i].index) : 0;
	ret->result = result;
	ret->beside = raw_difference(before, start[0], begin[0].width) + raw_difference(stop[0], after, begin[0].width);
	err = difference(&events[0], &begin[0], start[0], stop[0], &ret->flags, &ret->value);
	for (size_t i = 1; !err && i <= last; i++)
		if (events[i].user)
			err = difference(&events[i], &begin[i], start[i], stop[i], &ret->flags, &ret->others[i - 1]);
	if (!err)
		err = call(counter, &called.after);
	if (!err)
		note_called(counter, &called, ret);
	return err;
}

__attribute__((noinline)) static int timed_syscall(const cb_counter *counter, cb_run_fn run, void *state,
						   uint64_t n, cb_reading *ret)
{
	struct cb_group before, after;
	uint64_t result;
	int err = cb_group_read(counter, &before);

	if (err)
		return err;
	cb_barrier();
	result = run(state, n);
	cb_barrier();
	err = cb_group_read(counter, &after);
	if (err)
		return err;
	ret->value = after.values[0] - before.values[0];
	ret->result = result;
	for (size_t i = 0; i < counter->others; i++)
		ret->others[i] = after.values[1 + i] - before.values[1 + i];
	if (after.enabled - before.enabled != after.running - before.running)
		ret->flags |= CB_MULTIPLEXED;
	return 0;
}

int cb_empty_regions(const cb_counter *counter, uint64_t *values, size_t n)
{
	struct cb_view view = {0};
	struct cb_group before, after;
	uint64_t start, stop;
	int err;

	for (size_t i = 0; i < n; i++) {
		err = counter->mode == CB_READ_USER ? cb_event_view(&counter->events[0], &view) : 0;
		if (!err && counter->mode == CB_READ_SYSCALL) {
			err = cb_group_read(counter, &before);
			if (!err)
				err = cb_group_read(counter, &after);
		}
		if (err)
			return err;
		if (counter->mode == CB_READ_SYSCALL) {
			values[i] = after.values[0] - before.values[0];
		} else if (counter->mode == CB_READ_USER) {
			start = cb_pmc_now(view.index);
			stop = cb_pmc_now(view.index);
			values[i] = raw_difference(start, stop, view.width);
		} else {
			start = cb_ticks_now();
			stop = cb_ticks_now();
			values[i] = stop - start;
		}
	}
	return 0;
}

int cb_measure(const cb_counter *counter, cb_run_fn run, void *state, uint64_t n, cb_reading *ret)
{
	memset(ret, 0, sizeof(*ret));
	switch (counter->mode) {
	case CB_READ_TICKS:
		return timed_ticks(counter, run, state, n, ret);
	case CB_READ_USER:
		return timed_user(counter, run, state, n, ret);
	case CB_READ_SYSCALL:
		return timed_syscall(counter, run, state, n, ret);
	default:
		return -EINVAL;
	}
}
