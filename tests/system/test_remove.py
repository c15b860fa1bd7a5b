# SPDX-License-Identifier: Apache-2.0
"""cotenantd --remove takes away what was pinned, whoever pinned it; and so do these tests themselves."""
import pathlib
import subprocess

import pytest

from conftest import ROOT, Host, eventually, host_in_use, mounts_below


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


def commands_with(text):
    """Processes whose command line has it."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if text in path.read_bytes().decode(errors="replace") else []
        except OSError:
            pass
    return found


def test_a_host_that_does_not_come_up_leaves_nothing(machine, monkeypatch):
    hosts, cgroups = [], []

    def fail(host):
        hosts.append(host)
        host.run(name="t").started()
        cgroups.extend(host.cgroups_of_runs())
        raise AssertionError("it has not come up")
    monkeypatch.setattr(Host, "learn_contexts", fail)
    with pytest.raises(AssertionError, match="not come up"):
        next(host_in_use({}))
    assert not hosts[0].dir.exists() and not mounts_below(hosts[0].dir)
    eventually(lambda: not commands_with(str(hosts[0].dir)), "the daemon and its holder have ended")
    assert cgroups and not any(folder.exists() for folder in cgroups)
