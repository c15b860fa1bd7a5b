// SPDX-License-Identifier: Apache-2.0
/*
 * softgpu-smi: shows the software GPU's devices and processes, in the spirit of nvidia-smi.
 *
 * It asks NVML as any monitor does. With the software GPU's library first on the library
 * path it shows the software GPU; it is built to find that one by itself.
 */
#include "softgpu/smi/smi.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
	"usage: softgpu-smi [-i DEVICE] [-L | -q]\n"
	"\n"
	"Shows the devices of the software GPU and the processes that compute on them.\n"
	"\n"
	"  -i, --id DEVICE    only this device: its number or UUID\n"
	"  -L, --list-gpus    one line for each device\n"
	"  -q, --query        all that is known of each device\n"
	"  -h, --help         this text\n"
	"\n"
	"Which devices there are is told by SOFTGPU_CONFIG and the variables SOFTGPU_*.\n";

struct options {
	const char *device;
	void (*print)(const struct smi_machine *machine);
};

/* Returns false if the program has nothing more to do than to exit with *@ret_status. */
static bool options_read(int argc, char **argv, struct options *ret, int *ret_status)
{
	static const struct option names[] = {
		{ "id", required_argument, NULL, 'i' },
		{ "list-gpus", no_argument, NULL, 'L' },
		{ "query", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	*ret = (struct options){ .print = print_table };
	while ((c = getopt_long(argc, argv, "i:Lqh", names, NULL)) >= 0) {
		switch (c) {
		case 'i':
			ret->device = optarg;
			break;
		case 'L':
			ret->print = print_list;
			break;
		case 'q':
			ret->print = print_details;
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			*ret_status = c == 'h' ? EXIT_SUCCESS : EXIT_FAILURE;
			return false;
		}
	}
	if (optind == argc)
		return true;
	fprintf(stderr, "softgpu-smi: %s: what is this?\n", argv[optind]);
	*ret_status = EXIT_FAILURE;
	return false;
}

static int fail(const char *what, nvmlReturn_t r)
{
	fprintf(stderr, "softgpu-smi: %s: %s\n", what, nvmlErrorString(r));
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct smi_machine machine;
	struct options options;
	nvmlReturn_t r;
	int status;

	if (!options_read(argc, argv, &options, &status))
		return status;
	r = nvmlInit_v2();
	if (r != NVML_SUCCESS)
		return fail("cannot start NVML (SOFTGPU_LOG=1 says why)", r);
	r = machine_read(&machine, options.device);
	if (r != NVML_SUCCESS)
		return fail(options.device ? options.device : "cannot read the devices", r);
	options.print(&machine);
	machine_done(&machine);
	nvmlShutdown();
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
