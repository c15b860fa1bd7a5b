#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares cuda_abi.h with the cuda.h of an installed toolkit.

Every enumerator, the size of every type and the offset of every member that cuda_abi.h declares is
printed by one and the same program, compiled with either header. A toolkit older than CUDA 13.0
lacks some names, so one that does not compile is no toolkit for this test: it is skipped (77).
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))

# Not in cuda.h: the shapes from before CUDA 3.2, whose names it hides.
HIDDEN = {"CUdeviceptr_v1", "CUDA_ARRAY_DESCRIPTOR_v1", "CUDA_ARRAY3D_DESCRIPTOR_v1",
          "CUDA_MEMCPY2D_v1", "CUDA_MEMCPY3D_v1"}


def read_headers():
    paths = [os.path.join(HERE, "cuda_abi.h")]
    folder = os.path.join(HERE, "abi")
    paths += [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    text = "".join(open(path, encoding="ascii").read() for path in paths)
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def closing(text, start):
    """The place of the brace that closes the one at start."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("unbalanced braces")


def members(body, prefix=""):
    """Dotted paths of all members in the body of a struct or union."""
    found = []
    at = 0
    while at < len(body):
        inner = re.match(r"\s*(struct|union)\s*\{", body[at:])
        if inner:
            start = at + inner.end() - 1
            end = closing(body, start)
            tail = body.index(";", end)
            name = body[end + 1 : tail].strip()
            if name:
                found.append(prefix + name)
            found += members(body[start + 1 : end], prefix + name + "." if name else prefix)
            at = tail + 1
            continue
        tail = body.find(";", at)
        if tail < 0:
            break
        for declarator in body[at:tail].split(","):
            name = re.search(r"(\w+)(\[\w+\])*\s*$", declarator)
            found.append(prefix + name.group(1))
        at = tail + 1
    return found


def declared(text):
    """Enumerators, types and (type, member) pairs of the headers."""
    enumerators = re.findall(r"^\t(CU\w*|CIG\w*) = ", text, re.M)
    with open(os.path.join(HERE, "errors.def"), encoding="ascii") as f:
        enumerators += re.findall(r"^ERROR\((\w+),", f.read(), re.M)
    types = re.findall(r"^typedef [^;{]*?\*?(\w+);", text, re.M)
    pairs = []
    for match in re.finditer(r"^typedef (struct|union|enum) \{", text, re.M):
        end = closing(text, match.end() - 1)
        name = re.match(r"\}\s*(\w+);", text[end:]).group(1)
        types.append(name)
        if match.group(1) != "enum":
            pairs += [(name, member) for member in members(text[match.end() : end])]
    return (
        enumerators,
        [name for name in types if name not in HIDDEN],
        [pair for pair in pairs if pair[0] not in HIDDEN],
    )


def program(header):
    enumerators, types, pairs = declared(read_headers())
    lines = [f"#include <{header}>", "#include <stddef.h>", "#include <stdio.h>", "int main(void)",
             "{"]
    lines += [f'\tprintf("{name} = %lld\\n", (long long){name});' for name in enumerators]
    lines += [f'\tprintf("sizeof({name}) = %zu\\n", sizeof({name}));' for name in types]
    lines += [
        f'\tprintf("{name}.{member} at %zu\\n", offsetof({name}, {member}));'
        for name, member in pairs
    ]
    return "\n".join(lines + ["\treturn 0;", "}", ""])


def run(folder, header, include):
    """What the program prints with a header, or None if it does not compile."""
    source = os.path.join(folder, "print.c")
    binary = os.path.join(folder, "print")
    with open(source, "w", encoding="ascii") as f:
        f.write(program(header))
    cc = os.environ.get("CC", "cc").split()
    built = subprocess.run(cc + ["-w", "-I", include, source, "-o", binary],
                           capture_output=True, text=True)
    if built.returncode:
        print("\n".join(built.stderr.splitlines()[:5]), file=sys.stderr)
        return None
    return subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()


def find_toolkit():
    folders = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda", "/usr"]
    for folder in filter(None, folders):
        include = os.path.join(folder, "include")
        if os.path.exists(os.path.join(include, "cuda.h")):
            return include
    return None


def main():
    include = find_toolkit()
    if not include:
        print("skipped: no CUDA toolkit is installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        ours = run(folder, "src/cuda/cuda_abi.h", TOP)
        theirs = run(folder, "cuda.h", include)
    if not ours:
        print("FAILED 'cuda_abi.h compiles'")
        return 1
    if not theirs:
        print(f"skipped: {include}/cuda.h does not have all names of CUDA 13.0")
        return 77
    differences = [(a, b) for a, b in zip(ours, theirs) if a != b]
    for a, b in differences:
        print(f"# ours: {a}; the toolkit's: {b}")
    word = "FAILED" if differences else "ok"
    print(f"{word} '{len(ours)} numbers, sizes and offsets are the toolkit's'")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
