/*
 * copy, scale, add, triad: n passes over arrays of doubles.
 *
 *   copy   c = a          16 bytes moved for each element
 *   scale  c = 3 a        16
 *   add    c = a + b      24
 *   triad  c = a + 3 b    24
 *
 * Stress the bandwidth of the cache level that holds the arrays, or of memory
 * when each is at least four times the last level cache (STREAM's own rule).
 * Should cost those bytes divided by the bandwidth; bytes that a write first
 * reads into the cache are not counted, as in STREAM. The sources are never
 * written, so every trial computes the same.
 *
 * The loops are scalar in every build: an empty asm on each element keeps any
 * compiler from vectorising them or calling memcpy(). All values are whole
 * numbers far below 2^53, so the sums are exact.
 *
 * Source: J. McCalpin, "Memory bandwidth and machine balance in current high
 * performance computers", IEEE TCCA Newsletter (1995).
 */
#include "workloads.h"

#if defined(__x86_64__)
#define KEEP(value) __asm__ volatile("" : "+x"(value))
#else
#define KEEP(value) __asm__ volatile("" : "+w"(value))
#endif

void cb_stream_fill(const cb_stream *stream)
{
	for (uint64_t i = 0; i < stream->count; i++) {
		stream->a[i] = (double)(i % 1021 + 1);
		stream->b[i] = (double)(i % 509 + 2);
		stream->c[i] = 0;
	}
}

static uint64_t probe(const cb_stream *stream, uint64_t k)
{
	return k * (stream->count - 1) / (CB_STREAM_PROBES - 1);
}

/* Elements evenly spread over the result, cleared before and read after the passes. */
static void clear(const cb_stream *stream)
{
	for (uint64_t k = 0; k < CB_STREAM_PROBES; k++)
		stream->c[probe(stream, k)] = 0;
}

static uint64_t check(const cb_stream *stream)
{
	double sum = 0;

	for (uint64_t k = 0; k < CB_STREAM_PROBES; k++)
		sum += (double)(k + 1) * stream->c[probe(stream, k)];
	return (uint64_t)sum;
}

#define STREAM_RUN(name, value)                                                                                        \
	__attribute__((noinline)) uint64_t cb_##name##_run(void *state, uint64_t n)                                    \
	{                                                                                                              \
		const cb_stream *stream = state;                                                                       \
		const double *a = stream->a, *b = stream->b;                                                           \
		double *c = stream->c;                                                                                 \
		uint64_t count = stream->count;                                                                        \
                                                                                                                       \
		(void)b;                                                                                               \
		clear(stream);                                                                                         \
		for (uint64_t pass = 0; pass < n; pass++) {                                                            \
			for (uint64_t i = 0; i < count; i++) {                                                         \
				double x = (value);                                                                    \
                                                                                                                       \
				KEEP(x);                                                                               \
				c[i] = x;                                                                              \
			}                                                                                              \
		}                                                                                                      \
		return check(stream);                                                                                  \
	}

STREAM_RUN(copy, a[i])
STREAM_RUN(scale, 3.0 * a[i])
STREAM_RUN(add, a[i] + b[i])
STREAM_RUN(triad, a[i] + 3.0 * b[i])
