/* The three arrays of copy, scale, add and triad, one behind the other. */
#include "workloads.h"

#include <errno.h>
#include <stdlib.h>

#define APART 1344 /* bytes, 21 cache lines: arrays a power of two apart would all use the same sets */

static size_t stream_len(uint64_t count)
{
	return 3 * ((size_t)count * sizeof(double) + APART);
}

/* params: n, size in bytes of each array. */
int cb_stream_create(const uint64_t *params, size_t count, void **ret)
{
	cb_stream *stream;
	void *start;
	size_t step;
	int err;

	if (count != 2 || params[1] < CB_STREAM_LEAST || params[1] > (uint64_t)1 << 34)
		return -EINVAL;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return -ENOMEM;
	stream->count = params[1] / sizeof(double);
	err = cb_buffer_map(stream_len(stream->count), 1, &start);
	if (err) {
		free(stream);
		return err;
	}
	step = stream->count + APART / sizeof(double);
	stream->a = start;
	stream->b = stream->a + step;
	stream->c = stream->b + step;
	cb_stream_fill(stream);
	*ret = stream;
	return 0;
}

void cb_stream_destroy(void *state)
{
	cb_stream *stream = state;

	if (!stream)
		return;
	cb_buffer_unmap(stream->a, stream_len(stream->count));
	free(stream);
}

void cb_stream_region(const void *state, void **start, size_t *len)
{
	const cb_stream *stream = state;

	*start = stream->a;
	*len = stream_len(stream->count);
}
