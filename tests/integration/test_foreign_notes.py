# SPDX-License-Identifier: BSD-3-Clause
"""Notes that are elsewhere, moved, damaged, or lie: what is right is traced, what is not is named, nothing else is touched."""

import glob
import json
import os
import platform
import re
import struct
import subprocess

import lib
from lib import Skipped, Target, Tracer, dump, equal, need, run_tool
from test_foreign import values

PLAIN, GUARD, GUARD2, SOLO = ([i + k for i in range(5)] for k in (0, 10, 20, 30))
ALL = {"plain": PLAIN, "guard": GUARD, "guard2": GUARD2, "solo": SOLO}


class Elf:
    """A 64-bit ELF file that can be changed: sections by name, notes by the probe's name."""

    def __init__(self, path):
        self.d = bytearray(open(path, "rb").read())
        self.shoff, = struct.unpack_from("<Q", self.d, 40)
        n, strndx = struct.unpack_from("<2xHH", self.d, 58)
        names = self.section(strndx)["offset"]
        self.sections = {}
        for i in range(n):
            s = self.section(i)
            s["name"] = self.text(names + s["name_at"])
            self.sections[s["name"]] = s
        self.names = names

    def text(self, at):
        return self.d[at:self.d.index(b"\0", at)].decode("latin-1")

    def section(self, i):
        at = self.shoff + 64 * i
        name, kind, flags, addr, offset, size = struct.unpack_from("<IIQQQQ", self.d, at)
        return {"at": at, "index": i, "name_at": name, "kind": kind, "flags": flags, "addr": addr, "offset": offset,
                "size": size}

    def rename(self, name, new):
        at = self.names + self.sections[name]["name_at"]
        self.d[at:at + len(name)] = new.encode().ljust(len(name), b"x")[:len(name)]

    def notes(self):
        """{probe: (place of the note, place of its description)}"""
        s, r = self.sections[".note.stapsdt"], {}
        at = s["offset"]
        while at < s["offset"] + s["size"]:
            name, desc, _ = struct.unpack_from("<III", self.d, at)
            d = at + 12 + (name + 3 & ~3)
            provider = self.text(d + 24)
            r[self.text(d + 24 + len(provider) + 1)] = (at, d)
            at = d + (desc + 3 & ~3)
        return r

    def set(self, probe, which, value):
        struct.pack_into("<Q", self.d, self.notes()[probe][1] + 8 * which, value & (1 << 64) - 1)

    def get(self, probe, which):
        return struct.unpack_from("<Q", self.d, self.notes()[probe][1] + 8 * which)[0]

    def segment(self, kind):
        """Place of the program header of that kind."""
        phoff, = struct.unpack_from("<Q", self.d, 32)
        for i in range(struct.unpack_from("<H", self.d, 56)[0]):
            if struct.unpack_from("<I", self.d, phoff + 56 * i)[0] == kind:
                return phoff + 56 * i
        raise Skipped("no such segment")

    def symbol(self, name):
        out = subprocess.run(["nm", self.path], stdout=subprocess.PIPE).stdout.decode()
        return int(re.search(r"^([0-9a-f]+) \w %s$" % name, out, re.M).group(1), 16)

    def write(self, path):
        with open(path, "wb") as f:
            f.write(self.d)
        os.chmod(path, 0o755)
        return path


PC, BASE, SEM = 0, 1, 2


def elf(c):
    e = Elf(c.targets["noted"])
    e.path = c.targets["noted"]
    return e


def listed(path):
    """Probes of n by name, and the object of the file."""
    status, out, err = run_tool(["list", "--json", path])
    equal(status, 0, "list: " + err)
    rows = [json.loads(l) for l in out.splitlines()]
    return {r["name"]: r for r in rows if r["type"] == "probe"}, [r for r in rows if r["type"] == "file"][0]


def traced(c, exe, want, warn=None, sems=(1, 1), name="t"):
    """Runs it; the probes of `want` with their values and no others. warn: what the tracer says."""
    path = os.path.join(c.dir, name + ".pftrace")
    t = Target([exe])
    tr = Tracer(["-v", "-p", str(t.pid), "-o", path, "--usdt", "n:*"])
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    got = {}
    for o in dump(path):
        if o["type"] == "instant":
            got.setdefault(o["name"], []).append(values(o)[0])
    nop5 = got.pop("nop5", None)
    need(nop5 is None or len(nop5) == 1000, "hits of nop5")
    equal(got, want, name + ": hits")
    equal((min(1, truth["shared"]), min(1, truth["solo"])), sems, name + ": semaphores")
    equal((truth["changed"], truth["wrong"]), (0, 0), name + ": other data of the program")
    if warn:
        need(re.search(warn, tr.text()), "%s: %r is not in %s" % (name, warn, tr.text()))
    os.unlink(path)
    return tr.text()


