# SPDX-License-Identifier: BSD-3-Clause
"""The flight recorder: windows and snapshots, deaths, triggers, recordings, and questions to a running tracer."""

import glob
import json
import os
import random
import signal
import socket
import subprocess
import time

import lib
from lib import Target, Tracer, check, dump, equal, need, run_tool

HOW = {"kill": "killed by signal 9", "segv": "killed by signal 11", "abort": "killed by signal 6",
       "exit3": "ended with status 3"}


def tracer(c, pid, *args, **kw):
    window = "-F%s" % kw.pop("window", "20000")
    return Tracer([window, "--directory", c.dir, "-m", "dev", "--naming", "plain", "-p", str(pid)] + list(args), **kw)


def snapshots(c):
    """Paths by number."""
    found = glob.glob(os.path.join(c.dir, "executions", "*", "*.snapshot-*.pftrace"))
    return sorted((f for f in found if "/latest/" not in f),
                  key=lambda f: int(f.rsplit("snapshot-", 1)[1].split(".")[0]))


def hidden(c):
    return [f for _, _, files in os.walk(c.dir) for f in files if f.startswith(".")]


def wait_for(what, fn, seconds=5):
    end = time.time() + seconds
    while not fn():
        need(time.time() < end, what)
        time.sleep(0.005)


def wait_snapshots(c, n, seconds=5):
    wait_for("no snapshot %d: %r" % (n, snapshots(c)), lambda: len(snapshots(c)) >= n, seconds)
    return snapshots(c)


def ask(tr, *args, want=0):
    status, out, err = run_tool(list(args) + ["--tracer", str(tr.p.pid)], timeout=20)
    equal(status, want, "%r: %s" % (args, err))
    return err if want else out


def rows(text):
    return [json.loads(l) for l in text.splitlines()]


def status(tr):
    return rows(ask(tr, "status", "--json"))[0]


def recorder(c, *args):
    return Target([c.targets["recorder"]] + list(args))


def instants(path):
    return [o for o in dump(path) if o["type"] == "instant"]


def test_flight_snapshot_sigusr2(c):
    """Nothing is written before; hits go on; each snapshot is a good trace with what came just before."""
    t = recorder(c, "load", "spin")
    tr = tracer(c, t.pid)
    t.go()
    time.sleep(0.3)
    equal(snapshots(c), [], "files before the first snapshot")
    n = 20 if c.long else 3
    for i in range(n):
        asked = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        tr.p.send_signal(signal.SIGUSR2)
        path = wait_snapshots(c, i + 1, 10)[i]
        got = check(path)
        need(got["slices"] > 5000 and got["names"].get("request"), "hardly anything: %r" % got)
        last = max(o["ts"] for o in instants(path) if o["name"] == "tick")
        need(abs(last - asked) < 1e9, "the last event is %.3f s away" % ((last - asked) / 1e9))
        need([o for o in instants(path) if o["name"] == "SIGUSR2"], "no mark")
    t.go()
    truth = t.read()
    st = status(tr)
    need(st["events"] >= truth["hits"] - st["lost"], "hits %r, status %r" % (truth, st))
    equal(t.end(), 0, "exit status of the target")
    equal(tr.wait(), 0, "exit status: " + tr.text())
    equal(len(snapshots(c)), n, "snapshots: the end of the target was no failure")
    equal(hidden(c), [], "left over")
    need("%d snapshots" % n in tr.text(), tr.text())


def test_flight_death(c):
    """Killed in every way under full load: the last events and the open stacks are on disk within a second."""
    lib.not_sanitized()
    runs = 50 if c.long else 5
    worst = 0
    for how, words in HOW.items():
        for i in range(runs):
            t = recorder(c, "load", how)
            tr = tracer(c, t.pid)
            t.go()
            time.sleep(0.2)
            equal(snapshots(c), [], "snapshots before")
            t.go()
            t.p.wait(10)
            died = time.time()
            try:
                path = wait_snapshots(c, 1, 10)[0]
            except lib.Failed as e:
                raise lib.Failed("%s, run %d, %s: %s" % (e, i, how, tr.text()))
            took = time.time() - died
            worst = max(worst, took)
            equal(tr.wait(), 0, "exit status: " + tr.text())
            t.end()
            need(took < 1, "%s: snapshot after %.2f s" % (how, took))
            check(path)
            objects = dump(path)
            names = [o["name"] for o in objects if o["type"] == "instant"]
            need("last words" in names, how + ": no last words")
            need(any(words in n for n in names), "%s: no mark in %r" % (how, set(names)))
            slices = {o["name"]: o for o in objects if o["type"] == "slice"}
            for name in ("outer", "inner"):
                need(name in slices and slices[name]["dur"] is not None, "%s: %s is not there" % (how, name))
                end = str(slices[name]["args"].get("end"))
                need(words.split()[-1] in end, "%s: %s ends with %r" % (how, name, end))
            report = path[:-8] + ".crash.txt"
            wait_for("no report", lambda: os.path.exists(report), 1)
            text = open(report).read()
            need(words in text, text)
            need("recording load: the last 64 of 101 events" in text and "last words" in text, text)
            need(text.index("    inner") < text.index("    outer"), text)
            need("last words" in tr.text() and words in tr.text(), tr.text())
            os.unlink(path)
            os.unlink(report)
    return "%d runs each, slowest %.0f ms" % (runs, worst * 1000)


