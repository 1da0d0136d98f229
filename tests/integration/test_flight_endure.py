# SPDX-License-Identifier: BSD-3-Clause
"""The flight recorder in the long run: deaths, snapshots under load, conditions, memory, failures of the disk."""

import os
import re
import signal
import statistics
import struct
import subprocess
import time

import lib
from lib import Target, Tracer, check, dump, equal, need
from test_flight import (HOW, ask, hidden, instants, memory, recorder, rows, snapshots, status, tracer, wait_for, wait_snap,
                         wait_snapshots)


class Endure(Target):
    """targets/endure.c, and what it says it did."""

    def __init__(self, c, threads):
        self.path = os.path.join(c.dir, "truth-%d" % time.monotonic_ns())
        self.threads = threads
        super().__init__([c.targets["endure"], self.path, str(threads)])

    def say(self, text):
        self.p.stdin.write(text.encode() + b"\n")
        self.p.stdin.flush()

    def truth(self):
        """For each thread (events surely fired, hits surely fired)."""
        data = open(self.path, "rb").read()
        return [struct.unpack_from("QQ", data, 16 * i) for i in range(self.threads)]

    def events(self):
        return sum(e for e, _ in self.truth())


def by_thread(objects):
    """Number of the worker -> its objects, by time. Workers are known by `outer`, which each has all the time."""
    no = {o["tid"]: o["args"]["no"] for o in objects if o["type"] == "slice" and o["name"] == "outer"}
    rows = {k: [] for k in no.values()}
    for o in objects:
        if o.get("tid") in no:
            rows[no[o["tid"]]].append(o)
    return rows


def accounted(objects, threads):
    """Each tick is there, or said to be lost where it is missing. Returns (last tick of each thread, hits lost)."""
    rows = by_thread(objects)
    equal(sorted(rows), list(range(threads)), "threads with `outer` open")
    last, lost = [], 0
    for no in range(threads):
        at, gap = None, 0
        for o in sorted((o for o in rows[no] if o["type"] in ("instant", "loss")), key=lambda o: o["ts"]):
            if o["type"] == "loss":
                gap += o["count"]
                lost += o["count"]
            elif o["name"] == "tick":
                i = o["args"]["i"]
                if at is not None:
                    missing = i - at - 1
                    need(missing >= 0, "thread %d: tick %d after %d" % (no, i, at))
                    # A turn has 5 hits: between two ticks that follow each other 4 others.
                    need(missing <= gap <= 5 * missing + 4,
                         "thread %d: %d ticks missing before %d, %d hits said to be lost" % (no, missing, i, gap))
                at, gap = i, 0
        last.append(at)
    return last, lost


