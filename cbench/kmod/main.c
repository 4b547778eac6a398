// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* /dev/cbench: runs cbench's workloads on one CPU with interrupts off. The interface is cbench_kmod.h. */
#include <linux/bits.h>
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

/* Only one measurement at a time, because two would disturb each other. */
static DEFINE_MUTEX(measuring);

static int refuse(struct cbench_request *request, u32 reason, int err)
{
	request->reason = reason;
	return err;
}

static int check(struct cbench_request *request, const struct cb_kernel_workload **ret)
{
	const struct cb_kernel_workload *workload;

	if (request->version != CBENCH_VERSION)
		return refuse(request, CBENCH_BAD_VERSION, -EINVAL);
	if (request->flags & ~CBENCH_STOP_MACHINE || request->wanted > CBENCH_TICKS ||
	    request->warmup > CBENCH_TRIALS_MAX ||
	    request->max_region_ns > CBENCH_REGION_MAX_NS)
		return refuse(request, CBENCH_BAD_REQUEST, -EINVAL);
	if (!request->trials || request->trials > CBENCH_TRIALS_MAX)
		return refuse(request, CBENCH_BAD_TRIALS, -EINVAL);
	if (strnlen(request->workload, CBENCH_NAME_LEN) == CBENCH_NAME_LEN)
		return refuse(request, CBENCH_BAD_WORKLOAD, -EINVAL);
	workload = cb_kernel_workload_find(request->workload);
	if (!workload)
		return refuse(request, CBENCH_BAD_WORKLOAD, -EINVAL);
	if (!request->param_count || request->param_count > CBENCH_PARAMS_MAX ||
	    (request->param_count > 1 && !workload->workload->create) ||
	    request->params[0] > workload->max_n || request->rewarm > workload->max_n)
		return refuse(request, CBENCH_BAD_PARAM, -EINVAL);
	if (request->cpu >= nr_cpu_ids || !cpu_online(request->cpu))
		return refuse(request, CBENCH_CPU_OFFLINE, -ENODEV);
	if (current->nr_cpus_allowed != 1 || !cpumask_test_cpu(request->cpu, current->cpus_ptr))
		return refuse(request, CBENCH_NOT_BOUND, -EINVAL);
	if (!request->max_region_ns)
		request->max_region_ns = CBENCH_REGION_DEFAULT_NS;
	*ret = workload;
	return 0;
}

static int open_counter(struct cb_job *job)
{
	struct cbench_request *request = job->request;

	request->counter = CBENCH_TICKS;
	request->width = 64;
	if (request->wanted != CBENCH_TICKS) {
		request->pmu_error = cb_pmu_open(request->cpu, request->pmu_type, &job->event);
		if (request->pmu_error && request->wanted == CBENCH_CYCLES)
			return refuse(request, CBENCH_NO_CYCLES, request->pmu_error);
		if (!request->pmu_error) {
			request->counter = CBENCH_CYCLES;
			request->width = cb_pmu_width;
		}
	}
	job->mask = GENMASK_ULL(request->width - 1, 0);
	return 0;
}

/* Allocate everything that a trial needs before the first trial. */
static int measure(struct cbench_request *request, const struct cb_kernel_workload *workload)
{
	const cb_workload *functions = workload->workload;
	struct cb_job job = { .request = request, .workload = workload };
	struct cbench_trial *trials;
	int err;

	trials = kvcalloc(request->trials, sizeof(*trials), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!trials)
		return refuse(request, CBENCH_NO_MEMORY, -ENOMEM);
	err = open_counter(&job);
	if (err)
		goto free_trials;
	if (functions->create) {
		err = functions->create(request->params, request->param_count, &job.state);
		if (err) {
			refuse(request, err == -EINVAL ? CBENCH_BAD_PARAM : CBENCH_NO_MEMORY, err);
			goto close_counter;
		}
	}
	err = cb_job_run(&job, trials);
	if (!err && copy_to_user(u64_to_user_ptr(request->trials_at), trials,
				 request->done * sizeof(*trials)))
		err = -EFAULT;
	if (functions->destroy)
		functions->destroy(job.state);
close_counter:
	cb_pmu_close(job.event);
free_trials:
	kvfree(trials);
	return err;
}

static long cbench_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct cbench_request __user *user = (void __user *)argument;
	const struct cb_kernel_workload *workload;
	struct cbench_request request;
	int err;

	if (command != CBENCH_RUN)
		return -ENOTTY;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (copy_from_user(&request, user, sizeof(request)))
		return -EFAULT;
	memset_startat(&request, 0, reason);
	err = check(&request, &workload);
	if (!err && !mutex_trylock(&measuring)) {
		err = refuse(&request, CBENCH_BUSY, -EBUSY);
	} else if (!err) {
		err = measure(&request, workload);
		mutex_unlock(&measuring);
	}
	if (copy_to_user(user, &request, sizeof(request)))
		return -EFAULT;
	return err;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = cbench_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "cbench",
	.fops = &operations,
	.mode = 0600,
};

module_misc_device(device);

MODULE_LICENSE("GPL");
MODULE_VERSION(__stringify(CBENCH_VERSION));
MODULE_DESCRIPTION("Runs cbench's workloads on one CPU with interrupts off");
