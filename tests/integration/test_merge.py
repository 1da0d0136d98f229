# SPDX-License-Identifier: BSD-3-Clause
"""`merge`: recordings of several processes, rotation parts and hosts as one trace that the checker likes."""

import os
import time
import shutil
import signal
import sys

from lib import ROOT, Target, Tracer, check, dump, equal, need, one_error_line, run_tool

sys.path.insert(0, os.path.join(ROOT, "tests"))
from check_trace import enc, enc_flow, pkt

WALL = 1700000000 * 10**9
SEC = 10**9


def trace(c, name):
    return os.path.join(c.dir, name + ".pftrace")


def merge(*args):
    status, out, err = run_tool(["merge"] + list(args))
    equal(status, 0, "merge: " + err)
    return out + err


def summary(path):
    status, out, err = run_tool(["summary", path])
    equal(status, 0, "summary: " + err)
    return out


def record(c, name, threads=2, hits=5000, **kw):
    """One process of the count target, traced to its end. Returns the path, the pid and what it fired."""
    path = trace(c, name)
    t = Target([c.targets["count"], str(threads), str(hits)], **kw)
    tr = Tracer(["-p", str(t.pid), "-o", path])
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    return path, t.pid, truth


def hits(got):
    return got["instants"] + 2 * got["slices"]


def test_merge_processes(c):
    """Four processes, one file each: all of it is in the merged trace, and nothing else."""
    made = [record(c, "p%d" % i) for i in range(4)]
    out = os.path.join(c.dir, "merged")
    text = merge(c.dir, "-o", out)
    need("4 files, 1 host" in text, text)
    got = check(out)
    equal(hits(got), sum(t["hits"] for _, _, t in made), "hits")
    equal(got["processes"], 4, "processes")
    equal(got["machines"], 0, "machines")
    whole = summary(out)
    for path, pid, _ in made:
        one = check(path)
        need("process %d " % pid in whole, "process %d is not in %s" % (pid, whole))
        rows = [o for o in dump(out) if o.get("pid") == pid]
        equal(sum(o["type"] == "slice" for o in rows), one["slices"], "slices of one process")
        equal(sum(o["type"] == "instant" for o in rows), one["instants"], "instants of one process")
    status, _, err = run_tool(["merge", c.dir, "-o", out])
    need(status != 0, "an existing file was written over")
    one_error_line(err, out)
    equal(hits(check(out)), hits(got), "hits after the refusal")


def test_merge_compressed(c):
    """Compressed in, compressed out: the same events."""
    path = trace(c, "t")
    t = Target([c.targets["count"], "2", "20000"])
    tr = Tracer(["-p", str(t.pid), "--compress", "-o", path])
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    plain, packed = os.path.join(c.dir, "plain"), os.path.join(c.dir, "packed")
    merge(path, "-o", plain)
    merge(path, "--compress", "-o", packed)
    equal(hits(check(plain)), truth["hits"], "hits")
    equal(hits(check(packed)), truth["hits"], "hits, compressed")
    need(os.path.getsize(packed) * 2 < os.path.getsize(plain), "was not compressed")


def test_merge_of_one_process(c):
    """One process traced three times, one after the other: one process and its threads, not three."""
    t = Target([c.targets["count"], "2", "1000", "spin"])
    t.go()
    total = 0
    for i in range(3):
        path = trace(c, "part%d" % (2 - i))  # not in the order of names
        tr = Tracer(["-p", str(t.pid), "-o", path, "-d", "40ms"])
        equal(tr.wait(), 0, "exit status")
        total += hits(check(path))
    out = os.path.join(c.dir, "merged")
    merge(c.dir, "-o", out)
    got = check(out)
    equal(hits(got), total, "hits")
    equal(got["processes"], 1, "processes")
    t.go()
    t.read()
    t.end()


def test_merge_two_tracers(c):
    """One process traced twice at the same time: each recording on tracks of its own."""
    paths = [trace(c, "a"), trace(c, "b")]
    t = Target([c.targets["count"], "2", "5000"])
    trs = [Tracer(["-p", str(t.pid), "-o", p]) for p in paths]
    t.go()
    truth = t.read()
    t.end()
    for tr in trs:
        equal(tr.wait(), 0, "exit status")
    out = os.path.join(c.dir, "merged")
    merge(c.dir, "-o", out)
    equal(hits(check(out)), 2 * truth["hits"], "hits")


def test_merge_after_kill(c):
    """The tracer was killed: its torn file merges with a good one."""
    good, _, truth = record(c, "good")
    torn = trace(c, "torn")
    t = Target([c.targets["count"], "2", "1000", "spin"])
    tr = Tracer(["-p", str(t.pid), "-o", torn])
    t.go()
    while not os.path.exists(torn) or os.path.getsize(torn) < 300000:
        pass
    tr.stop(signal.SIGKILL)
    t.go()
    t.read()
    t.end()
    with open(torn, "r+b") as f:  # torn for sure
        f.truncate(os.path.getsize(torn) - 3)
    before = check(torn, "--allow-truncated", "--allow-open")
    out = os.path.join(c.dir, "merged")
    text = merge(c.dir, "-o", out)
    need("torn.pftrace" in text and "torn" in text.split("torn.pftrace", 1)[1], text)
    got = check(out, "--allow-open")
    equal(hits(got), hits(before) + truth["hits"], "hits")


