// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * The workloads that use neither floating point nor the C library, compiled
 * from the user-space files.
 */
#undef noinline /* a word of the attribute in the workloads' sources, a macro in the kernel's */
#include "../c/workloads/branch.c"
#include "../c/workloads/chase.c"
#include "../c/workloads/empty.c"
#include "../c/workloads/hash.c"
#include "../c/workloads/memory.c"
#include "../c/workloads/sieve.c"