def test_flight_death_truth(c):
    """Killed under full load: the window ends with the last event before the death, and what was open is in it."""
    runs = 50 if c.long else 8
    worst, reached = 0, 0
    kinds = sorted(HOW)
    for run in range(runs):
        how = kinds[run % len(kinds)]
        t = Endure(c, 4)
        tr = tracer(c, t.pid, "--ring", "32M")
        t.go()
        time.sleep(0.25 + 0.013 * (run % 7))
        equal(snapshots(c), [], "snapshots before")
        if how == "kill":
            t.p.kill()
        else:
            t.say(how)
        t.p.wait(20)
        died = time.time()
        path = wait_snapshots(c, 1, 10)[0]
        took = time.time() - died
        worst = max(worst, took)
        equal(tr.wait(), 0, "exit status: " + tr.text())
        need(took < 1, "%s, run %d: snapshot after %.2f s" % (how, run, took))
        check(path)
        need(" 20000 events of" in tr.text(), "the window was not full: " + tr.text())
        objects = dump(path)
        last, lost = accounted(objects, 4)
        for no, (fired, _) in enumerate(t.truth()):
            # The one after the last known one may have been fired, too, and its number not be told any more.
            need(last[no] is None or fired - 1 <= last[no] <= fired,
                 "%s, run %d, thread %d: last tick %r, %d surely fired" % (how, run, no, last[no], fired))
            if last[no] is None:  # it got no processor for so long; then what it is in was open before the window
                now = [o["args"]["i"] for o in by_thread(objects)[no] if o["name"] == "request"]
                need(now in ([], [fired - 1], [fired]), "thread %d: in request %r, %d fired" % (no, now, fired))
        need(any(l is not None for l in last), "no thread has an event")
        reached += 1
        open_ = {}
        for o in objects:
            end = o["args"].get("end") if o["type"] == "slice" else None
            if end:
                need(HOW[how].split()[-1] in end, "%s: %s ends with %r" % (how, o["name"], end))
                open_.setdefault(o["tid"], []).append(o["name"])
        equal(sorted(open_), sorted({o["tid"] for o in objects if o["type"] == "slice"}), "threads with something open")
        report = open(wait_report(path)).read()
        for tid, names in open_.items():
            lines = re.search(r"  thread %d worker \d with a long name\n((?:    .*\n)+)" % tid, report)
            need(lines, "thread %d is not in the report: %s" % (tid, report))
            equal([l.split()[0] for l in lines.group(1).splitlines()], names[::-1], "stack of thread %d" % tid)
        need(re.match(r"process %d endure (was )?%s( \(.*\))?(, core dumped)? at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\n"
                      "open, innermost first:\n" % (t.pid, HOW[how]), report), report)
        need(report.endswith("\nsnapshot: %s\n" % path), report)
        os.unlink(path)
        os.unlink(path[:-8] + ".crash.txt")
        t.end()
    return "%d of %d runs, slowest %.0f ms" % (reached, runs, worst * 1000)


def wait_report(path):
    report = path[:-8] + ".crash.txt"
    wait_for("no report", lambda: os.path.exists(report), 1)
    return report


def test_flight_many_snapshots(c):
    """Snapshots in a row under full load of 8 threads: each is good and accounts for all, and nobody waits for it."""
    n, pause, window = (100, 0.4, 200000) if c.long else (4, 0.3, 40000)
    t = Endure(c, 8)
    tr = tracer(c, t.pid, window="10s,%d,64M" % window)
    start = time.time()
    t.go()
    wait_for("the window does not fill", lambda: status(tr)["window"]["evicted"] > 0, 60)

    def rate(seconds):
        at, e = time.monotonic(), t.events()
        time.sleep(seconds)
        return (t.events() - e) / (time.monotonic() - at)

    ratios, delivered = [], 0
    for i in range(n):
        before = rate(pause)
        tr.p.send_signal(signal.SIGUSR2)
        with_it = rate(pause)
        ratios.append(with_it / ((before + rate(pause)) / 2))
        wait_snapshots(c, i + 1, 60)
        now = status(tr)["events"]
        need(now > delivered, "recording does not go on")
        delivered = now
    t.say("stop")
    truth = t.read()
    st = status(tr)
    # Besides what it counts: `outer` and the counter, and names, which are told again each second.
    names = 100 + 20 * (time.time() - start)
    need(truth["hits"] <= st["events"] + st["lost"] <= truth["hits"] + names, "hits %r, status %r" % (truth, st))
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    paths = snapshots(c)
    equal(len(paths), n, "snapshots")
    reached, lost = [-1] * 8, 0
    for path in paths:
        got = check(path)
        need(2 * got["slices"] + got["instants"] >= window, "not the whole window: %r" % got)
        objects = dump(path)
        last, gone = accounted(objects, 8)
        lost += gone
        need(all(b is None or b > a for a, b in zip(reached, last)) and any(last), "from %r to %r" % (reached, last))
        reached = [a if b is None else b for a, b in zip(reached, last)]
        os.unlink(path)
    ratio = statistics.median(ratios)
    need(ratio > (0.85 if c.long else 0.5), "the program is slowed down: %.2f" % ratio)
    return "%d snapshots, rate with one / without %.3f, %d hits lost in all, %d in the windows" % (
        n, ratio, st["lost"], lost)


