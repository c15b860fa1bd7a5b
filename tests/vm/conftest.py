# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def kernel():
    """kernel("oldest"): the image of that kernel of the distribution."""
    def bring(which):
        done = subprocess.run([ROOT / "tests/vm/kernel", which], capture_output=True, text=True, timeout=600)
        if done.returncode == 69:
            pytest.skip("no kernel of the distribution can be fetched")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
    return bring
