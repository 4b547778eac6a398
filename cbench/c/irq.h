/*
 * The count of each interrupt line on one CPU, from /proc/interrupts.
 *
 * The header names the online CPUs only, so a column is identified by its name,
 * not by its place (Documentation/filesystems/proc.rst).
 */
#ifndef CB_IRQ_H
#define CB_IRQ_H

#include <stddef.h>
#include <stdint.h>

typedef struct cb_irq_table {
	size_t lines;
	uint64_t labels; /* a hash of all line labels, which changes if lines are added or removed */
} cb_irq_table;

/*
 * counts[i] = the count of `cpu` in line i (not counting the header); 0 for a
 * line without a column per CPU ("ERR: 0"). -ENODEV: no column for the CPU;
 * -ENOSPC: more than `max` lines.
 */
int cb_irq_parse(const char *text, size_t len, int cpu, uint64_t *counts, size_t max, cb_irq_table *ret);

typedef struct cb_irq_source {
	int fd;
	int cpu;
	char *text; /* the text of the last read, for the names of the lines */
	size_t room;
	size_t max_lines;
	uint64_t *before;
	uint64_t *after;
} cb_irq_source;

int cb_irq_create(int cpu, cb_irq_source **ret);
void cb_irq_destroy(cb_irq_source *source);

/* Reads the file again into `counts` (source->before or source->after); no allocation. */
int cb_irq_read(cb_irq_source *source, uint64_t *counts, cb_irq_table *ret);

#endif
