# SPDX-License-Identifier: BSD-3-Clause
"""Spans with a key: each one whole slice on a lane under its process, whatever overlaps it."""

import json
import os
import signal

import lib
from lib import Target, Tracer, check, dump, equal, need
from test_flight import ask, rows, status, wait_for

REQ = "k:req__start..req__done key=arg0 id=arg0 path=arg1:str end.result=arg1"
N = 1000


def order(n):
    """In which order keyed.c ends them."""
    return [(i * 7 + 3) % n + 1 for i in range(n)]


def start(c, threads, args, n=N, more=()):
    t = Target([c.targets["keyed"], str(n), str(threads)] + list(more))
    tr = Tracer(["-v", "-p", str(t.pid)] + list(args))
    t.go()
    t.read("open")
    return t, tr


def finish(t, tr):
    """The rest of the target's output and the exit of both."""
    t.go()
    out = t.read()
    equal(t.end(), 0, "exit status of the target")
    equal(tr.wait(), 0, "exit status: " + tr.text())
    return out


def slices(path, name):
    return [o for o in dump(path) if o["type"] == "slice" and o["name"] == name]


def right(found, out, n, threads):
    """All n requests of keyed.c: one slice each, their begins and ends in the right order, fields and threads."""
    by_id = {}
    for o in found:
        if o["args"]["id"] <= n:
            need(o["args"]["id"] not in by_id, "id %d twice" % o["args"]["id"])
            by_id[o["args"]["id"]] = o
    equal(sorted(by_id), list(range(1, n + 1)), "ids")
    begins = [by_id[i]["ts"] for i in range(1, n + 1)]
    equal(begins, sorted(begins), "order of the begins")
    last = max(begins)
    for k in range(threads):
        ends = [by_id[i]["ts"] + by_id[i]["dur"] for i in order(n)[k::threads]]
        equal(ends, sorted(ends), "order of the ends on thread %d" % k)
        need(ends[0] >= last, "one was ended before all had begun")
    for k in range(threads):
        for i in order(n)[k::threads]:
            want = {"id": i, "path": "/p%d" % i, "result": 3 * i, "level": "info"}
            if k:
                want.update(begin_thread=out["tid0"], end_thread=out["tid%d" % k])
            equal(by_id[i]["args"], want, "what is told of %d" % i)
    for o in by_id.values():
        need(o["tid"] is None and o["track"] == "req" and o["depth"] == 0, "not on a lane: %r" % o)


def test_keyed_overlap(c):
    """1,000 open at once, begun on one thread and ended there or by four; not one is cut."""
    for threads in (1, 4):
        for more in ([], ["--per-site"]) if threads == 4 else ([],):
            path = c.dir + "/t%d%s.pftrace" % (threads, more)
            t, tr = start(c, threads, ["-o", path, "--usdt", REQ] + more)
            out = finish(t, tr)
            found = slices(path, "req")
            right(found, out, N, threads)
            equal(len(found), N + 4, "slices in all")
            counts = check(path)
            equal((counts["lost"], counts["slices"], counts["spans"]), (0, N + 4, N + 4), "counts")
            equal(counts["lanes"], {"req": N}, "lanes: as many as were open at once, used again")


def test_keyed_unpaired(c):
    """An end of nothing, a key that begins again, spans that nobody ends: as documented, and counted everywhere."""
    path = c.dir + "/t.pftrace"
    t, tr = start(c, 1, ["-o", path, "--usdt", REQ])
    wait_for("no stray end", lambda: status(tr)["unpaired"]["stray_ends"] == 1)
    wait_for("not begun again", lambda: status(tr)["unpaired"]["begun_again"] == 1)
    need("1 stray ends, 0 lost ends, 1 begun again, 0 ended for too many open" in ask(tr, "status"), "status")
    stacks = rows(ask(tr, "stacks", "--json"))
    equal([(s["pid"], s["open"], [k["name"] for k in s["keyed"]]) for s in stacks], [(t.pid, 3, ["req"] * 3)], "stacks")
    need("keyed (%d), spans with a key, 3 open:\n" % t.pid in ask(tr, "stacks"), "stacks")
    finish(t, tr)
    need(" 1 stray exits" in tr.text() and " 1 keys begun again, 0 spans ended for too many open" in tr.text(), tr.text())
    late = {}
    for o in slices(path, "req"):
        if o["args"]["id"] > N:
            late.setdefault(o["args"]["id"] - N, []).append((o["args"]["path"], o["args"].get("end")))
    equal(late, {1: [("/p1", "begun again"), ("/p2", "process exit 0")], 2: [("/p1", "process exit 0")],
                 3: [("/p1", None)]}, "how they ended")
    _, text, _ = lib.run_tool(["summary", path])
    need("UNPAIRED\n  ends without a begin: 1\n  spans ended because their key began again: 1\n" in text, text)
    trace = json.loads(lib.run_tool(["summary", "--json", path])[1].splitlines()[0])
    equal([trace[k] for k in ("stray_ends", "lost_ends", "begun_again", "too_many_open")], [1, 0, 1, 0], "summary")


