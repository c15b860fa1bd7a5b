// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device's beginning and end.
 *
 * A device is QEMU's vhost-user-fs, which a file system's driver knows as well; the tag tells which of the two
 * it is. A host that cannot read the guest's memory does not answer the first message, and QEMU does not
 * say so to the guest: the first message has a time limit, and what is likely is said.
 */
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/virtio_config.h>

#include "cotenant.h"

#define HELLO_LIMIT (5 * HZ)

bool ctn_user_doorbell = true;
module_param_named(user_doorbell, ctn_user_doorbell, bool, 0444);
MODULE_PARM_DESC(user_doorbell, "map the doorbell into processes; 0: each submission is an ioctl");

unsigned long ctn_max_pinned_mb;
module_param_named(max_pinned_mb, ctn_max_pinned_mb, ulong, 0644);
MODULE_PARM_DESC(max_pinned_mb,
		 "memory that all processes together may share with the host (0: half of all)");

static ushort mode = 0666;
module_param(mode, ushort, 0444);
MODULE_PARM_DESC(mode, "of /dev/cotenant0");

struct workqueue_struct *ctn_workqueue;
static DEFINE_IDA(indices);

static void device_free(struct kref *ref)
{
	struct ctn_device *device = container_of(ref, struct ctn_device, ref);

	/* A host that is lost may still write to what it was given. */
	if (device->state != DEVICE_LOST) {
		free_page((unsigned long)device->beat);
		kfree(device->events);
		kfree(device->bells);
	}
	if (device->no_doorbell)
		__free_page(device->no_doorbell);
	xa_destroy(&device->sessions);
	kfree(device);
}

void ctn_device_put(struct ctn_device *device)
{
	kref_put(&device->ref, device_free);
}

static void sessions_wake(struct ctn_device *device)
{
	struct ctn_session *session;
	unsigned long i, flags;

	xa_lock_irqsave(&device->sessions, flags);
	xa_for_each(&device->sessions, i, session)
		ctn_session_wake(session);
	xa_unlock_irqrestore(&device->sessions, flags);
}

/* What is lost stays so: no reset makes it known what the host does. */
static void state_set(struct ctn_device *device, enum device_state state)
{
	unsigned long flags;

	spin_lock_irqsave(&device->state_lock, flags);
	if (device->state != DEVICE_LOST)
		WRITE_ONCE(device->state, state);
	spin_unlock_irqrestore(&device->state_lock, flags);
	wake_up_all(&device->state_wait);
}

void ctn_device_end(struct ctn_device *device, enum device_state state)
{
	state_set(device, state);
	ctn_control_end(device);
	wake_up_all(&device->bell_room);
	sessions_wake(device);
}

static struct ctn_device *device_new(struct virtio_device *vdev)
{
	struct ctn_device *device = kzalloc(sizeof(*device), GFP_KERNEL);

	if (!device)
		return NULL;
	kref_init(&device->ref);
	init_rwsem(&device->life);
	spin_lock_init(&device->state_lock);
	init_waitqueue_head(&device->state_wait);
	spin_lock_init(&device->control_lock);
	INIT_LIST_HEAD(&device->requests);
	init_waitqueue_head(&device->control_room);
	spin_lock_init(&device->bell_lock);
	init_waitqueue_head(&device->bell_room);
	spin_lock_init(&device->events_lock);
	INIT_DELAYED_WORK(&device->beat_work, ctn_beat_work);
	xa_init_flags(&device->sessions, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	mutex_init(&device->files_lock);
	INIT_LIST_HEAD(&device->files);
	device->vdev = vdev;
	device->no_doorbell = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!device->no_doorbell || ctn_doorbell_init(device) < 0 || ctn_events_init(device) < 0) {
		ctn_device_put(device);
		return NULL;
	}
	return device;
}

static int queues_find(struct ctn_device *device)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	struct virtqueue_info infos[COTENANT_N_QUEUES] = {
		[COTENANT_QUEUE_CONTROL] = { "control", ctn_control_callback },
		[COTENANT_QUEUE_DOORBELL] = { "doorbell", ctn_doorbell_callback },
		[COTENANT_QUEUE_EVENTS] = { "events", ctn_events_callback },
	};

	return virtio_find_vqs(device->vdev, COTENANT_N_QUEUES, device->queues, infos, NULL);
