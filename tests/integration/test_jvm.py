# SPDX-License-Identifier: BSD-3-Clause
"""The profiles hotspot and hotspot-methods: a Java program's own counts are in the trace, exactly."""

import collections
import os
import re
import shutil
import subprocess

import lib
from lib import Skipped, Target, Tracer, check, dump, equal, need

def probes():
    """Skips the test if this JVM has none."""
    if not shutil.which("java") or not shutil.which("javac"):
        raise Skipped("no JDK (default-jdk-headless)")
    said = subprocess.run(["java", "-XshowSettings:properties", "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    home = re.search(r"^ *java\.home = (.+)$", said.stdout.decode(), re.M)
    need(home, "java does not say where it is: %r" % said.stdout[:500])
    notes = subprocess.run(["readelf", "-nW", os.path.join(home[1], "lib", "server", "libjvm.so")], stdout=subprocess.PIPE)
    if b"gc__begin" not in notes.stdout:
        raise Skipped("this JVM is built without probes")


ENV = {"MONTRACE_PROFILES": os.path.join(lib.ROOT, "profiles")}


def java(c, kind, n, flags):
    """The program, compiled and waiting."""
    probes()
    if not os.path.exists(os.path.join(c.dir, "Jvm.class")):
        subprocess.check_call(["javac", "-encoding", "UTF-8", "-d", c.dir,
                               os.path.join(lib.HERE, "targets", "Jvm.java")])
    return Target(["java", "-Xmx256m", "-Xshare:auto", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"] + flags +
                  ["-cp", c.dir, "Jvm", kind, str(n)], env={"LC_ALL": "C.UTF-8"})


def trace(c, t, name, args):
    path = os.path.join(c.dir, name)
    tr = Tracer(["-v", "-p", str(t.pid), "-o", path] + args, env=ENV)
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    equal(check(path)["lost"], 0, "lost")
    rows = collections.defaultdict(list)
    for o in dump(path):
        if o["type"] in ("instant", "slice", "counter"):
            rows[o["name"]].append(o)
    os.unlink(path)
    return truth, rows, tr.text()


def of(rows, name, **want):
    return [o for o in rows.get(name, []) if all(o["args"].get(k) == v for k, v in want.items())]


def count(rows, name, n, **want):
    equal(len(of(rows, name, **want)), n, "%s %r" % (name, want))


def check_gc(truth, rows, n):
    count(rows, "GC", n, full=True)
    pools = {k[5:]: v for k, v in truth.items() if k.startswith("pool ")}
    need(len(pools) >= 3, "pools: %r" % pools)
    got = {k[:-5] for k, v in rows.items() if v[0]["type"] == "counter"}
    equal(got, set(pools), "pools that have a counter")
    for pool, used in pools.items():
        values = rows[pool + " used"]
        equal(len(values), 2 * len(rows["GC"]), "values of " + pool)
        if used >= 0:  # what the JVM says it was after the last collection
            equal(values[-1]["value"], used, "the last value of " + pool)
    need(len(rows["safepoint"]) >= n, "safepoints")
    need(sum(len(v) for k, v in rows.items() if k.startswith("VM ") and v[0]["type"] == "slice") >= n, "operations")


def check_threads(truth, rows, n):
    want = {}
    for k, v in truth.items():
        m = re.fullmatch(r"thread (.*) (true|false)", k)
        if m:
            want[m[1]] = (v, m[2] == "true")
    equal(len(want), n, "threads of the program")
    for event in ("thread start", "thread stop"):
        got = {o["args"]["thread"]: (o["args"]["id"], o["args"]["daemon"]) for o in rows[event]
               if o["args"]["thread"] in want}
        equal(got, want, event)
        need(all(o["args"]["tid"] == o["tid"] for o in rows[event]), event + ": tid")


def check_monitors(rows, n):
    mine = {"class": "Jvm$Monitor"}
    enters = of(rows, "monitor enter Jvm$Monitor", **mine) # the waiters and their master may meet there, too
    equal(sum(o["thread"] == "contender" for o in enters), n, "contended enters")
    waits = rows["monitor wait Jvm$Monitor"]
    equal(sorted(o["args"]["ms"] for o in waits), [0] * (2 * n) + [3] * n, "waits")
    need(all(o["dur"] >= 1000000 for o in waits if o["args"]["ms"] == 3), "a wait is as long as it lasts")
    count(rows, "monitor notify", n, **mine)
    count(rows, "monitor notifyAll", n, **mine)
    equal(len({o["args"]["monitor"] for o in enters + waits}), 1, "monitors")


def check_pauses(rows, n):
    of_it = lambda name: [o for o in rows[name] if o["thread"] == "pauser"]
    equal(len(of_it("park")), n, "parks")
    equal([(o["args"]["absolute"], o["args"]["time"]) for o in of_it("park")], [(False, 100000)] * n, "park times")
    equal([(o["args"]["ms"], o["args"]["interrupted"]) for o in of_it("sleep")],
          [(2, False)] * n + [(3600000, True)], "sleeps")
    need(all(o["dur"] >= 2000000 for o in of_it("sleep")), "a sleep is as long as it lasts")


def check_objects(rows, n):
    count(rows, "alloc", 1000 * n, **{"class": "Jvm$Thing"})
    need(len(of(rows, "alloc", **{"class": "java/util/Optional"})) >= 1000 * n, "a text that ends without NUL")
    for c in ("Jvm$Thing", "Jvm$Bad"):
        count(rows, "class load", 1, **{"class": c, "shared": False})
        count(rows, "class init " + c, 1)
    inside = rows["class init Jvm$Bad"][0]
    need("end" not in inside["args"], "an initializer that throws ends, too")


def test_jvm(c):
    """Collections, pools, threads, monitors, pauses, classes, objects; the profile comes by itself."""
    rounds, n = 10 if c.long else 1, 6
    for i in range(rounds):
        t = java(c, "all", n, ["-XX:+UseSerialGC", "-XX:+DTraceMonitorProbes", "-XX:+DTraceAllocProbes"])
        truth, rows, text = trace(c, t, "t%d.pftrace" % i, [])
        need("profile hotspot (" in text, text)
        need(" 0 lost ends" in text, text)
        check_gc(truth, rows, n)
        check_threads(truth, rows, n)
        check_monitors(rows, n)
        check_pauses(rows, n)
        check_objects(rows, n)
        compiled = [o for k, v in rows.items() for o in v if k.startswith("compile ")]
        need(all(o["name"] == "compile %s.%s" % (o["args"]["class"], o["args"]["method"]) for o in compiled), "compile")
        count(rows, "VM shutdown", 1)
        count(rows, "Jvm.leaf", 0)
    return "%d rounds" % rounds


def test_jvm_methods(c):
    """Each call is a span in the span of its caller, also where exceptions end it."""
    rounds, n = 10 if c.long else 1, 15000
    for i in range(rounds):
        t = java(c, "methods", n, ["-XX:+DTraceMethodProbes", "-XX:-TieredCompilation"])
        truth, rows, text = trace(c, t, "m%d.pftrace" % i, ["--profile", "hotspot-methods"])
        equal(truth["threw"], n // 2, "exceptions")
        for name, depth in (("leaf", 0), ("outer", 0), ("middle", 1), ("thrower", 2)):
            calls = rows["Jvm." + name]
            equal(len(calls), n, "calls of " + name)
            base = rows["Jvm.outer"][0]["depth"]
            equal({o["depth"] - base for o in calls}, {depth}, "depth of " + name)
            equal({o["args"]["signature"] for o in calls}, {"(I)I"}, "signature of " + name)
        equal(len(rows["Jvm$Fault.<init>"]), n // 2, "constructors of exceptions")
        need(" 0 reordered exits, 0 lost ends" in text, text)
    return "%d rounds" % rounds
