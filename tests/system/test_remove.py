# SPDX-License-Identifier: Apache-2.0
"""cotenantd --remove takes away what was pinned, whoever pinned it."""
import subprocess

import pytest

from conftest import ROOT


def remove(state):
    return subprocess.run([ROOT / "build/bin/cotenantd", "--state-dir", state, "--remove"], text=True, timeout=60,
                          capture_output=True)


def test_remove_where_nothing_was(tmp_path):
    assert remove(tmp_path / "state").returncode == 0


def test_remove_takes_books_of_another_version(tmp_path):
    engine = tmp_path / "state/engine"
    engine.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "bpf", "none", engine]).returncode:
        pytest.skip("a file system for BPF cannot be mounted")
    (engine / "maps").mkdir()
    subprocess.run([ROOT / "tools/bpftool", "map", "create", engine / "maps/state", "type", "array", "key", "4", "value", "8",
                    "entries", "1", "name", "old"], check=True)
    done = remove(tmp_path / "state")
    assert done.returncode == 0, done.stderr
    assert not engine.exists()
