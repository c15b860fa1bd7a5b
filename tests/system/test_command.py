# SPDX-License-Identifier: Apache-2.0
"""The cotenant command: exit codes, signals, what it says."""
import json
import pathlib
import re
import signal
import subprocess
import time

from conftest import ALICE, BOB, COTENANT, MIB, PATIENCE, cgroup_root, eventually


def test_exit_codes_are_passed_on(host):
    assert host.command("run", "--", "sh", "-c", "exit 7").returncode == 7
    assert host.command("run", "--", "sh", "-c", "kill -9 $$").returncode == 128 + signal.SIGKILL
    assert host.command("run", "--", "/nowhere").returncode == 127
    assert host.command("run", "--", "/etc/passwd").returncode == 126
    assert host.command("run", "--memory.max", "much", "--", "true").returncode == 125


def test_nothing_runs_when_the_tenant_cannot_be_made(host):
    mark = host.dir / "mark"
    assert host.command("run", "--name", "a/b", "--", "touch", mark).returncode == 125
    assert host.command("run", "--socket", "/nowhere", "--", "touch", mark).returncode == 125
    assert not mark.exists()


def test_signals_reach_the_command(host):
    run = subprocess.Popen([COTENANT, "run", "--name", "t", "--", "sh", "-c",
                            "trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done"],
                           env=host.env, stdout=subprocess.PIPE)
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(signal.SIGTERM)
    assert run.wait(PATIENCE) == 3


def test_a_run_has_a_cgroup_of_its_own(host):
    inside = host.cotenant("run", "--name", "t", "--", "cat", "/proc/self/cgroup")
    line = [l for l in inside.splitlines() if l.startswith("0::")][0]
    own = [l for l in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if l.startswith("0::")][0]
    assert line.startswith(own.rstrip("/")) and "cotenant-t-" in line
    eventually(lambda: not host.json("list")["tenants"], "the tenant ends with its last process")


def test_a_run_lasts_as_long_as_what_it_started(host):
    end = host.dir / "end"
    host.cotenant("run", "--name", "t", "--", "sh", "-c",
                  'until [ -e "$0" ]; do sleep 0.1; done >/dev/null 2>&1 &', end)
    try:
        assert [t["tenant"] for t in host.json("list")["tenants"]] == ["t"]
    finally:
        end.touch()
    eventually(lambda: not host.json("list")["tenants"], "the tenant ends with its last process")


def own_cgroup(tenant):
    """The folder that a run has, seen from one of its processes."""
    line = next(line for line in pathlib.Path(f"/proc/{tenant.pid()}/cgroup").read_text().splitlines()
                if line.startswith("0::"))
    return cgroup_root() / line[len("0::/"):]


def test_the_cgroup_of_a_run_that_was_released_goes_with_its_last_process(host):
    tenants = [host.run(name=f"t{i}").started() for i in range(2)]
    folders = [own_cgroup(tenant) for tenant in tenants]
    for i, folder in enumerate(folders):
        assert folder.name.startswith(f"cotenant-t{i}-")
        host.cotenant("release", f"t{i}")
    tenants[0].end()
    eventually(lambda: not folders[0].exists(), "it is empty")
    # Whichever daemon is there then.
    host.kill()
    tenants[1].end()
    assert folders[1].exists()
    host.start()
    eventually(lambda: not folders[1].exists(), "the next daemon takes it away")


def test_last_events_of_a_run_are_told_by_its_name(host):
    """However soon it ends: who started it asks at once whether it is gone."""
    for i in range(4):
        tenant = host.run("--memory.max", "512M", name=f"t{i}").started()
        tenant.send(f"alloc {600 * MIB}")
        tenant.process.stdin.close()
        assert tenant.process.wait(PATIENCE) == 0
        assert [event["size"] for event in host.told("refused", f"t{i}")] == [600 * MIB]
    assert all(event["tenant"] for event in host.events("refused"))


