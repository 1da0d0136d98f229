# SPDX-License-Identifier: BSD-3-Clause
"""Programs whose probes hand out bad pointers, lengths and memory: fields say unreadable, nothing else happens."""

import os
import platform
import struct
import time

import lib
from lib import Skipped, Target, Tracer, check, dump, equal, need
from test_foreign import one, values

UN = "unreadable"
PTR = "bad:ptr s=arg1:str arg2 arg0"


def harm(c, mode, specs, *argv):
    """Rows by probe name, what the program says, seconds that the tracer took to end."""
    if platform.machine() != "x86_64":
        raise Skipped("pointers.c is for x86-64")
    path = os.path.join(c.dir, mode + ".pftrace")
    try:
        t = Target([c.targets["pointers"], mode] + list(argv))
    except lib.Failed:
        raise Skipped("%s cannot be had here" % mode)
    a = ["-v", "-p", str(t.pid), "-o", path]
    for s in specs:
        a += ["--usdt", s]
    tr = Tracer(a)
    try:
        t.go()
        truth = t.read(timeout=60)
        start = time.time()
        equal(tr.stop(), 0, "exit status: " + tr.text())
        took = time.time() - start
    finally: # before the tracer, if that waits for it
        t.p.kill()
    t.end()
    equal(check(path)["lost"], 0, "lost")
    rows = {}
    for o in dump(path):
        if o["type"] == "instant":
            rows.setdefault(o["name"], []).append(o)
    equal(sum(len(v) for k, v in rows.items() if not k.startswith("edge")), truth["hits"], "hits")
    return rows, truth, took


def reason(v):
    return v[len("<unavailable: "):-1] if isinstance(v, str) and v.startswith("<unavailable: ") else v


def test_foreign_bad_pointers(c):
    rows, truth, _ = harm(c, "pointers", [PTR, "bad:edge*"])
    want = [("(null)", UN)] + [(UN, UN)] * 14 + [("", UN), ("eee", 0x00656565), ("", 0), ("f" * 1024, 0x66666666),
                                                  ("f" * 1024, 0x66666666)]
    got = [(reason(o["args"]["s"]), reason(o["args"]["arg2"])) for o in rows["ptr"]]
    equal([o["args"]["arg0"] for o in rows["ptr"]], list(range(len(want))), "kinds")
    for k, (g, w) in enumerate(zip(got, want)):
        equal(g, w, "kind %d" % k)
    equal(truth["grown"], 0, "the target's stack was grown")
    # sizes up to the last byte of a page
    bytes_ = bytes(0x80 + i for i in range(8, 0, -1))
    for n, f in ((1, "b"), (2, "h"), (4, "i"), (8, "q")):
        last = bytes_[-n:]
        equal(one(rows, "edge%d" % n), [struct.unpack("<" + f.upper(), last)[0], struct.unpack("<" + f, last)[0], UN],
              "%d bytes at the edge" % n)
    equal(one(rows, "edgef"), [struct.unpack("<f", bytes_[-4:])[0], struct.unpack("<d", bytes_)[0], UN], "floats")


def test_foreign_bad_lengths(c):
    rows, _, _ = harm(c, "lengths", ["bad:i8|u8|i16|i32|u32|i64|u64|mem|imm arg0:str(arg1)"])
    neg, cut = "negative length", "x" * 1024
    for name, want in (("i8", [neg, neg, "x" * 127]), ("u8", ["x" * 255]), ("i16", [neg, "xxx"]), ("i32", [neg, cut]),
                       ("u32", [cut]), ("i64", [neg, cut]), ("u64", [cut]), ("mem", [UN]), ("imm", [neg])):
        got = [values(o) for o in rows[name]]
        equal([v[0] for v in got], want, name)
        for o, v in zip(rows[name], want):
            equal(bool(o["args"].get("cut")), v == cut, "cut of " + name)


def test_foreign_races(c):
    """Texts that change and memory that goes while they are read: some moment's text or unreadable; counts are exact."""
    rows, truth, _ = harm(c, "races", ["bad:race a=arg0:str b=arg1:str arg2 arg3"])
    equal([o["args"]["arg3"] for o in rows["race"]], list(range(truth["hits"])), "hits in order")
    seen = set()
    for o in rows["race"]:
        a, b, n = (reason(o["args"][k]) for k in ("a", "b", "arg2"))
        # written byte by byte by another thread: a mix of both is what was there
        need(not a.strip("ab") and len(a) <= 1024, "text that was never there: %r" % a[:80])
        need(b in ("", UN) and n in (0, UN), "memory that was never there: %r, %r" % (b, n))
        seen.update((b, n))
    return "%d hits, memory gone at some: %s" % (truth["hits"], UN in seen)


def test_foreign_nobody_serves(c):
    """Pages that a userfaultfd or a FUSE server would have to bring: not touched, so neither side waits for them."""
    note = []
    for mode, n in (("uffd", 3), ("fuse", 1)):
        try:
            rows, _, took = harm(c, mode, [PTR], os.path.join(c.dir, "mount"))
        except Skipped as e:
            note.append(str(e))
            continue
        equal([(reason(o["args"]["s"]), reason(o["args"]["arg2"])) for o in rows["ptr"]], [(UN, UN)] * n, mode)
        note.append("%s: tracer ended in %.2f s" % (mode, took))
    if len(note) == 2 and not any(":" in x for x in note):
        raise Skipped("; ".join(note))
    return "; ".join(note)
