// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where a store rings a queue's doorbell.
 *
 * The virtio core keeps that to itself, so the device's PCI capabilities are read once more. The queue has to
 * have a page of its own (QEMU: page-per-vq=on), because a page is what can be mapped into a process.
 */
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/virtio_pci.h>

#include "cotenant.h"

struct region {
	u8 bar;
	u32 offset;
	u32 length;
	int at;
};

static int region_find(struct pci_dev *pci, u8 wanted, struct region *ret)
{
	int at;

	for (at = pci_find_capability(pci, PCI_CAP_ID_VNDR); at;
	     at = pci_find_next_capability(pci, at, PCI_CAP_ID_VNDR)) {
		u8 type;

		pci_read_config_byte(pci, at + offsetof(struct virtio_pci_cap, cfg_type), &type);
		if (type != wanted)
			continue;
		pci_read_config_byte(pci, at + offsetof(struct virtio_pci_cap, bar), &ret->bar);
		pci_read_config_dword(pci, at + offsetof(struct virtio_pci_cap, offset),
				      &ret->offset);
		pci_read_config_dword(pci, at + offsetof(struct virtio_pci_cap, length),
				      &ret->length);
		ret->at = at;
		return ret->bar < PCI_STD_NUM_BARS ? 0 : -EINVAL;
	}
	return -ENOENT;
}

/* The selector is the core's; it uses it only while queues are made and taken down, which our caller is not in. */
static int queue_number(struct pci_dev *pci, unsigned int queue, u16 *ret)
{
	struct virtio_pci_common_cfg __iomem *common;
	struct region region;
	int r;

	r = region_find(pci, VIRTIO_PCI_CAP_COMMON_CFG, &region);
	if (r < 0)
		return r;
	common = pci_iomap_range(pci, region.bar, region.offset, sizeof(*common));
	if (!common)
		return -ENOMEM;
	iowrite16(queue, &common->queue_select);
	*ret = ioread16(&common->queue_notify_off);
	pci_iounmap(pci, common);
	return 0;
}

int ctn_notify_find(struct ctn_device *device, unsigned int queue, phys_addr_t *ret)
{
	struct device *parent = device->vdev->dev.parent;
	struct region region;
	struct pci_dev *pci;
	u32 multiplier;
	u64 offset;
	u16 number;
	int r;

	if (!dev_is_pci(parent))
		return -ENODEV;
	pci = to_pci_dev(parent);
	r = region_find(pci, VIRTIO_PCI_CAP_NOTIFY_CFG, &region);
	if (r < 0)
		return r;
	r = queue_number(pci, queue, &number);
	if (r < 0)
		return r;
	pci_read_config_dword(
		pci, region.at + offsetof(struct virtio_pci_notify_cap, notify_off_multiplier),
		&multiplier);
	offset = (u64)multiplier * number;
	if (!multiplier || multiplier % PAGE_SIZE || offset + PAGE_SIZE > region.length)
		return -EOPNOTSUPP;
	*ret = pci_resource_start(pci, region.bar) + region.offset + offset;
	return *ret % PAGE_SIZE ? -EOPNOTSUPP : 0;
}
