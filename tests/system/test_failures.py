# SPDX-License-Identifier: Apache-2.0
"""Nobody can hold or answer a call beyond a limit: then its tenant's on-failure decides, and it is told."""
import contextlib
import ctypes
import os
import signal

from conftest import MIB, OUT_OF_MEMORY, PATIENCE, eventually

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


def ptrace(request, pid):
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    call.restype = ctypes.c_long
    return call(request, pid, None, None)


@contextlib.contextmanager
def traced(pid):
    """Traces a thread, as a debugger does: nobody else can stop it meanwhile."""
    assert ptrace(PTRACE_SEIZE, pid) == 0
    try:
        yield
    finally:
        # A tracer has to be told that it is dead before its parent is.
        ptrace(PTRACE_INTERRUPT, pid)
        if os.WIFSTOPPED(os.waitpid(pid, WALL)[1]):
            ptrace(PTRACE_DETACH, pid)


def tenant_that_dies(host):
    tenant = host.run("--memory.max", "512M", name="t").started()
    assert tenant.alloc(300 * MIB) > 0
    return tenant


def tenant_that_may(host):
    """The driver, which can keep limits on cgroups itself, does not stand in its way."""
    tenant = host.run("--memory.max", "512M", "--on-failure", "allow", name="t").started()
    assert tenant.alloc(300 * MIB) > 0
    return tenant


def without_daemon_and_holder(host):
    host.kill()
    host.kill_holder()


def test_killed_when_nobody_answers(supervised_host):
    tenant = tenant_that_dies(supervised_host)
    other = supervised_host.run("--memory.max", "512M", name="other").started()
    without_daemon_and_holder(supervised_host)
    # Within its limit nobody needs an answer.
    assert tenant.alloc(MIB) > 0 and other.alloc(MIB) > 0
    tenant.send(f"alloc {300 * MIB}")
    assert tenant.process.wait(PATIENCE) == 128 + signal.SIGKILL
    assert other.alloc(MIB) > 0
    supervised_host.start()
    event = supervised_host.told("killed", "t")[0]
    assert event["size"] == 300 * MIB and event["call"] == "cuMemAlloc_v2"


def test_allowed_when_nobody_answers(supervised_host):
    tenant = tenant_that_may(supervised_host)
    without_daemon_and_holder(supervised_host)
    assert tenant.alloc(300 * MIB) > 0
    supervised_host.start()
    event = supervised_host.told("overrun", "t")[0]
    assert event["size"] == 300 * MIB
    assert supervised_host.book("t")["memory.allocated"] == 600 * MIB
    assert tenant.ask("check") == ["right"]


def test_killed_when_a_debugger_has_it(supervised_host):
    tenant = tenant_that_dies(supervised_host)
    with traced(tenant.pid()):
        tenant.send(f"alloc {300 * MIB}")
        event = supervised_host.told("killed", "t")[0]
    assert event["size"] == 300 * MIB
    assert tenant.process.wait(PATIENCE) == 128 + signal.SIGKILL


def test_allowed_when_a_debugger_has_it(supervised_host):
    tenant = tenant_that_may(supervised_host)
    with traced(tenant.pid()):
        assert tenant.alloc(300 * MIB) > 0
    assert supervised_host.told("overrun", "t")[0]["size"] == 300 * MIB
    assert supervised_host.book("t")["memory.allocated"] == 600 * MIB
    # Let go, it is answered as ever, where a second is enough for the holder.
    eventually(lambda: tenant.alloc(MIB) == -OUT_OF_MEMORY, "its calls are answered again")


def test_deny_is_refused_where_no_program_can_answer(supervised_host):
    said = supervised_host.refused("set", "--default", "memory.max=512M", "on-failure=deny")
    assert "rung registers" in said and "kill or allow" in said
    assert not supervised_host.json("list")["tenants"]
    # A file may say it; what it says beside holds, and doctor tells of it.
    (supervised_host.dir / "conf/tenants.d/lab.ini").write_text(
        "[lab]\nmatch = user:nobody\nmemory.max = 512M\non-failure = deny\n")
    eventually(lambda: "lab" in [t["tenant"] for t in supervised_host.json("list")["tenants"]], "the file is read")
    assert "rung registers" in "".join(supervised_host.json("doctor")["problems"])
    (supervised_host.dir / "conf/tenants.d/lab.ini").unlink()
