// SPDX-License-Identifier: Apache-2.0
#include "ctl/vm-qemu.h"

#include "base/check.h"
#include "base/str.h"

#define DEVICE                                                                                     \
	" -chardev socket,id=cotenant,path=/s -device vhost-user-fs-pci,chardev=cotenant,"         \
	"tag=cotenant,num-request-queues=2,queue-size=1024,page-per-vq=on"
#define MEMORY(size)                                                                               \
	" -object memory-backend-memfd,id=cotenant-ram,size=" size                                 \
	",share=on -machine memory-backend=cotenant-ram"

static const struct {
	const char *name;
	char *argv[6];
	const char *command;
} cases[] = {
	{ "QEMU's own size", { "qemu" }, "qemu" MEMORY("128M") DEVICE },
	{ "a size", { "qemu", "-m", "2G" }, "qemu -m 2G" MEMORY("2G") DEVICE },
	{ "a number is of MiB", { "qemu", "-m", "512" }, "qemu -m 512" MEMORY("512M") DEVICE },
	{ "a size by its name",
	  { "qemu", "-m", "slots=2,size=4096,maxmem=8G" },
	  "qemu -m slots=2,size=4096,maxmem=8G" MEMORY("4096M") DEVICE },
	{ "the last one counts",
	  { "qemu", "-m", "1G", "--m", "3G" },
	  "qemu -m 1G --m 3G" MEMORY("3G") DEVICE },
	{ "memory of its own",
	  { "qemu", "-M", "q35,memory-backend=x" },
	  "qemu -M q35,memory-backend=x" DEVICE },
};

int main(void)
{
	struct text text;
	char **command, **word, *line;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		text = (struct text){ 0 };
		command = vm_qemu_command(cases[i].argv, "/s");
		for (word = command; *word; word++)
			text_addf(&text, "%s%s", word == command ? "" : " ", *word);
		line = text_take(&text);
		check(str_eq(line, cases[i].command), "qemu: %s", cases[i].name);
		free(line);
		vm_qemu_free(command);
	}
	return check_result();
}
