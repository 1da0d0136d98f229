# SPDX-License-Identifier: BSD-3-Clause
"""The floor under every tool: a BPF program of two instructions on all probes of a program.

What a hit of it costs is the kernel's way into a uprobe and back, by trap (on the nop) or by call (on the 5-byte
nop behind it, on kernels that turn such a probe into a call). Plain system calls, so that nothing is added."""

import ctypes
import os
import platform
import re
import struct
import subprocess

SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
PROG_LOAD, LINK_CREATE = 5, 28
PROG_KPROBE, TRACE_UPROBE_MULTI = 2, 48
RETURN_0 = struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0)


class Unavailable(Exception):
    pass


def bpf(cmd, attr):
    if not SYS_BPF:
        raise Unavailable("not on " + platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    buf = ctypes.create_string_buffer(attr.ljust(128, b"\0"), 128)
    fd = libc.syscall(SYS_BPF, cmd, buf, 128)
    if fd < 0:
        raise Unavailable(os.strerror(ctypes.get_errno()))
    return fd


def segments(path):
    """(offset, address, size in the file) of the loaded segments of a 64-bit ELF file."""
    with open(path, "rb") as f:
        head = f.read(64)
        phoff, = struct.unpack_from("<Q", head, 32)
        size, n = struct.unpack_from("<HH", head, 54)
        f.seek(phoff)
        table = f.read(size * n)
    r = []
    for i in range(n):
        kind, _, offset, addr, _, filesz = struct.unpack_from("<IIQQQQ", table, i * size)
        if kind == 1:
            r.append((offset, addr, filesz))
    return r


def probes(path):
    """(offset of the probe, offset of its semaphore) in the file, for each stapsdt note."""
    text = subprocess.run(["readelf", "-nW", path], stdout=subprocess.PIPE).stdout.decode()
    found = re.findall(r"Location: 0x([0-9a-f]+), Base: 0x[0-9a-f]+, Semaphore: 0x([0-9a-f]+)", text)
    seg = segments(path)

    def offset(addr):
        for off, start, size in seg:
            if start <= addr < start + size:
                return addr - start + off
        raise Unavailable("an address that is not in the file")

    return [(offset(int(a, 16)), offset(int(s, 16))) for a, s in found]


class Floor:
    """Attached while it lives. by_call: on the 5-byte nops."""

    def __init__(self, path, pid, by_call):
        sites = probes(path)
        n = len(sites)
        offsets = (ctypes.c_uint64 * n)(*[a + by_call for a, _ in sites])
        counters = (ctypes.c_uint64 * n)(*[s for _, s in sites])
        code = ctypes.create_string_buffer(RETURN_0, len(RETURN_0))
        licence = ctypes.create_string_buffer(b"GPL")
        name = ctypes.create_string_buffer(os.fsencode(path))
        self.prog = bpf(PROG_LOAD, struct.pack("<IIQQIIQII16sII", PROG_KPROBE, 2, ctypes.addressof(code),
                                               ctypes.addressof(licence), 0, 0, 0, 0, 0, b"floor", 0,
                                               TRACE_UPROBE_MULTI))
        try:
            self.link = bpf(LINK_CREATE, struct.pack("<IIIIQQQQIII", self.prog, 0, TRACE_UPROBE_MULTI, 0,
                                                     ctypes.addressof(name), ctypes.addressof(offsets),
                                                     ctypes.addressof(counters), 0, n, 0, pid))
        except Unavailable:
            os.close(self.prog)
            raise

    def close(self):
        os.close(self.link)
        os.close(self.prog)
