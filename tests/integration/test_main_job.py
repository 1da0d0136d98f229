# SPDX-License-Identifier: BSD-3-Clause
"""The main job: attach to a running program by pid, everything it fires is in the trace, exactly."""

import math
import os
import re
import shutil
import signal
import subprocess
import time

import lib
from lib import Memory, Skipped, Target, Tracer, annotations, check, dump, equal, example, need


def trace(c, name):
    return os.path.join(c.dir, name + ".pftrace")


def run_service(c, path, args, tracer_args=()):
    t = Target([example("service"), "--wait", "--hold"] + args)
    tr = Tracer(["-v", "-m", "dev", "--naming", "plain", "-p", str(t.pid), "-o", path] + list(tracer_args))
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status of the tracer: " + tr.text())
    return truth, tr.text()


def compare(truth, got):
    """Every number that the program says of itself against the checker's."""
    equal(got["lost"], 0, "lost")
    equal(got["slices"], truth["slices"], "slices")
    equal(got["instants"], truth["events"], "events")
    equal(got["counters"], truth["counters"], "counter values")


def test_counts_exact(c):
    """8 threads, 1,000,000 spans and events, default settings."""
    for i in range(20 if c.long else c.repeat):
        path = trace(c, "t%d" % i)
        n = 100000 if lib.SANITIZED else 1000000
        truth, _ = run_service(c, path, ["--threads", "8", "--count", str(n)])
        need(truth["spans"] + truth["events"] >= n, "the program fired only %r" % truth)
        compare(truth, check(path))
        os.unlink(path)
    return "%d runs" % (i + 1)


def test_cpp_counts(c):
    path = trace(c, "t")
    t = Target([example("service_cpp"), "--wait", "--hold", "--count", "1000"])
    tr = Tracer(["-m", "dev", "--naming", "plain", "-p", str(t.pid), "-o", path])
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    compare(truth, check(path))
    spans = {}
    for o in dump(path):
        if o["type"] == "slice":
            spans.setdefault(o["name"], []).append(o["args"].get("span"))
    for k, v in truth.items():
        if k.startswith("span:"):
            got = spans.get(k[5:], [])
            equal(len({x for x in got if x}) + sum(x is None for x in got), v, k)


def test_small_ring_accounts(c):
    """emitted = delivered + lost, and the loss is where it happened and in the importer's statistics."""
    lost_runs = 0
    for i in range(20 if c.long else c.repeat):
        path = trace(c, "t%d" % i)
        t = Target([c.targets["count"], "4", "200000"])
        tr = Tracer(["-v", "--ring", "64K", "-p", str(t.pid), "-o", path])
        t.go()
        truth = t.read()
        t.end()
        equal(tr.wait(), 0, "exit status")
        got = check(path)
        text = tr.text()
        delivered = int(text.split(" hits delivered")[0].split()[-1])
        equal(delivered + got["lost"], truth["hits"], "delivered + lost")
        equal(got["perf_lost"], got["lost"], "losses for the importer")
        need(", %d lost, " % got["lost"] in text, "end line does not say %d lost: %s" % (got["lost"], text))
        lost_runs += got["lost"] > 0
        threads = {o["tid"] for o in dump(path) if o["type"] == "loss" and o.get("tid")}
        need(got["lost"] == 0 or threads, "no thread shows its losses")
        os.unlink(path)
    need(lost_runs, "nothing was lost: the ring was not too small")
    return "%d of %d runs lost" % (lost_runs, i + 1)


def test_values(c):
    """Every kind of value arrives as it was."""
    path = trace(c, "t")
    run_service(c, path, ["--threads", "1", "--count", "100", "--hostile-values"])
    check(path)
    rows = {}
    for o in dump(path):
        if o["type"] == "instant" and o.get("args"):
            rows.setdefault(o["name"], []).append(o["args"])
    flat = {}
    for args in rows.get("hostile", []):
        flat.update(args)
    want = {
        "i64 min": -2**63, "i64 max": 2**63 - 1, "u64 max": 2**64 - 1, "nan": "NaN", "inf": "Infinity",
        "-inf": "-Infinity", "-0": -0.0, "empty": "", "null": "(null)", "1 KiB": "k" * 1024,
        "2 KiB": "2" * 1024, "quotes": "\"quoted\" 'q' \\ \n\t\r end", "same": "second",
        "nul inside": "a\ufffdb", "control": "\x1b[31mred\x1b[0m\x07\x01",
        "invalid": "\ufffd\ufffd \ufffd( \ufffd\ufffd\ufffd end",
    }
    for k, v in want.items():
        need(k in flat, "%s is not in the trace: %r" % (k, sorted(flat)))
        equal(flat[k], v, k)
    for k in "abc":
        equal(flat[k], "k" * 1024, k)
    need(0 < len(flat["d"]) < 1024, "the record's limit did not cut: %d" % len(flat["d"]))


