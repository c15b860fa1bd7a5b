# SPDX-License-Identifier: Apache-2.0
"""What /proc says of processes that may end at any moment, also between opening a file there and reading it."""
import pathlib
import re


def read(pid, name):
    """Empty for one that is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid):
    """Those that are not yet reaped count, too."""
    return [int(child) for child in read(pid, f"task/{pid}/children").split()]


def name_of(pid):
    return read(pid, "comm").strip()


def children_called(pid, name):
    return [child for child in children(pid) if name_of(child) == name]


def stat_of(pid):
    """What stat has behind the name, from the state on."""
    return read(pid, "stat").rpartition(")")[2].split()


def state_of(pid):
    """The letter that ps shows, or nothing."""
    return "".join(stat_of(pid)[:1])


def is_gone(pid):
    """Or waits for whoever is to reap it. While other threads than the first end still, it has what it had."""
    stat = stat_of(pid)
    return not stat or (stat[0] == "Z" and int(stat[17]) <= 1)


def catches(pid, signal):
    """Whether it has a handler of its own: whoever has just been started would die of the signal."""
    caught = re.search(r"^SigCgt:\s*(\w+)$", read(pid, "status"), re.MULTILINE)
    return bool(caught and int(caught[1], 16) >> signal - 1 & 1)


def ending_with_us(command, signal="KILL"):
    """A command that is ended when the thread that starts it ends, however that is. Not what it starts itself."""
    return ["setpriv", "--pdeathsig", signal, *command]


def is_listening(path):
    """Whether somebody waits for connections at a unix socket: its file is there a moment before."""
    sockets = [line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines()]
    return any(words[3] == "00010000" and words[-1] == str(path) for words in sockets)
