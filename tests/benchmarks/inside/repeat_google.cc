// The same work under google/benchmark: tests/benchmarks/repeatability.py compiles and runs it.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint64_t cb_hash_run(void *state, uint64_t n);

static void hash(benchmark::State &state)
{
	const uint64_t n = std::strtoull(std::getenv("REPEAT_N"), nullptr, 10);

	for (auto _ : state)
		benchmark::DoNotOptimize(cb_hash_run(nullptr, n));
}

BENCHMARK(hash);
BENCHMARK_MAIN();
