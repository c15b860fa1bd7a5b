#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libcuda exports, made from src/cuda/calls.def.

exports.py stubs [--push] calls.def		assembly: one entry for each exported name
exports.py defaults calls.def			assembly: what a call without implementation does
exports.py procaddr calls.def			C: rows of the table behind cuGetProcAddress()
exports.py map [--only NAME,... | --driver D] calls.def	linker version script
"""

import argparse
import re
import sys

HEAD = "Made by exports.py from calls.def."

# DRIVERS_* of calls.h: the drivers that each word in calls.def means.
DRIVERS = {
    "ALL": {"535", "550", "13"},
    "BEFORE_13": {"535", "550"},
    "SINCE_550": {"550", "13"},
    "SINCE_13": {"13"},
}


class Call:
    def __init__(self, name, base, version, stream, drivers):
        self.name = name
        self.base = base
        self.version = int(version)
        self.stream = stream
        self.drivers = drivers


def read_calls(path):
    with open(path, encoding="ascii") as f:
        rows = re.findall(r"^CALL\((\w+), (\w+), (\d+), (\w+), (\w+),", f.read(), re.M)
    return [Call(*row) for row in rows]


# The exported name is an entry of its own, never the implementation, and nothing inside jumps to
# it. stub_NAME is the same address for the table of cuGetProcAddress(): hidden, so that no other
# library can put itself in between. The `ret`, never reached, gives whoever answers a call in
# place of the driver an instruction to go on at, as each entry of the real one does.
STUB = """
	.globl {0}
	.type {0}, @function
	.hidden stub_{0}
	.globl stub_{0}
	.p2align 4
{0}:
stub_{0}:
{1}
	jmp impl_{0}
	ret
	.size {0}, . - {0}
"""

DEFAULT = """
	.weak impl_{0}
	.hidden impl_{0}
	.type impl_{0}, @function
impl_{0}:
	endbr64
	movl ${1}, %edi
	jmp call_missing
	.size impl_{0}, . - impl_{0}
"""


def assembly(parts):
    print(f"/* {HEAD} */\n\t.text")
    for part in parts:
        print(part, end="")
    print('\n\t.section .note.GNU-stack, "", @progbits')


def print_stubs(calls, push):
    # Other compilers' entries begin by saving a register.
    entry = "\tpushq %rbp\n\tpopq %rbp" if push else "\tendbr64"
    assembly(STUB.format(call.name, entry) for call in calls)


def print_defaults(calls):
    assembly(DEFAULT.format(call.name, i) for i, call in enumerate(calls))


def print_procaddr(calls):
    """Sorted for the search: by base, the plain form before the twin, oldest first."""
    print(f"/* {HEAD} */")
    given = [call for call in calls if call.version]
    for call in sorted(given, key=lambda c: (c.base, c.stream == "PER_THREAD", c.version)):
        print(f"ENTRY({call.name}, {call.base}, {call.version}, {call.stream}, {call.drivers})")


def print_map(calls, only, driver):
    names = [
        call.name
        for call in calls
        if (not only or call.name in only) and (not driver or driver in DRIVERS[call.drivers])
    ]
    print(f"/* {HEAD} */\n{{\nglobal:")
    for name in names:
        print(f"\t{name};")
    print("local:\n\t*;\n};")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["stubs", "defaults", "procaddr", "map"])
    parser.add_argument("calls_def")
    parser.add_argument("--push", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--driver", choices=["535", "550", "13"])
    args = parser.parse_args()

    calls = read_calls(args.calls_def)
    if args.what == "stubs":
        print_stubs(calls, args.push)
    elif args.what == "defaults":
        print_defaults(calls)
    elif args.what == "procaddr":
        print_procaddr(calls)
    else:
        print_map(calls, args.only, args.driver)
    return 0


if __name__ == "__main__":
    sys.exit(main())