def test_keyed_two_processes(c):
    """The same keys in two processes at once, in one file; then merged with a file of a third."""
    paths = [c.dir + "/a.pftrace", c.dir + "/b.pftrace", c.dir + "/m.pftrace"]
    ts = [Target([c.targets["keyed"], "100", "2"]) for _ in range(3)]
    trs = [Tracer(["-v", "-p", str(ts[0].pid), "-p", str(ts[1].pid), "-o", paths[0], "--usdt", REQ]),
           Tracer(["-v", "-p", str(ts[2].pid), "-o", paths[1], "--usdt", REQ])]
    for t in ts:
        t.go()
    outs = []
    for t in ts:
        t.read("open")
        t.go()
        outs.append(t.read())
        t.end()
    for tr in trs:
        equal(tr.wait(), 0, "exit status: " + tr.text())
    equal(lib.run_tool(["merge", "-o", paths[2]] + paths[:2])[0], 0, "merge")
    for path, which in ((paths[0], (0, 1)), (paths[1], (2,)), (paths[2], (0, 1, 2))):
        check(path)
        for i in which:
            right([o for o in slices(path, "req") if o["pid"] == ts[i].pid], outs[i], 100, 2)
        trace = json.loads(lib.run_tool(["summary", "--json", path])[1].splitlines()[0])
        equal((trace["stray_ends"], trace["begun_again"]), (len(which), len(which)), "summary")


def test_keyed_text(c):
    """Keys that are texts, wherever the text is."""
    path = c.dir + "/t.pftrace"
    t, tr = start(c, 4, ["-o", path, "--usdt", "k:txt__start..txt__done key=arg0:str path=arg0:str id=arg1"])
    out = finish(t, tr)
    check(path)
    found = slices(path, "txt")
    equal(sorted(o["args"]["path"] for o in found), sorted("/p%d" % i for i in range(1, N + 1)), "names")
    ended = {k: {o["args"]["id"] for o in found if o["args"].get("end_thread") == out["tid%d" % k]} for k in range(1, 4)}
    equal(ended, {k: set(order(N)[k::4]) for k in range(1, 4)}, "which thread ended which")
    need(" 0 stray exits" in tr.text(), tr.text())


def test_keyed_flight(c):
    """A window that begins after most begins: those open are in the snapshot, with fields; others are not."""
    t, tr = start(c, 4, ["-F2", "--directory", c.dir, "--usdt", REQ])
    wait_for("not all seen", lambda: status(tr)["unpaired"]["begun_again"] == 1)
    path = c.dir + "/s.pftrace"
    ask(tr, "snapshot", "-o", path)
    check(path)
    got = sorted((o["args"]["id"] - N, o["args"]["path"], o["args"]["end"], o["track"]) for o in slices(path, "req"))
    # The last two events: key 1 ends because it begins again.
    equal(got, [(1, "/p1", "begun again", "req"), (1, "/p2", "detached", "req"), (2, "/p1", "detached", "req"),
                (3, "/p1", "detached", "req")], "snapshot")
    finish(t, tr)


def test_keyed_flight_all(c):
    """A window that has everything."""
    path = c.dir + "/s.pftrace"
    t, tr = start(c, 4, ["-F100000", "--directory", c.dir, "--usdt", REQ])
    t.go()
    out = t.read()
    wait_for("not all seen", lambda: status(tr)["spans"] == N + 4)
    ask(tr, "snapshot", "-o", path)
    check(path)
    right(slices(path, "req"), out, N, 4)
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())