def changed(c, name, change):
    e = elf(c)
    change(e)
    return e.write(os.path.join(c.dir, name))


def x86_only():
    if platform.machine() != "x86_64":
        raise Skipped("noted.c is for x86-64")


def test_foreign_notes_elsewhere(c):
    """Moved images, missing sections, compression, stripping: the probes are there all the same."""
    x86_only()

    def moved(by):
        def change(e):
            for p in e.notes():
                for w in (PC, BASE) + ((SEM,) if e.get(p, SEM) else ()):
                    e.set(p, w, e.get(p, w) - by)
        return change

    def no_base(e):
        e.rename(".stapsdt.base", ".other")
        for p in e.notes():
            e.set(p, BASE, 0x1234)

    def segment_only(e):
        s = e.sections[".note.stapsdt"]
        struct.pack_into("<IIQQQQQQ", e.d, e.segment(0x6474e551), 4, 4, s["offset"], 0, 0, s["size"], s["size"], 4)
        struct.pack_into("<I", e.d, s["at"] + 4, 1) # SHT_PROGBITS
        e.rename(".note.stapsdt", ".anything")

    def only_the_name(e):
        struct.pack_into("<I", e.d, e.sections[".note.stapsdt"]["at"] + 4, 1)

    def only_the_type(e):
        e.rename(".note.stapsdt", ".note.other")

    def doubled(e): # the same notes in two sections
        s, o = e.sections[".note.stapsdt"], e.sections[".comment"]
        struct.pack_into("<IQQQQ", e.d, o["at"] + 4, 7, 0, 0, s["offset"], s["size"])

    for name, change in (("as-is", lambda e: None), ("moved-up", moved(0x7000)), ("moved-down", moved(-0x123000)),
                         ("no-base", no_base), ("base-0", lambda e: [e.set(p, BASE, 0) for p in e.notes()]),
                         ("no-probes-section", lambda e: e.rename(".probes", ".other")), ("segment-only", segment_only),
                         ("only-the-name", only_the_name), ("only-the-type", only_the_type), ("doubled", doubled)):
        exe = changed(c, name, change)
        probes, file_ = listed(exe)
        equal(sorted(probes), sorted(list(ALL) + ["nop5"]), name + ": list")
        equal((file_["malformed"], file_["semaphore"]), (0, 0), name + ": troubles")
        equal(file_["duplicate"], 5 if name == "doubled" else 0, name + ": duplicates")
        traced(c, exe, ALL, name=name)
    for name, argv in (("compressed", ["objcopy", "--compress-debug-sections=zlib"]), ("stripped", ["strip"]),
                       ("no-symbols", ["strip", "-s"]), ("debug-gone", ["objcopy", "--strip-debug"])):
        exe = os.path.join(c.dir, name)
        if subprocess.run(argv + [c.targets["noted"], "-o", exe] if argv[0] == "strip" else
                          argv + [c.targets["noted"], exe]).returncode:
            raise Skipped("no " + argv[0])
        traced(c, exe, ALL, name=name)


def test_foreign_notes_missing(c):
    """Notes that are not to be had are named in one line; the program runs as ever."""
    x86_only()
    where = "no such probe"
    # without section headers, and without what is behind the segments
    e = elf(c)
    struct.pack_into("<Q", e.d, 40, 0)
    struct.pack_into("<HH", e.d, 60, 0, 0)
    e.d = e.d[:e.sections[".comment"]["offset"]]
    exe = e.write(os.path.join(c.dir, "sstrip"))
    probes, file_ = listed(exe)
    equal((probes, file_["section_headers"]), ({}, False), "without section headers")
    need("no section headers" in run_tool(["list", exe])[1], "list does not say so")
    traced(c, exe, {}, where, (0, 0))
    # a compressed section of notes
    exe = changed(c, "packed", lambda e: struct.pack_into("<Q", e.d, e.sections[".note.stapsdt"]["at"] + 8, 0x800))
    equal((listed(exe)[0], listed(exe)[1]["compressed"]), ({}, 1), "compressed notes")
    need("1 compressed section of notes, not read" in run_tool(["list", exe])[1], "list does not say so")
    traced(c, exe, {}, "1 USDT note cannot be used", (0, 0))
    # in a file of debug information
    exe, debug = os.path.join(c.dir, "linked"), os.path.join(c.dir, "linked.debug")
    subprocess.check_call(["objcopy", "--only-keep-debug", c.targets["noted"], debug])
    subprocess.check_call(["objcopy", "-R", ".note.stapsdt", "--strip-debug", "--add-gnu-debuglink=" + debug,
                           c.targets["noted"], exe])
    probes, file_ = listed(exe)
    equal((probes, file_["debug_link"]), ({}, "linked.debug"), "debug link")
    need("its debug file linked.debug is not read" in run_tool(["list", exe])[1], "list does not say so")
    traced(c, exe, {}, where, (0, 0))
    # not for this machine, or not at all
    for name, at, value in (("big", 5, b"\2"), ("mips", 18, b"\x08\0"), ("x32", 4, b"\1"), ("magic", 0, b"\0"),
                            ("relocatable", 16, b"\1\0")):
        exe = changed(c, name, lambda e: e.d.__setitem__(slice(at, at + len(value)), value))
        status, _, err = run_tool(["list", exe])
        equal(status, 1, "exit status of list " + name)
        lib.one_error_line(err, exe, "not an ELF file of a known kind")