def test_flight_no_crash_snapshot(c):
    t = recorder(c, "load", "kill")
    tr = tracer(c, t.pid, "--no-crash-snapshot")
    t.go()
    time.sleep(0.1)
    t.go()
    equal(tr.wait(10), 0, "exit status")
    t.end()
    equal(snapshots(c), [], "snapshots")


def test_flight_trigger_slow(c):
    """One snapshot for each slow span, none for the others."""
    t = recorder(c, "slow", "15")
    tr = tracer(c, t.pid, "--trigger", "span work > 40ms", "--after", "0", "--cooldown", "0")
    t.go()
    truth = t.read()
    st = status(tr)
    equal(truth["slow"], 5, "slow spans")
    equal(st["snapshots"]["triggers_met"], 5, "conditions met")
    equal(len(wait_snapshots(c, 5)), 5, "snapshots")
    for i, path in enumerate(snapshots(c)):
        check(path)
        work = [o for o in dump(path) if o["type"] == "slice" and o["name"] == "work"]
        slow = [o["args"]["i"] for o in work if o["dur"] and o["dur"] > 40e6]
        equal(slow, [2 + 3 * k for k in range(i + 1)], "slow ones in snapshot %d" % i)
        need(len(work) >= 3 * (i + 1), "spans around it are not there")
        need([o for o in instants(path) if "trigger: span work > 40ms" in o["name"]], "no mark")
    t.end()
    equal(tr.wait(), 0, "exit status")


def test_flight_cooldown_and_max(c):
    """A cooldown longer than the run: one. Without, the oldest automatic ones go, those asked for stay."""
    t = recorder(c, "slow", "12")
    tr = tracer(c, t.pid, "--trigger", "span work > 40ms", "--after", "0", "--cooldown", "1h")
    t.go()
    t.read()
    equal(len(wait_snapshots(c, 1)), 1, "snapshots")
    equal(status(tr)["snapshots"]["triggers_suppressed"], 3, "suppressed")
    t.end()
    tr.wait()
    lib.remove(os.path.join(c.dir, "executions"))
    t = recorder(c, "slow", "12")
    tr = tracer(c, t.pid, "--trigger", "span work > 40ms", "--after", "0", "--cooldown", "0", "--max-snapshots", "2")
    asked = ask(tr, "snapshot").split(": ")[0]
    t.go()
    t.read()
    wait_for("not all written", lambda: status(tr)["snapshots"]["written"] == 5)
    need(os.path.exists(asked), "the one that was asked for is gone")
    equal([p.rsplit("-", 1)[1] for p in snapshots(c)], ["001.pftrace", "004.pftrace", "005.pftrace"], "kept")
    t.end()
    tr.wait()


def test_flight_after(c):
    """A snapshot shows what came after the condition was met, and is taken when the target ends first."""
    t = recorder(c, "slow", "6")
    tr = tracer(c, t.pid, "--trigger", "event nothing", "--trigger", "span work > 40ms", "--after", "400ms")
    t.go()
    t.read()
    path = wait_snapshots(c, 1)[0]
    work = [o["args"]["i"] for o in dump(path) if o["type"] == "slice" and o["name"] == "work"]
    need(max(work) > 2, "nothing of what followed: %r" % work)
    t.end()
    tr.wait()
    t = recorder(c, "slow", "3")
    tr = tracer(c, t.pid, "--trigger", "span work > 40ms", "--after", "1h")
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    equal(len(snapshots(c)), 2, "snapshots")


