#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the calls that libcuda implements with unsupported.txt, and looks for calls from inside:
whoever watches an entry must see what the program calls and nothing else.

test-coverage.py calls.def unsupported.txt libcuda-core.a
"""

import fnmatch
import re
import subprocess
import sys


def read_names(path):
    with open(path, encoding="ascii") as f:
        return set(re.findall(r"^CALL\((\w+),", f.read(), re.M))


def read_patterns(path):
    with open(path, encoding="ascii") as f:
        lines = (line.strip() for line in f)
        return [line for line in lines if line and not line.startswith("#")]


def read_implemented(archive):
    listing = subprocess.run(["nm", "--defined-only", archive], check=True, capture_output=True,
                             text=True).stdout
    return set(re.findall(r" T impl_(\w+)$", listing, re.M))


def read_called(archive):
    """(entry, object) for all that the library's objects refer to but the table of cuGetProcAddress()."""
    listing = subprocess.run(["nm", "-A", "--undefined-only", archive], check=True, capture_output=True,
                             text=True).stdout
    rows = re.findall(r"([\w.-]+)\.o: +U (?:stub_)?(\w+)$", listing, re.M)
    return {(name, source) for source, name in rows if source != "procaddr.c"}


def fitting(names, pattern):
    return {name for name in names if fnmatch.fnmatchcase(name, pattern)}


def check(what, offenders):
    for name in sorted(offenders):
        print(f"# {name}")
    print(f"{'FAILED' if offenders else 'ok'} '{what}'")
    return bool(offenders)


def main():
    names, patterns = read_names(sys.argv[1]), read_patterns(sys.argv[2])
    implemented = read_implemented(sys.argv[3])
    missing = names - implemented
    called = read_called(sys.argv[3])
    named = set().union(*(fitting(names, pattern) for pattern in patterns))
    print(f"# {len(names & implemented)} of {len(names)} calls are implemented")
    failed = [
        check("nothing is implemented that is no call", implemented - names),
        check("what is not supported is in unsupported.txt", missing - named),
        check("what is there is not supported", named & implemented),
        check("no entry is called from inside",
              {f"{name} by {source}" for name, source in called if name in names}),
        check("every pattern fits a call",
              {pattern for pattern in patterns if not fitting(names, pattern)}),
    ]
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main())
