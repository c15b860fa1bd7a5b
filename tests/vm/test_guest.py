# SPDX-License-Identifier: Apache-2.0
"""The whole way: programs in a virtual machine, its kernel's driver, QEMU, broker, workers, software GPU."""
import re

import pytest

from boot import boot, machine, make_initramfs, results_of
from conftest import BUILD, LIBRARY, SLOT, monitor, monitor_says, programs, shell
from cudart import NAMES, all_compiled
from waiting import eventually

COUNTERS = "/sys/class/misc/cotenant0/counters"
PROGRAMS = ["kernels", "pipeline", "graph", "ipc", "vmm", "threads", "hosts", "order"]
# And on the CUDA runtime. One compares each call's own error; of a call that need not be waited for, a later one tells it.
RUNTIME_PROGRAMS = [name for name in NAMES if name != "refusals"]
RUNTIME = BUILD / "softgpu/libcudart.so.13"
LOST_MS = 2000
# What an emulated machine adds whose host is busy.
LATE_MS = 58000
# How often a guest ends in each way; ends.py has more of it.
ENDS = 5


def counters_of(text):
    return {name: int(value) for name, value in re.findall(r"^(\w+):(\d+)$", text, re.M)}


# What a boot runs after all else: the kernel has no complaint, and nothing is pinned any more, by the driver's own
# count and by the kernel's, which has that of devices that are gone as well.
AFTER = {
    "complaints": shell("dmesg | grep -E 'BUG:|WARNING:|Oops|lockup'"),
    "counters": shell(f"cd {COUNTERS}; i=0; while [ $(cat pinned_pages) != 0 ] && [ $i -lt 600 ]; do sleep 0.1; "
                      "i=$((i + 1)); done; grep . *"),
    "pins": shell("echo 1 >/proc/sys/vm/stat_refresh; grep nr_foll_pin /proc/vmstat"),
    "unloaded": ["rmmod", "cotenant"],
}


def check_after(results, console):
    assert "@end" in console, console[-3000:]
    assert results["complaints"][0] == 1, results["complaints"]
    counters = counters_of(results["counters"][1])
    assert counters["pinned_pages"] == 0 and counters["leaked_pages"] == 0, counters
    pins = [int(n) for n in re.findall(r"nr_foll_pin_\w+ (\d+)", results["pins"][1])]
    assert len(pins) == 2 and pins[0] == pins[1] > 0, results["pins"]
    assert results["unloaded"][0] == 0, console[-3000:]
    return counters


def unlogged(text):
    """Some programs do what is refused, and the guest's library says of which call a later one tells."""
    return re.sub(r"^cotenant: \w+ failed with \d+, told by a later call\n", "", text, flags=re.M)


@pytest.mark.parametrize("user_doorbell", [1, 0])
def test_programs_print_the_same(tmp_path, gpu, driver, program, ptx, broker, user_doorbell):
    built = driver("oldest")
    kernels = ptx("nvcc")
    ways = {name: [program(name), kernels] for name in PROGRAMS} | \
        {f"runtime-{name}": [all_compiled()[name].result()] for name in RUNTIME_PROGRAMS}
    direct = {name: programs.run(command, gpu) for name, command in ways.items()}
    launches = {f"launches-{n}": shell(f"COTENANT_STATS=1 {program('launches')} {kernels} {n}") for n in (1000, 2000)}
    copies = {f"copies-{how}": shell(f"COTENANT_STATS=1 {program('copies')} {how} {4 << 20}")
              for how in ("pinned", "pageable")}
    results, console = boot(tmp_path, built.kernel, ways | launches | copies | AFTER,
                            environment={"LD_LIBRARY_PATH": f"{LIBRARY.parent}:{RUNTIME.parent}"},
                            modules=built.modules(f"user_doorbell={user_doorbell}"),
                            files=[LIBRARY, RUNTIME, program("launches"), program("copies")],
                            devices=broker().devices())
    counters = check_after(results, console)
    assert {name: (results[name][0], unlogged(results[name][1])) for name in ways} == \
        {name: (0, direct[name]) for name in ways}
    # A thousand launches more, and nobody waited for one of them.
    few, many = ([int(n) for n in re.search(r"(\d+) posted, (\d+) asked", results[name][1]).groups()]
                 for name in launches)
    assert (many[0] - few[0], many[1] - few[1]) == (1000, 0)
    # Pinned memory is the host's as it is; other memory is copied, twice to the device and twice from it.
    assert [(results[name][0], int(re.search(r"(\d+) bytes copied", results[name][1])[1])) for name in copies] == \
        [(0, 0), (0, 4 * (4 << 20))]
    # Of both interfaces ipc is two processes.
    assert counters["sessions"] == len(ways) + 6
    if user_doorbell:
        assert counters["doorbell_maps"] == counters["sessions"] and counters["doorbell_records"] == 0
    else:
        # Each of the launches, to begin with.
        assert counters["doorbell_maps"] == 0 and counters["doorbell_records"] > 3000


