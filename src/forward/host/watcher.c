// SPDX-License-Identifier: Apache-2.0
#include "forward/host/watcher.h"

#include "base/base.h"
#include "forward/host/device-events.h"
#include "forward/host/sandbox.h"
#include "forward/socket.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define MAX_PROCESSES 4096
#define UUID_TEXT     48

static const char *const names[N_QUESTIONS] = {
#define QUESTION(form, name) [QUESTION_##name] = #name,
#include "forward/questions.def"
#undef QUESTION
};

static const struct record {
	uint32_t size;
	uint32_t version;
} records[N_QUESTIONS] = {
#define QUESTION(form, name)
#define RECORD(name, type, number) [QUESTION_##name] = { sizeof(type), number },
#include "forward/questions.def"
#undef QUESTION
};

#define QUESTION(form, name)
#define RECORD(name, type, version)                                                                \
	_Static_assert(sizeof(type) <= ANSWER_SIZE, "an answer has room for a " #type);
#include "forward/questions.def"
#undef QUESTION

typedef nvmlReturn_t (*device_fn)(const char *uuid, nvmlDevice_t *ret);
typedef nvmlReturn_t (*processes_fn)(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v2_t *ret);
typedef nvmlReturn_t (*samples_fn)(nvmlDevice_t device, nvmlProcessUtilizationSample_t *ret,
				   unsigned *n, unsigned long long since_us);

static const char *library;
static void *nvml;
static void *entries[N_QUESTIONS];
static device_fn device_by_uuid;
static processes_fn processes;
static samples_fn samples;

static nvmlReturn_t start_nvml(void *loaded)
{
	nvmlReturn_t (*init)(void) = (__typeof__(init))dlsym(loaded, "nvmlInit_v2");

	return init ? init() : NVML_ERROR_DRIVER_NOT_LOADED;
}

/* Each question tries it until there is one: a driver may be loaded later. */
static nvmlReturn_t load(void)
{
	void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	nvmlReturn_t r;
	size_t i;

	if (!loaded)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	r = start_nvml(loaded);
	if (r != NVML_SUCCESS) {
		dlclose(loaded);
		return r;
	}
	for (i = 0; i < N_QUESTIONS; i++)
		entries[i] = dlsym(loaded, names[i]);
	device_by_uuid = (device_fn)dlsym(loaded, "nvmlDeviceGetHandleByUUID");
	processes = (processes_fn)entries[QUESTION_nvmlDeviceGetComputeRunningProcesses_v3];
	if (!processes)
		processes = (processes_fn)dlsym(loaded, "nvmlDeviceGetComputeRunningProcesses_v2");
	samples = (samples_fn)dlsym(loaded, "nvmlDeviceGetProcessUtilization");
	device_events_load(loaded);
	nvml = loaded;
	return NVML_SUCCESS;
}

/* KIND-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */
static void uuid_print(const char *kind, const uint8_t uuid[16], char *ret)
{
	char *at = stpcpy(ret, kind);
	size_t i;

	for (i = 0; i < 16; i++) {
		if (i == 0 || (i % 2 == 0 && i >= 4 && i <= 10))
			*at++ = '-';
		at += sprintf(at, "%02x", uuid[i]);
	}
}

static nvmlReturn_t device_find(const uint8_t uuid[16], nvmlDevice_t *ret)
{
	static const char *const kinds[] = { "GPU", "MIG" };
	nvmlReturn_t r = NVML_ERROR_NOT_FOUND;
	char text[UUID_TEXT];
	size_t i;

	if (!device_by_uuid)
		return NVML_ERROR_NOT_SUPPORTED;
	for (i = 0; i < ARRAY_SIZE(kinds) && r != NVML_SUCCESS; i++) {
		uuid_print(kinds[i], uuid, text);
		r = device_by_uuid(text, ret);
	}
	return r;
}

/* Of the shares of time that were measured the newest. */
static void add_sample(nvmlDevice_t device, unsigned pid, struct wire_process *process)
{
	static nvmlProcessUtilizationSample_t all[MAX_PROCESSES];
	unsigned n = MAX_PROCESSES, i;

	if (!samples || samples(device, all, &n, /* since_us= */ 0) != NVML_SUCCESS)
		return;
	for (i = 0; i < n && i < MAX_PROCESSES; i++) {
		if (all[i].pid != pid || all[i].timeStamp <= process->sampled_us)
			continue;
		process->sampled_us = all[i].timeStamp;
		process->sm_percent = all[i].smUtil;
		process->memory_percent = all[i].memUtil;
		process->encoder_percent = all[i].encUtil;
		process->decoder_percent = all[i].decUtil;
	}
}

static const nvmlProcessInfo_v2_t *process_of(const nvmlProcessInfo_v2_t *all, unsigned n,
					      int32_t pid)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (all[i].pid == (unsigned)pid)
			return &all[i];
	return NULL;
}

static nvmlReturn_t tell_process(nvmlDevice_t device, const struct watcher_question *question,
				 struct watcher_answer *answer)
{
	static nvmlProcessInfo_v2_t all[MAX_PROCESSES];
	struct wire_process *process = (struct wire_process *)answer->data;
	const nvmlProcessInfo_v2_t *found = NULL;
	unsigned n = MAX_PROCESSES, i;
	nvmlReturn_t r;

