/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine looks like: the devices and how they behave.
 *
 * Without any setting there are two devices of 80 GiB. Settings come from a file, named
 * by SOFTGPU_CONFIG, and from the environment, which wins:
 *
 *	file			environment		meaning
 *	devices = 2		SOFTGPU_DEVICES		how many devices, 1 to 32
 *	dir = /dev/shm/softgpu	SOFTGPU_DIR		where their state is shared
 *	slice = 2ms		SOFTGPU_SLICE		a context's turn on the device, 100us to 1s
 *	sample-period = 166667us SOFTGPU_SAMPLE_PERIOD	of utilisation, 1/6 s to 1 s
 *	kernel = 5ms		SOFTGPU_KERNEL_NS	duration of every kernel (the variable
 *						also takes a bare number of nanoseconds)
 *	driver = 580.65.06	SOFTGPU_DRIVER		version that NVML tells
 *	cuda = 13.0		SOFTGPU_CUDA		version of the driver API
 *	end-wait = 10s		SOFTGPU_END_WAIT	how long ending a context waits for each kernel
 *	host-memory = 8G	SOFTGPU_HOST_MEMORY	RAM that a process may have in all; what the
 *						host has, without it
 *	jit = auto		SOFTGPU_JIT		compile kernels that have much to do; 1: all,
 *						before their first launch; 0: none
 *	log = 1			SOFTGPU_LOG		say on standard error what goes wrong
 *
 * and for a device:
 *
 *	name = SoftGPU 80GB	SOFTGPU_NAME
 *	memory = 80G		SOFTGPU_MEMORY
 *	sms = 108		SOFTGPU_SMS		streaming multiprocessors
 *	compute = 8.0		SOFTGPU_COMPUTE		compute capability
 *	clock = 1410		SOFTGPU_CLOCK		of the SMs, MHz
 *	memory-clock = 1593	SOFTGPU_MEMORY_CLOCK	MHz
 *	power = 400		SOFTGPU_POWER		limit, W
 *	context = 300M		SOFTGPU_CONTEXT		device memory that a context costs
 *	uuid = GPU-...		SOFTGPU_UUID
 *	pci = 0000:3b:00.0	SOFTGPU_PCI		domain:bus:device
 *
 * In the file, a device's settings stand in a section [device N]; those before any section
 * are for all devices. A variable is for all devices too, unless it holds a list with
 * commas: SOFTGPU_MEMORY=80G,24G gives device 0 80 GiB, device 1 24 GiB and any further one
 * the last. UUIDs and PCI ids, which have to differ, are only ever taken one by one.
 *
 * Lines may be empty or comments (# or ;). Sizes are powers of 1024: 80G = 80GiB = 80GB.
 * Times are in ns, us, ms or s.
 */
#ifndef SOFTGPU_STATE_CONFIG_H
#define SOFTGPU_STATE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOFTGPU_DEVICES_MAX 32

enum config_jit { CONFIG_JIT_AUTO, CONFIG_JIT_NEVER, CONFIG_JIT_FIRST };

struct softgpu_device_config {
	char name[96];
	uint64_t memory_bytes;
	uint64_t context_bytes;
	uint32_t n_sms;
	uint32_t compute_major;
	uint32_t compute_minor;
	uint32_t clock_mhz;
	uint32_t memory_clock_mhz;
	uint32_t power_watts;
	uint8_t uuid[16];
	uint32_t pci_domain;
	uint32_t pci_bus;
	uint32_t pci_device;
};

struct softgpu_config {
	unsigned n_devices;
	struct softgpu_device_config devices[SOFTGPU_DEVICES_MAX];
	char dir[256];
	uint64_t slice_ns;
	uint64_t sample_period_ns;
	uint64_t kernel_ns; /* where kernel_ns_given */
	bool kernel_ns_given;
	uint64_t end_wait_ns;
	uint64_t host_memory_bytes; /* 0: no bound */
	char driver_version[32];
	uint32_t cuda_version; /* 13000 is 13.0 */
	enum config_jit jit;
	bool log;
};

/**
 * config_load() - defaults, then the file of SOFTGPU_CONFIG, then the environment
 * @ret:	where to store what holds; written only on success
 *
 * What is wrong is said on standard error if SOFTGPU_LOG=1: the file with its line or the
 * variable, the setting, and what it should have been.
 *
 * Return: 0; CONFIG_E_BAD for a setting that is unknown or has a bad value. Faults are
 * negative: what the kernel said about the file (-ENOENT: there is none), -EFBIG for one of
 * more than 64 KiB.
 */
int config_load(struct softgpu_config *ret);
#define CONFIG_E_BAD 1

/**
 * config_default() - the machine as it is without any setting
 */
void config_default(struct softgpu_config *ret);

/**
 * config_parse() - apply the text of a configuration file
 * @config:	changed by what the text sets; of no use after an error
 * @text:	the text, any bytes
 * @len:	their number
 * @what:	name for messages
 *
 * Return: 0, or CONFIG_E_BAD.
 */
int config_parse(struct softgpu_config *config, const char *text, size_t len, const char *what);

/**
 * config_uuid_print() - "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
 */
#define CONFIG_UUID_TEXT 41
void config_uuid_print(const uint8_t uuid[16], char buf[CONFIG_UUID_TEXT]);

#endif