def steps(c, *args):
    t = recorder(c, "steps", "x")
    tr = tracer(c, t.pid, "--after", "0", "--cooldown", "0", *args)
    t.go()

    def do(text):
        t.p.stdin.write(text.encode() + b"\n")
        t.p.stdin.flush()
        t.read()

    return t, tr, do


def met(tr):
    return status(tr)["snapshots"]["triggers_met"]


def test_flight_trigger_forms(c):
    """Each form of a condition is met by what it says and nothing else."""
    todo = ["reply 200", "fail", "reply 404", "begin", "end", "reply 500", "reply -1", "fail"]
    for i, (condition, want) in enumerate((
            ("event level >= error", ["fail", "fail"]),
            ("event level = info", ["reply 200", "reply 404", "reply 500", "reply -1"]),
            ("event reply", ["reply 200", "reply 404", "reply 500", "reply -1"]),
            ("event rep* code >= 404", ["reply 404", "reply 500"]),
            ("event reply code < 0", ["reply -1"]),
            ("event reply code ~ ?0?", ["reply 200", "reply 404", "reply 500"]),
            ("event * nothing = 1", []),
            ("span hang >= 3600s", []),
            ("lost > 0", []))):
        t, tr, do = steps(c, "--trigger", condition)
        done = []
        for text in todo:
            was = met(tr)
            do(text)
            # The question is answered when all hits up to it were told.
            for _ in range(met(tr) - was):
                done.append(text)
        equal(done, want, condition)
        wait_for("not all written", lambda: status(tr)["snapshots"]["written"] == len(want))
        for path in snapshots(c):
            check(path)
            need([o for o in instants(path) if "trigger: " + condition in o["name"]], "no mark in " + path)
        equal(len(snapshots(c)), len(want), condition)
        need(status(tr)["events"] >= len(todo), "recording has ended")
        t.end()
        equal(tr.wait(), 0, "exit status: " + tr.text())
        lib.remove(os.path.join(c.dir, "executions"))


def test_flight_trigger_lost(c):
    """A ring too small loses hits: the condition is met, the loss is in the file, and what may be over is marked."""
    t = Endure(c, 2)
    tr = tracer(c, t.pid, "--ring", "4K", "--trigger", "lost > 100", "--after", "100ms")
    t.go()
    path = wait_snapshots(c, 1, 20)[0]
    got = check(path)
    need(got["lost"] > 100, "%r" % got)
    need(accounted(dump(path), 2)[1] > 100, "no loss has a place")
    need([o for o in instants(path) if "trigger: lost > 100" in o["name"]], "no mark")
    doubt = "hits were lost: it may have ended before"
    outer = {o["args"]["no"]: o["args"] for o in dump(path) if o["type"] == "slice" and o["name"] == "outer"}
    equal([a["end"] for a in outer.values()], ["detached"] * 2, "ends of `outer`")
    lossy = {no for no, objects in by_thread(dump(path)).items() if any(o["type"] == "loss" for o in objects)}
    doubted = {no for no, a in outer.items() if a.get("doubt") == doubt}
    need(lossy and lossy <= doubted, "lost in the window: %r, in doubt: %r" % (lossy, doubted))  # or before the window
    frames = [f for r in rows(ask(tr, "stacks", "--json")) for f in r["stack"] if f["name"] == "outer"]
    need(len(doubted) <= len([f for f in frames if f.get("in_doubt")]) <= 2, "`outer` in the stacks: %r" % frames)
    said = "(hits were lost since: it may be over)"
    marked = re.compile(r"^ +outer  .*%s$" % re.escape(said), re.M)
    need(len(doubted) <= len(marked.findall(ask(tr, "stacks"))) <= 2, "`outer` as text")
    t.p.kill()
    t.p.wait(20)
    equal(tr.wait(), 0, "exit status: " + tr.text())
    report = open(wait_report(wait_snapshots(c, 2)[1])).read()
    need(len(doubted) <= len(marked.findall(report)) <= 2, "`outer` in " + report)


