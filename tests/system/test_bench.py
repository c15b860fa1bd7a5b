# SPDX-License-Identifier: Apache-2.0
"""What bench/run starts is of the tree as it is. No suite runs it, so what it imports might have gone from there."""
import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT

STARTED = sorted(set(re.findall(r"in_venv .*?\b((?:bench|tests)/[\w./-]+)", (ROOT / "bench/run").read_text())))


def test_something_is_found():
    assert {"bench/guest", "tests/cluster/cuts.py"} <= set(STARTED)


@pytest.mark.parametrize("script", STARTED)
def test_finds_what_it_imports(script):
    path = ROOT / script
    # As pytest.ini says of tests; what is started by itself has to find them.
    environment = {"PYTHONPATH": str(ROOT / "tests")} if script.startswith("tests/") else {}
    read = subprocess.run([sys.executable, "-c", "import runpy, sys; runpy.run_path(sys.argv[1])", path], cwd=path.parent,
                          env=os.environ | environment, capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
