/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What softgpu-smi knows of a device when it prints: read once, so that a line fits together.
 */
#ifndef SOFTGPU_SMI_SMI_H
#define SOFTGPU_SMI_SMI_H

#include "softgpu/smi/nvml-calls.h"

#include <stddef.h>

struct smi_process {
	unsigned pid;
	uint64_t used_bytes;
	int percent; /* -1: not known yet */
	char name[256];
};

struct smi_device {
	unsigned index;
	char name[96];
	char uuid[80];
	char serial[30];
	nvmlPciInfo_t pci;
	nvmlMemory_v2_t memory;
	nvmlDeviceAttributes_t attributes;
	nvmlUtilization_t utilization;
	int compute_major, compute_minor;
	unsigned celsius, power_mw, power_limit_mw, state;
	unsigned sm_mhz, memory_mhz, sm_max_mhz, memory_max_mhz;
	unsigned long long energy_mj;
	struct smi_process *processes;
	size_t n_processes;
};

struct smi_machine {
	char driver[80];
	int cuda;
	struct smi_device *devices;
	size_t n_devices;
};

/**
 * machine_read() - all devices, or one
 * @which:	number or UUID of the only one wanted; NULL for all
 *
 * Return: NVML_SUCCESS, or what NVML answered.
 */
nvmlReturn_t machine_read(struct smi_machine *ret, const char *which);
void machine_done(struct smi_machine *machine);

/** print_list(), print_table(), print_details() - the forms of -L, of no option, and of -q */
void print_list(const struct smi_machine *machine);
void print_table(const struct smi_machine *machine);
void print_details(const struct smi_machine *machine);

#endif
