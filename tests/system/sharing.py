# SPDX-License-Identifier: Apache-2.0
"""
A tenant that shares device memory with another one. It answers each line with one, as tenant.c does:

    make KIND SIZE          the code, and what the other one needs
    keep KIND WORD...       open that: the code
    free                    what it made: the code
    close                   what it opened: the code
    alloc SIZE              cuMemAlloc: the code
    jump SIZE               cuMemAlloc past its entry and the probe on it: the code
    ask                     the ioctl that asks the kernel driver for device memory: what it returns

KIND is "address" (cuIpcGetMemHandle), "physical" (cuMemCreate) or "pool" (cuMemPoolCreate).
"""
import ctypes
import os
import struct
import sys

BY_DESCRIPTOR = 1
PIDFD_GETFD = 438

cuda = ctypes.CDLL("libcuda.so.1")
libc = ctypes.CDLL(None, use_errno=True)


class Bytes64(ctypes.Structure):
    """A handle as the calls take it: by value."""
    _fields_ = [("bytes", ctypes.c_char * 64)]

    @classmethod
    def of(cls, text):
        return cls.from_buffer_copy(bytes.fromhex(text))


def number(value=0):
    return ctypes.c_uint64(value)


def properties(size):
    """Of physical memory or of a pool: pinned, to be shared by a descriptor, on device 0."""
    return struct.pack("4i", 1, BY_DESCRIPTOR, 1, 0).ljust(size, b"\0")


def context():
    current = ctypes.c_void_p()
    if cuda.cuCtxGetCurrent(ctypes.byref(current)) == 0 and current:
        return 0
    return cuda.cuCtxCreate_v2(ctypes.byref(current), 0, 0)


def descriptor(pid, fd):
    """What another process has open."""
    here = libc.syscall(PIDFD_GETFD, os.pidfd_open(int(pid)), int(fd), 0)
    assert here >= 0, os.strerror(ctypes.get_errno())
    return ctypes.c_void_p(here)


class Address:
    def make(self, size):
        self.at, handle = number(), Bytes64()
        code = context() or cuda.cuMemAlloc_v2(ctypes.byref(self.at), number(size)) or \
            cuda.cuIpcGetMemHandle(ctypes.byref(handle), self.at)
        return code, bytes(handle).hex()

    def free(self):
        return cuda.cuMemFree_v2(self.at)

    def keep(self, handle):
        self.at = number()
        return context() or cuda.cuIpcOpenMemHandle_v2(ctypes.byref(self.at), Bytes64.of(handle), 1)

    def close(self):
        return cuda.cuIpcCloseMemHandle(self.at)


class Physical:
    """Neither side needs a context."""

    def make(self, size):
        self.handle, fd = number(), ctypes.c_int(-1)
        code = cuda.cuMemCreate(ctypes.byref(self.handle), number(size), properties(32), number()) or \
            cuda.cuMemExportToShareableHandle(ctypes.byref(fd), self.handle, BY_DESCRIPTOR, number())
        return code, os.getpid(), fd.value

    def free(self):
        return cuda.cuMemRelease(self.handle)

    def keep(self, pid, fd):
        self.handle = number()
        return cuda.cuMemImportFromShareableHandle(ctypes.byref(self.handle), descriptor(pid, fd), BY_DESCRIPTOR)

    close = free


class Pool:
    def make(self, size):
        self.at, pool, fd, pointer = number(), number(), ctypes.c_int(-1), Bytes64()
        code = context() or cuda.cuMemPoolCreate(ctypes.byref(pool), properties(88)) or \
            cuda.cuMemAllocFromPoolAsync(ctypes.byref(self.at), number(size), pool, None) or \
            cuda.cuMemPoolExportToShareableHandle(ctypes.byref(fd), pool, BY_DESCRIPTOR, number()) or \
            cuda.cuMemPoolExportPointer(ctypes.byref(pointer), self.at)
        return code, os.getpid(), fd.value, bytes(pointer).hex()

    def free(self):
        return cuda.cuMemFree_v2(self.at)

    def keep(self, pid, fd, pointer):
        self.at, pool = number(), number()
        return context() or \
            cuda.cuMemPoolImportFromShareableHandle(ctypes.byref(pool), descriptor(pid, fd), BY_DESCRIPTOR,
                                                    number()) or \
            cuda.cuMemPoolImportPointer(ctypes.byref(self.at), pool, ctypes.byref(Bytes64.of(pointer)))

    close = free


def jump(size):
    """The entry is endbr64; jmp rel32."""
    entry = ctypes.cast(cuda.cuMemAlloc_v2, ctypes.c_void_p).value
    way, = struct.unpack("i", ctypes.string_at(entry + 5, 4))
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)(entry + 9 + way)(ctypes.byref(number()), size)


def ask():
    """NVIDIA's ioctl that allocates, of the class of device memory, as tenant.c."""
    with open(os.environ["SOFTGPU_IOCTL"], "r+b", buffering=0) as file:
        return libc.ioctl(file.fileno(), number(3 << 30 | 32 << 16 | ord("F") << 8 | 0x2b),
                          struct.pack("4IQ2I", 0, 0, 0, 0x40, 0, 0, 0))


KINDS = {"address": Address, "physical": Physical, "pool": Pool}


def obey(words, shared):
    if words[0] == "alloc":
        return context() or cuda.cuMemAlloc_v2(ctypes.byref(number()), number(int(words[1]))),
    if words[0] == "jump":
        return context() or jump(int(words[1])),
    if words[0] == "ask":
        return ask(),
    if words[0] == "make":
        return shared.make(int(words[2]))
    if words[0] == "keep":
        return shared.keep(*words[2:]),
    return getattr(shared, words[0])(),


def main():
    shared = None
    print(cuda.cuInit(0), flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] in ("make", "keep"):
            shared = KINDS[words[1]]()
        print(*obey(words, shared), flush=True)


if __name__ == "__main__":
    main()