def test_filter_arms_few(c):
    """5,000 callsites, the filter lets 10 through: 10 armed, no hit from the others."""
    path = trace(c, "t")
    t = Target([example("many"), "--wait", "--hold", "--rounds", "3"])
    tr = Tracer(["-v", "--filter", "off,many::hot=trace", "-p", str(t.pid), "-o", path])
    need(": 10 of 5000 callsites armed" in tr.text(), tr.text())
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    equal(check(path)["instants"], 30, "instants")
    need("30 hits delivered" in tr.text(), tr.text())


def spin(c, *args):
    t = Target([c.targets["count"], "2", "1000", "spin"])
    return t


def test_redzone_and_flags(c):
    """A leaf with live data below the stack pointer, live flags and registers, probes coming and going."""
    for extra in ([], ["--nop5", "always"]):
        t = Target([c.targets["redzone"], "1000000" if c.long else "300000"])
        t.go()
        rounds = 0
        while t.p.poll() is None and rounds < (100 if c.long else 25):
            path = trace(c, "r%d" % rounds)
            tr = Tracer(["-p", str(t.pid), "-o", path, "-d", "20ms"] + extra, quiet=True)
            tr.wait()
            if os.path.exists(path):
                os.unlink(path)
            rounds += 1
        truth = t.read()
        t.end()
        equal(truth["wrong"], 0, "wrong results")
    return "%d attachments each" % rounds


def test_code_restored(c):
    """After detach, and after kill -9 of the tracer, code and semaphores are as before."""
    for sig in (signal.SIGINT, signal.SIGKILL):
        t = spin(c)
        memory = Memory(t.pid)
        before = memory.snapshot()
        tr = Tracer(["-p", str(t.pid), "-o", trace(c, "t%d" % sig)])
        t.go()
        time.sleep(0.5)
        need(memory.snapshot() != before, "nothing was armed")
        tr.stop(sig)
        end = time.time() + 5
        while memory.snapshot() != before and time.time() < end:
            time.sleep(0.02)
        equal(memory.snapshot(), before, "code and semaphores after signal %d" % sig)
        t.go()
        t.read()
        equal(t.end(), 0, "exit status of the target")


def test_tracer_killed_at_full_rate(c):
    """kill -9 of the tracer: what is in the file opens and is right; the target goes on."""
    for i in range(c.repeat):
        path = trace(c, "t%d" % i)
        t = spin(c)
        tr = Tracer(["-p", str(t.pid), "-o", path])
        t.go()
        time.sleep(0.4)
        tr.stop(signal.SIGKILL)
        got = check(path, "--allow-truncated", "--allow-open")
        need(got["instants"] > 1000, "only %d events before the kill" % got["instants"])
        t.go()
        truth = t.read()
        need(truth["hits"] > got["instants"], "target stopped")
        equal(t.end(), 0, "exit status of the target")


def test_target_dies_mid_span(c):
    """Everything up to the death is there; open slices end at the death and say why."""
    how = {"kill": "killed by signal 9", "segv": "killed by signal 11", "abort": "killed by signal 6",
           "exit3": "exit 3"}
    for way, words in how.items():
        path = trace(c, way)
        t = Target([c.targets["die"], way, "50"])
        tr = Tracer(["-p", str(t.pid), "-o", path])
        t.go()
        equal(tr.wait(10), 0, "exit status: " + tr.text())
        t.end()
        got = check(path)
        equal(got["names"], {"before": 50, "outer": 1, "inner": 1}, way + ": slices")
        equal(got["instants"], 1, way + ": events")
        slices = {o["name"]: o for o in dump(path) if o["type"] == "slice"}
        for name in ("outer", "inner"):
            need(words in str(slices[name]["args"].get("end")), "%s: %s ends with %r" % (way, name, slices[name]))
            need(slices[name]["dur"] is not None, "%s: %s is open" % (way, name))
        need(slices["outer"]["ts"] + slices["outer"]["dur"] == slices["inner"]["ts"] + slices["inner"]["dur"],
             way + ": not the same end")


