# SPDX-License-Identifier: Apache-2.0
"""Programs of others as tenants: tinygrad and Taichi, unchanged, from the package index.

What they need and what they compute is in tests/programs; here it is the same with limits.
"""
import json

import pytest
import shares
from building import PROGRAMS, toolkit, virtual_environment
from conftest import GIB, MIB, SOFTGPU, eventually

STEPS = 6
KERNEL_NS = 40_000_000  # of device time, so that it is the device that a training waits for
ABOVE, BELOW = 8, 15  # points; a training does not always have work for all that it may use
ROUNDING = 1024  # the driver's pool counts in pieces of 512 bytes, the books in the bytes that were asked for


def python_of(name):
    return virtual_environment(name, f"requirements-{name}.txt") / "python"


@pytest.fixture
def tinygrad(host):
    """Its interpreter; from now on tenants find NVRTC, and no cache but their own."""
    python, cuda = python_of("tinygrad"), toolkit()
    host.env |= {"LD_LIBRARY_PATH": f"{SOFTGPU}:{cuda}/lib64", "CUDA_PATH": str(cuda), "CUDA_HOME": str(cuda),
                 "DEV": "CUDA", "CACHELEVEL": "0"}
    yield python
    # They do not end by themselves, and do not read their input as other tenants do.
    for tenant in host.tenants:
        if tenant.process.poll() is None:
            tenant.process.terminate()


def training(host, python, name, steps, *limits):
    return host.add(["cotenant", "run", "--name", name, *limits, "--", python, PROGRAMS / "real/tinygrad-train.py",
                     steps])


def losses_of(tenant, n):
    answers = [tenant.answer(120) for _ in range(n)]
    assert all(word == "loss" for word, _ in answers)
    return [float(loss) for _, loss in answers]


def device_pid(host, name):
    """The process of a tenant that has a context; there need not be a tenant yet."""
    def processes():
        shown = json.loads(host.command("show", name, "--json").stdout)
        return [process["pid"] for process in shown.get("processes", [])]
    return eventually(processes, f"{name} is charged", 60)[0]


def shares_are_right(host, pids, wanted):
    """Nobody has ever more; a program that the machine does not let go on may have less for a while."""
    measured = shares.measure(host.env, pids, 4)
    print("shares", measured)
    assert all(high <= most + ABOVE for most, (_, high) in zip(wanted, measured)), measured
    return all(most - BELOW <= low for most, (low, _) in zip(wanted, measured))


def test_two_trainings_side_by_side(host, tinygrad):
    """With 30 and 70 per cent, and a third that outgrows its limit: the losses are as when alone."""
    alone = losses_of(training(host, tinygrad, "alone", STEPS), STEPS)
    assert alone[-1] < alone[0]
    host.env["SOFTGPU_KERNEL_NS"] = str(KERNEL_NS)
    one = training(host, tinygrad, "one", 10000, "--compute.max", 30, "--memory.max", "2G")
    two = training(host, tinygrad, "two", 10000, "--compute.max", 70, "--memory.max", "2G")
    del host.env["SOFTGPU_KERNEL_NS"]
    pids = [device_pid(host, name) for name in ("one", "two")]
    assert [losses_of(tenant, STEPS) for tenant in (one, two)] == [alone, alone]
    eventually(lambda: shares_are_right(host, pids, (30, 70)), "each has its share", 120)

    grown = host.add(["cotenant", "run", "--name", "grower", "--memory.max", "1G", "--", tinygrad,
                      PROGRAMS / "real/tinygrad-grow.py"])
    said = grown.answer(120)
    assert said[0] == "MemoryError" and "failed on CUDA" in " ".join(said), said
    assert grown.answer(60) == ["tensors", "whole"]
    assert grown.process.wait(20) == 0
    book = [event["size"] for event in host.events("refused", "grower")]
    assert book and all(size == 64 * MIB for size in book)

    for tenant, name in zip((one, two), ("one", "two")):
        assert tenant.process.poll() is None
        assert host.book(name)["refused"] == 0
    # They go on, in step with each other: what one computes does not depend on the other.
    again = losses_of(one, 2), losses_of(two, 2)
    assert again[0] == again[1]


def test_what_taichi_takes_out_of_its_pool_is_counted(host):
    python = python_of("taichi")
    tenant = host.add(["cotenant", "run", "--name", "taichi", "--memory.max", 2 * GIB, "--", python,
                       PROGRAMS / "real/taichi-pool.py"])
    books, reserved = [], []

    def as_the_driver_says():
        book = host.book("taichi")["memory.allocated"]
        right = not books or abs(book - books[0] - (reserved[-1] - reserved[0])) <= ROUNDING
        return right and [book]

    for _ in range(5):
        words = tenant.answer(60)
        while words[0] != "reserved":  # it greets first
            words = tenant.answer(60)
        reserved.append(int(words[1]))
        # What a trim leaves is known when the device was asked.
        host.settled()
        books += eventually(as_the_driver_says, f"the pool counts as the driver says: {reserved}, {books}")
        tenant.send("go on")
    assert tenant.process.wait(20) == 0
    print("books", books, "reserved", reserved)
    # Two arrays of 12 and 20 MiB; the first stays with the pool when it is freed, and goes with a trim. Beside them
    # Taichi takes 8 bytes for what a kernel returns, and they are freed sooner or later than these.
    steps = [after - before for before, after in zip(books, books[1:])]
    assert all(abs(step - n * MIB) <= 8 for step, n in zip(steps, [32, 0, -12, -20], strict=True)), steps