def test_flight_trigger_hang(c):
    """A span that does not end meets its condition while it is open, and not again when it ends."""
    t, tr, do = steps(c, "--trigger", "span hang > 400ms")
    for k in range(3):  # in time
        do("begin")
        do("end")
    equal(met(tr), 0, "met by spans that ended in time")
    for k in range(2):
        at = time.time()
        do("begin")
        path = wait_snapshots(c, k + 1)[k]
        took = time.time() - at
        need(0.35 < took < 2, "after %.3f s" % took)
        equal(met(tr), k + 1, "conditions met")
        check(path)
        hang = [o for o in dump(path) if o["type"] == "slice" and o["name"] == "hang"]
        equal([o["args"].get("end") for o in hang], [None] * (3 + k) + ["detached"], "ends of `hang`")
        need(hang[-1]["dur"] > 400e6, "open for %r" % hang[-1]["dur"])
        mark = [o["name"] for o in instants(path) if "trigger: span hang" in o["name"]]
        need(re.search(r"hang is open for \d+\.\d+ ms on thread %d recorder" % t.pid, mark[0]), "%r" % mark)
        time.sleep(0.3)
        do("end")
        time.sleep(0.2)
        equal(met(tr), k + 1, "met again by its end")
    equal(len(snapshots(c)), 2, "snapshots")
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())


def test_flight_keeps_names(c):
    """What was told once, long before the window: names, open spans with fields, a counter's value."""
    t = Endure(c, 2)
    tr = tracer(c, t.pid, window="2000")
    t.go()
    wait_for("the window does not pass", lambda: status(tr)["window"]["evicted"] > (2000000 if c.long else 50000), 120)
    path = wait_snap(c, tr)
    check(path)
    objects = dump(path)
    equal({o["thread"] for o in objects if o.get("tid")}, {"worker %d with a long name" % i for i in range(2)}, "threads")
    equal({o["process"] for o in objects if o.get("pid")}, {"endure"}, "process")
    outer = [o for o in objects if o["type"] == "slice" and o["name"] == "outer"]
    equal(sorted(o["args"]["no"] for o in outer), [0, 1], "fields of `outer`")
    first = min(o["ts"] for o in objects if o["type"] == "instant" and o["name"] == "tick")
    counters = [o for o in objects if o["type"] == "counter"]
    equal([o["name"] for o in counters], ["once"], "counters")
    need(counters[0]["value"] in (40, 41) and counters[0]["ts"] < first, "%r" % counters)
    need(all(o["ts"] < first for o in outer), "`outer` was open before")
    t.say("stop")
    t.read()
    t.end()
    tr.wait()


def cpu_ns(pid):
    return int(open("/proc/%d/schedstat" % pid).read().split()[0])


def test_flight_memory(c):
    """Memory stays below the stated window and 32 MiB, small and large, when it is full many times over."""
    notes = []
    for window, mib, seconds in (("64M", 64, 600 if c.long else 6), ("16M", 16, 60 if c.long else 3),
                                 ("60s,100000000,256M", 256, 120 if c.long else 3)):
        t = Endure(c, 4)
        tr = tracer(c, t.pid, window=window)
        t.go()
        top, seen, end = 0, [], time.time() + seconds
        while time.time() < end:
            top = max(top, memory(tr.p.pid)["VmRSS"])
            seen.append(top)
            if len(seen) % 30 == 29:
                wait_snap(c, tr)
                os.unlink(os.path.join(c.dir, "snap.pftrace"))
            time.sleep(1 if c.long else 0.2)
        st = status(tr)
        if c.long:
            need(st["window"]["evicted"] > 100000, "the window did not fill: %r" % st)
        need(top <= mib + 32, "%s: %.1f MiB" % (window, top))
        need(st["window"]["bytes"] <= mib << 20, "%r" % st["window"])
        need(top <= (st["window"]["memory"] + 2 * st["ring_bytes"] >> 20) + 8, "more than it says, %.1f MiB: %r" % (top, st))
        notes.append("%d MiB: %.1f MiB, %.0f events/s, %d lost" % (mib, top, st["events"] / seconds, st["lost"]))
        t.say("stop")
        t.read()
        t.end()
        tr.wait()
    return "; ".join(notes)


