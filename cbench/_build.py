"""Build the extension module `cbench._cbench`: the measuring C code and the workloads (CFFI, API mode)."""

from __future__ import annotations

from pathlib import Path

import cffi

CDEF = """
enum { CB_READ_TICKS, CB_READ_USER, CB_READ_SYSCALL, ... };
enum { CB_EXCLUDE_KERNEL, CB_EXCLUDE_USER, CB_MUST_COUNT, ... };
#define CB_MAX_OTHERS ...
enum { CB_RESCHEDULED, CB_MULTIPLEXED, CB_IRQ_UNKNOWN, ... };
#define CB_IRQ_MAX ...

typedef struct { int mode; ...; } cb_counter;
typedef struct { uint64_t begin; uint64_t wide; uint64_t narrow; } qn_chain;
int cb_counter_chain(cb_counter *counter, uint64_t length);
int cb_ticks_create(cb_counter **ret);
int cb_perf_create(uint32_t type, uint64_t config, uint64_t config1, int how, cb_counter **ret);
int cb_counter_add(cb_counter *counter, uint32_t type, uint64_t config, uint64_t config1, int how);
void cb_counter_destroy(cb_counter *counter);
int cb_ticks_deltas(uint64_t *deltas, size_t n);

typedef struct { size_t lines; uint64_t labels; } cb_irq_table;
typedef struct { char *text; ...; } cb_irq_source;
int cb_irq_parse(const char *text, size_t len, int cpu, uint64_t *counts, size_t max, cb_irq_table *ret);
int cb_irq_create(int cpu, cb_irq_source **ret);
void cb_irq_destroy(cb_irq_source *source);

typedef uint64_t (*cb_run_fn)(void *state, uint64_t n);
typedef struct {
    uint64_t value; uint64_t result; uint32_t flags; int32_t cpu_before; int32_t cpu_after;
    uint64_t begin; uint64_t end;
    int64_t nvcsw; int64_t nivcsw; int64_t minflt; int64_t majflt;
    uint32_t irq_lines; uint32_t irq_line[...]; uint64_t irq_count[...]; uint64_t others[...]; uint64_t beside;
    qn_chain before; qn_chain after;
} cb_trial;
int cb_trials_run(const cb_counter *counter, cb_irq_source *irqs, cb_run_fn run, void *state, uint64_t n,
                  uint64_t rewarm, uint64_t budget_ns, size_t stack_offset, size_t max, cb_trial *trials, size_t *ret);
int cb_empty_regions(const cb_counter *counter, uint64_t *values, size_t n);
uint64_t cb_empty_run(void *state, uint64_t n);

int cb_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t *ret);

typedef struct {
    const char *name;
    cb_run_fn run;
    int (*create)(const uint64_t *params, size_t count, void **ret);
    void (*destroy)(void *state);
    int locked;
} cb_workload;
typedef struct { char *start; size_t len; } cb_buffer;
int cb_workload_find(const char *name, const cb_workload **ret);

uint64_t cb_hash_run(void *state, uint64_t n);

typedef struct {
    int32_t pid; int32_t pidfd; int32_t status; uint64_t begin_ns; uint64_t end_ns; int64_t user_us; int64_t system_us;
    int64_t voluntary; int64_t involuntary; int64_t minor_faults; int64_t major_faults;
} cb_process;
int cb_process_start(const char *path, char *const *argv, char *const *envp, const int *files, const uint8_t *cpus,
                     size_t cpus_size, cb_process *ret);
int cb_process_wait(cb_process *process, int timeout_ms);
int cb_process_reap(cb_process *process);
"""

CHECKOUT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    source.relative_to(CHECKOUT).as_posix()
    for pattern in ("cbench/c/*.c", "cbench/c/workloads/*.c", "quiet/noise/c/chain.c")
    for source in CHECKOUT.glob(pattern)
)
"""All C files, so that the file of a new workload needs no entry here. `chain.c` of quiet is included because trials
with calibrated cycles run its chains of additions right before and after the workload.
"""

# Every build with one compiler must yield the same machine code: no link-time optimization across the call, no
# vectorizing, functions aligned to cache lines. Results must be identical too: no fused multiply-add, which gcc would
# use on arm64.
FLAGS = ["-O2", "-g", "-Wall", "-fno-lto", "-fno-tree-vectorize", "-falign-functions=64", "-ffp-contract=off"]

ffibuilder = cffi.FFI()
ffibuilder.cdef(CDEF)
ffibuilder.set_source(
    "cbench._cbench",
    '#include "measure.h"\n#include "process.h"\n#include "workloads/workloads.h"\n',
    sources=SOURCES,
    include_dirs=["cbench/c", "quiet/noise/c"],
    extra_compile_args=FLAGS,
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)