UNSHARED = {"device": ["ls", "/dev/cotenant0"], "reason": ["dmesg"]}


def check_unshared(results, console):
    assert "@end" in console, console[-3000:]
    assert results["device"][0] == 1
    assert "share=on" in results["reason"][1]


def check_not_saved(console, folder):
    """A machine that has the device cannot be saved. QEMU 8 says it in other words than 7."""
    assert re.search("non-migratable|Migration disabled", monitor(console, f"migrate exec:cat>{folder}/saved"))


@pytest.mark.parametrize("version", ["10", "11"])
def test_newer_qemus_carry_it(tmp_path, driver, program, ptx, broker, qemu, guest, own_program, version):
    """Programs; a save that is refused while one goes on; beside it a machine that does not share its memory."""
    built, hold = driver("oldest"), own_program("hold")
    environment = {"LD_LIBRARY_PATH": str(LIBRARY.parent)}
    folders = {name: tmp_path / name for name in ("shared", "unshared")}
    for folder in folders.values():
        folder.mkdir()
    commands = {"kernels": [program("kernels"), ptx("nvcc")],
                "held": shell(f"{hold} & read what; kill -9 $!; wait $!; exit 0")} | AFTER
    shared = make_initramfs(folders["shared"], commands, environment, 600, built.modules(), [LIBRARY, hold])
    unshared = make_initramfs(folders["unshared"], UNSHARED, environment, 600, built.modules())
    console = tmp_path / "monitor"
    vm = guest(machine(built.kernel, shared, qemu=qemu(version), devices=[
        *broker().devices(), "-monitor", f"unix:{console},server=on,wait=off"]))
    refused = guest(machine(built.kernel, unshared, qemu=qemu(version), devices=broker("other").devices(share="off")))
    vm.wait_for(r"round \d+")
    check_not_saved(console, tmp_path)
    vm.wait_for(r"round \d+")
    vm.send("enough")
    vm.wait_for("@end")
    results, text = results_of(vm.text.encode())
    check_after(results, text)
    assert results["kernels"] == (0, "six kernels right\n")
    refused.wait_for("@end")
    check_unshared(*results_of(refused.text.encode()))


def test_processes_that_are_killed_or_mean_ill(tmp_path, driver, program, ptx, broker, own_program):
    """Killed at 20 moments of a life, then ioctls of all kinds; a program is right after each."""
    built = driver("newest")
    hold, hostile = own_program("hold"), own_program("hostile-ioctl")
    well = [program("kernels"), ptx("nvcc")]
    commands = {
        "killed": shell(f"for i in $(seq 1 20); do {hold} >/dev/null & usleep $((i * 40000)); kill -9 $!; wait $!; "
                        "done; exit 0"),
        "well": well,
        "hostile": [hostile, "8", "1"],
        # The device goes from under a process, and comes back.
        "removed": shell(f"{hold} >/tmp/hold & until grep -q ready /tmp/hold; do usleep 100000; done; "
                         "cd /sys/bus/virtio/drivers/cotenant; echo virtio0 >unbind; wait; cat /tmp/hold; "
                         "echo virtio0 >bind"),
        "again": well,
    } | AFTER
    results, console = boot(tmp_path, built.kernel, commands, environment={"LD_LIBRARY_PATH": str(LIBRARY.parent)},
                            modules=built.modules(), files=[LIBRARY, hold], devices=broker().devices())
    check_after(results, console)
    assert results["well"] == (0, "six kernels right\n") and results["again"] == results["well"]
    assert results["hostile"][0] == 0, results["hostile"]
    assert re.search(r"ready: .*lost: CUDA_ERROR_DEVICE_UNAVAILABLE", results["removed"][1], re.S), results["removed"]


def test_memory_that_is_not_shared_is_refused(tmp_path, driver, broker):
    built = driver("oldest")
    check_unshared(*boot(tmp_path, built.kernel, UNSHARED, modules=built.modules(), devices=broker().devices(share="off")))


