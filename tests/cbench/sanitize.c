/*
 * Runs the measuring C once through everything under AddressSanitizer and
 * UndefinedBehaviorSanitizer. Exit code 0: nothing was found.
 */
#include "irq.h"
#include "measure.h"
#include "process.h"
#include "workloads/workloads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);         \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static const char text[] = "           CPU0       CPU3\n"
			   "  1:          5          6   IO-APIC   1-edge      i8042\n"
			   "LOC:         70         80   Local timer interrupts\n"
			   "ERR:          9\n";

static int check_irqs(void)
{
	uint64_t counts[3];
	cb_irq_table table;
	cb_irq_source *source;

	CHECK(cb_irq_parse(text, sizeof(text) - 1, 3, counts, 3, &table) == 0);
	CHECK(table.lines == 3 && counts[0] == 6 && counts[1] == 80 && counts[2] == 0);
	CHECK(cb_irq_parse(text, sizeof(text) - 1, 1, counts, 3, &table) == -ENODEV);
	for (size_t len = 0; len < sizeof(text); len++) {
		char copy[sizeof(text)]; /* the end of the text is the end of the array */
		char *tail = copy + sizeof(copy) - len;
		int err;

		memcpy(tail, text, len);
		err = cb_irq_parse(tail, len, 0, counts, 3, &table);
		CHECK(err == 0 || err == -ENODEV);
	}
	CHECK(cb_irq_create(1 << 20, &source) == -ENODEV);
	return 0;
}

static int check_trials(cb_counter *counter, cb_irq_source *irqs)
{
	static cb_trial trials[8];
	const cb_workload *workload;
	void *memory;
	size_t done;

	CHECK(cb_workload_find("memory", &workload) == 0);
	CHECK(workload->create((uint64_t[]){1, 3}, 2, &memory) == -EINVAL);
	CHECK(workload->create((uint64_t[]){1, 4098}, 2, &memory) == 0); /* not a whole number of words */
	CHECK(cb_trials_run(counter, irqs, cb_hash_run, NULL, 1000, 10, 1000000000, 8, trials, &done) == 0);
	CHECK(done == 8 && trials[0].result == trials[7].result);
	CHECK(cb_trials_run(counter, irqs, cb_sieve_run, NULL, 100, 0, 0, 8, trials, &done) == 0);
	CHECK(done == 1 && trials[0].result == 24);
	CHECK(cb_trials_run(counter, irqs, cb_memory_run, memory, 5000, 0, 1000000000, 2, trials, &done) == 0);
	CHECK(done == 2 && trials[0].result == trials[1].result);
	CHECK(cb_trials_run(counter, irqs, cb_empty_run, NULL, 5, 0, 1000000000, 2, trials, &done) == 0);
	CHECK(trials[1].result == 5);
	workload->destroy(memory);
	return 0;
}

static int check_signs(void)
{
	CHECK(cb_sign_extend(0xffffffffffffu, 48) == -1);
	CHECK(cb_sign_extend(0x7fffffffffffu, 48) == 0x7fffffffffff);
	CHECK(cb_sign_extend(0xff0000000000002au, 40) == 42);
	CHECK(cb_sign_extend(~0ull, 64) == -1);
	return 0;
}

static int check_view(void)
{
	struct perf_event_mmap_page page;
	cb_counter counter = {.mode = CB_READ_USER, .fd = -1, .page = &page};
	struct cb_view view;

	memset(&page, 0, sizeof(page));
	page.index = 1; /* scheduled, but the kernel does not allow user reads */
	CHECK(cb_perf_view(&counter, &view) == -EAGAIN);
	page.cap_user_rdpmc = 1;
	page.index = 0; /* allowed, but not on the PMU now */
	CHECK(cb_perf_view(&counter, &view) == -EAGAIN);
	return 0;
}

int main(void)
{
	uint64_t deltas[200];
	cb_counter *counter;
	cb_irq_source *irqs = NULL;
	int err;

	if (check_irqs() || check_signs() || check_view())
		return 1;
	CHECK(cb_ticks_create(&counter) == 0);
	CHECK(cb_ticks_deltas(deltas, 200) == 0);
	CHECK(check_trials(counter, NULL) == 0);
	if (cb_irq_create(0, &irqs) == 0)
		CHECK(check_trials(counter, irqs) == 0);
	cb_counter_destroy(counter);
	/* A software event takes the same path as a hardware one that only read() can read. */
	err = cb_perf_create(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, 1, &counter);
	CHECK(err == 0 || err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT);
	if (!err) {
		CHECK(cb_counter_mode(counter) == CB_READ_SYSCALL);
		CHECK(check_trials(counter, irqs) == 0);
		cb_counter_destroy(counter);
	}
	CHECK(cb_perf_create(0xffff, 0, 0, 1, &counter) < 0);
	cb_irq_destroy(irqs);
	cb_irq_destroy(NULL);
	cb_counter_destroy(NULL);
	cb_memory_destroy(NULL);
	return 0;
}
