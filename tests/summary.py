# SPDX-License-Identifier: Apache-2.0
"""Prints what the suites found and decides whether the run as a whole passed.

    summary.py RESULTS EXPECTED-SKIPS

RESULTS holds what tests/run collected: meson's JSON logs, pytest's JUnit files, the
list of fuzzers, and one line per suite. A skip passes only if EXPECTED-SKIPS names the
test and the reason; a line there is "TEST-PATTERN: REASON-PATTERN", both with * as
wildcard. A test is called as meson does, or MODULE.FUNCTION in pytest's files. One in C that
leaves out a case prints "skip 'CASE': REASON", which makes a skip of "TEST / CASE".
"""
import fnmatch
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ET


def read_meson(path):
    for line in path.read_text().splitlines():
        row = json.loads(line)
        name = f"{path.stem}: {row['name'].split(' / ')[-1]}"
        result = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(row["result"], "failed")
        reason = (row.get("stdout") or row.get("stderr") or "").strip().splitlines()
        yield name, result, reason[-1] if reason else ""
        for case, why in re.findall(r"^skip '(.*?)': (.*)$", row.get("stdout") or "", re.M):
            yield f"{name} / {case}", "skipped", why


def read_junit(path):
    for case in ET.parse(path).getroot().iter("testcase"):
        module = case.get("classname").rpartition(".")[2]
        name = f"{path.stem}: {module}.{case.get('name')}"
        if (skip := case.find("skipped")) is not None:
            yield name, "skipped", skip.get("message", "")
        elif case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed", ""
        else:
            yield name, "passed", ""


def read_fuzz(path):
    for line in path.read_text().splitlines():
        name, word, rest = line.split(" ", 2)
        yield f"fuzz: {name}", "passed" if word == "passed" else "failed", rest


def read_expected(path):
    for line in path.read_text().splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            test, _, reason = line.partition(": ")
            yield test.strip(), reason.strip()


def main(results, expected_path):
    readers = [("*.json", read_meson), ("*.xml", read_junit), ("fuzz.list", read_fuzz)]
    rows = [row for pattern, read in readers for path in sorted(results.glob(pattern)) for row in read(path)]
    suites = [line.split() for line in (results / "suites").read_text().splitlines()]
    expected = list(read_expected(expected_path))

    def is_expected(name, reason):
        plain = name.split(": ", 1)[1]
        return any(fnmatch.fnmatch(plain, test) and fnmatch.fnmatch(reason, f"*{why}*") for test, why in expected)

    failed = [row for row in rows if row[1] == "failed"]
    skipped = [row for row in rows if row[1] == "skipped"]
    unexpected = [row for row in skipped if not is_expected(row[0], row[2])]

    print("\nsuite        result   seconds")
    for suite, word, seconds in suites:
        print(f"{suite:12} {word:8} {seconds:>7}")
    print(f"\n{len(rows) - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
    for name, _, reason in failed:
        print(f"  FAILED   {name} {reason}")
    for name, _, reason in skipped:
        mark = "UNEXPECTED" if (name, "skipped", reason) in unexpected else "expected"
        print(f"  skipped  {name}: {reason} ({mark})")
    if unexpected:
        print("a skip that tests/expected-skips does not name is a failure: install what is missing, or name it there")
    bad_suites = [suite for suite, word, _ in suites if word != "passed"]
    for suite, _, _ in suites:
        if not any(name.startswith(f"{suite}: ") for name, _, _ in rows):
            print(f"  FAILED   {suite}: not one test was run")
            bad_suites.append(suite)
    return 1 if failed or unexpected or bad_suites else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