def test_flight_cpu(c):
    """What an event costs the tracer is about the same as when it writes a file."""
    cost = {"file": [], "window": []}
    rounds = 10 if c.long else 2
    t = Endure(c, 2)
    t.go()
    for i in range(rounds):
        for kind in (("file", "window"), ("window", "file"))[i % 2]:
            path = os.path.join(c.dir, "t.pftrace")
            args = ["-o", path] if kind == "file" else ["-F16M", "--directory", c.dir]
            tr = Tracer(args + ["-m", "dev", "--naming", "plain", "--ring", "16M", "-p", str(t.pid)])
            wait_for("nothing comes", lambda: status(tr)["events"] > 800000, 60)  # the window is full
            st, cpu = status(tr), cpu_ns(tr.p.pid)
            time.sleep(4 if c.long else 1)
            now, used = status(tr), cpu_ns(tr.p.pid) - cpu
            cost[kind].append(used / (now["events"] - st["events"]))
            equal(tr.stop(), 0, "exit status: " + tr.text())
            if kind == "file":
                os.unlink(path)
    t.say("stop")
    t.read()
    t.end()
    file, window = (statistics.median(cost[k]) for k in ("file", "window"))
    need(window < file * (1.2 if c.long else 1.6), "%.1f ns an event, %.1f into a file" % (window, file))
    return "%.1f ns an event, %.1f into a file: %.2f" % (window, file, window / file)


def mounted(path, *options):
    os.makedirs(path, exist_ok=True)
    p = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(("mode=0755",) + options), "none", path],
                       stderr=subprocess.PIPE)
    if p.returncode:
        raise lib.Skipped("no tmpfs: " + p.stderr.decode()[:100])


def test_flight_snapshot_fails(c):
    """Full disk, read-only disk, a name in use: one line each, counted, nothing left over, and recording goes on."""
    place = os.path.join(c.dir, "small")
    mounted(place, "size=256k")
    try:
        t = Endure(c, 2)
        tr = Tracer(["-F20000", "--directory", place, "-m", "dev", "--naming", "plain", "-p", str(t.pid)])
        t.go()
        wait_for("the window does not fill", lambda: status(tr)["window"]["evicted"] > 0, 60)

        def fails(n, words):
            was = status(tr)["events"]
            tr.p.send_signal(signal.SIGUSR2)
            wait_for("it did not fail: " + tr.text(), lambda: status(tr)["snapshots"]["failed"] == n, 20)
            lines = [l for l in tr.text().splitlines() if "no snapshot" in l]
            equal(len(lines), n, "lines on failures")
            for w in words:
                need(w in lines[-1], "%r is not in %r" % (w, lines[-1]))
            wait_for("recording has ended", lambda: status(tr)["events"] > was)
            need("No space" in ask(tr, "snapshot", want=1) or "Read-only" in ask(tr, "snapshot", want=1), "answer")

        fails(1, ("SIGUSR2", place, "No space left on device"))
        equal([f for _, _, files in os.walk(place) for f in files], [], "left over")
        subprocess.check_call(["mount", "-o", "remount,size=64m", place])
        subprocess.check_call(["mount", "-o", "remount,ro", place])
        failed = status(tr)["snapshots"]["failed"]
        tr.p.send_signal(signal.SIGUSR2)
        wait_for("it did not fail", lambda: status(tr)["snapshots"]["failed"] == failed + 1, 20)
        line = [l for l in tr.text().splitlines() if "no snapshot" in l][-1]
        need("Read-only" in line and "SIGUSR2" in line, line)
        subprocess.check_call(["mount", "-o", "remount,rw", place])
        number = status(tr)["snapshots"]["failed"]
        where = os.path.join(place, "executions", [d for d in os.listdir(os.path.join(place, "executions"))
                                                   if d != "latest"][0])
        for k in range(1, 12):  # whatever its number is
            open(os.path.join(where, "endure.snapshot-%03d.pftrace" % k), "w").write("mine %d" % k)
        answer = ask(tr, "snapshot").split(": ")[0]
        need(re.search(r"endure\.snapshot-0\d\d-2\.pftrace$", answer), answer)
        check(answer)
        for k in range(1, 12):
            equal(open(os.path.join(where, "endure.snapshot-%03d.pftrace" % k)).read(), "mine %d" % k, "overwritten")
        equal(status(tr)["snapshots"]["failed"], number, "failures")
        equal([f for _, _, files in os.walk(place) for f in files if f.startswith(".")], [], "left over")
        t.say("stop")
        t.read()
        t.end()
        equal(tr.wait(), 0, "exit status: " + tr.text())
    finally:
        subprocess.call(["umount", "-l", place])


