/* Reads and parses /proc/interrupts into memory that is allocated before the first trial. */
#define _GNU_SOURCE
#include "irq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static const char *line_end(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline : end;
}

static const char *number(const char *at, const char *end, uint64_t *ret)
{
	for (*ret = 0; at < end && is_digit(*at); at++)
		*ret = *ret * 10 + (uint64_t)(*at - '0');
	return at;
}

/* The column of "CPUn" in the header, and the number of columns. */
static int find_column(const char *at, const char *end, int cpu, size_t *column, size_t *columns)
{
	int found = 0;

	*columns = 0;
	for (at = skip_blanks(at, end); end - at > 3 && memcmp(at, "CPU", 3) == 0; at = skip_blanks(at, end)) {
		uint64_t name;

		at = number(at + 3, end, &name);
		if (cpu >= 0 && name == (uint64_t)cpu) {
			*column = *columns;
			found = 1;
		}
		(*columns)++;
	}
	return found ? 0 : -ENODEV;
}

/* The count in `column`, or 0 if the line has fewer than `columns` counts. */
static uint64_t count_in(const char *at, const char *end, size_t column, size_t columns)
{
	uint64_t wanted = 0, value;
	size_t seen = 0;

	for (at = skip_blanks(at, end); at < end && is_digit(*at) && seen < columns; at = skip_blanks(at, end)) {
		at = number(at, end, &value);
		if (seen++ == column)
			wanted = value;
	}
	return seen == columns ? wanted : 0;
}

int cb_irq_parse(const char *text, size_t len, int cpu, uint64_t *counts, size_t max, cb_irq_table *ret)
{
	const char *end = text + len, *eol = line_end(text, end);
	size_t column = 0, columns = 0;
	int err = find_column(text, eol, cpu, &column, &columns);

	if (err)
		return err;
	ret->lines = 0;
	ret->labels = 14695981039346656037u; /* FNV-1a */
	for (const char *at = eol < end ? eol + 1 : end; at < end; at = eol < end ? eol + 1 : end) {
		eol = line_end(at, end);
		if (ret->lines == max)
			return -ENOSPC;
		for (; at < eol && *at != ':'; at++)
			ret->labels = (ret->labels ^ (unsigned char)*at) * 1099511628211u;
		counts[ret->lines++] = at < eol ? count_in(at + 1, eol, column, columns) : 0;
	}
	return 0;
}

/* The kernel returns about a page per call, so read until the end. */
static int slurp(int fd, char *text, size_t room, size_t *ret)
{
	*ret = 0;
	for (;;) {
		ssize_t got;

		if (*ret + 1 >= room)
			return -ENOSPC;
		got = pread(fd, text + *ret, room - *ret - 1, (off_t)*ret);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		*ret += (size_t)got;
	}
	text[*ret] = 0;
	return 0;
}

static int size_for(cb_irq_source *source)
{
	size_t len;
	int err;

	for (source->room = 1 << 16;; source->room *= 2) {
		source->text = malloc(source->room);
		if (!source->text)
			return -ENOMEM;
		err = slurp(source->fd, source->text, source->room, &len);
		/* Room for wider counts and for some additional lines. */
		if (err != -ENOSPC && len < source->room / 2)
			break;
		free(source->text);
		source->text = NULL;
	}
	if (err)
		return err;
	source->max_lines = 64;
	for (size_t i = 0; i < len; i++)
		source->max_lines += source->text[i] == '\n';
	memset(source->text + len, 0, source->room - len); /* prefault */
	source->before = calloc(source->max_lines, sizeof(*source->before));
	source->after = calloc(source->max_lines, sizeof(*source->after));
	return source->before && source->after ? 0 : -ENOMEM;
}

int cb_irq_create(int cpu, cb_irq_source **ret)
{
	cb_irq_source *source = calloc(1, sizeof(*source));
	cb_irq_table table;
	int err;

	if (!source)
		return -ENOMEM;
	source->cpu = cpu;
	source->fd = open("/proc/interrupts", O_RDONLY | O_CLOEXEC);
	err = source->fd < 0 ? -errno : size_for(source);
	if (!err)
		err = cb_irq_read(source, source->before, &table);
	if (!err)
		err = cb_irq_read(source, source->after, &table);
	if (err)
		cb_irq_destroy(source);
	else
		*ret = source;
	return err;
}

void cb_irq_destroy(cb_irq_source *source)
{
	if (!source)
		return;
	if (source->fd >= 0)
		close(source->fd);
	free(source->text);
	free(source->before);
	free(source->after);
	free(source);
}

int cb_irq_read(cb_irq_source *source, uint64_t *counts, cb_irq_table *ret)
{
	size_t len;
	int err = slurp(source->fd, source->text, source->room, &len);

	return err ? err : cb_irq_parse(source->text, len, source->cpu, counts, source->max_lines, ret);
}
