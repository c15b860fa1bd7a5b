#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the calls that libcuda implements with unsupported.txt.

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
    named = set().union(*(fitting(names, pattern) for pattern in patterns))
    print(f"# {len(names & implemented)} of {len(names)} calls are implemented")
    failed = [
        check("nothing is implemented that is no call", implemented - names),
        check("what is not supported is in unsupported.txt", missing - named),
        check("what is there is not supported", named & implemented),
        check("every pattern fits a call",
              {pattern for pattern in patterns if not fitting(names, pattern)}),
    ]
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main())
