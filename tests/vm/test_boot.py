# SPDX-License-Identifier: Apache-2.0
"""Virtual machines end with the test that has started them, also where that is killed."""
import pathlib
import subprocess
import sys

import pytest

from processes import is_gone
from waiting import eventually

HERE = pathlib.Path(__file__).resolve().parent
STARTS = """
import sys
sys.path += sys.argv[1:]
import boot
command = ["sh", "-c", "echo $$ >&2; exec sleep infinity"]
"""
# A program in place of QEMU that says its number.
WAYS = {
    "for a while": STARTS + "boot.Guest(command).reader.join()",
    "until it ends": STARTS + """
boot.machine, boot.make_initramfs = lambda *_, **__: command, lambda *_: None
boot.boot(None, None, {})
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_machine_ends_with_its_test(way, tmp_path):
    number = tmp_path / "number"
    code = WAYS[way].replace(">&2", f"> {number}")
    test = subprocess.Popen([sys.executable, "-c", code, HERE, HERE.parent])
    pid = eventually(lambda: number.exists() and number.read_text().strip(), "it is there")
    assert not is_gone(pid)
    test.kill()
    test.wait()
    eventually(lambda: is_gone(pid), "it has ended")
