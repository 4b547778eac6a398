/*
 * copy, scale, add, triad: n passes over arrays of doubles.
 *
 *   copy   c = a          16 bytes moved for each element
 *   scale  c = 3 a        16
 *   add    c = a + b      24
 *   triad  c = a + 3 b    24
 *
 * Stress the bandwidth of the cache level that holds the arrays, or of memory
 * if each array is at least four times as large as the last-level cache
 * (STREAM's own rule). Should cost those bytes divided by the bandwidth; bytes
 * that a write first reads into the cache are not counted, as in STREAM. The
 * sources are never written, so every trial computes the same values.
 *
 * The loops are scalar in every build, because an empty asm on each element
 * prevents vectorization and calls of memcpy(). All values are whole
 * numbers far below 2^53, so the sums are exact.
 *
 * Source: J. McCalpin, "Memory bandwidth and machine balance in current high
 * performance computers", IEEE TCCA Newsletter (1995).
 */
#include "workloads.h"

#define CB_STREAM_PROBES 64
#define CB_STREAM_LEAST 512 /* bytes: an element for each probe */

typedef struct cb_stream {
	cb_buffer buffer;
	double *a;
	double *b;
	double *c;
	uint64_t count;
} cb_stream;

#if defined(__x86_64__)
#define KEEP(value) __asm__ volatile("" : "+x"(value))
#else
#define KEEP(value) __asm__ volatile("" : "+w"(value))
#endif

static void fill(const cb_stream *stream)
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
	static __attribute__((noinline)) uint64_t cb_##name##_run(void *state, uint64_t n)                                    \
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

/* The three arrays are adjacent, with a gap of APART bytes between them. */
#define APART 1344 /* bytes, 21 cache lines: arrays a power of two apart would all use the same sets */

/* params: n, size in bytes of each array. */
static int create(const uint64_t *params, size_t count, void **ret)
{
	cb_stream *stream;
	size_t step;
	int err;

	if (count != 2 || params[1] < CB_STREAM_LEAST || params[1] > CB_SIZE_MOST)
		return -EINVAL;
	step = (params[1] + APART) / sizeof(double);
	err = cb_state_create(sizeof(*stream), 3 * step * sizeof(double), 1, ret);
	if (err)
		return err;
	stream = *ret;
	stream->count = params[1] / sizeof(double);
	stream->a = (double *)stream->buffer.start;
	stream->b = stream->a + step;
	stream->c = stream->b + step;
	fill(stream);
	return 0;
}

CB_WORKLOAD(copy, .run = cb_copy_run, .create = create, .destroy = cb_state_destroy, .locked = 1);
CB_WORKLOAD(scale, .run = cb_scale_run, .create = create, .destroy = cb_state_destroy, .locked = 1);
CB_WORKLOAD(add, .run = cb_add_run, .create = create, .destroy = cb_state_destroy, .locked = 1);
CB_WORKLOAD(triad, .run = cb_triad_run, .create = create, .destroy = cb_state_destroy, .locked = 1);
