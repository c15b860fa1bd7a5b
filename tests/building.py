# SPDX-License-Identifier: Apache-2.0
"""How the suites compile CUDA programs and come by what is not installed."""
import functools
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests/programs"
SOFTGPU = ROOT / "build/softgpu"
MADE = ROOT / "build/programs"

# What the tools of this tree exit with where there is no package index.
UNAVAILABLE = 69


@functools.cache
def toolkit_path():
    done = subprocess.run([ROOT / "tools/cuda-toolkit"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == UNAVAILABLE:
        return None
    assert done.returncode == 0, done.stderr[-4000:]
    return pathlib.Path(done.stdout.strip())


def toolkit():
    """The folder of a CUDA toolkit; a test that needs one is skipped where none can be had."""
    return toolkit_path() or pytest.skip("no CUDA toolkit")


def virtual_environment(name, requirements, env=None):
    """Where the programs are of a virtual environment with what a file of tests/programs names, built in @env."""
    done = subprocess.run([ROOT / "tools/venv", name, PROGRAMS / requirements], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | (env or {}))
    if done.returncode == UNAVAILABLE:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr[-4000:]
    return pathlib.Path(done.stdout.strip()) / "bin"


def run(command, env, timeout=240, **more):
    done = subprocess.run([str(word) for word in command], env=env, timeout=timeout, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    assert done.returncode == 0, f"{command} exited with {done.returncode}:\n{done.stdout[-4000:]}"
    return done.stdout


def make(target, command, sources):
    """Runs a compiler unless its target is newer than the sources."""
    MADE.mkdir(parents=True, exist_ok=True)
    path = MADE / target
    if not path.exists() or any(s.stat().st_mtime > path.stat().st_mtime for s in sources):
        # What a run that was cut short has left is not taken for the whole.
        begun = MADE / f"begun-{target}"
        run([str(word).replace("@OUT@", str(begun)) for word in command], os.environ)
        begun.rename(path)
    return path
