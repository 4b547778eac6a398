// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#undef noinline /* a word of the attribute in the workloads' sources, a macro in the kernel's */
#include "../c/workloads/branch.c"