def test_keyed_rotate(c):
    """Parts: what is open goes on in the next one, marked; all in all each is there."""
    t, tr = start(c, 2, ["--rotate", "1s", "--directory", c.dir + "/d", "--usdt", REQ], more=["0", "2500"])
    finish(t, tr)
    paths = [os.path.join(d, f) for d, _, fs in os.walk(c.dir + "/d") for f in fs if "latest" not in d]
    paths = sorted({os.path.realpath(p) for p in paths}, key=lambda p: (len(p), p))
    need(len(paths) >= 3, "parts: %r" % paths)
    begun, ended, continued = [], [], 0
    for p in paths:
        counts = check(p)
        equal(counts["lost"], 0, "lost")
        for o in slices(p, "req"):
            a = o["args"]
            continued += "continued" in a
            begun += [a["id"]] if "continued" not in a else []
            ended += [a["id"]] if a.get("end") != "continued in the next file" else []
    equal(sorted(begun), sorted(ended), "each begun is ended once")
    equal(sorted(begun), sorted(list(range(1, N + 4)) + [N + 1]), "begun")
    need(continued >= 2 * N, "%d continued" % continued)


def test_keyed_cost(c):
    """With 1,000 open a pair costs the program what a nested one does."""
    path = c.dir + "/t.pftrace"
    best = None
    for _ in range(5):
        t, tr = start(c, 1, ["-o", path, "--usdt", "k:req__start..req__done key=arg0 -",
                                "--usdt", "k:nest__start..nest__done -"], more=["16000"])
        out = finish(t, tr)
        nest, keyed = out["nest_ns"], out["keyed_ns"]
        equal(check(path)["lost"], 0, "lost")
        equal((len(slices(path, "nest")), len(slices(path, "req"))), (16000, 16000 + 2 * N + 4), "slices")
        os.unlink(path)
        best = min(best or (9, 0, 0), (keyed / nest, keyed, nest))
        if best[0] < 1.15:
            break
    need(best[0] < 1.5, "%d ns a pair with 1,000 open, nested %d" % best[1:])
    return "%d ns a pair with 1,000 open, nested ones %d" % best[1:]


def test_keyed_predicates(c):
    """Brackets; floating arguments, with values below 0, -0 and what is no number."""
    path = c.dir + "/t.pftrace"
    d = [-1e300, -2.5, -0.0, 0.0, 1.5, 2.5, 1e300]
    tests = {
        "a": ("arg1 > 1.5", lambda n, x: x > 1.5),
        "b": ("arg1 >= 1.5 && arg1 < 1e300", lambda n, x: 1.5 <= x < 1e300),
        "c": ("arg1 == 0", lambda n, x: x == 0),
        "d": ("arg1 < -2.4", lambda n, x: x < -2.4),
        "e": ("arg1 <= -0.0", lambda n, x: x <= 0),
        "f": ("arg2 > 1.5", lambda n, x: x > 1.5),
        "g": ("arg2 != 2.5", lambda n, x: x != 2.5 and x == x),
        "h": ("arg1 != 2.5", lambda n, x: x != 2.5 and x == x),
        "i": ("arg0 > 2.5", lambda n, x: n > 2.5),
        "j": ("(arg0 == 1 || arg0 == 4) && (arg1 < 0 || arg2 > 100)", lambda n, x: n == 1),
        "k": ("arg0 == 1 || arg0 == 4 && (arg1 < 0 || arg2 > 100)", lambda n, x: n == 1),
        "l": ("(arg0 == 7 || arg1 > 2) && arg0 != 6 || (arg0 < 1 && (arg1 < 0 && arg0 >= 0))",
              lambda n, x: ((n == 7 or x > 2) and n != 6) or n < 1),
        "m": ("arg0:f64 > 0", lambda n, x: n > 0),  # the bits of 1 .. 7 are small numbers above 0
    }
    t = Target([c.targets["keyed"], "8", "1"])
    args = ["-v", "-p", str(t.pid), "-o", path]
    for name, (test, _) in tests.items():
        args += ["--usdt", "k:val name=\"%s\" arg0 if %s" % (name, test)]
    tr = Tracer(args)
    t.go()
    t.read("open")
    finish(t, tr)
    check(path)
    got = {name: [] for name in tests}
    for o in dump(path):
        if o["type"] == "instant":
            got[o["name"]].append(o["args"]["arg0"])
    values = d + [float("nan")]
    for name, (test, fn) in tests.items():
        equal(got[name], [n for n, x in enumerate(values) if fn(n, x)], test)
