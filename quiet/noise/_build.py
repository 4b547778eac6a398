"""Builds `quiet.noise._noise`: the detector (CFFI, API mode)."""

from __future__ import annotations

import cffi

CDEF = """
#define QN_BUCKETS ...
enum { QN_SWITCHED, QN_FAULTED, QN_LOOKED, ... };
typedef struct { uint64_t begin; uint64_t length; uint32_t flags; ...; } qn_gap;
typedef struct {
    uint64_t threshold; uint64_t look; uint64_t duration; uint64_t capacity;
    volatile uint32_t go; volatile uint32_t stop; volatile uint32_t leave;
    volatile uint32_t ready; volatile uint32_t done;
    uint64_t begin; uint64_t end; uint64_t readings; uint64_t gaps; uint64_t lost; uint64_t longest; uint64_t shortest;
    uint64_t looking; uint64_t voluntary; uint64_t involuntary; uint64_t faults; int32_t cpu; int32_t moved;
    uint64_t histogram[...];
    ...;
} qn_watch;
size_t qn_bucket(uint64_t value);
uint64_t qn_bucket_floor(size_t bucket);
int qn_watch_create(uint64_t capacity, qn_watch **ret);
void qn_watch_destroy(qn_watch *watch);
qn_gap *qn_watch_gaps(qn_watch *watch);
int qn_watch_run(qn_watch *watch);
void qn_periods(uint64_t *periods, size_t n);
int qn_interruptions(uint64_t *lengths, size_t n);
int qn_faults(uint64_t *lengths, size_t n);
void qn_exit(int code);
int qn_lock_memory(void);
int qn_fifo(int priority);
int qn_die_with_parent(int parent);
uint64_t qn_now(void);
const char *qn_clock_name(void);
typedef struct { uint64_t ticks; uint64_t spread; uint64_t raw_ns; uint64_t monotonic_ns; } qn_moment;
void qn_moment_now(qn_moment *ret);
"""

ffibuilder = cffi.FFI()
ffibuilder.cdef(CDEF)
ffibuilder.set_source(
    "quiet.noise._noise",
    '#include "detector.h"\n',
    sources=["quiet/noise/c/detector.c"],
    include_dirs=["quiet/noise/c"],
    extra_compile_args=["-O2", "-g", "-Wall", "-falign-functions=64"],
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)