	if (!processes)
		return NVML_ERROR_NOT_SUPPORTED;
	r = processes(device, &n, all);
	if (r != NVML_SUCCESS)
		return r;
	for (i = 0; i < question->n_pids && !found; i++)
		found = process_of(all, MIN(n, (unsigned)MAX_PROCESSES), question->pids[i]);
	if (!found)
		return NVML_ERROR_NOT_FOUND;
	answer->pid = (int32_t)found->pid;
	process->used_bytes = found->usedGpuMemory;
	add_sample(device, found->pid, process);
	return NVML_SUCCESS;
}

static nvmlReturn_t tell_pci(void *entry, nvmlDevice_t device, struct wire_pci *ret)
{
	nvmlPciInfo_t pci = { .busId = "" };
	nvmlReturn_t r = ((nvmlReturn_t(*)(nvmlDevice_t, nvmlPciInfo_t *))entry)(device, &pci);

	ret->domain = pci.domain;
	ret->bus = pci.bus;
	ret->device = pci.device;
	ret->device_id = pci.pciDeviceId;
	ret->subsystem_id = pci.pciSubSystemId;
	memcpy(ret->bus_id, pci.busId, sizeof(ret->bus_id));
	return r;
}

static nvmlReturn_t tell_record(void *entry, nvmlDevice_t device, const struct record *record,
				uint8_t *data)
{
	uint32_t version = record->size | record->version << 24;

	if (record->version)
		memcpy(data, &version, sizeof(version));
	return ((nvmlReturn_t(*)(nvmlDevice_t, void *))entry)(device, data);
}

static nvmlReturn_t tell_field(void *entry, nvmlDevice_t device, uint64_t which,
			       nvmlFieldValue_t *ret)
{
	ret->fieldId = (unsigned)which;
	ret->scopeId = (unsigned)(which >> 32);
	return ((nvmlReturn_t(*)(nvmlDevice_t, int, nvmlFieldValue_t *))entry)(device, 1, ret);
}

static nvmlReturn_t tell_of_system(void *entry, enum question_form form, uint8_t *data)
{
	if (form == FORM_SYSTEM_NUMBER)
		return ((nvmlReturn_t(*)(void *))entry)(data);
	return ((nvmlReturn_t(*)(void *, unsigned))entry)(data, ANSWER_SIZE);
}

static nvmlReturn_t tell_of_device(void *entry, nvmlDevice_t device,
				   const struct watcher_question *question, uint8_t *data)
{
	switch (question_form(question->question)) {
	case FORM_TEXT:
		return ((nvmlReturn_t(*)(nvmlDevice_t, void *, unsigned))entry)(device, data,
										ANSWER_SIZE);
	case FORM_NUMBER:
	case FORM_LONG:
		return ((nvmlReturn_t(*)(nvmlDevice_t, void *))entry)(device, data);
	case FORM_NUMBER_OF:
		return ((nvmlReturn_t(*)(nvmlDevice_t, unsigned, void *))entry)(
			device, (unsigned)question->which, data);
	case FORM_PAIR:
		return ((nvmlReturn_t(*)(nvmlDevice_t, void *, void *))entry)(device, data,
									      data + 4);
	case FORM_RECORD:
		return tell_record(entry, device, &records[question->question], data);
	case FORM_PCI:
		return tell_pci(entry, device, (struct wire_pci *)data);
	case FORM_FIELD:
		return tell_field(entry, device, question->which, (nvmlFieldValue_t *)data);
	case FORM_EVENT:
		return device_events_tell(device, question->uuid, question->which,
					  (struct wire_event *)data);
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

static nvmlReturn_t tell(const struct watcher_question *question, struct watcher_answer *answer)
{
	enum question_form form = question_form(question->question);
	void *entry;
	nvmlDevice_t device;
	nvmlReturn_t r = nvml ? NVML_SUCCESS : load();

	if (r != NVML_SUCCESS)
		return r;
	entry = entries[question->question];
	if (!entry && form != FORM_PROCESS)
		return NVML_ERROR_NOT_SUPPORTED;
	if (!question_is_of_device(question->question))
		return tell_of_system(entry, form, answer->data);
	/* Each time anew: what audits this process learns from it which device a handle is. */
	r = device_find(question->uuid, &device);
	if (r != NVML_SUCCESS)
		return r;
	return form == FORM_PROCESS ? tell_process(device, question, answer)
				    : tell_of_device(entry, device, question, answer->data);
}

static void serve(int fd)
{
	struct watcher_question question;
	struct watcher_answer answer;

	while (recv(fd, &question, sizeof(question), 0) == sizeof(question)) {
		memset(&answer, 0, sizeof(answer));
		answer.result = tell(&question, &answer);
		if (answer.result != NVML_SUCCESS)
			memset(answer.data, 0, sizeof(answer.data));
		if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			return;
	}
}

/* Whoever reads what the broker prints is not kept waiting by us. */
static void leave_output(void)
{
	_cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(fd, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
}

static _Noreturn void watcher_main(int fd, pid_t broker)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "cotenant-watch");
	if (getppid() != broker || sandbox_drop(SANDBOX_NO_CAP) < 0)
		_exit(1);
	leave_output();
	serve(fd);
	_exit(0);
}

int watcher_start(const char *path, int *ret_fd)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	pid_t pid, broker = getpid();
	int r;

	r = socket_pair_new(SOCK_SEQPACKET, &ours, &theirs);
	if (r < 0)
		return r;
	library = path;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		watcher_main(theirs, broker);
	*ret_fd = TAKE_FD(ours);
	return 0;
}