def test_merge_rotated(c):
    """Parts of a recording that was rotated: as if it had not been."""
    base = os.path.join(c.dir, "base")
    t = Target([c.targets["count"], "1", "1000", "spin"])
    tr = Tracer(["-p", str(t.pid), "--directory", base, "--execution-id", "run", "--rotate", "64K"])
    t.go()
    time.sleep(0.3)  # files are looked at on each tick, every 50 ms
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    parts = os.listdir(os.path.join(base, "executions", "run"))
    need(len(parts) > 1, "was not rotated: %r" % parts)
    out = os.path.join(c.dir, "merged")
    text = merge(os.path.join(base, "executions", "run"), "-o", out)
    need("%d files, 1 host" % len(parts) in text, text)
    got = check(out)
    equal(got["instants"] + 2 * got["spans"], truth["hits"], "hits")
    equal(got["processes"], 1, "processes")
    equal(got["threads"], len(set(o["tid"] for o in dump(out) if o["type"] == "slice")), "threads")
    return "%d parts" % len(parts)


def host_file(path, boot_id, host, boot, booted, name):
    """A trace as the writer lays it out, of a host that was booted at WALL + booted. Slices of 1 ms each second."""
    d = pkt((8, boot), (10, 1), (13, 1), (6, enc((1, enc((1, 6), (2, boot))), (1, enc((1, 3), (2, boot - 9))),
                                                 (1, enc((1, 1), (2, WALL + booted + boot))), (2, 6))))
    d += pkt((10, 1), (89, enc((1, boot), (2, booted))))
    d += pkt((10, 1), (126, enc((1, enc((1, "montrace-bpf.boot_id"), (3, boot_id))),
                                (1, enc((1, "montrace-bpf.host"), (3, host))))))
    d += pkt((8, boot - 5), (10, 1), (60, enc((1, 70), (3, enc((1, 7), (6, name), (7, boot - 5))))))
    d += pkt((8, boot - 5), (10, 1), (2, enc((1, enc((1, 7), (2, 1), (3, name), (7, boot - 5))))))
    d += pkt((8, boot - 5), (10, 1), (60, enc((1, 71), (5, 70), (4, enc((1, 7), (2, 7), (5, "main"))))))
    d += pkt((10, 2), (13, 1), (6, enc((1, enc((1, 64), (2, boot), (3, 1))), (1, enc((1, 6), (2, boot))))),
             (59, enc((58, 64), (11, enc((11, 71))))), (12, enc((2, enc((1, 1), (2, "work"))))))
    for _ in range(5):
        d += pkt((8, SEC - 10**6), (10, 2), (13, 2), (11, enc((9, 1), (10, 1)) + enc_flow(47, 99)))
        d += pkt((8, 10**6), (10, 2), (13, 2), (11, enc((9, 2), (10, 1))))
    d += pkt((10, 1), (35, enc((15, 1))))
    with open(path, "wb") as f:
        f.write(d)


def test_merge_hosts(c):
    """Three hosts with equal pids and uuids: apart from each other, on one clock."""
    hosts = [("ada", 100 * SEC, 50 * SEC), ("bob", 40 * SEC, 110 * SEC), ("cyd", 150 * SEC, 0)]
    for i, (host, boot, booted) in enumerate(hosts):
        host_file(trace(c, host), "id-%d" % i, host, boot, booted, "prog")
    out = os.path.join(c.dir, "merged")
    text = merge(c.dir, "-o", out)
    need("3 files, 3 hosts" in text, text)
    got = check(out)
    equal(got["machines"], 3, "machines")
    equal(got["processes"], 3, "processes")
    equal(got["slices"], 15, "slices")
    rows = [o for o in dump(out) if o["type"] == "slice"]
    equal(sorted(set(o["process"] for o in rows)), ["prog @ " + h for h, _, _ in hosts], "processes")
    for o in rows:
        equal(o["ts"] % SEC, SEC - 10**6, "time in its second")
        need(150 * SEC < o["ts"] < 156 * SEC, "%d is not on the clock of the first host" % o["ts"])
    equal(len(set((o["process"], f) for o in rows for f in o["flows"])), 3, "flows")
    equal(len(set(f for o in rows for f in o["flows"])), 3, "flows of one host in another")
    need("start 2023-11-14" in summary(out), "wall clock")


def test_merge_odd_inputs(c):
    """Named twice, linked, not a trace, missing, nothing."""
    path, _, truth = record(c, "a", hits=100)
    shutil.copy(path, trace(c, "copy"))
    os.link(path, trace(c, "link"))
    os.symlink(path, trace(c, "sym"))
    with open(trace(c, "text"), "w") as f:
        f.write("not a trace\n")
    out = os.path.join(c.dir, "merged")
    text = merge(c.dir, path, path, "-o", out)
    need("1 file" in text, text)
    equal(hits(check(out)), truth["hits"], "hits")
    for args, word in ((["/no/such/file"], "/no/such/file"), ([trace(c, "text")], "no trace"),
                       (["/dev/null"], "regular")):
        status, _, err = run_tool(["merge"] + args + ["-o", os.path.join(c.dir, "x")])
        need(status != 0, "%r was merged" % args)
        need(word in err, err)
        need(not os.path.exists(os.path.join(c.dir, "x")), "output left behind")


def test_merge_execution(c):
    """All files of an execution directory, as the tracer laid them out."""
    base = os.path.join(c.dir, "base")
    pids, truth = [], 0
    ts = [Target([c.targets["count"], "1", "500"]) for _ in range(3)]
    args = []
    for t in ts:
        args += ["-p", str(t.pid)]
    tr = Tracer(args + ["--directory", base, "--execution-id", "run"])
    for t in ts:
        t.go()
    for t in ts:
        truth += t.read()["hits"]
        pids.append(t.pid)
        t.end()
    equal(tr.wait(), 0, "exit status")
    out = os.path.join(c.dir, "merged")
    merge(os.path.join(base, "executions", "run"), "-o", out)
    got = check(out)
    equal(hits(got), truth, "hits")
    equal(got["processes"], 3, "processes")