def test_flight_questions(c):
    """tail, stacks, snapshot, status of a program that is stuck; human and JSON."""
    t = recorder(c, "jobs", "3", "20")
    tr = tracer(c, t.pid)
    t.go()
    t.read()
    wait_for("no events", lambda: status(tr)["recordings"]["events"] == 60)
    lines = ask(tr, "tail", "-n", "5").splitlines()
    equal(len(lines), 5, "lines")
    need(lines[-1].startswith("W ") and "<job 2> step" in lines[-1] and "k=19" in lines[-1], lines[-1])
    need("\x1b" not in "".join(lines), "control characters")
    got = rows(ask(tr, "tail", "--json", "-n", "100"))
    equal(len(got), 24, "8 of each of 3")
    for k in range(3):
        mine = [r for r in got if r["subject"] == "job %d" % k]
        equal([(r["seq"], r["fields"]["k"]) for r in mine], [(i, i) for i in range(12, 20)], "events of job %d" % k)
        need(all(r["pid"] == t.pid and r["level"] == "WARN" and r["span"] for r in mine), "%r" % mine[0])
    equal(ask(tr, "tail", "--json", "-n", "100"), ask(tr, "tail", "--json", "-n", "100"), "tail twice")
    got = rows(ask(tr, "tail", "--json", "--subject", "job 1"))
    equal({r["subject"] for r in got}, {"job 1"}, "subjects")
    stacks = rows(ask(tr, "stacks", "--json"))
    equal(sorted([f["name"] for f in s["stack"]] for s in stacks),
          [["handle"], ["lock", "query", "handle", "recording"]], "stacks")
    first = min(f["open_ns"] for s in stacks for f in s["stack"])
    time.sleep(0.3)
    again = min(f["open_ns"] for s in rows(ask(tr, "stacks", "--json")) for f in s["stack"])
    need(0.25e9 < again - first < 3e9, "ages %d, %d" % (first, again))
    text = ask(tr, "stacks")
    need(text.index("  lock  ") < text.index("  query  ") < text.index("  handle  "), text)
    mine = rows(ask(tr, "stacks", "--subject", "job 0", "--json"))
    equal([[(f["name"], f["entered"]) for f in s["stack"]] for s in mine],
          [[("lock", 1), ("query", 1), ("handle", 2), ("recording", 1)]], "stack of job 0")
    equal(rows(ask(tr, "stacks", "--subject", "job 1", "--json")), [], "job 1 does nothing")
    out = os.path.join(c.dir, "mine.pftrace")
    need(ask(tr, "snapshot", "-o", out).startswith(out + ": "), "answer")
    got = check(out)
    equal(got["names"], {"recording": 4, "handle": 2, "query": 1, "lock": 1}, "slices")
    need("exists" in ask(tr, "snapshot", "-o", out, want=1), "overwritten")
    need("text" not in ask(tr, "snapshot", "-o", "/nowhere/x", want=1), "no error")
    st = status(tr)
    listed = rows(run_tool(["list", "--json", c.targets["recorder"]])[1])
    sites = sum(r["type"] == "callsite" for r in listed)
    need(sites > 10, "listed: %r" % listed)
    equal((st["targets"], st["armed"], st["callsites"], st["flight_recorder"]),
          ([{"pid": t.pid, "name": "recorder"}], sites, sites, True), "status")
    need("targets     1: %d recorder" % t.pid in ask(tr, "status"), "status")
    s, text, err = run_tool(["stacks", "-p", str(t.pid), "--json"])
    equal((s, len(rows(text))), (0, 2), "stacks -p with a tracer: " + err)
    equal(hidden(c), [], "left over")
    t.end()
    tr.wait()


def test_flight_normal_recording_answers(c):
    """Without -F: tail, stacks and status work, snapshot says why not."""
    t = recorder(c, "jobs", "2", "10")
    tr = Tracer(["-m", "dev", "--naming", "plain", "-p", str(t.pid), "-o", os.path.join(c.dir, "t.pftrace")])
    t.go()
    t.read()
    wait_for("no events", lambda: status(tr)["recordings"]["events"] == 20)
    equal(len(rows(ask(tr, "tail", "--json"))), 16, "tail")
    equal(len(rows(ask(tr, "stacks", "--json"))), 2, "stacks")
    need("no flight recorder" in ask(tr, "snapshot", want=1), "snapshot")
    tr.p.send_signal(signal.SIGUSR2)
    time.sleep(0.1)
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    need("-F" in tr.text(), tr.text())
    check(os.path.join(c.dir, "t.pftrace"))


