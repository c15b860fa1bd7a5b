// SPDX-License-Identifier: Apache-2.0
/*
 * Configuration: one table of settings serves the file, the environment and the messages.
 */
#include "softgpu/state/config.h"

#include "softgpu/state/value.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX (64 * 1024)
#define VALUE_MAX      256 /* longest value, with its end */

struct setting {
	const char *name;
	const char *variable;
	const char *expected; /* for the message about a bad value */
	/* One of the two: of a device, or of the machine. */
	bool (*device)(struct softgpu_device_config *device, const char *value);
	bool (*machine)(struct softgpu_config *config, const char *value);
	bool unique; /* never the same for two devices */
};

static bool text_set(char *to, size_t size, const char *value)
{
	if (!*value || strlen(value) >= size)
		return false;
	strcpy(to, value);
	return true;
}

static bool number_set(uint32_t *to, const char *value, uint32_t min, uint32_t max)
{
	uint64_t n;

	if (!value_number(value, min, max, &n))
		return false;
	*to = (uint32_t)n;
	return true;
}

static bool name_set(struct softgpu_device_config *device, const char *value)
{
	return text_set(device->name, sizeof(device->name), value);
}

static bool memory_set(struct softgpu_device_config *device, const char *value)
{
	uint64_t bytes;

	/* Up to 16 TiB: what a process can reserve addresses for. */
	if (!value_size(value, &bytes) || bytes < 64ull << 20 || bytes > 16ull << 40)
		return false;
	device->memory_bytes = bytes;
	return true;
}

static bool context_set(struct softgpu_device_config *device, const char *value)
{
	uint64_t bytes;

	if (!value_size(value, &bytes) || bytes > 16ull << 40)
		return false;
	device->context_bytes = bytes;
	return true;
}

static bool sms_set(struct softgpu_device_config *device, const char *value)
{
	return number_set(&device->n_sms, value, 1, 1024);
}

static bool compute_set(struct softgpu_device_config *device, const char *value)
{
	uint32_t major, minor;

	if (!value_version(value, &major, &minor) || major < 5 || major > 99 || minor > 9)
		return false;
	device->compute_major = major;
	device->compute_minor = minor;
	return true;
}

static bool clock_set(struct softgpu_device_config *device, const char *value)
{
	return number_set(&device->clock_mhz, value, 1, 10000);
}

static bool memory_clock_set(struct softgpu_device_config *device, const char *value)
{
	return number_set(&device->memory_clock_mhz, value, 1, 100000);
}

static bool power_set(struct softgpu_device_config *device, const char *value)
{
	return number_set(&device->power_watts, value, 1, 10000);
}

static bool uuid_set(struct softgpu_device_config *device, const char *value)
{
	return value_uuid(value, device->uuid);
}

static bool pci_set(struct softgpu_device_config *device, const char *value)
{
	return value_pci(value, &device->pci_domain, &device->pci_bus, &device->pci_device);
}

static bool devices_set(struct softgpu_config *config, const char *value)
{
	uint64_t n;

	if (!value_number(value, 1, SOFTGPU_DEVICES_MAX, &n))
		return false;
	config->n_devices = (unsigned)n;
	return true;
}

static bool dir_set(struct softgpu_config *config, const char *value)
{
	return *value == '/' && text_set(config->dir, sizeof(config->dir), value);
}

static bool time_set(uint64_t *to, const char *value, uint64_t min_ns, uint64_t max_ns)
{
	uint64_t ns;

	if (!value_time(value, &ns) || ns < min_ns || ns > max_ns)
		return false;
	*to = ns;
	return true;
}

static bool slice_set(struct softgpu_config *config, const char *value)
{
	return time_set(&config->slice_ns, value, 100000, 1000000000);
}

static bool period_set(struct softgpu_config *config, const char *value)
{
	return time_set(&config->sample_period_ns, value, 166666000, 1000000000);
}

static bool kernel_set(struct softgpu_config *config, const char *value)
{
	/* An hour at most, so that sums of durations stay far from 64 bits. */
	if (!time_set(&config->kernel_ns, value, 0, 3600000000000))
		return false;
	config->kernel_ns_given = true;
	return true;
}

