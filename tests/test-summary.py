#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What summary.py makes of results: each case is one file of them, and whether the run passed.

test-summary.py summary.py
"""
import json
import pathlib
import subprocess
import sys
import tempfile

EXPECTED = """
state / another user: not root
thin-*: SKIP: this kernel
test_real.test_numba: no package index
"""


def meson(name, result, stdout):
    return "unit.json", json.dumps({"name": f"cotenant:quick / {name}", "result": result, "stdout": stdout}) + "\n"


def junit(module, name, inner=""):
    return "unit.xml", f"""<testsuites><testsuite><testcase classname="tests.programs.{module}" name="{name}">
        {inner}</testcase></testsuite></testsuites>"""


NO_INDEX = '<skipped message="no package index can be reached"/>'

CASES = [
    # what it is, whether the run passes, what the summary says of it, the results
    ("all passed", True, "1 passed, 0 failed, 0 skipped", meson("state", "OK", "ok 'a'\n")),
    ("a failure", False, "FAILED   unit: state", meson("state", "FAIL", "FAILED 'a'\n")),
    ("an expected skip", True, "this kernel (expected)", meson("thin-1", "SKIP", "SKIP: this kernel\n")),
    ("another reason", False, "that kernel (UNEXPECTED)", meson("thin-1", "SKIP", "SKIP: that kernel\n")),
    ("an expected skip of a case", True, "unit: state / another user: not root (expected)",
     meson("state", "OK", "ok 'a'\nskip 'another user': not root\nok 'b'\n")),
    ("the same case of another test", False, "unit: server / another user: not root (UNEXPECTED)",
     meson("server", "OK", "skip 'another user': not root\n")),
    ("one of two cases is not expected", False, "unit: state / a full disk: may not (UNEXPECTED)",
     meson("state", "OK", "skip 'another user': not root\nskip 'a full disk': may not\n")),
    ("a test of pytest", True, "1 passed", junit("test_real", "test_numba")),
    ("its expected skip", True, "unit: test_real.test_numba: no package index",
     junit("test_real", "test_numba", NO_INDEX)),
    ("the same name in another module", False, "(UNEXPECTED)", junit("test_nvml", "test_numba", NO_INDEX)),
    ("nothing was run", False, "not one test was run", ("unit.json", "")),
]


def summary(script, folder, results):
    name, content = results
    (folder / name).write_text(content)
    (folder / "suites").write_text("unit passed 1\n")
    (folder / "expected").write_text(EXPECTED)
    return subprocess.run([sys.executable, script, folder, folder / "expected"], capture_output=True, text=True)


def main(script):
    failed = False
    for what, passes, says, results in CASES:
        with tempfile.TemporaryDirectory() as folder:
            done = summary(script, pathlib.Path(folder), results)
        good = (done.returncode == 0) == passes and says in done.stdout
        print(f"{'ok' if good else 'FAILED'} 'summary: {what}'")
        if not good:
            print(done.stdout + done.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
