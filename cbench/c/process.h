/* What the measuring process asks of the kernel for itself, before the first trial. */
#ifndef CB_PROCESS_H
#define CB_PROCESS_H

#include <stddef.h>

/* *ret = 1 when addresses were still random and are fixed from the next exec on, 0 when they are fixed already. */
int cb_fix_addresses(int *ret);

/* The kernel kills this process when its parent ends; -ESRCH when the parent `pid` is gone already. */
int cb_die_with_parent(int pid);

/* Locks, and so prefaults, all pages of this process; with `future` also those it will map. */
int cb_lock_all(int future);

/* Locks, and so prefaults, one range. */
int cb_lock_range(void *start, size_t len);

#endif