static bool end_wait_set(struct softgpu_config *config, const char *value)
{
	return time_set(&config->end_wait_ns, value, 0, 3600000000000);
}

static bool host_memory_set(struct softgpu_config *config, const char *value)
{
	return value_size(value, &config->host_memory_bytes) && config->host_memory_bytes > 0;
}

static bool driver_set(struct softgpu_config *config, const char *value)
{
	if (strspn(value, "0123456789.") != strlen(value) || !isdigit((unsigned char)*value))
		return false;
	return text_set(config->driver_version, sizeof(config->driver_version), value);
}

static bool cuda_set(struct softgpu_config *config, const char *value)
{
	uint32_t major, minor;

	if (!value_version(value, &major, &minor) || major < 1 || minor > 99)
		return false;
	config->cuda_version = major * 1000 + minor * 10;
	return true;
}

static bool log_set(struct softgpu_config *config, const char *value)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return false;
	config->log = *value == '1';
	return true;
}

static bool jit_set(struct softgpu_config *config, const char *value)
{
	static const char *const names[] = {
		[CONFIG_JIT_AUTO] = "auto",
		[CONFIG_JIT_NEVER] = "0",
		[CONFIG_JIT_FIRST] = "1",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		config->jit = (enum config_jit)i;
		return true;
	}
	return false;
}

static const struct setting settings[] = {
	{ "log", "SOFTGPU_LOG", "0 or 1", .machine = log_set },
	{ "devices", "SOFTGPU_DEVICES", "a number from 1 to 32", .machine = devices_set },
	{ "dir", "SOFTGPU_DIR", "an absolute path of up to 255 bytes", .machine = dir_set },
	{ "slice", "SOFTGPU_SLICE", "a time from 100us to 1s", .machine = slice_set },
	{ "sample-period", "SOFTGPU_SAMPLE_PERIOD", "a time from 166667us to 1s",
	  .machine = period_set },
	{ "kernel", "SOFTGPU_KERNEL_NS", "a time of up to 3600s", .machine = kernel_set },
	{ "end-wait", "SOFTGPU_END_WAIT", "a time of up to 3600s", .machine = end_wait_set },
	{ "host-memory", "SOFTGPU_HOST_MEMORY", "a size", .machine = host_memory_set },
	{ "driver", "SOFTGPU_DRIVER", "a version such as 580.65.06", .machine = driver_set },
	{ "cuda", "SOFTGPU_CUDA", "a version such as 13.0", .machine = cuda_set },
	{ "jit", "SOFTGPU_JIT", "auto, 0 or 1", .machine = jit_set },
	{ "name", "SOFTGPU_NAME", "a name of 1 to 95 bytes", .device = name_set },
	{ "memory", "SOFTGPU_MEMORY", "a size from 64M to 16T", .device = memory_set },
	{ "sms", "SOFTGPU_SMS", "a number from 1 to 1024", .device = sms_set },
	{ "compute", "SOFTGPU_COMPUTE", "a version such as 8.0, from 5.0", .device = compute_set },
	{ "clock", "SOFTGPU_CLOCK", "MHz, from 1 to 10000", .device = clock_set },
	{ "memory-clock", "SOFTGPU_MEMORY_CLOCK", "MHz, from 1 to 100000",
	  .device = memory_clock_set },
	{ "power", "SOFTGPU_POWER", "W, from 1 to 10000", .device = power_set },
	{ "context", "SOFTGPU_CONTEXT", "a size of up to 16T", .device = context_set },
	{ "uuid", "SOFTGPU_UUID", "a UUID such as GPU-5f6e2d1c-0000-4000-8000-000000000001",
	  .device = uuid_set, .unique = true },
	{ "pci", "SOFTGPU_PCI", "a PCI id such as 0000:3b:00.0", .device = pci_set,
	  .unique = true },
};

#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

__attribute__((format(printf, 2, 3))) static int complain(const struct softgpu_config *config,
							  const char *format, ...)
{
	va_list args;

	if (config->log) {
		va_start(args, format);
		fputs("softgpu: ", stderr);
		vfprintf(stderr, format, args);
		fputc('\n', stderr);
		va_end(args);
	}
	return CONFIG_E_BAD;
}

