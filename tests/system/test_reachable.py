# SPDX-License-Identifier: Apache-2.0
"""A clone in a home that lets no other user in, where tests start programs as other users."""
import shutil
import subprocess

import pytest

from conftest import ALICE, ROOT, require_root

AS_ALICE = f"setpriv --reuid={ALICE} --regid={ALICE} --clear-groups"


@pytest.fixture
def tree(tmp_path):
    """A tree below two closed folders; pytest's own above them are closed as well."""
    require_root()
    tree = tmp_path / "home/src/tree"
    (tree / "tests").mkdir(parents=True)
    shutil.copy(ROOT / "tests/reachable", tree / "tests")
    (tree / "program").write_text("#!/bin/sh\necho started\n")
    (tmp_path / "home/beside").write_text("beside\n")
    for folder, mode in (("program", 0o755), ("", 0o755), ("..", 0o700), ("../..", 0o750)):
        (tree / folder).chmod(mode)
    return tree


def reachable(tree, script):
    return subprocess.run([tree / "tests/reachable", "sh", "-c", script, tree], text=True, capture_output=True, cwd="/",
                          timeout=60)


def test_users_start_programs_of_it(tree):
    done = reachable(tree, f'{AS_ALICE} "$0/program" && cat ../../beside && echo made >made && pwd')
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"started\nbeside\n{tree}\n"
    assert (tree / "made").read_text() == "made\n", "the tree is the one on the disk"
    assert [(tree / folder).stat().st_mode & 0o777 for folder in ("..", "../..")] == [0o700, 0o750]
    assert str(tree) not in open("/proc/self/mounts").read()


def test_a_closed_tree_is_told(tree):
    tree.chmod(0o700)
    done = reachable(tree, "echo run")
    assert done.returncode != 0 and not done.stdout
    assert f"other users cannot reach {tree}: chmod o+x it" in done.stderr
