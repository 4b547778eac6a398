#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

int cb_fix_addresses(int *ret)
{
	int now = personality(0xffffffff);

	if (now < 0)
		return -errno;
	*ret = !(now & ADDR_NO_RANDOMIZE);
	if (*ret && personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
		return -errno;
	return 0;
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