static void device_default(struct softgpu_device_config *device, unsigned index)
{
	*device = (struct softgpu_device_config){
		.name = "SoftGPU 80GB",
		.memory_bytes = 80ull << 30,
		.context_bytes = 300ull << 20,
		.n_sms = 108,
		.compute_major = 8,
		.compute_minor = 0,
		.clock_mhz = 1410,
		.memory_clock_mhz = 1593,
		.power_watts = 400,
		.uuid = { 0x5f, 0x6e, 0x2d, 0x1c, 0x09, 0x3a, 0x4b, 0x7d, 0x8e, 0x10, 0x73, 0x6f,
			  0x66, 0x74, 0x00, (uint8_t)index },
		.pci_bus = 0x10 + index,
	};
}

void config_default(struct softgpu_config *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->n_devices = 2;
	ret->slice_ns = 2000000;
	ret->sample_period_ns = 166667000;
	ret->end_wait_ns = 10000000000;
	strcpy(ret->dir, "/dev/shm/softgpu");
	strcpy(ret->driver_version, "580.65.06");
	ret->cuda_version = 13000;
	for (unsigned i = 0; i < SOFTGPU_DEVICES_MAX; i++)
		device_default(&ret->devices[i], i);
}

static bool device_setting_apply(struct softgpu_config *config, const struct setting *setting,
				 const char *value)
{
	for (unsigned i = 0; i < SOFTGPU_DEVICES_MAX; i++) {
		if (!setting->device(&config->devices[i], value))
			return false;
	}
	return true;
}

/* Removes white space at both ends, in place. */
static char *trim(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

static const struct setting *setting_find(const char *name)
{
	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	}
	return NULL;
}

/* "[device 1]" */
static bool section_read(const char *line, int *ret_device)
{
	uint64_t device;
	char number[8];
	size_t len = strlen(line);

	if (strncmp(line, "[device ", 8) != 0 || line[len - 1] != ']' || len - 9 >= sizeof(number))
		return false;
	memcpy(number, line + 8, len - 9);
	number[len - 9] = '\0';
	if (!value_number(number, 0, SOFTGPU_DEVICES_MAX - 1, &device))
		return false;
	*ret_device = (int)device;
	return true;
}

/* Where the reader of a file is: its line, and the device of the section or -1. */
struct place {
	const char *file;
	unsigned line;
	int device;
};

static int assignment_apply(struct softgpu_config *config, const struct place *at, char *line)
{
	char *equals = strchr(line, '='), *name, *value;
	const struct setting *setting;
	bool good;

	if (!equals)
		return complain(config, "%s, line %u: this is no setting: %s", at->file, at->line,
				line);
	*equals = '\0';
	name = trim(line);
	value = trim(equals + 1);
	setting = setting_find(name);
	if (!setting)
		return complain(config, "%s, line %u: there is no setting %s", at->file, at->line,
				name);
	if (setting->machine ? at->device >= 0 : setting->unique && at->device < 0)
		return complain(config, "%s, line %u: %s does not belong into this section",
				at->file, at->line, name);

	if (setting->machine)
		good = setting->machine(config, value);
	else if (at->device >= 0)
		good = setting->device(&config->devices[at->device], value);
	else
		good = device_setting_apply(config, setting, value);
	if (!good)
		return complain(config, "%s, line %u: %s = %s: should be %s", at->file, at->line,
				name, value, setting->expected);
	return 0;
}

static int line_apply(struct softgpu_config *config, struct place *at, char *line)
{
	line = trim(line);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	if (*line != '[')
		return assignment_apply(config, at, line);
	if (!section_read(line, &at->device))
		return complain(config, "%s, line %u: %s: should be [device N], N from 0 to %u",
				at->file, at->line, line, SOFTGPU_DEVICES_MAX - 1);
	return 0;
}

int config_parse(struct softgpu_config *config, const char *text, size_t len, const char *what)
{
	struct place at = { .file = what, .device = -1 };
	char line[VALUE_MAX + 64];
	const char *end = text + len, *newline;
	size_t n;
	int r;

	for (; text < end; text = newline + 1) {
		at.line++;
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			newline = end;
		n = (size_t)(newline - text);
		if (n >= sizeof(line) || memchr(text, '\0', n))
			return complain(config, "%s, line %u: too long, or no text", what, at.line);
		memcpy(line, text, n);
		line[n] = '\0';
		r = line_apply(config, &at, line);
		if (r)
			return r;
	}
	return 0;
}

