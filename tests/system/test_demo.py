# SPDX-License-Identifier: Apache-2.0
"""The demonstration, where it can show everything and where it may not load BPF programs."""
import os
import subprocess

from conftest import ROOT

WITHOUT = ["setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]


def demo(*become):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SOFTGPU_", "COTENANT_"))}
    return subprocess.run([*become, ROOT / "tools/demo"], env=env, text=True, capture_output=True, timeout=600)


def test_everything_is_seen(machine):
    done = demo()
    assert done.returncode == 0, done.stdout[-4000:]
    assert "NOT SEEN" not in done.stdout and "everything was as it should be" in done.stdout


def test_without_capabilities_it_says_which_and_shows_the_gpu_alone(machine):
    done = demo(*WITHOUT)
    assert done.returncode == 3, done.stdout[-4000:]
    assert "missing here: CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYS_ADMIN" in done.stdout
    assert "every result right" in done.stdout and "softgpu-smi" in done.stdout
