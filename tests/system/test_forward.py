# SPDX-License-Identifier: Apache-2.0
"""Programs whose CUDA calls are executed beside them: what executes is the tenant."""
import subprocess
import sys

from conftest import COTENANT, GIB, MIB, OUT_OF_MEMORY, PATIENCE, TENANT, eventually

# What the guest's NVML says of device 0: total, used and free.
MEMORY = """
import ctypes
nvml, device, memory = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(device, memory) == 0
print(memory[0], memory[2], memory[1])
"""


def forwarded(host, name, *options):
    return host.add([COTENANT, "forward", "--name", name, *options, "--", TENANT, 0])


def test_limits_hold_for_what_executes(host):
    small = forwarded(host, "small", "--memory.max", "1G").started()
    large = forwarded(host, "large", "--memory.max", "4G").started()
    assert small.info()[1] == GIB and large.info()[1] == 4 * GIB
    assert small.ask("total") == ["0", str(GIB)]
    assert small.alloc(512 * MIB) > 0 and large.alloc(2 * GIB) > 0
    assert small.alloc(600 * MIB) == -OUT_OF_MEMORY
    assert small.ask("check") == large.ask("check") == ["right"]
    assert host.book("small")["refused"] == 1 and host.book("large")["refused"] == 0
    assert host.book("small")["memory.allocated"] == 512 * MIB


def test_a_changed_limit_holds_from_the_next_call(host):
    tenant = forwarded(host, "t", "--memory.max", "1G").started()
    host.cotenant("set", "t", "memory.max=2G")
    assert tenant.info()[1] == 2 * GIB
    assert tenant.alloc(GIB + 256 * MIB) > 0
    host.cotenant("set", "t", "memory.max=1G")
    assert tenant.info()[1] == GIB
    assert tenant.alloc(MIB) == -OUT_OF_MEMORY


def test_nothing_is_charged_when_the_program_is_gone(host):
    tenant = forwarded(host, "t", "--memory.max", "1G").started()
    assert tenant.alloc(512 * MIB) > 0
    assert tenant.end() == 0
    eventually(lambda: not [t for t in host.json("list")["tenants"] if t["tenant"] == "t"], "the tenant is gone")


def test_nvml_shows_the_limit_of_what_executes(host):
    tenant = host.add([COTENANT, "forward", "--name", "t", "--memory.max", "1G", "--", "sh", "-c",
                       'echo "$COTENANT_FORWARD $LD_LIBRARY_PATH"; exec "$@"', "sh", TENANT, 0])
    socket, path = tenant.answer()
    tenant.started()

    def memory():
        env = host.env | {"COTENANT_FORWARD": socket, "LD_LIBRARY_PATH": path}
        out = subprocess.run([sys.executable, "-c", MEMORY], env=env, text=True, capture_output=True, timeout=PATIENCE)
        assert out.returncode == 0, out.stderr
        return [int(word) for word in out.stdout.split()]
    assert tenant.alloc(512 * MIB) > 0
    total, used, free = memory()
    assert total == GIB and used >= 512 * MIB and used + free == GIB
    host.cotenant("set", "t", "memory.max=2G")
    assert memory()[0] == 2 * GIB