def holder(folder, built, hold):
    """An initramfs whose guest holds memory and does what the console says: a letter for sysrq. The device is taken from
    a file system's driver that was there before."""
    folder.mkdir()
    commands = {"hold": shell(f"{hold} & read what; echo $what >/proc/sysrq-trigger; wait")}
    return make_initramfs(folder, commands, {"LD_LIBRARY_PATH": str(LIBRARY.parent)}, 600,
                          modules=built.modules(before=built.virtiofs), files=[LIBRARY, hold])


def test_a_call_answers_when_the_host_is_gone(tmp_path, driver, broker, guest, own_program):
    built = driver("oldest")
    archive = holder(tmp_path / "holder", built, own_program("hold"))
    one = broker()
    vm = guest(machine(built.kernel, archive, devices=one.devices()))
    vm.wait_for(r"ready: \d+ of")
    one.kill()
    lost = vm.wait_for(r"lost: (\w+) after (\d+) ms")
    assert lost[1] == "CUDA_ERROR_DEVICE_UNAVAILABLE"
    assert int(lost[2]) <= LOST_MS + LATE_MS


def test_guests_that_end_in_every_way(tmp_path, driver, broker, guest, own_program):
    """Panics, reboots, a killed QEMU: nothing of the guest is left, and the other one goes on."""
    built = driver("oldest")
    archive = holder(tmp_path / "holder", built, own_program("hold"))
    one, other = broker("one"), broker("other")
    console = tmp_path / "monitor"
    bystander = guest(machine(built.kernel, archive, devices=[
        *other.devices(), "-monitor", f"unix:{console},server=on,wait=off"]))
    bystander.wait_for(r"ready: \d+ of")
    command = machine(built.kernel, archive, devices=one.devices())
    vm = guest(command)
    free = set()
    for what in "cb" * ENDS:
        free.add(vm.wait_for(r"ready: (\d+) of")[1])
        assert len(one.workers()) == 1
        vm.send(what)
        eventually(lambda: not one.workers(), "the worker is gone")
    for _ in range(ENDS):
        free.add(vm.wait_for(r"ready: (\d+) of")[1])
        vm.kill()
        eventually(lambda: not one.workers(), "the worker is gone")
        vm = guest(command)
    free.add(vm.wait_for(r"ready: (\d+) of")[1])
    # The device's memory is what it was each time.
    assert len(free) == 1
    # Nor does it mind that somebody wants to save it, which cannot be.
    check_not_saved(console, tmp_path)
    bystander.seen = len(bystander.text)
    bystander.wait_for(r"round \d+")
    assert "lost" not in bystander.text and len(other.workers()) == 1


def test_a_machine_is_saved_without_the_device(tmp_path, driver, broker, guest, own_program):
    """As docs/vm.md says: the device is pulled out of the machine, which is saved, goes on elsewhere, and gets it back."""
    built, hold = driver("oldest"), own_program("hold")
    commands = {"hold": shell(f"{hold}; until [ -e /dev/cotenant0 ]; do sleep 0.1; done; {hold}")}
    archive = make_initramfs(tmp_path, commands, {"LD_LIBRARY_PATH": str(LIBRARY.parent)}, 600, modules=built.modules(),
                             files=[LIBRARY, hold])
    one = broker()
    *others, option, device = one.devices()
    device += ",id=gpu,bus=gpu-slot"
    consoles = [tmp_path / "first", tmp_path / "second"]
    monitors = [["-monitor", f"unix:{path},server=on,wait=off"] for path in consoles]
    first = guest(machine(built.kernel, archive, devices=[*others, *SLOT, option, device, *monitors[0]]))
    first.wait_for(r"ready: \d+ of")
    monitor(consoles[0], "device_del gpu")
    assert first.wait_for(r"lost: (\w+) after")[1] == "CUDA_ERROR_DEVICE_UNAVAILABLE"
    eventually(lambda: not monitor_says(consoles[0], "info pci", 'id "gpu"') and not one.workers(), "the device is gone")
    monitor(consoles[0], f"migrate exec:cat>{tmp_path}/saved")
    eventually(lambda: monitor_says(consoles[0], "info migrate", "Migration status: completed"), "it is saved")
    first.kill()
    incoming = ["-incoming", f"exec:cat {tmp_path}/saved"]
    second = guest(machine(built.kernel, archive, devices=[*others, *SLOT, *incoming, *monitors[1]]))
    eventually(lambda: monitor_says(consoles[1], "info status", "VM status: running"), "it goes on")
    monitor(consoles[1], f"device_add {device}")
    second.wait_for(r"ready: \d+ of")
    assert len(one.workers()) == 1
