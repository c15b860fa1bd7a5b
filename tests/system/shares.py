# SPDX-License-Identifier: Apache-2.0
"""Device time as the device tells it: who had which part of it, in windows of two seconds.

As a program, `shares.py SECONDS`, it prints the samples of each process; measure() runs it so
in a tenant's environment. Nothing here asks Cotenant.
"""
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "build/tests/system/launcher"
PERIODS_A_SECOND = 6
PERIODS = 2 * PERIODS_A_SECOND
LOOK_EVERY = 0.05
# The machine had other things to do: a look came so much later, or somebody waited so much of the time for a CPU.
LATE = 0.1
WAITED = 0.05


class Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time_us", ctypes.c_ulonglong), ("sm", ctypes.c_uint),
                ("memory", ctypes.c_uint), ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint)]


def collect(seconds):
    """Per cent of each period, by process id, and how late the latest look was."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    found, last, late, looked = {}, 0, 0, time.monotonic()
    end = looked + seconds
    while looked < end:
        samples, n = (Sample * 64)(), ctypes.c_uint(64)
        if nvml.nvmlDeviceGetProcessUtilization(device, samples, ctypes.byref(n), ctypes.c_ulonglong(last)) == 0:
            for sample in samples[:n.value]:
                last = max(last, sample.time_us)
                found.setdefault(sample.pid, []).append(sample.sm)
        time.sleep(LOOK_EVERY)
        before, looked = looked, time.monotonic()
        late = max(late, looked - before - LOOK_EVERY)
    return found, late


def sample_and_late(env, seconds):
    done = subprocess.run([sys.executable, __file__, str(seconds)], env=env, check=True, capture_output=True,
                          text=True)
    found, late = json.loads(done.stdout)
    return {int(pid): values for pid, values in found.items()}, late


def sample(env, seconds):
    """Per cent of each period from now on, by process id."""
    return sample_and_late(env, seconds)[0]


def waited(pids):
    """How long each could have run and got no CPU, in seconds."""
    files = [pathlib.Path(f"/proc/{pid}/schedstat") for pid in pids]
    return [int(file.read_text().split()[1]) / 1e9 if file.exists() else 0 for file in files]


def sample_undisturbed(env, pids, seconds, is_good):
    """
    As sample(). What a launcher could not launch for want of a CPU is nobody's share: where the machine was busy
    with other things it is sampled again, a few times, until it is good.
    """
    for _ in range(5):
        before = waited(pids)
        found, late = sample_and_late(env, seconds)
        most = max(now - then for now, then in zip(waited(pids), before))
        if is_good(found) or (late < LATE and most < WAITED * seconds):
            break
        print(f"sampled again: a look came {late:.2f} s late, a launcher waited {most:.2f} s for a CPU")
    return found


def least_and_greatest(values):
    """Of the shares in any window; where there is none, it could have been anything."""
    windows = [sum(values[i:i + PERIODS]) / PERIODS for i in range(len(values) - PERIODS + 1)]
    return min(windows, default=0), max(windows, default=100)


def measure(env, pids, seconds):
    """The least and the greatest share in any window, for each process."""
    found = sample(env, seconds)
    return [least_and_greatest(found[pid]) for pid in pids]


def launch(host, name, limit, how="kernel", duration_ns=200_000, blocks=132, sync=0, seconds=120):
    """Starts a launcher as a tenant, and returns it and its process id."""
    tenant = host.add(["cotenant", "run", "--name", name, *limit, "--", LAUNCHER, how, duration_ns, blocks,
                       sync, seconds])
    return tenant, int(tenant.answer()[0])


def end(*started):
    """Ends what launch() has started; the command that started it ends with it."""
    for tenant, pid in started:
        os.kill(pid, signal.SIGKILL)
        tenant.process.wait(60)


if __name__ == "__main__":
    print(json.dumps(collect(float(sys.argv[1]))))