def test_foreign_notes_that_lie(c):
    """Damaged notes and semaphores that cannot be raised cost themselves only, and are counted."""
    x86_only()
    e = elf(c)
    sealed, data, text = e.symbol("sealed"), e.symbol("data"), e.get("plain", PC)
    without = {k: v for k, v in ALL.items() if k != "solo"}

    def sem(value):
        return lambda e: e.set("solo", SEM, value)

    def u32(which, value):
        return lambda e: struct.pack_into("<I", e.d, e.notes()["solo"][0] + 4 * which, value)

    def unended(e):
        at, d = e.notes()["solo"]
        size, = struct.unpack_from("<I", e.d, at + 4)
        e.d[d + 24:d + size] = b"A" * (size - 24)

    for name, change, count in (
            ("sem-far", sem(1 << 40), "semaphore"), ("sem-end", sem(2**64 - 2), "semaphore"), ("sem-code", sem(text), "semaphore"),
            ("sem-odd", sem(data + 1), "semaphore"), ("sem-sealed", sem((sealed | 0xfff) - 1), "semaphore"),
            ("sem-nowhere", sem(2), "semaphore"),
            ("pc-far", lambda e: e.set("solo", PC, 1 << 40), "discarded"), ("pc-0", lambda e: e.set("solo", PC, 0), "discarded"),
            ("pc-data", lambda e: e.set("solo", PC, data), "discarded"),
            ("size-8", u32(1, 8), "malformed"), ("size-huge", u32(1, 0xfffffff0), None), ("name-huge", u32(0, 0xffffffff), None),
            ("name-0", u32(0, 0), None), ("type", u32(2, 2), None), ("unended", unended, "malformed")):
        exe = changed(c, name, change)
        probes, file_ = listed(exe)
        need("solo" not in probes, name + ": it is listed")
        if count: # behind a size that lies, what looks like a note may be one more
            need(file_[count] == 1 or count == "malformed" and file_[count] == 2, "%s: %d %s" % (name, file_[count], count))
        equal(set(probes), set(without) | {"nop5"}, name + ": the others")
        warn = {"semaphore": "1 USDT note cannot be used: montrace-bpf list says why",
                "malformed": r"\d USDT notes? cannot be used"}.get(count)
        if name in ("sem-far", "sem-odd", "sem-sealed", "pc-data", "size-huge", "unended"):
            traced(c, exe, without, warn, (1, 0), name)
    need("1 with a semaphore that cannot be raised" in run_tool(["list", c.dir + "/sem-odd"])[1], "list does not say so")
    # two probes at one place with different semaphores, which the kernel does not take: the first is armed
    exe = changed(c, "two-semaphores", lambda e: e.set("solo", PC, e.get("plain", PC)))
    traced(c, exe, without, r"1 of \d USDT sites could not be armed \(Invalid argument\)", (1, 0), "two semaphores")
    # two at one place with the same one
    e = elf(c)
    e.set("guard2", PC, e.get("guard", PC))
    exe = e.write(os.path.join(c.dir, "same-place"))
    want = dict(ALL, guard2=GUARD)
    traced(c, exe, want, name="same place, two names")


def test_foreign_nop5_site(c):
    """A probe on a 5-byte nop in a leaf function: its data stay as they are; where they would not, it is not armed."""
    x86_only()
    text = traced(c, c.targets["noted"], ALL)
    return "not armed here" if "1 USDT site on 5-byte nops not armed" in text else "armed"


# ---- list -----------------------------------------------------------------------------------------------------------