#else
	vq_callback_t *callbacks[COTENANT_N_QUEUES] = {
		[COTENANT_QUEUE_CONTROL] = ctn_control_callback,
		[COTENANT_QUEUE_DOORBELL] = ctn_doorbell_callback,
		[COTENANT_QUEUE_EVENTS] = ctn_events_callback,
	};
	const char *names[COTENANT_N_QUEUES] = { "control", "doorbell", "events" };

	return virtio_find_vqs(device->vdev, COTENANT_N_QUEUES, device->queues, callbacks, names,
			       NULL);
#endif
}

static void doorbell_find(struct ctn_device *device)
{
	int r;

	if (!ctn_user_doorbell)
		return;
	r = ctn_notify_find(device, COTENANT_QUEUE_DOORBELL, &device->doorbell);
	if (r == 0)
		return;
	device->doorbell = 0;
	dev_warn(
		&device->vdev->dev,
		"no doorbell for processes (%d; the device needs page-per-vq=on): each submission is an ioctl\n",
		r);
}

/* Caps are the host's, but never more than what this driver counts on. */
static int hello_check(struct ctn_device *device, const struct ctn_request *request)
{
	struct cotenant_hello *hello = &device->hello;

	memcpy(hello, request->answer.data, sizeof(*hello));
	if (request->answer.error == -EPROTO)
		dev_err(&device->vdev->dev, "this driver speaks version %u, the host %u\n",
			COTENANT_ABI_VERSION, hello->version);
	if (request->answer.error < 0)
		return request->answer.error;
	hello->max_sessions = min_t(u32, hello->max_sessions, WIRE_MAX_SESSIONS);
	hello->max_lanes = min_t(u32, hello->max_lanes, WIRE_MAX_LANES);
	hello->max_grants = min_t(u32, hello->max_grants, WIRE_MAX_GRANTS);
	hello->max_pieces = min_t(u32, hello->max_pieces, COTENANT_MAX_PIECES);
	if (hello->magic != WIRE_MAGIC || hello->max_sessions < 2 || !hello->max_lanes ||
	    hello->max_grants < 2 ||
	    hello->max_pieces < (SESSION_SIZE + WIRE_HEAP_SIZE) >> PAGE_SHIFT)
		return -EPROTO;
	if (!(hello->features & COTENANT_F_USER_DOORBELL))
		device->doorbell = 0;
	return 0;
}

static int hello_say(struct ctn_device *device)
{
	struct wire_piece piece = { virt_to_phys(device->beat), PAGE_SIZE };
	struct cotenant_hello hello = { .magic = WIRE_MAGIC, .version = COTENANT_ABI_VERSION };
	struct ctn_request *request;
	int r;

	if (device->doorbell)
		hello.features = COTENANT_F_USER_DOORBELL;
	request = ctn_request_new(WIRE_HELLO, &piece, 1);
	if (!request)
		return -ENOMEM;
	memcpy(request->message.data, &hello, sizeof(hello));
	r = ctn_control_send(device, request);
	if (r == 0)
		r = ctn_control_await(request, HELLO_LIMIT);
	if (r == 0)
		r = hello_check(device, request);
	if (r == -ETIMEDOUT)
		dev_err(&device->vdev->dev,
			"the host does not answer: is cotenant-vm there, and the guest's memory shared with it (-object memory-backend-memfd,share=on)?\n");
	ctn_request_put(request);
	return r;
}

/* After the reset the host reaches nothing, and what it has not answered it never will. */
static void queues_end(struct ctn_device *device)
{
	virtio_reset_device(device->vdev);
	ctn_control_free_unused(device);
	device->vdev->config->del_vqs(device->vdev);
	state_set(device, DEVICE_RESET);
}

static int queues_begin(struct ctn_device *device)
{
	int r;

	r = queues_find(device);
	if (r < 0)
		return r;
	doorbell_find(device);
	virtio_device_ready(device->vdev);
	r = ctn_events_start(device);
	if (r == 0)
		r = hello_say(device);
	if (r < 0) {
		ctn_device_end(device, DEVICE_REMOVING);
		queues_end(device);
	}
	return r;
}

