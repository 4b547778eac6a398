#include "identify.h"

#include <errno.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

int cb_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t *ret)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	if (__get_cpuid_max(leaf & 0x80000000u, 0) < leaf)
		return -ENOENT;
	__cpuid_count(leaf, subleaf, a, b, c, d);
	ret[0] = a;
	ret[1] = b;
	ret[2] = c;
	ret[3] = d;
	return 0;
#else
	(void)leaf;
	(void)subleaf;
	(void)ret;
	return -ENOSYS;
#endif
}