def test_flight_writer_is_alone(c):
    """Who writes a snapshot holds nothing of the tracing, and a tracer that is killed takes it along."""
    t = Endure(c, 2)
    tr = tracer(c, t.pid, window="60s,100000000,64M")
    t.go()
    wait_for("the window does not fill", lambda: status(tr)["window"]["bytes"] > 20 << 20, 60)
    tr.p.send_signal(signal.SIGUSR2)
    child = "/proc/%d/task/%d/children" % (tr.p.pid, tr.p.pid)
    wait_for("nobody writes", lambda: open(child).read().split(), 10)
    pid = int(open(child).read().split()[0])
    # It closes them right after its birth: it may be seen before.
    until = time.time() + 1
    while True:
        try:
            fds = [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid) if int(fd) > 2]
        except FileNotFoundError:  # one that was closed between the list and the look
            fds = ["?"] * 2
        if len(fds) <= 1 or time.time() > until:
            break
        time.sleep(0.001)
    need(len(fds) == 1 and "/.montrace-" in fds[0], "descriptors of the writer: %r" % fds)
    tr.p.kill()
    tr.p.wait()
    wait_for("the writer goes on", lambda: not os.path.exists("/proc/%d/fd" % pid) or not os.listdir("/proc/%d/fd" % pid),
             5)
    equal(snapshots(c), [], "snapshots")
    t.say("stop")
    t.read()
    equal(t.end(), 0, "exit status of the target")


def test_flight_waits_its_turn(c):
    """Requests, a signal and a death while a snapshot is written: all are served, one after the other."""
    t = Endure(c, 2)
    tr = tracer(c, t.pid, window="60s,150000,32M")
    t.go()
    wait_for("the window does not fill", lambda: status(tr)["window"]["events"] > 100000, 60)
    asked = [subprocess.Popen([lib.TOOL, "snapshot", "--tracer", str(tr.p.pid)], stdout=subprocess.PIPE)
             for _ in range(3)]
    gone = subprocess.Popen([lib.TOOL, "snapshot", "--tracer", str(tr.p.pid)], stdout=subprocess.DEVNULL)
    tr.p.send_signal(signal.SIGUSR2)
    wait_for("nobody asked", lambda: status(tr)["snapshots"]["written"] > 0, 60)
    gone.kill()
    gone.wait()
    t.p.kill()
    paths = set()
    for p in asked:
        out = p.communicate(timeout=60)[0].decode()
        equal(p.returncode, 0, "a request: " + out)
        paths.add(out.split(": ")[0])
    equal(tr.wait(), 0, "exit status: " + tr.text())
    t.end()
    equal(len(paths), 3, "answers")
    need(len(snapshots(c)) >= 5, "%r" % snapshots(c))
    need("killed by signal 9" in tr.text(), tr.text())
    for path in snapshots(c):
        check(path)
    equal(hidden(c), [], "left over")
