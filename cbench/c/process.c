#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

int cb_addresses_fixed(int *ret)
{
	int now = personality(0xffffffff); /* asks, changes nothing */

	if (now < 0)
		return -errno;
	*ret = !!(now & ADDR_NO_RANDOMIZE);
	return 0;
}

int cb_fix_addresses(int fixed, int *ret)
{
	unsigned long now;
	int err = cb_addresses_fixed(ret);

	if (err || *ret == !!fixed)
		return err;
	now = (unsigned int)personality(0xffffffff);
	now = fixed ? now | ADDR_NO_RANDOMIZE : now & ~(unsigned long)ADDR_NO_RANDOMIZE;
	return personality(now) < 0 ? -errno : 0;
}

int cb_die_with_parent(int pid)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return getppid() == pid ? 0 : -ESRCH;
}

int cb_lock_all(int future)
{
	return mlockall(MCL_CURRENT | (future ? MCL_FUTURE : 0)) ? -errno : 0;
}

int cb_lock_range(void *start, size_t len)
{
	return mlock(start, len) ? -errno : 0;
}
