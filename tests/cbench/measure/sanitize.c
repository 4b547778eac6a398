/*
 * Runs the measuring C once through everything under AddressSanitizer and
 * UndefinedBehaviorSanitizer. Exit code 0: nothing was found.
 */
#define _GNU_SOURCE
#include "irq.h"
#include "measure.h"
#include "process.h"
#include "workloads/workloads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
	CHECK(workload->create((uint64_t[]){1, 3, 1, 0}, 4, &memory) == -EINVAL);
	CHECK(workload->create((uint64_t[]){1, 4098, 0, 64}, 4, &memory) == 0); /* not a whole number of words */
	CHECK(cb_trials_run(counter, irqs, cb_hash_run, NULL, 1000, 10, 1000000000, 0, 8, trials, &done) == 0);
	CHECK(done == 8 && trials[0].result == trials[7].result);
	CHECK(cb_trials_run(counter, irqs, cb_sieve_run, NULL, 100, 0, 0, 0, 8, trials, &done) == 0);
	CHECK(done == 1 && trials[0].result == 24);
	CHECK(cb_trials_run(counter, irqs, cb_memory_run, memory, 5000, 0, 1000000000, 0, 2, trials, &done) == 0);
	CHECK(done == 2 && trials[0].result == trials[1].result);
	CHECK(cb_trials_run(counter, irqs, cb_empty_run, NULL, 5, 0, 1000000000, 0, 2, trials, &done) == 0);
	CHECK(trials[1].result == 5);
	workload->destroy(memory);
	return 0;
}

/* Every workload with parameters that its state takes, and with some that it refuses. */
static int check_workloads(cb_counter *counter)
{
	static const struct {
		const char *name;
		size_t count;
		uint64_t good[5];
		uint64_t bad[5];
	} cases[] = {
		{"empty", 1, {3}, {0}},
		{"hash", 1, {100}, {0}},
		{"sieve", 1, {100}, {0}},
		{"memory", 2, {1000, 4098}, {1, 3}},
		{"chase", 4, {1000, 4100, 40, 0}, {1, 64, 12, 0}},
		{"chase", 4, {1000, 4096, 64, 1}, {1, 63, 64, 1}},
		{"copy", 2, {2, 512}, {1, 511}},
		{"scale", 2, {2, 520}, {1, 0}},
		{"add", 2, {2, 5000}, {1, UINT64_MAX}},
		{"triad", 2, {2, 4096}, {1, 8}},
		{"float", 1, {100}, {0}},
		{"vector", 1, {100}, {0}},
		{"branch", 3, {1000, 3, 1}, {1000, 4, 1}},
		{"branch", 3, {1000, 2, 7}, {1000, 2, 0}},
		{"syscall", 1, {10}, {0}},
		{"fault", 1, {20}, {0}},
		{"aliquot", 2, {154, 10000000}, {1, 0}},
		{"etalon", 1, {2}, {0}},
	};
	static cb_trial trials[2];
	const cb_workload *workload;
	size_t done;

	CHECK(cb_workload_find("hush", &workload) == -ENOENT);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		void *state = NULL;

		CHECK(cb_workload_find(cases[i].name, &workload) == 0);
		CHECK(!workload->create == !workload->destroy);
		if (workload->create) {
			CHECK(workload->create(cases[i].bad, cases[i].count, &state) == -EINVAL);
			CHECK(workload->create(cases[i].good, cases[i].count + 1, &state) == -EINVAL);
			CHECK(workload->create(cases[i].good, cases[i].count, &state) == 0);
		}
		CHECK(!workload->locked || (((cb_buffer *)state)->start && ((cb_buffer *)state)->len));
		CHECK(cb_trials_run(counter, NULL, workload->run, state, cases[i].good[0], 0, 1000000000, 64, 2, trials,
				    &done) == 0);
		CHECK(trials[0].result == trials[done - 1].result);
		if (workload->destroy) {
			workload->destroy(state);
			workload->destroy(NULL);
		}
	}
	return 0;
}

