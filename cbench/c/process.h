/* What the measuring process asks of the kernel for itself, before the first trial. */
#ifndef CB_PROCESS_H
#define CB_PROCESS_H

#include <stddef.h>

/*
 * Address space randomisation of what this process executes from now on:
 * off with `fixed`, else on. *ret: whether it was off before.
 */
int cb_fix_addresses(int fixed, int *ret);

/* Whether this process was executed without randomisation. */
int cb_addresses_fixed(int *ret);

/* The kernel kills this process when its parent ends; -ESRCH when the parent `pid` is gone already. */
int cb_die_with_parent(int pid);

/* Locks, and so prefaults, all pages of this process; with `future` also those it will map. */
int cb_lock_all(int future);

/* Locks, and so prefaults, one range. */
int cb_lock_range(void *start, size_t len);

#endif
