// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/cotenant0: the ioctls, and the mapping of the doorbell's page.
 *
 * The page is put in when it is first stored to. When the device goes it is taken out of all processes, and
 * the next store finds a page of ours in its place, where it rings nothing.
 */
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "cotenant.h"

static int file_open(struct inode *inode, struct file *file)
{
	struct ctn_device *device = container_of(file->private_data, struct ctn_device, misc);
	struct ctn_session *session = ctn_session_new(device);

	if (!session)
		return -ENOMEM;
	session->mapping = file->f_mapping;
	mutex_lock(&device->files_lock);
	list_add(&session->entry, &device->files);
	mutex_unlock(&device->files_lock);
	file->private_data = session;
	return 0;
}

/* A child of the owner may have the file as well: the session ends with the owner. */
static int file_flush(struct file *file, fl_owner_t owner)
{
	struct ctn_session *session = file->private_data;

	if (session->owner == task_tgid(current))
		ctn_session_end(session);
	return 0;
}

static int file_release(struct inode *inode, struct file *file)
{
	struct ctn_session *session = file->private_data;
	struct ctn_device *device = session->device;

	mutex_lock(&device->files_lock);
	list_del(&session->entry);
	mutex_unlock(&device->files_lock);
	ctn_session_end(session);
	ctn_session_put(session);
	return 0;
}

/* What an ioctl's argument is: its bytes are copied in and, where the answer says something, out. */
union arguments {
	struct cotenant_ioc_open open;
	struct cotenant_ioc_lane lane;
	struct cotenant_ioc_grant grant;
	struct cotenant_ioc_wait wait;
	u32 number;
};

static int obey(struct ctn_session *session, unsigned int command, union arguments *args)
{
	switch (command) {
	case COTENANT_IOC_OPEN:
		return ctn_session_open(session, &args->open);
	case COTENANT_IOC_LANE_ADD:
		return ctn_session_lane_add(session, &args->lane);
	case COTENANT_IOC_LANE_REMOVE:
		return ctn_session_lane_remove(session, args->number);
	case COTENANT_IOC_GRANT:
		return ctn_session_grant(session, &args->grant);
	case COTENANT_IOC_REVOKE:
		return ctn_session_revoke(session, args->number);
	case COTENANT_IOC_RING:
		return ctn_session_ring(session, args->number);
	case COTENANT_IOC_WAIT:
		return ctn_session_wait(session, &args->wait);
	default:
		return -ENOTTY;
	}
}

static long file_ioctl(struct file *file, unsigned int command, unsigned long address)
{
	struct ctn_session *session = file->private_data;
	void __user *user = (void __user *)address;
	size_t size = _IOC_SIZE(command);
	union arguments args = {};
	int r;

	if (!ctn_session_is_mine(session))
		return -EPERM;
	if (size > sizeof(args))
		return -ENOTTY;
	if (copy_from_user(&args, user, size))
		return -EFAULT;
	r = obey(session, command, &args);
	/* A refusal says something, too: the other side's version. */
	if ((r == 0 || r == -EPROTO) && _IOC_DIR(command) & _IOC_READ &&
	    copy_to_user(user, &args, size))
		return -EFAULT;
	return r;
}

static vm_fault_t doorbell_fault(struct vm_fault *fault)
{
	struct ctn_session *session = fault->vma->vm_file->private_data;
	struct ctn_device *device = session->device;
	unsigned long pfn = page_to_pfn(device->no_doorbell);
	vm_fault_t r;

	down_read(&device->life);
	if (ctn_device_ready(device))
		pfn = PHYS_PFN(device->doorbell);
	r = vmf_insert_pfn(fault->vma, fault->address, pfn);
	up_read(&device->life);
	return r;
}

static const struct vm_operations_struct doorbell_operations = {
	.fault = doorbell_fault,
};

static void vma_set(struct vm_area_struct *vma, unsigned long flags)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
}

static int file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ctn_session *session = file->private_data;
	struct ctn_device *device = session->device;

	if (!ctn_session_is_mine(session))
		return -EPERM;
	if (!device->doorbell || READ_ONCE(session->state) != SESSION_OPEN)
		return -ENODEV;
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE ||
	    !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vma_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &doorbell_operations;
	ctn_count(device, COUNTER_DOORBELL_MAPS);
	return 0;
}

const struct file_operations ctn_file_operations = {
	.owner = THIS_MODULE,
	.open = file_open,
	.flush = file_flush,
	.release = file_release,
	.unlocked_ioctl = file_ioctl,
	.mmap = file_mmap,
};