static int file_begin(struct ctn_device *device)
{
	int r;

	device->index = ida_alloc(&indices, GFP_KERNEL);
	if (device->index < 0)
		return device->index;
	snprintf(device->name, sizeof(device->name), "cotenant%d", device->index);
	device->misc.minor = MISC_DYNAMIC_MINOR;
	device->misc.name = device->name;
	device->misc.fops = &ctn_file_operations;
	device->misc.parent = &device->vdev->dev;
	device->misc.mode = mode & 0777;
	device->misc.groups = ctn_counter_groups;
	r = misc_register(&device->misc);
	if (r < 0)
		ida_free(&indices, device->index);
	return r;
}

static bool is_ours(struct virtio_device *vdev)
{
	char tag[COTENANT_TAG_SIZE] = { 0 }, ours[COTENANT_TAG_SIZE] = COTENANT_TAG;

	virtio_cread_bytes(vdev, COTENANT_TAG_OFFSET, tag, sizeof(tag));
	return memcmp(tag, ours, sizeof(tag)) == 0;
}

static int device_probe(struct virtio_device *vdev)
{
	struct ctn_device *device;
	int r;

	if (!is_ours(vdev))
		return -ENODEV;
	if (virtio_has_feature(vdev, VIRTIO_F_ACCESS_PLATFORM)) {
		dev_err(&vdev->dev, "a device behind an IOMMU cannot share the guest's memory\n");
		return -EOPNOTSUPP;
	}
	device = device_new(vdev);
	if (!device)
		return -ENOMEM;
	vdev->priv = device;
	r = queues_begin(device);
	if (r == 0) {
		r = file_begin(device);
		if (r < 0) {
			ctn_device_end(device, DEVICE_REMOVING);
			queues_end(device);
		}
	}
	if (r < 0) {
		ctn_device_put(device);
		return r;
	}
	dev_info(&vdev->dev, "/dev/%s: %s\n", device->name,
		 device->doorbell ? "processes ring the doorbell themselves"
				  : "each submission is an ioctl");
	return 0;
}

/* Nobody can map the page any more when the state has changed. */
static void doorbell_take_away(struct ctn_device *device)
{
	struct ctn_session *session;

	mutex_lock(&device->files_lock);
	list_for_each_entry(session, &device->files, entry)
		unmap_mapping_range(session->mapping, 0, PAGE_SIZE, 1);
	mutex_unlock(&device->files_lock);
}

static void device_remove(struct virtio_device *vdev)
{
	struct ctn_device *device = vdev->priv;

	misc_deregister(&device->misc);
	down_write(&device->life);
	ctn_device_end(device, DEVICE_REMOVING);
	up_write(&device->life);
	doorbell_take_away(device);
	cancel_delayed_work_sync(&device->beat_work);
	queues_end(device);
	ida_free(&indices, device->index);
	ctn_device_put(device);
}

static const struct virtio_device_id device_ids[] = {
	{ COTENANT_VIRTIO_ID, VIRTIO_DEV_ANY_ID },
	{ 0 },
};

static struct virtio_driver driver = {
	.driver.name = KBUILD_MODNAME,
	.driver.owner = THIS_MODULE,
	.id_table = device_ids,
	.probe = device_probe,
	.remove = device_remove,
};

/* A file system's driver that was there first has the device. It has no use for it: there is no such file system. */
static int take_over(struct device *dev, void *unused)
{
	struct virtio_device *vdev = dev_to_virtio(dev);

	if (vdev->id.device != COTENANT_VIRTIO_ID || !dev->driver ||
	    dev->driver == &driver.driver || !is_ours(vdev))
		return 0;
	device_release_driver(dev);
	if (device_driver_attach(&driver.driver, dev) < 0)
		dev_err(dev, "not taken over\n");
	return 0;
}

static int __init module_begin(void)
{
	int r;

	ctn_workqueue = alloc_workqueue("cotenant", WQ_UNBOUND, 0);
	if (!ctn_workqueue)
		return -ENOMEM;
	r = register_virtio_driver(&driver);
	if (r < 0) {
		destroy_workqueue(ctn_workqueue);
		return r;
	}
	bus_for_each_dev(driver.driver.bus, NULL, NULL, take_over);
	return 0;
}

static void __exit module_end(void)
{
	unregister_virtio_driver(&driver);
	destroy_workqueue(ctn_workqueue);
	ida_destroy(&indices);
}

module_init(module_begin);
module_exit(module_end);
MODULE_DEVICE_TABLE(virtio, device_ids);
MODULE_DESCRIPTION("CUDA calls of a virtual machine to the host's GPU");
MODULE_LICENSE("GPL");