def test_events_follow(host):
    follow = subprocess.Popen([COTENANT, "events", "--follow", "--json"], env=host.env, stdout=subprocess.PIPE)
    assert json.loads(follow.stdout.readline())["kind"] == "started"
    # The first may have been there before it was asked for; when the second comes it is being waited for.
    for user in (ALICE, BOB):
        host.cotenant("set", "--user", user, "memory.max=1G")
        # Other processes of the machine may map libcuda meanwhile, which is told as well.
        event = next(event for event in map(json.loads, follow.stdout) if event["tenant"] == str(user))
        assert event["kind"] == "tenant-new"
    follow.kill()
    follow.wait()


def test_errors_say_what_to_do(host):
    assert "4G, 512MiB or 50%" in host.refused("set", "--user", ALICE, "memory.max=much")
    assert "cotenant help set" in host.refused("set", "--user", ALICE, "memory.maximum=4G")
    assert "cotenant list" in host.refused("show", "nobody-there")
    assert "systemctl start" in host.refused("list", "--socket", "/nowhere")
    assert "not enforce" not in host.command("set", "--user", ALICE, "compute.max=30").stderr
    another = subprocess.run(host.daemon_command("--batch-program", "kubernetes"), capture_output=True, text=True, timeout=60)
    assert another.returncode and "'kubernetes' cannot be started; cotenant-slurm is the one for Slurm" in another.stderr


def test_limits_are_edited_in_place(host):
    path = host.dir / "conf/tenants.d/lab.ini"
    path.write_text(f"# the lab\n[alice]\nmatch = user:{ALICE}\n# until May\nmemory.max = 1024M\n")
    host.cotenant("api", "daemon.reload")
    host.cotenant("set", "alice", "memory.low=512M")
    assert path.read_text() == (f"# the lab\n[alice]\nmatch = user:{ALICE}\n# until May\nmemory.max = 1024M\n"
                                "memory.low = 512M\n")


def test_every_verb_prints_json(host):
    host.cotenant("set", "--user", ALICE, "memory.max=1G")
    for words in (["list"], ["show", ALICE], ["version"], ["metrics"], ["api"], ["help"],
                  ["api", "devices.list"], ["set", ALICE, "memory.max=2G"], ["explain", 1]):
        assert host.json(*words)
    assert json.loads(host.command("doctor", "--json").stdout)["rung"] != "none"
    assert json.loads(host.command("show", "nobody-there", "--json").stdout)["error"]["code"] == "not-found"


def test_last_activity(host):
    """A tenant that only allocates does not show in the device's samples of utilisation, but in the books."""
    tenant = host.run(name="t").started()
    assert tenant.alloc(MIB) > 0
    eventually(lambda: host.book("t")["last_active"], "its activity shows")
    assert abs(time.time() - host.book("t")["last_active"]) < PATIENCE
    # The daemon may have looked before the allocation, and looks once more then; from then on nothing is new.
    last = eventually(lambda: (before := host.book("t")["last_active"]) == (time.sleep(1.5),
                      host.book("t")["last_active"])[1] and before, "its activity is over")
    assert tenant.ask(f"loop 10 {MIB}") == ["0", "0"]
    eventually(lambda: host.book("t")["last_active"] > last, "it has been active again")
    assert host.book("t", gpu=1)["last_active"] is None
    head, line = host.cotenant("list", "--gpu", "0").splitlines()
    assert re.match("now|[0-9]+s ago", line[head.index("ACTIVE"):]), line


def test_run_tells_what_waits(host):
    """A program that seems to hang: whoever started it hears why, on standard error."""
    tenant = host.run("--memory.max", "512M", "--memory.wait", "600s", name="t").started()
    first = tenant.alloc(300 * MIB)
    assert first > 0
    tenant.send(f"alloc {300 * MIB}")
    eventually(lambda: host.book("t")["waiting"], "it waits")
    said = tenant.process.stderr.readline().decode()
    assert "cuMemAlloc_v2" in said and "waits for 300M: memory.max of t" in said, said
    host.cotenant("set", "t", "memory.max=1G")
    assert tenant.answer()[0] == "0"
    assert "nothing waits any more" in tenant.process.stderr.readline().decode()
