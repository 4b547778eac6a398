/* What an x86 processor says of itself, for the size of its TLBs. */
#ifndef CB_IDENTIFY_H
#define CB_IDENTIFY_H

#include <stdint.h>

/*
 * EAX, EBX, ECX, EDX of one leaf, as the CPU that runs this has them, into
 * ret[0..3]. -ENOENT above the highest leaf of its range, -ENOSYS on other
 * processors. In a virtual machine each call traps: never near a timed region.
 */
int cb_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t *ret);

#endif