REAL = ["/usr/bin/python3.11", "/usr/lib/postgresql/*/bin/postgres", "/usr/lib/jvm/*/lib/server/libjvm.so",
        "/usr/lib/*/libstdc++.so.6", "/usr/bin/ruby", "/usr/bin/php*", "/usr/lib/*/libruby*.so.*", "/usr/lib/*/libpython3*.so.*",
        "/usr/lib/systemd/systemd", "/usr/lib/*/libvirt.so.0"]


def by_readelf(path):
    """{(provider, name, address, operands, place of the semaphore or None)} as binutils read them."""
    run = lambda *a: subprocess.run(["readelf"] + list(a) + [path], stdout=subprocess.PIPE).stdout.decode(errors="replace")
    loads = [tuple(int(x, 16) for x in m) for m in re.findall(
        r"^ +LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", run("-lW"), re.M)]
    base = re.search(r" \.stapsdt\.base +\S+ +([0-9a-f]+)", run("-SW"))

    def offset(addr):
        return [off + addr - at for off, at, size in loads if at <= addr < at + size][0]

    found = set()
    for m in re.finditer(r"Provider: (\S+)\n\s+Name: (\S+)\n\s+Location: (0x\w+), Base: (0x\w+), Semaphore: (0x\w+)\n"
                         r"\s+Arguments: ?(.*)", run("-nW")):
        at, was, sem = (int(x, 16) for x in m.group(3, 4, 5))
        by = int(base.group(1), 16) - was if base and was else 0
        found.add((m.group(1), m.group(2), at + by, m.group(6).strip(), offset(sem + by) if sem else None))
    return found


def test_foreign_list(c):
    """list of real programs and libraries: the same probes as readelf has, and nothing of them left out."""
    note, seen = [], set()
    for pattern in REAL:
        for path in sorted({os.path.realpath(p) for p in glob.glob(pattern)} - seen):
            seen.add(path)
            want = by_readelf(path)
            if not want:
                continue
            status, out, err = run_tool(["list", "--json", path],
                                        env={"MONTRACE_PROFILES": os.path.join(lib.ROOT, "profiles")})
            equal(status, 0, "list: " + err)
            rows = [json.loads(l) for l in out.splitlines()]
            probes = [r for r in rows if r["type"] == "probe" and r["provider"] != "montrace"]
            got = {(r["provider"], r["name"], int(s["addr"], 16), s["args"], s["semaphore"])
                   for r in probes for s in r["sites"]}
            equal(got, want, path)
            names = {(r["provider"], r["name"]): r for r in probes}
            for (provider, name), r in names.items():
                if r.get("end"): # who is told to be the end tells some begin
                    need(names[provider, r["end"]].get("begin"), "%s has no begin" % r["end"])
                for k in range(len(r["arguments"])):
                    equal(r["arguments"][k]["name"], "arg%d" % k, "name of an argument")
                    need(all(re.fullmatch(r"[iuf](8|16|32|64)|\?", t) for t in r["arguments"][k]["type"].split("|")),
                         "type: %r" % r["arguments"][k])
            if path.endswith("/postgres") and names.get(("postgresql", "query__parse__start")):
                equal(names["postgresql", "query__parse__start"]["profile"], "postgresql", "profile")
                equal(names["postgresql", "query__parse__start"]["end"], "query__parse__done", "pair")
            note.append("%s %d" % (os.path.basename(path), len(got)))
    if not note:
        raise Skipped("no program with probes here")
    return "sites: " + ", ".join(note)


def test_foreign_list_process(c):
    """list of a process: each mapped file that has probes or troubles with its notes; symbols that are not there are told."""
    x86_only()
    exe = changed(c, "odd", lambda e: e.set("solo", SEM, e.symbol("data") + 1))
    t = Target([exe])
    status, out, _ = run_tool(["list", "-p", str(t.pid)])
    t.end()
    equal(status, 0, "exit status")
    need(re.search(r"n:guard +1 +yes +- +\S+ +arg0:i32\n", out), out)
    equal(re.findall(r"^\S+/odd \(x86-64\): .*", out, re.M), [exe + " (x86-64): 0 callsites, 0 armed, 0 filtered; 0 probes; "
          "4 foreign probes at 4 sites, 1 of them on 5-byte nops (not armed on Linux 6.18 and newer); "
          "1 with a semaphore that cannot be raised"], "sums")
    exe = os.path.join(c.dir, "without")
    subprocess.check_call(["strip", "-s", c.targets["operands"], "-o", exe])
    out = run_tool(["list", exe])[1]
    need(re.search(r"op:global .*arg0:i32\(symbol unknown or ambiguous\)", out), out)
    need(re.search(r"op:global .*arg0:i32 ", run_tool(["list", c.targets["operands"]])[1]), "a symbol that is there")