def test_target_ends_normally(c):
    path = trace(c, "t")
    t = Target([c.targets["die"], "return"])
    tr = Tracer(["-p", str(t.pid), "-o", path])
    t.go()
    equal(tr.wait(10), 0, "exit status")
    t.end()
    equal(check(path)["names"], {"before": 10, "outer": 1, "inner": 1}, "slices")


def test_attach_midlife(c):
    """A program in full flight: attached, detached, attached again; each trace is good by itself."""
    t = spin(c)
    t.go()
    time.sleep(0.2)
    for i in range(5):
        path = trace(c, "t%d" % i)
        tr = Tracer(["-p", str(t.pid), "-o", path, "-d", "150ms"])
        equal(tr.wait(), 0, "exit status")
        need(check(path)["instants"] > 100, "hardly any events")
    t.go()
    t.read()
    equal(t.end(), 0, "exit status of the target")


def test_duration(c):
    t = spin(c)
    start = time.time()
    tr = Tracer(["-p", str(t.pid), "-o", trace(c, "t"), "-d", "1"])
    equal(tr.wait(), 0, "exit status")
    need(0.9 < time.time() - start < 4, "took %.1f s" % (time.time() - start))
    t.end()


def test_idle_flush(c):
    """Data is on disk within 100 ms of the event, also when nothing follows."""
    path = trace(c, "t")
    t = Target([c.targets["count"], "1", "10"])
    tr = Tracer(["-p", str(t.pid), "-o", path])
    t.go()
    truth = t.read()
    time.sleep(0.15)
    got = check(path, "--allow-open")
    equal(got["instants"] + 2 * got["slices"], truth["hits"], "hits on disk")
    tr.stop()
    t.end()


def test_two_tracers(c):
    """Two tracers on one target at once, both right."""
    paths = [trace(c, "a"), trace(c, "b")]
    t = Target([c.targets["count"], "2", "20000"])
    trs = [Tracer(["-p", str(t.pid), "-o", p]) for p in paths]
    t.go()
    truth = t.read()
    t.end()
    for tr, p in zip(trs, paths):
        equal(tr.wait(), 0, "exit status")
        got = check(p)
        equal(got["instants"] + 2 * got["slices"], truth["hits"], "hits")


def test_stack_in_probe(c):
    """Who stops in a probe can walk the stack: gdb, by the tables of the compiler, optimised or not."""
    if not shutil.which("gdb"):
        raise Skipped("no gdb")
    source = os.path.join(lib.HERE, "targets", "unwind.c")
    exe = c.dir + "/unwind"
    n = 0
    for cc in filter(shutil.which, ("gcc", "clang")):
        for flags in (["-O0"], ["-O1"], ["-O2"], ["-Os"], ["-O3", "-fomit-frame-pointer"], ["-O2", "-fno-omit-frame-pointer"]):
            subprocess.check_call([cc, "-g", "-no-pie", "-I", os.path.join(lib.ROOT, "include"), source, "-o", exe] + flags)
            notes = subprocess.run(["readelf", "-nW", exe], stdout=subprocess.PIPE).stdout.decode()
            code, sem = re.search(r"Location: (0x[0-9a-f]+), Base: 0x[0-9a-f]+, Semaphore: (0x[0-9a-f]+)", notes).groups()
            script = ["break *" + code, "break main", "run", "set *(unsigned short *)%s = 1" % sem, "continue", "bt"]
            out = subprocess.run(["gdb", "-batch", "-nx"] + [w for s in script for w in ("-ex", s)] + [exe],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 timeout=120).stdout.decode(errors="replace")
            if "ptrace" in out and "not permitted" in out:
                raise Skipped("gdb may not trace here")
            frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?([\w?]+)", out, re.M)
            need(frames[-3:] == ["inner", "outer", "main"] and frames[0] == "??", "%s %r: %r" % (cc, flags, frames or out))
            n += 1
    need(n, "no compiler")
    return "%d programs" % n


def test_per_site_links(c):
    """The way of kernels before 6.6: one link per site."""
    path = trace(c, "t")
    t = Target([c.targets["count"], "2", "5000"])
    tr = Tracer(["--per-site", "-p", str(t.pid), "-o", path])
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    got = check(path)
    equal(got["instants"] + 2 * got["slices"], truth["hits"], "hits")