static int check_chains(cb_counter *counter)
{
	static cb_trial trials[4];
	qn_chain chains[3];
	uint64_t ticks[3];
	size_t done;

	CHECK(qn_chains_run(0, 3, chains) == -EINVAL);
	CHECK(qn_chains_run(QN_CHAIN_BODY + 1, 3, chains) == -EINVAL);
	CHECK(qn_chains_run(QN_CHAIN_BODY, 3, chains) == 0);
	CHECK(chains[2].begin > chains[0].begin);
	CHECK(qn_carries_run(QN_CHAIN_BODY - 1, 3, ticks) == -EINVAL);
	CHECK(qn_carries_run(QN_CHAIN_BODY, 3, ticks) == 0);
	CHECK(cb_counter_chain(counter, 100 * QN_CHAIN_BODY - 1) == -EINVAL);
	CHECK(cb_counter_chain(counter, 100 * QN_CHAIN_BODY) == 0);
	CHECK(cb_trials_run(counter, NULL, cb_hash_run, NULL, 1000, 10, 1000000000, 0, 4, trials, &done) == 0);
	CHECK(done == 4 && trials[3].before.narrow && trials[3].after.narrow && trials[3].before.wide);
	CHECK(trials[3].begin <= trials[3].before.begin && trials[3].after.begin <= trials[3].end);
	CHECK(cb_counter_chain(counter, 0) == 0);
	CHECK(cb_trials_run(counter, NULL, cb_hash_run, NULL, 1000, 10, 1000000000, 0, 1, trials, &done) == 0);
	CHECK(!trials[0].before.narrow && !trials[0].after.narrow);
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
	cb_event event = {.fd = -1, .user = 1, .page = &page};
	struct cb_view view;

	memset(&page, 0, sizeof(page));
	page.index = 1; /* scheduled, but the kernel does not allow user reads */
	CHECK(cb_event_view(&event, &view) == -EAGAIN);
	page.cap_user_rdpmc = 1;
	page.index = 0; /* allowed, but not on the PMU now */
	CHECK(cb_event_view(&event, &view) == -EAGAIN);
	return 0;
}

static int check_process(void)
{
	char *argv[] = { "sh", "-c", "exit 3", NULL }, *envp[] = { NULL };
	const int files[] = { 0, 1, 2, memfd_create("group", MFD_CLOEXEC) };
	char group[32] = "";
	cb_process process;
	int ended;

	CHECK(cb_process_start("/no/such/program", argv, envp, files, NULL, 0, &process) == -ENOENT);
	CHECK(cb_process_start("/bin/sh", argv, envp, files, NULL, 0, &process) == 0);
	while ((ended = cb_process_wait(&process, 1000)) == 0)
		;
	CHECK(ended == 1 && process.end_ns > process.begin_ns);
	CHECK(cb_process_reap(&process) == 0);
	CHECK(process.status == 3 << 8 && process.pidfd == -1);
	CHECK(pread(files[3], group, sizeof(group) - 1, 0) == 21 && atoi(group) == process.pid && group[20] == '\n');
	close(files[3]);
	return 0;
}

int main(void)
{
	uint64_t deltas[200];
	cb_counter *counter;
	cb_irq_source *irqs = NULL;
	int err;

	if (check_irqs() || check_signs() || check_view() || check_process())
		return 1;
	CHECK(cb_ticks_create(&counter) == 0);
	CHECK(cb_ticks_deltas(deltas, 200) == 0);
	CHECK(check_trials(counter, NULL) == 0);
	CHECK(check_workloads(counter) == 0);
	CHECK(check_chains(counter) == 0);
	if (cb_irq_create(0, &irqs) == 0)
		CHECK(check_trials(counter, irqs) == 0);
	cb_counter_destroy(counter);
	/* A software event takes the same path as a hardware one that only read() can read. */
	err = cb_perf_create(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0, 1, &counter);
	CHECK(err == 0 || err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT);
	if (!err) {
		CHECK(counter->mode == CB_READ_SYSCALL);
		CHECK(check_trials(counter, irqs) == 0);
		cb_counter_destroy(counter);
	}
	CHECK(cb_perf_create(0xffff, 0, 0, 1, &counter) < 0);
	cb_irq_destroy(irqs);
	cb_irq_destroy(NULL);
	cb_counter_destroy(NULL);
	return 0;
}
