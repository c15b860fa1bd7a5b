#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a runtime library exports, made from runtime.def.

exports.py stubs --version 11|12|13 runtime.def	assembly: one entry for each exported name
exports.py defaults runtime.def			assembly: what a call without implementation does
exports.py map --version 11|12|13 runtime.def	linker version script
"""

import argparse
import re
import sys

HEAD = "Made by exports.py from runtime.def."

VERSIONS = {
    "ALL": {"11", "12", "13"},
    "ONLY_11": {"11"},
    "BEFORE_13": {"11", "12"},
    "ONLY_12": {"12"},
    "SINCE_12": {"12", "13"},
    "SINCE_13": {"13"},
}

# The version node of each library's symbols, as the linker wrote it into programs.
NODES = {"11": "libcudart.so.11.0", "12": "libcudart.so.12", "13": "libcudart.so.13"}

STUB = """
	.globl {0}
	.type {0}, @function
	.p2align 4
{0}:
	endbr64
	jmp impl_{1}
	.size {0}, . - {0}
"""

DEFAULT = """
	.weak impl_{0}
	.hidden impl_{0}
	.type impl_{0}, @function
impl_{0}:
	endbr64
	leaq name_{0}(%rip), %rdi
	jmp runtime_missing
	.size impl_{0}, . - impl_{0}
	.data
name_{0}:
	.byte 0
	.string "{0}"
	.text
"""


def read_rows(path):
    with open(path, encoding="ascii") as f:
        return re.findall(r"^RUNTIME\((\w+), (\w+), (\w+)\)", f.read(), re.M)


def assembly(parts):
    print(f"/* {HEAD} */\n\t.text")
    for part in parts:
        print(part, end="")
    print('\n\t.section .note.GNU-stack, "", @progbits')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["stubs", "defaults", "map"])
    parser.add_argument("runtime_def")
    parser.add_argument("--version", choices=sorted(NODES))
    args = parser.parse_args()

    rows = read_rows(args.runtime_def)
    mine = [row for row in rows if args.version in VERSIONS[row[1]]]
    if args.what == "stubs":
        assembly(STUB.format(name, implementation) for name, _, implementation in mine)
    elif args.what == "defaults":
        assembly(DEFAULT.format(name) for name in sorted({row[2] for row in rows}))
    else:
        names = "".join(f"\t{name};\n" for name, _, _ in mine)
        print(f"/* {HEAD} */\n{NODES[args.version]} {{\nglobal:\n{names}local:\n\t*;\n}};")
    return 0


if __name__ == "__main__":
    sys.exit(main())
