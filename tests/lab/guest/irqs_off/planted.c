// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* Keeps interrupts off on one CPU for some time, again and again, in a thread of its own, until it is removed. */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>

static unsigned int cpu;
static unsigned int off_us = 100000;
static unsigned int every_ms = 2000;
module_param(cpu, uint, 0444);
module_param(off_us, uint, 0444);
module_param(every_ms, uint, 0444);

static struct task_struct *thread;

static int planted_run(void *unused)
{
	while (!kthread_should_stop()) {
		unsigned long flags;

		msleep_interruptible(every_ms);
		local_irq_save(flags);
		mdelay(off_us / 1000);
		udelay(off_us % 1000);
		local_irq_restore(flags);
	}
	return 0;
}

static int __init planted_init(void)
{
	thread = kthread_create(planted_run, NULL, "planted-off");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kthread_bind(thread, cpu);
	wake_up_process(thread);
	return 0;
}

static void __exit planted_exit(void)
{
	kthread_stop(thread);
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("a planted time with interrupts off");
MODULE_LICENSE("GPL");