/* Takes the part up to the next comma; false if it is too long. */
static bool list_next(const char **list, char item[VALUE_MAX])
{
	size_t n = strcspn(*list, ",");

	if (n >= VALUE_MAX)
		return false;
	memcpy(item, *list, n);
	item[n] = '\0';
	*list += n + ((*list)[n] == ',');
	return true;
}

/* "80G,24G": one value per device; the last is for all that follow, unless it has to differ. */
static bool device_list_apply(struct softgpu_config *config, const struct setting *setting,
			      const char *list)
{
	char item[VALUE_MAX] = "";

	for (unsigned i = 0; i < SOFTGPU_DEVICES_MAX; i++) {
		if (*list || i == 0) {
			if (!list_next(&list, item))
				return false;
		} else if (setting->unique) {
			return true;
		}
		if (!setting->device(&config->devices[i], trim(item)))
			return false;
	}
	return *list == '\0';
}

static int variables_apply(struct softgpu_config *config)
{
	const char *value;
	bool good;

	for (size_t i = 0; i < N_SETTINGS; i++) {
		value = getenv(settings[i].variable);
		if (!value || !*value)
			continue;
		if (settings[i].machine)
			good = settings[i].machine(config, value);
		else
			good = device_list_apply(config, &settings[i], value);
		if (!good)
			return complain(config, "%s=%s: should be %s", settings[i].variable, value,
					settings[i].expected);
	}
	return 0;
}

static ssize_t file_read(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (len < size && n > 0) {
		n = read(fd, buf + len, size - len);
		if (n > 0)
			len += (size_t)n;
	}
	n = n < 0 ? -errno : (ssize_t)len;
	close(fd);
	return n;
}

static int file_apply(struct softgpu_config *config, const char *path)
{
	char *text = malloc(FILE_BYTES_MAX + 1);
	ssize_t n;
	int r;

	if (!text)
		return -ENOMEM;
	n = file_read(path, text, FILE_BYTES_MAX + 1);
	if (n < 0)
		r = (int)n;
	else
		r = n > FILE_BYTES_MAX ? -EFBIG : config_parse(config, text, (size_t)n, path);
	free(text);
	if (r < 0)
		complain(config, "%s: %s", path, strerror(-r));
	return r;
}

/* Two devices with one UUID or PCI id could not be told apart. */
static int unique_check(const struct softgpu_config *config)
{
	const struct softgpu_device_config *a, *b;

	for (unsigned i = 0; i < config->n_devices; i++) {
		for (unsigned j = 0; j < i; j++) {
			a = &config->devices[i];
			b = &config->devices[j];
			if (memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0)
				return complain(config, "devices %u and %u have the same uuid", j,
						i);
			if (a->pci_domain == b->pci_domain && a->pci_bus == b->pci_bus &&
			    a->pci_device == b->pci_device)
				return complain(config, "devices %u and %u have the same pci id", j,
						i);
		}
	}
	return 0;
}

int config_load(struct softgpu_config *ret)
{
	const char *path = getenv("SOFTGPU_CONFIG"), *log = getenv("SOFTGPU_LOG");
	struct softgpu_config *config = malloc(sizeof(*config));
	int r = 0;

	if (!config)
		return -ENOMEM;
	config_default(config);
	/* First, because it is about the messages of what follows. */
	config->log = log && strcmp(log, "1") == 0;
	if (path && *path)
		r = file_apply(config, path);
	if (r == 0)
		r = variables_apply(config);
	if (r == 0)
		r = unique_check(config);
	if (r == 0)
		*ret = *config;
	free(config);
	return r;
}

void config_uuid_print(const uint8_t uuid[16], char buf[CONFIG_UUID_TEXT])
{
	int n = sprintf(buf, "GPU-");

	for (unsigned i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			buf[n++] = '-';
		n += sprintf(buf + n, "%02x", uuid[i]);
	}
}