def test_flight_tail_follows(c):
    t = recorder(c, "jobs", "2", "10")
    tr = tracer(c, t.pid)
    p = subprocess.Popen([lib.TOOL, "tail", "-f", "-n", "0", "--json", "--tracer", str(tr.p.pid)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    t.go()
    t.read()
    time.sleep(0.3)
    t.end()
    equal(tr.wait(), 0, "exit status")
    out, err = p.communicate(timeout=5)
    equal((p.returncode, len(rows(out.decode()))), (0, 20), "lines: " + err.decode())


def test_flight_stacks_without_tracer(c):
    t = recorder(c, "load", "spin")
    t.go()
    for _ in range(10):  # at the moment of the end all threads may be between two spans
        s, out, err = run_tool(["stacks", "-p", str(t.pid), "-d", "300ms", "--json"])
        equal(s, 0, err)
        names = {f["name"].split("::")[-1] for r in rows(out) for f in r["stack"]}
        if names:
            break
    need(names and names <= {"request", "step"}, "%r %s" % (names, err))
    t.go()
    t.read()
    equal(t.end(), 0, "exit status of the target")
    s, out, err = run_tool(["stacks", "-p", "999999"])
    equal((s, out), (1, ""), "no such process")
    lib.one_error_line(err, "999999")


def test_flight_other_user_refused(c):
    t = recorder(c, "jobs", "1", "5")
    tr = tracer(c, t.pid)
    path = "/run/montrace-bpf/%d.sock" % tr.p.pid
    need(os.path.exists(path), "no socket")

    def nobody():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    code = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\n"
            "try: s.connect(%r); s.send(b'mt1 status\\n'); d=s.recv(4096)\n"
            "except OSError: d=b''\nsys.exit(b'tracer' in d)" % path)
    equal(subprocess.run(["python3", "-c", code], preexec_fn=nobody).returncode, 0, "nobody got an answer")
    equal(subprocess.run(["python3", "-c", code]).returncode, 1, "root got no answer")
    t.end()
    tr.wait()
    need(not os.path.exists(path), "socket left over")


def test_flight_socket_garbage(c):
    """Garbage, half requests, those who never read, and many connections: the tracer goes on."""
    t = recorder(c, "load", "spin")
    tr = tracer(c, t.pid)
    t.go()
    path = "/run/montrace-bpf/%d.sock" % tr.p.pid
    rnd = random.Random(1)
    keep = []
    for i in range(1000 if c.long else 200):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(2)
        try:
            s.connect(path)
            s.send([bytes(rnd.randrange(256) for _ in range(rnd.randrange(1, 6000))), b"mt1 sta", b"\n" * 100,
                    b"mt1 tail n=65536 follow\n", b"mt1 snapshot x\n", b"mt1 stacks pid=99999999999\n"][i % 6])
        except OSError:
            pass
        if i % 3 == 0 and len(keep) < 40:
            keep.append(s)
        else:
            s.close()
    for s in keep:
        s.close()
    wait_for("no answer after the garbage", lambda: run_tool(["status", "--tracer", str(tr.p.pid)])[0] == 0)
    equal(check(wait_snap(c, tr))["violations"], [], "violations")
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())


def wait_snap(c, tr):
    out = os.path.join(c.dir, "snap.pftrace")
    ask(tr, "snapshot", "-o", out)
    return out


def memory(pid):
    r = {}
    for line in open("/proc/%d/status" % pid):
        if line.startswith(("Rss", "VmRSS")):
            k, v = line.split(":")
            r[k] = int(v.split()[0]) / 1024
    return r


def test_flight_memory_bounded(c):
    """Full window, high rate: memory stays within window + 32 MiB, and so does each snapshot."""
    lib.not_sanitized()
    t = recorder(c, "load", "spin")
    tr = tracer(c, t.pid, window="64M")
    t.go()
    top, total = 0, 0
    end = time.time() + (600 if c.long else 15)
    n = 0
    while time.time() < end:
        m = memory(tr.p.pid)
        top, total = max(top, m["RssAnon"]), max(total, m["VmRSS"])
        n += 1
        if n % 20 == 0:
            tr.p.send_signal(signal.SIGUSR2)
        time.sleep(0.1)
        for path in snapshots(c)[:-2]:
            os.unlink(path)
    st = status(tr)
    need(st["window"]["evicted"] > 100000, "the window did not fill: %r" % st)
    need(total <= 64 + 32, "%.1f MiB, %.1f of it own" % (total, top))
    t.go()
    t.read()
    t.end()
    tr.wait()
    return "own %.1f MiB, with ring %.1f MiB, %d events/s, %d lost" % (top, total, st["events_per_second"], st["lost"])


def test_flight_usage(c):
    for args, word in ((["-F", "--trigger", "span"], "--trigger"), (["--trigger", "lost > 0"], "-F"),
                       (["-F1x"], "-F"), (["-F", "-o", "x"], "-o"), (["-F", "--rotate", "10m"], "--rotate")):
        s, _, err = run_tool(args + ["-p", "1"])
        equal(s, 2, "%r: %s" % (args, err))
        lib.one_error_line(err, word)
    for args in (["tail", "x"], ["status", "-p", "1"], ["snapshot", "--subject", "x"]):
        equal(run_tool(args)[0], 2, "%r" % args)
    s, _, err = run_tool(["status", "--tracer", "999999"])
    equal(s, 1, err)
    lib.one_error_line(err, "999999")
