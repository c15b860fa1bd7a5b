// SPDX-License-Identifier: Apache-2.0
/*
 * The three forms: list, tables, details.
 */
#include "softgpu/smi/smi.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define WIDTH 84 /* of the tables, with the bars at both ends */

void print_list(const struct smi_machine *machine)
{
	for (size_t i = 0; i < machine->n_devices; i++)
		printf("GPU %u: %s (UUID: %s)\n", machine->devices[i].index,
		       machine->devices[i].name, machine->devices[i].uuid);
}

static unsigned long long mib(uint64_t bytes)
{
	return bytes >> 20;
}

static void rule(char end, char line)
{
	putchar(end);
	for (int i = 0; i < WIDTH - 2; i++)
		putchar(line);
	printf("%c\n", end);
}

/* "1234MiB / 81920MiB", the way people compare it */
static const char *memory_text(const struct smi_device *device, char buf[40])
{
	snprintf(buf, 40, "%lluMiB / %lluMiB", mib(device->memory.used), mib(device->memory.total));
	return buf;
}

static void print_device(const struct smi_device *device)
{
	char memory[40], power[32];

	snprintf(power, sizeof(power), "%uW / %uW", device->power_mw / 1000,
		 device->power_limit_mw / 1000);
	printf("| %3u  %-19.19s %-13.13s %3uC %11s %19s %3u%% |\n", device->index, device->name,
	       device->pci.busIdLegacy, device->celsius, power, memory_text(device, memory),
	       device->utilization.gpu);
}

static void print_process(const struct smi_device *device, const struct smi_process *process)
{
	char percent[16] = "-";

	if (process->percent >= 0)
		snprintf(percent, sizeof(percent), "%d%%", process->percent);
	printf("| %3u %10u %5s   C   %-40.40s %9lluMiB |\n", device->index, process->pid, percent,
	       process->name, mib(process->used_bytes));
}

static void print_heading(const struct smi_machine *machine)
{
	char now[40], left[40], right[40];
	time_t t = time(NULL);
	struct tm tm;

	strftime(now, sizeof(now), "%a %b %e %H:%M:%S %Y", localtime_r(&t, &tm));
	snprintf(left, sizeof(left), "Driver %.20s", machine->driver);
	snprintf(right, sizeof(right), "CUDA %d.%d", machine->cuda / 1000,
		 machine->cuda % 1000 / 10);
	printf("%s\n", now);
	rule('+', '-');
	printf("| %-24s %-26s %28s |\n", "softgpu-smi", left, right);
	rule('|', '-');
	printf("| %3s  %-19s %-13s %4s %11s %19s %4s |\n", "GPU", "Name", "Bus-Id", "Temp", "Power",
	       "Memory-Usage", "Util");
	rule('|', '=');
}

void print_table(const struct smi_machine *machine)
{
	size_t n = 0;

	print_heading(machine);
	for (size_t i = 0; i < machine->n_devices; i++)
		print_device(&machine->devices[i]);
	rule('+', '-');
	printf("\n");
	rule('+', '-');
	printf("| %3s %10s %5s %4s  %-40s %12s |\n", "GPU", "PID", "SM", "Type", "Process name",
	       "GPU Memory");
	rule('|', '=');
	for (size_t i = 0; i < machine->n_devices; i++) {
		for (size_t j = 0; j < machine->devices[i].n_processes; j++)
			print_process(&machine->devices[i], &machine->devices[i].processes[j]);
		n += machine->devices[i].n_processes;
	}
	if (n == 0)
		printf("|  %-*s|\n", WIDTH - 4, "No running processes found");
	rule('+', '-');
}

/* "    Name                : value" */
static void detail(int depth, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void detail(int depth, const char *name, const char *format, ...)
{
	char value[320];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	printf("%*s%-*s: %s\n", depth * 4, "", 40 - depth * 4, name, value);
}

static void section(int depth, const char *name)
{
	printf("%*s%s\n", depth * 4, "", name);
}

static void print_process_details(const struct smi_device *device)
{
	const struct smi_process *process;

	if (device->n_processes == 0) {
		detail(1, "Processes", "None");
		return;
	}
	section(1, "Processes");
	for (size_t i = 0; i < device->n_processes; i++) {
		process = &device->processes[i];
		detail(2, "Process ID", "%u", process->pid);
		detail(3, "Name", "%s", process->name);
		detail(3, "Type", "C");
		detail(3, "Used GPU Memory", "%llu MiB", mib(process->used_bytes));
		if (process->percent >= 0)
			detail(3, "SM Utilization", "%d %%", process->percent);
		else
			detail(3, "SM Utilization", "-");
	}
}

static void print_load_details(const struct smi_device *device)
{
	section(1, "Memory");
	detail(2, "Total", "%llu MiB", mib(device->memory.total));
	detail(2, "Reserved", "%llu MiB", mib(device->memory.reserved));
	detail(2, "Used", "%llu MiB", mib(device->memory.used));
	detail(2, "Free", "%llu MiB", mib(device->memory.free));
	section(1, "Utilization");
	detail(2, "GPU", "%u %%", device->utilization.gpu);
	detail(2, "Memory", "%u %%", device->utilization.memory);
	detail(1, "Temperature", "%u C", device->celsius);
	section(1, "Power");
	detail(2, "Draw", "%.2f W", device->power_mw / 1e3);
	detail(2, "Limit", "%.2f W", device->power_limit_mw / 1e3);
	detail(2, "Energy", "%.1f kJ", (double)device->energy_mj / 1e6);
	section(1, "Clocks");
	detail(2, "SM", "%u MHz of %u MHz", device->sm_mhz, device->sm_max_mhz);
	detail(2, "Memory", "%u MHz of %u MHz", device->memory_mhz, device->memory_max_mhz);
}

static void print_device_details(const struct smi_device *device)
{
	printf("\nGPU %s\n", device->pci.busId);
	detail(1, "Index", "%u", device->index);
	detail(1, "Product Name", "%s", device->name);
	detail(1, "UUID", "%s", device->uuid);
	detail(1, "Serial Number", "%s", device->serial);
	detail(1, "Bus Id", "%s", device->pci.busId);
	detail(1, "Compute Capability", "%d.%d", device->compute_major, device->compute_minor);
	detail(1, "Multiprocessors", "%u", device->attributes.multiprocessorCount);
	detail(1, "Performance State", "P%u", device->state);
	print_load_details(device);
	print_process_details(device);
}

void print_details(const struct smi_machine *machine)
{
	detail(0, "Driver Version", "%s", machine->driver);
	detail(0, "CUDA Version", "%d.%d", machine->cuda / 1000, machine->cuda % 1000 / 10);
	detail(0, "GPUs", "%zu", machine->n_devices);
	for (size_t i = 0; i < machine->n_devices; i++)
		print_device_details(&machine->devices[i]);
}
