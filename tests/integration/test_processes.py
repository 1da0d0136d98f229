# SPDX-License-Identifier: BSD-3-Clause
"""Processes and threads that come, go, fork, exec, load libraries; files and names of their traces."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time

import lib
from lib import Target, Tracer, dump, equal, example, need, run_tool

sys.path.insert(0, os.path.join(lib.ROOT, "tests"))
import check_trace  # noqa: E402


def good(path, *want, allow_open=False):
    """The checker itself, without a process of its own: for a thousand small files."""
    with open(path, "rb") as f:
        k = check_trace.check(f.read(), allow_open=allow_open, want_args=want)
    need(not k.violations, "%s: %r" % (path, k.violations[:5]))
    return k


def processes(k):
    return [d for d in k.desc.values() if d[3] == "process"]


def threads(k):
    return [d for d in k.desc.values() if d[3] == "thread"]


def files(directory):
    found = []
    for at, _, names in os.walk(directory):
        found += [os.path.join(at, n) for n in names]
    return sorted(found)


def names(directory):
    return sorted(os.path.basename(p) for p in files(directory))


def values(path, field="i", name="tick"):
    return [a[field] for a in good(path, name).args_out]


def delivered(text):
    return int(text.split(" hits delivered")[0].split()[-1])


def lost(text):
    return int(re.search(r", (\d+) lost, ", text).group(1))


def library(c):
    """The library that targets load."""
    path = os.path.join(c.dir, "late.so")
    subprocess.check_call(["cc", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-shared", "-I",
                           os.path.join(lib.ROOT, "include"), os.path.join(lib.HERE, "targets", "so", "late.c"), "-o",
                           path])
    return path


def trace(c, way, args=(), env=None, program="procs"):
    """procs WAY under -p, to the end. Returns what it said of itself, its files, the tracer's text."""
    t = Target([c.targets[program]] + way, env=env)
    tr = Tracer(["-v", "-p", str(t.pid), "--directory", c.dir + "/d"] + list(args))
    t.go()
    truth = t.read()
    truth["pid"] = t.pid
    equal(t.end(), 0, "exit status of the target")
    equal(tr.wait(), 0, "exit status of the tracer: " + tr.text())
    return truth, files(c.dir + "/d"), tr.text()


def by_pid(paths):
    """pid -> values of i, over all files; each file is good and of one process."""
    found = {}
    for p in paths:
        k = good(p, "tick")
        equal(len(processes(k)), 1, "processes in " + p)
        if k.args_out:
            pids = {a["pid"] for a in k.args_out}
            equal(len(pids), 1, "pids in " + p)
            found.setdefault(pids.pop(), []).extend(a["i"] for a in k.args_out)
    return found


# ---- A thousand lives -----------------------------------------------------------------------------------


def loop(c, n):
    """n processes, four at a time."""
    return ["sh", "-c", "i=0; while [ $i -lt %d ]; do for k in 0 1 2 3; do %s $((i+k)) & done; wait; i=$((i+4)); done" % (
        n, c.targets["short"])]


def whole_lives(c, n, directory, text):
    """n processes, 5 ticks and a scope (7 hits) each: a file each, none missing, none mixed up."""
    equal(delivered(text) + lost(text), 7 * n, "delivered + lost: " + text)
    equal(lost(text), 0, "lost")
    ids = set()
    for p in files(directory):
        k = good(p, "tick", "life")
        equal(len({a["id"] for a in k.args_out}), 1, "processes mixed up in " + p)
        equal([a["i"] for a in k.args_out if "i" in a], [0, 1, 2, 3, 4], p)
        equal(k.names, {"life": 1}, p)
        ids.add(k.args_out[0]["id"])
    equal(len(files(directory)), n, "files")
    equal(ids, set(range(n)), "processes")


def whole_lives_in_one(c, n, path, text):
    equal(delivered(text) + lost(text), 7 * n, "delivered + lost: " + text)
    k = good(path)
    equal((k.instants, k.names), (5 * n, {"life": n}), "events and slices")
    equal(len(processes(k)), n, "processes")
    seen = {}
    for o in dump(path):
        if o["type"] in ("instant", "slice") and "id" in o["args"]:
            equal(o["pid"], o["args"]["pid"], "pid of an event")
            seen.setdefault(o["pid"], []).append(o["args"]["id"])
    equal(sorted(v[0] for v in seen.values()), list(range(n)), "processes")
    need(all(len(v) == 6 and len(set(v)) == 1 for v in seen.values()), "processes mixed up")


def test_thousand_under_command(c):
    """1,000 short-lived processes of a command: each from its first instruction."""
    n = 1000
    status, _, text = run_tool(["-v", "--directory", c.dir + "/d", "--"] + loop(c, n))
    equal(status, 0, "exit status: " + text)
    whole_lives(c, n, c.dir + "/d", text)


def test_thousand_under_command_single(c):
    n = 1000
    status, _, text = run_tool(["-v", "--single", "--name", "all", "--directory", c.dir + "/d", "--"] + loop(c, n))
    equal(status, 0, "exit status: " + text)
    equal(names(c.dir + "/d"), ["all.pftrace"], "files")
    whole_lives_in_one(c, n, files(c.dir + "/d")[0], text)


def under_all(c, n, args):
    tr = Tracer(["-v", "--all", c.targets["short"], "--directory", c.dir + "/d"] + args)
    subprocess.check_call(loop(c, n))
    equal(tr.stop(), 0, "exit status")
    return tr.text()


def test_thousand_under_all(c):
    """1,000 short-lived processes of a file that others start."""
    n = 1000
    whole_lives(c, n, c.dir + "/d", under_all(c, n, []))


def test_thousand_under_all_single(c):
    n = 1000
    text = under_all(c, n, ["--single", "--compress"])
    equal(len(files(c.dir + "/d")), 1, "files")
    whole_lives_in_one(c, n, files(c.dir + "/d")[0], text)


def test_all_is_of_that_file(c):
    """--all BINARY: who runs it now and later; not other programs, not their children of other files."""
    other = os.path.join(c.dir, "other")
    subprocess.check_call(["cp", c.targets["short"], other])
    t = Target([c.targets["procs"], "vforks", "3", other])
    tr = Tracer(["-v", "--all", c.targets["procs"], "--directory", c.dir + "/d"])
    later = Target([c.targets["procs"], "ticks", "2"])
    for x in (t, later):
        x.go()
        x.read()
        x.end()
    subprocess.check_call([other, "77"])
    equal(tr.stop(), 0, "exit status")
    found = by_pid(files(c.dir + "/d"))
    equal(found.get(t.pid), [0, 1, 2], "ticks of the one that was there")
    equal(found.get(later.pid), [0, 1], "ticks of the one that came")
    need(not any(n.startswith("other") for n in names(c.dir + "/d")), "traced what nobody asked for: %r" % found)
    for p in files(c.dir + "/d"):
        need("life" not in good(p).names, "events of another program in " + p)


def test_all_and_follow(c):
    """--all BINARY --follow: also what its children run."""
    tr = Tracer(["--all", c.targets["procs"], "--follow", "--directory", c.dir + "/d"])
    t = Target([c.targets["procs"], "vforks", "4", c.targets["short"]])
    t.go()
    t.read()
    t.end()
    equal(tr.stop(), 0, "exit status")
    kids = [p for p in files(c.dir + "/d") if os.path.basename(p).startswith("short")]
    got = {values(p, "id")[0]: values(p) for p in kids if values(p)}
    equal(got, {n: [0, 1, 2] for n in range(4)}, "ticks of the children")


def test_own_pid_namespace(c):
    """In a pid namespace of its own the numbers would mean other processes: one line."""
    mounts(c)
    p = subprocess.run(["unshare", "-p", "-f", "--mount-proc", lib.TOOL, "-o", c.dir + "/t", "--", c.targets["short"]],
                       stderr=subprocess.PIPE)
    equal(p.returncode, 1, "exit status")
    lib.one_error_line(p.stderr.decode(), "pid namespace", "hostPID")
    need(not os.path.exists(c.dir + "/t"), "a file was left behind")


def test_two_pids_and_comm(c):
    """-p A,B and --comm GLOB: these and no other."""
    ts = [Target([c.targets["procs"], "ticks", "4"]) for _ in range(3)]
    tr = Tracer(["-p", "%d,%d" % (ts[0].pid, ts[1].pid), "--directory", c.dir + "/p"])
    trc = Tracer(["--comm", "pro?s", "--directory", c.dir + "/c"])
    short = subprocess.run([c.targets["short"], "1"])
    equal(short.returncode, 0, "short")
    for t in ts:
        t.go()
        t.read()
        t.end()
    equal(tr.wait(), 0, "exit status")
    equal(trc.stop(), 0, "exit status")
    equal(by_pid(files(c.dir + "/p")), {t.pid: [0, 1, 2, 3] for t in ts[:2]}, "by pid")
    equal(by_pid(files(c.dir + "/c")), {t.pid: [0, 1, 2, 3] for t in ts}, "by name")


def test_comm_comes_later(c):
    """A process of a wanted name that starts later is traced shortly after its exec."""
    tr = Tracer(["--comm", "procs", "--directory", c.dir + "/d"])
    t = Target([c.targets["procs"], "ticks", "4"])
    time.sleep(0.3)
    t.go()
    t.read()
    t.end()
    equal(tr.stop(), 0, "exit status")
    equal(by_pid(files(c.dir + "/d")), {t.pid: [0, 1, 2, 3]}, "ticks")


# ---- Fork and exec --------------------------------------------------------------------------------------


def test_fork_server(c):
    """50 children under --follow: a file each, everything in it."""
    truth, paths, text = trace(c, ["forks", "50", "20"], ["--follow"])
    equal(delivered(text), 50 + 50 * 22, "hits")
    found = by_pid(paths)
    equal(len(found), 51, "processes")
    equal(sorted(found.pop(truth["pid"])), sorted(-i for i in range(50)), "ticks of the server")
    children = sorted(v for v in found.values())
    equal(children, [[n * 1000 + i for i in range(20)] for n in range(50)], "ticks of the children")
    slices = [o for p in paths for o in dump(p) if o["type"] == "slice"]
    equal(sorted(o["args"]["child"] for o in slices), list(range(50)), "scopes of the children")
    need(all(o["dur"] is not None for o in slices), "a scope is open")


def test_case13_fork_noexec(c):
    """Case 13. With -p only the parent's; with --follow all five. No child is harmed in either way."""
    truth, paths, _ = trace(c, ["noexec"])
    equal(by_pid(paths), {truth["pid"]: [0, 1, 2]}, "without --follow")
    lib.remove(c.dir + "/d")
    truth, paths, _ = trace(c, ["noexec"], ["--follow"])
    found = by_pid(paths)
    equal(found.pop(truth["pid"]), [0, 1, 2], "the parent's")
    equal(sorted(v for v in found.values()), [[1000], [2000]], "the children's")


def test_children_survive(c):
    """A forked child, followed or not, comes back from a probe that its parent has hit before."""
    for args in ([], ["--follow"]):
        t = Target([c.targets["procs"], "survive", "20"])
        tr = Tracer(["-p", str(t.pid), "-o", c.dir + "/t%d.pftrace" % len(args)] + args)
        t.go()
        truth = t.read()
        t.end()
        equal(tr.wait(), 0, "exit status")
        equal(truth["well"], 20, "children that ended well, tracer %r" % args)


def test_vfork_exec(c):
    truth, paths, _ = trace(c, ["vforks", "10", c.targets["short"]], ["--follow"])
    kids = [p for p in paths if os.path.basename(p).startswith("short")]
    got = {values(p, "id")[0]: values(p) for p in kids if values(p)}
    equal(got, {n: [0, 1, 2] for n in range(10)}, "ticks of the children")
    equal(by_pid([p for p in paths if p not in kids]), {truth["pid"]: list(range(10))}, "ticks of the parent")


def test_case15_self_exec(c):
    """Case 15. Same process, new image: goes on in the same file; what was open ended with the exec."""
    truth, paths, text = trace(c, ["selfexec"])
    equal(by_pid(paths), {truth["pid"]: [0, 10, 11, 12, 100, 101]}, "ticks")
    equal(len(paths), 1, "files")
    slices = {o["name"]: o for o in dump(paths[0]) if o["type"] == "slice"}
    for name in ("before exec", "sitting"):
        need(slices[name]["dur"] is not None, name + " is open")
        need("exec" in str(slices[name]["args"].get("end")), "%s: %r" % (name, slices[name]["args"]))


def test_thread_exec(c):
    """An exec from another thread than the first: attached again."""
    for i, args in enumerate(([], ["--follow"])):
        truth, paths, _ = trace(c, ["threadexec"], args)
        found = by_pid(paths)[truth["pid"]]
        equal(found[:2], [0, 1], "%r: before" % args)
        equal(found[-2:], [100, 101], "%r: after" % args)
        if i:
            equal(found, [0, 1, 10, 11, 12, 100, 101], "%r" % args)
        lib.remove(c.dir + "/d")


def test_child_killed(c):
    """A child killed with SIGKILL in a span: the span ends at its death and says so."""
    truth, paths, _ = trace(c, ["killed"], ["--follow"])
    found = by_pid(paths)
    equal(found.pop(truth["pid"]), [6], "the parent's")
    equal(list(found.values()), [[5]], "the child's")
    victim = [o for p in paths for o in dump(p) if o["type"] == "slice"]
    equal([o["name"] for o in victim], ["victim"], "slices")
    need("killed by signal 9" in str(victim[0]["args"].get("end")), "%r" % victim)


def test_case25_die_mid_span(c):
    """Case 25. SIGKILL, SIGSEGV, exit, SIGABRT in a span, with the trace directory."""
    for i, (way, status) in enumerate((("kill", -9), ("segv", -11), ("exit3", 3), ("abort", -6))):
        t = Target([c.targets["die"], way, "1"])
        tr = Tracer(["-p", str(t.pid), "--directory", "%s/%d" % (c.dir, i)])
        t.go()
        equal(t.p.wait(20), status, way)
        equal(tr.wait(20), 0, "exit status: " + tr.text())
        paths = files("%s/%d" % (c.dir, i))
        equal(len(paths), 1, "files")
        equal(good(paths[0]).names, {"before": 1, "outer": 1, "inner": 1}, way)


def take_pid(pid, argv, env):
    """Starts a program that gets the number of one that is gone; None if others were faster."""
    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
        f.write(str(pid - 1))
    p = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
    if p.pid == pid:
        return p
    p.kill()
    p.wait()


def test_pid_of_another(c):
    """A process is gone, and its number is another's, before the tracer looks: nothing of the other's is taken."""
    other = dict(os.environ, HYPERACTOR_PROCESS_NAME="impostor", HYPERACTOR_EXECUTION_ID="impostors")
    tries = 0
    for i in range(10):
        d = "%s/d%d" % (c.dir, i)
        tr = Tracer(["--all", c.targets["short"], "--directory", d], quiet=True)
        end = time.time() + 20
        while "Ctrl-C" not in tr.text() and "armed" not in tr.text() and time.time() < end:
            time.sleep(0.02)
        tr.p.send_signal(signal.SIGSTOP)
        try:
            p = subprocess.Popen([c.targets["short"], "5"])
            equal(p.wait(20), 0, "exit status of the target")
            time.sleep(0.05)  # /proc has start times in ticks of 10 ms
            taken = next((q for q in (take_pid(p.pid, ["sleep", "60"], other) for _ in range(50)) if q), None)
        finally:
            tr.p.send_signal(signal.SIGCONT)
        end = time.time() + 10
        while not files(d) and time.time() < end:
            time.sleep(0.05)
        if taken:
            taken.kill()
            taken.wait()
        tr.stop()
        if not taken:
            tries += 1
            continue
        equal(names(d), ["short.pftrace"], "files")
        equal(values(files(d)[0], "id"), [5] * 5, "ticks")
        need("impostors" not in os.listdir(d + "/executions"), "the execution of another")
        return "after %d tries" % (tries + 1)
    raise lib.Skipped("the pid was always taken by others")


def test_exit_status(c):
    """-- COMMAND: its exit status, or 128 + signal; its own words go where they went."""
    for command, want in ((["sh", "-c", "exit 0"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137),
                          (["sh", "-c", "kill -TERM $$"], 143), ([c.dir + "/none"], 1), (["sh", "-c", "echo hi"], 0)):
        status, out, err = run_tool(["-q", "--directory", c.dir + "/d", "--"] + command)
        equal(status, want, "%r (%s)" % (command, err))
        equal(out, "hi\n" if "echo hi" in command else "", "output")


def test_command_that_cannot_run(c):
    status, _, err = run_tool(["--directory", c.dir + "/d", "--", c.dir + "/none"])
    equal(status, 1, "exit status")
    lib.one_error_line(err, c.dir + "/none", "No such file")
    with open(c.dir + "/plain", "w") as f:
        f.write("x")
    status, _, err = run_tool(["--directory", c.dir + "/d", "--", c.dir + "/plain"])
    need(status in (1, 126), "exit status %d" % status)
    need("error:" in err and c.dir + "/plain" in err, err)


def test_interrupt_ends_command(c):
    """SIGTERM for the tracer ends the command too; the trace is good."""
    tr = Tracer(["-v", "--directory", c.dir + "/d", "--", c.targets["short"], "1", "1000000000"], quiet=True)
    tr.armed()
    time.sleep(0.3)
    equal(tr.stop(signal.SIGTERM), 143, "exit status: " + tr.text())
    paths = files(c.dir + "/d")
    equal(len(paths), 1, "files")
    need(good(paths[0]).instants > 100, "hardly any events")
    need(not subprocess.run(["pgrep", "-f", c.targets["short"] + " 1 1000000000"], stdout=subprocess.PIPE).stdout,
         "the command is still there")


def twelve(c, marks):
    """A script: twelve children, each of another file, so each one is held."""
    os.mkdir(marks)
    path = marks + ".sh"
    with open(path, "w") as f:
        f.write("#!/bin/sh\ncd %s; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cp %s p$i; ./p$i $i && touch m$i; done; touch end\n"
                % (marks, c.targets["short"]))
    os.chmod(path, 0o755)
    return path


def test_hold(c):
    """-p PID --follow --hold: what children exec waits for a tracer that is slow, and is traced from its first instruction."""
    marks, d = c.dir + "/m", c.dir + "/d"
    t = Target([c.targets["procs"], "vforks", "1", twelve(c, marks)])
    tr = Tracer(["-v", "-p", str(t.pid), "--follow", "--hold", "--directory", d])
    tr.p.send_signal(signal.SIGSTOP)
    t.go()
    time.sleep(0.5)
    need(not os.path.exists(marks + "/end"), "nobody was held")
    tr.p.send_signal(signal.SIGCONT)
    t.read()
    equal(t.end(), 0, "exit status of the target")
    equal(tr.wait(), 0, "exit status: " + tr.text())
    need(os.path.exists(marks + "/end"), "the children did not end")
    kids = [p for p in files(d) if re.match(r"p\d+\.", os.path.basename(p))]
    got = {values(p, "id")[0]: values(p) for p in kids}
    equal(got, {k: [0, 1, 2, 3, 4] for k in range(1, 13)}, "ticks of the children")


def test_tracer_killed_while_holding(c):
    """kill -9 of the tracer at a time when a child is held: the child goes on and ends."""
    for i in range(10 if c.long else 4):
        marks = "%s/m%d" % (c.dir, i)
        script = twelve(c, marks)
        t = None
        if i % 2:
            t = Target([c.targets["procs"], "vforks", "1", script])
            tr = Tracer(["--directory", c.dir + "/d%d" % i, "-p", str(t.pid), "--follow", "--hold"])
            t.go()
        else:
            tr = Tracer(["--directory", c.dir + "/d%d" % i, "--", script], quiet=True)
        end = time.time() + 20
        while not os.path.exists(marks + "/m3") and time.time() < end:
            time.sleep(0.001)
        # It cannot let go: it is stopped first, then a child is waiting for it, then it dies.
        tr.p.send_signal(signal.SIGSTOP)
        held = 0
        while not held and time.time() < end:
            for p in os.listdir("/proc"):
                try:
                    stat = open("/proc/%s/stat" % p).read() if p.isdigit() else ""
                except OSError:
                    continue
                if re.search(r"^\d+ \(p\d+\) T ", stat):
                    held = int(p)
        need(held, "nobody was held")
        tr.p.send_signal(signal.SIGKILL)
        tr.p.wait()
        while not os.path.exists(marks + "/end") and time.time() < end:
            time.sleep(0.01)
        need(os.path.exists(marks + "/end"), "the command did not go on")
        equal(len([n for n in os.listdir(marks) if n.startswith("m")]), 12, "children that ended well")
        if t:
            t.read()
            equal(t.end(), 0, "exit status of the target")


def test_detach_while_forking(c):
    """The tracer comes and goes while children are forked as fast as can be: no child is harmed."""
    t = Target([c.targets["procs"], "forkloop"])
    t.go()
    for i in range(20 if c.long else 5):
        tr = Tracer(["-p", str(t.pid), "--follow", "--single", "--directory", c.dir + "/d%d" % i])
        time.sleep(0.15)
        equal(tr.stop(), 0, "exit status: " + tr.text())
        paths = files(c.dir + "/d%d" % i)
        equal(len(paths), 1, "files")
        k = good(paths[0])
        need(k.instants > 5, "hardly any events")
    t.go()
    truth = t.read()
    equal(t.end(), 0, "exit status of the target")
    equal(truth["badly"], 0, "children that ended badly of %d" % truth["forks"])


# ---- Threads --------------------------------------------------------------------------------------------


def test_short_threads(c):
    """200 threads that live a millisecond each: a track each, nothing missing."""
    n = 2000 if c.long else 200
    _, paths, text = trace(c, ["threads", str(n)])
    k = good(paths[0], "tick")
    equal(sorted(a["i"] for a in k.args_out), list(range(n)), "ticks")
    equal(k.names, {"life": n}, "slices")
    equal(len(threads(k)), n, "threads")
    equal(lost(text), 0, "lost")


def test_renames(c):
    """A thread that renames itself 1,000 times a second: one track, last name, no event lost."""
    _, paths, text = trace(c, ["renames", "500"])
    k = good(paths[0], "tick")
    equal(sorted(a["i"] for a in k.args_out), list(range(501)), "ticks")
    equal([d[1] for d in threads(k)], ["last"], "threads")
    equal(lost(text), 0, "lost")


def test_case17_threads_rename(c):
    """Case 17. Threads made after attaching, renamed twice, a name with UTF-8, slash and quote."""
    _, paths, _ = trace(c, ["renamed_twice"])
    equal(values(paths[0]), [0, 1, 2, 10, 11, 12, 20, 21, 22], "ticks")
    equal([d[1] for d in threads(good(paths[0]))], ["second"] * 3, "names")


def test_thread_names(c):
    """The program's long names; two of equal name and two without a name stay apart."""
    _, paths, _ = trace(c, ["names"])
    k = good(paths[0])
    equal(sorted(d[1] for d in threads(k)),
          ["", "", "monarch-pytokio-worker-0", "monarch-pytokio-worker-1", "same", "same"], "names")
    per = {}
    for o in dump(paths[0]):
        if o["type"] == "instant":
            per.setdefault(o["tid"], []).append(o["args"]["i"])
    equal(sorted(per.values()), [[i, 100 + i] for i in (0, 2, 4, 6, 8, 10)], "ticks by thread")


# ---- Libraries and binaries -----------------------------------------------------------------------------


def test_case06_dlopen_late(c):
    """Case 06. A library loaded after attaching, unloaded, loaded again; armed within 100 ms of each load."""
    so = library(c)
    took = []
    for i in range(20 if c.long else 5):
        truth, paths, _ = trace(c, ["dlopen", so])
        equal(values(paths[0], name="late"), [0, 1, 2, 3, 100], "events of the library")
        took.append(truth["armed_us"] / 1000)
        lib.remove(c.dir + "/d")
    took.sort()
    need(took[len(took) // 2] < 100, "armed after %r ms" % took)
    need(took[-1] < 300, "armed after %r ms" % took)
    return "armed after %.0f to %.0f ms" % (took[0], took[-1])


def test_dlopen_dlclose(c):
    """100 times loaded and unloaded while another thread fires at full rate."""
    n = 100
    truth, paths, text = trace(c, ["dlopens", library(c), str(n)])
    k = good(paths[0], "late")
    late = [a["i"] for a in k.args_out]
    ticks = k.instant_names["tick"]
    gone = lost(text)
    equal(ticks + len(late), delivered(text), "delivered")
    need(truth["ticks"] - gone <= ticks <= truth["ticks"], "ticks: %d of %d, %d lost" % (ticks, truth["ticks"], gone))
    # Armed before and after the call: then it was seen. Others may have been.
    need(len(late) + gone >= truth["late"], "%d of %d events of the library" % (len(late), truth["late"]))
    need(len(set(late)) > n // 2, "the library was seen in %d of %d loads" % (len(set(late)), n))
    return "%d events of the library, %d ticks, %d lost" % (len(late), ticks, gone)


def test_memfd_library(c):
    _, paths, _ = trace(c, ["memlib", library(c)])
    equal(values(paths[0], name="late"), [7], "events of the library")


def run_as(c, argv, args=(), pid=None, **kw):
    """A target that is started in a special way; returns the ticks of its only file."""
    t = Target(argv, **kw)
    tr = Tracer(["-p", str(pid(t) if pid else t.pid), "--directory", c.dir + "/d"] + list(args))
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    paths = files(c.dir + "/d")
    equal(len(paths), 1, "files")
    return values(paths[0])


def test_case08_stripped(c):
    """Case 08. No symbols, no build id: the notes are enough."""
    for i, args in enumerate((["-s"], ["-s", "-R", ".comment", "-R", ".note.gnu.build-id", "-R", ".note.ABI-tag"])):
        exe = "%s/stripped%d" % (c.dir, i)
        subprocess.check_call(["strip"] + args + [c.targets["procs"], "-o", exe])
        equal(run_as(c, [exe, "ticks", "3"]), [0, 1, 2], "ticks")
        lib.remove(c.dir + "/d")


def copy(c, name):
    path = os.path.join(c.dir, name)
    subprocess.check_call(["cp", c.targets["procs"], path])
    return path


def test_case10_deleted(c):
    """Case 10. The binary was deleted after the start."""
    exe = copy(c, "gone")
    t = Target([exe, "ticks", "3"])
    os.unlink(exe)
    tr = Tracer(["-p", str(t.pid), "--directory", c.dir + "/d"])
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    equal(values(files(c.dir + "/d")[0]), [0, 1, 2], "ticks")
    equal(names(c.dir + "/d"), ["gone.pftrace"], "name")


def test_replaced_binary(c):
    """Another program has the path by now: the one that runs is traced, not the one that is there."""
    exe = copy(c, "swap")
    t = Target([exe, "ticks", "3"])
    os.unlink(exe)
    subprocess.check_call(["cp", c.targets["short"], exe])
    tr = Tracer(["-v", "-p", str(t.pid), "--directory", c.dir + "/d"])
    subprocess.check_call([exe, "5"])
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    equal(by_pid(files(c.dir + "/d")), {t.pid: [0, 1, 2]}, "ticks")


HEADLESS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <montrace.h>
#define FIRE(name, v) __asm__ volatile("990: nop\\n.pushsection .note.stapsdt,\\"\\",\\"note\\"\\n.balign 4\\n" \
    ".4byte 992f-991f,994f-993f,3\\n991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b,0,0\\n" \
    ".asciz \\"h\\"\\n.asciz \\"" name "\\"\\n.asciz \\"-4@%0\\"\\n994: .balign 4\\n.popsection\\n" : : "r"(v))
#ifdef LIBRARY
void late(int i) { FIRE("late", i); }
#else
static pthread_t first;
static const char *library;
static void line(void) { char c; while (read(0, &c, 1) == 1 && c != '\\n'); }
static void ready(void) { printf("ready %d\\n", (int)getpid()); fflush(stdout); line(); }
static void *other(void *early)
{
    pthread_join(first, NULL);
    if (early)
        ready();
    for (int i = 0; i < 5; i++) {
        FIRE("tick", i);
        MONTRACE_EVENT(MONTRACE_INFO, "own", MT_I64("i", i));
    }
    for (int i = 0; i < 2; i++) { /* the file is mapped anew each time */
        void *l = dlopen(library, RTLD_NOW);
        void (*late)(int) = (void (*)(int))dlsym(l, "late");
        usleep(400000);
        late(10 + i);
        dlclose(l);
    }
    printf("done\\n");
    fflush(stdout);
    line();
    exit(0);
}
int main(int argc, char **argv)
{
    pthread_t t;
    first = pthread_self();
    library = argv[1];
    if (argc == 2)
        ready();
    pthread_create(&t, NULL, other, argc > 2 ? "" : NULL);
    pthread_exit(NULL);
}
#endif
"""


def test_first_thread_gone(c):
    """The first thread has ended, before attaching or behind it; the others go on, map files, and are traced."""
    exe, so = c.dir + "/headless", c.dir + "/late.so"
    for flags in (["-o", exe], ["-DLIBRARY", "-shared", "-fPIC", "-o", so]):
        subprocess.run(["cc", "-O2", "-g", "-w", "-x", "c", "-", "-I", os.path.join(lib.ROOT, "include"), "-lpthread",
                        "-ldl"] + flags, input=HEADLESS.encode(), check=True)
    runs = []
    for early in ([], ["early"]):
        for args in ([], ["--follow"], ["--library", so]) if early else ([], ["--library", so]):
            runs.append((early, args))
    at = []
    for i, (early, args) in enumerate(runs): # all at once: they mostly wait
        t = Target([exe, so] + early)
        tr = Tracer(["-p", str(t.pid), "-o", "%s/%d.pftrace" % (c.dir, i), "--usdt", "h:*", "-v"] + args)
        at.append((t, tr))
    _, out, err = run_tool(["list", "-p", str(at[-1][0].pid)])
    need("h:tick" in out, "list -p: %r %r" % (out, err))
    for t, _ in at:
        t.go()
    for i, (t, tr) in enumerate(at):
        t.read()
        t.end()
        equal(tr.wait(), 0, "exit status: " + tr.text())
        got = {}
        for o in dump("%s/%d.pftrace" % (c.dir, i)):
            if o["type"] == "instant":
                got.setdefault(o["name"], []).append(o["args"].get("i", o["args"].get("arg0")))
        equal(got, {"tick": [0, 1, 2, 3, 4], "own": [0, 1, 2, 3, 4], "late": [10, 11]}, "%s: hits" % (runs[i],))
    # By file, and with a name of the program's file.
    t = Target([exe, so, "early"])
    tr = Tracer(["--all", exe, "--directory", c.dir + "/d", "--usdt", "h:tick"])
    t.go()
    t.read()
    t.end()
    equal(tr.stop(), 0, "exit status of --all: " + tr.text())
    paths = files(c.dir + "/d")
    need(len(paths) == 1 and "headless" in os.path.basename(paths[0]), "files: %s" % paths)
    equal(len([o for o in dump(paths[0]) if o["type"] == "instant" and o["name"] == "tick"]), 5, "ticks under --all")


MEMFD = """
import os, sys
fd = os.memfd_create("program")
os.write(fd, open(sys.argv[1], "rb").read())
os.execve(fd, ["in-memory", "ticks", "3"], os.environ)
"""


def test_memfd_program(c):
    equal(run_as(c, [sys.executable, "-c", MEMFD, c.targets["procs"]]), [0, 1, 2], "ticks")


def mounts(c):
    lib.mount_namespaces()


def test_mount_namespace(c):
    """The binary is on a file system that only the target sees."""
    mounts(c)
    os.mkdir(c.dir + "/mnt")
    script = "mount -t tmpfs none {0}/mnt && cp {1} {0}/mnt/inside && exec {0}/mnt/inside ticks 3".format(
        c.dir, c.targets["procs"])
    equal(run_as(c, ["unshare", "-m", "sh", "-c", script]), [0, 1, 2], "ticks")
    equal(names(c.dir + "/d"), ["inside.pftrace"], "name")


def test_overlay(c):
    """On an overlay file system, by pid and by file."""
    mounts(c)
    for d in ("low", "up", "work", "over", "tmp"):
        os.mkdir(c.dir + "/" + d)
    # The upper layer on a tmpfs: an overlay on an overlay is not everywhere allowed.
    copy(c, "low/inside")
    mount = "mount -t tmpfs none {0}/tmp && mkdir {0}/tmp/up {0}/tmp/work && mount -t overlay none -o lowerdir={0}/low," \
            "upperdir={0}/tmp/up,workdir={0}/tmp/work {0}/over".format(c.dir)
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], stderr=subprocess.DEVNULL).returncode:
        raise lib.Skipped("no overlay file system")
    equal(run_as(c, ["unshare", "-m", "sh", "-c", mount + " && exec %s/over/inside ticks 3" % c.dir]), [0, 1, 2], "ticks")
    lib.remove(c.dir + "/d")
    # The tracer in the same mount namespace, by file.
    script = "set -e; " + mount + "; {1} --all {0}/over/inside --directory {0}/d -d 2 & sleep 1; " \
        "echo | {0}/over/inside ticks 3 > {0}/out; wait".format(c.dir, lib.TOOL)
    p = subprocess.run(["unshare", "-m", "sh", "-c", script], stderr=subprocess.PIPE)
    equal(p.returncode, 0, "exit status: " + p.stderr.decode())
    paths = files(c.dir + "/d")
    equal(len(paths), 1, "files: " + p.stderr.decode())
    equal(values(paths[0]), [0, 1, 2], "ticks by file")


def only_child(t):
    """The process that t started last, however deep."""
    pid = t.p.pid
    while True:
        kids = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE).stdout.split()
        if not kids:
            return pid
        pid = int(kids[0])


def test_case12_mount_pid_ns(c):
    """Case 12. pid 1 of another pid namespace, its binary in another mount namespace: outer numbers."""
    mounts(c)
    os.mkdir(c.dir + "/mnt")
    script = "mount -t tmpfs none {0}/mnt && cp {1} {0}/mnt/inside && exec {0}/mnt/inside ticks 3".format(
        c.dir, c.targets["procs"])
    t = Target(["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", script])
    equal(t.pid, 1, "its own number")
    pid = only_child(t)
    need(pid > 1, "no child")
    tr = Tracer(["-p", str(pid), "--directory", c.dir + "/d"])
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    paths = files(c.dir + "/d")
    k = good(paths[0], "tick")
    equal([(a["i"], a["pid"]) for a in k.args_out], [(0, 1), (1, 1), (2, 1)], "what it says of itself")
    equal({o["pid"] for o in dump(paths[0]) if o["type"] == "instant"}, {pid}, "pid in the trace")


def test_case24_sigstop(c):
    """Case 24. Stopped while attached; after SIGCONT all is seen."""
    t = Target([c.targets["procs"], "ticks", "3"])
    os.kill(t.pid, signal.SIGSTOP)
    start = time.time()
    tr = Tracer(["-p", str(t.pid), "--directory", c.dir + "/d"])
    need(time.time() - start < 5, "attaching waited for a stopped process")
    t.go()
    time.sleep(0.1)
    os.kill(t.pid, signal.SIGCONT)
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    equal(values(files(c.dir + "/d")[0]), [0, 1, 2], "ticks")


def test_case37_tracer_killed(c):
    """Case 37. kill -9 of the tracer: semaphores are down again, the target runs on, code is as it was."""
    t = Target([c.targets["procs"], "slow", "60", "20000"])
    m = lib.Memory(t.pid)
    before = m.snapshot()
    need(all(sem == b"\0\0" for _, sem in before), "armed before")
    tr = Tracer(["-p", str(t.pid), "--directory", c.dir + "/d"])
    t.go()
    time.sleep(0.4)
    need(any(sem != b"\0\0" for _, sem in m.snapshot()), "not armed")
    tr.stop(signal.SIGKILL)
    end = time.time() + 5
    while m.snapshot() != before and time.time() < end:
        time.sleep(0.01)
    after = m.snapshot()
    need(all(sem == b"\0\0" for _, sem in after), "still armed")
    equal(after, before, "code")
    t.read()
    equal(t.end(), 0, "exit status of the target")
    paths = files(c.dir + "/d")
    with open(paths[0], "rb") as f:
        k = check_trace.check(f.read(), allow_open=True, allow_truncated=True)
    need(not k.violations and k.instants >= 5, "%r, %d events" % (k.violations, k.instants))


# ---- Names and places -----------------------------------------------------------------------------------


def test_process_name(c):
    """montrace_process_name: the file gets that name, made safe; what was written before is in it."""
    _, paths, _ = trace(c, ["name", "proc 3 @ host/x"])
    equal(names(c.dir + "/d"), ["proc 3 @ host_x.pftrace"], "files")
    equal(values(paths[0]), [0, 1], "ticks")
    equal([d[1] for d in processes(good(paths[0]))], ["proc 3 @ host/x"], "name in the trace")


def test_name_by_environment(c):
    """HYPERACTOR_PROCESS_NAME; a name that the program tells is over it; --name over both."""
    env = {"HYPERACTOR_PROCESS_NAME": "host rank:3 @box"}
    trace(c, ["ticks"], env=env)
    equal(names(c.dir + "/d"), ["host rank:3 @box.pftrace"], "by environment")
    lib.remove(c.dir + "/d")
    trace(c, ["name", "own"], env=env)
    equal(names(c.dir + "/d"), ["own.pftrace"], "by the program")
    lib.remove(c.dir + "/d")
    truth, _, _ = trace(c, ["ticks"], ["--name", "%n-%p"], env=env)
    equal(names(c.dir + "/d"), ["procs-%d.pftrace" % truth["pid"]], "by option")
    lib.remove(c.dir + "/d")
    status, _, err = run_tool(["--name", "%q", "--directory", c.dir + "/d", "--", c.targets["short"]])
    equal(status, 1, "exit status")
    need("--name" in err and "%q" in err, err)


def executions(c):
    return sorted(n for n in os.listdir(c.dir + "/d/executions") if n != "latest")


def test_execution_id(c):
    """Option over the program over its environment over one that is made."""
    env = {"HYPERACTOR_EXECUTION_ID": "from-env"}
    trace(c, ["execid", "from-program"], ["--execution-id", "from-option"], env=env)
    equal(executions(c), ["from-option"], "option")
    lib.remove(c.dir + "/d")
    trace(c, ["execid", "from-program"], env=env)
    need("from-program/procs.pftrace" in files(c.dir + "/d")[0], "program: %r" % files(c.dir + "/d"))
    lib.remove(c.dir + "/d")
    trace(c, ["ticks"], env=env)
    equal(executions(c), ["from-env"], "environment")
    lib.remove(c.dir + "/d")
    trace(c, ["ticks"])
    need(re.fullmatch(r"\w+_[A-Z][a-z]{2}-\d\d_\d\d:\d\d_\d{1,3}", executions(c)[0]), "made: %r" % executions(c))


def test_execution_id_of_children(c):
    """Short-lived children are in the execution that their environment names, also if they are gone already."""
    status, _, err = run_tool(["--directory", c.dir + "/d", "--"] + loop(c, 60), env={"HYPERACTOR_EXECUTION_ID": "job-1"})
    equal(status, 0, err)
    equal(executions(c), ["job-1"], "executions")
    equal(len(files(c.dir + "/d")), 60, "files")


def test_name_in_use(c):
    """Never over another trace: a suffix."""
    for _ in range(2):
        trace(c, ["name", "same"], ["--execution-id", "e"])
    found = names(c.dir + "/d")
    equal(len(found), 2, "files")
    equal(found[1], "same.pftrace", "first")
    need(re.fullmatch(r"same-\d+\.pftrace", found[0]), "second: %r" % found)
    for p in files(c.dir + "/d"):
        equal(values(p), [0, 1], p)


def test_latest(c):
    """latest points to the execution that began last."""
    for i in ("one", "two"):
        trace(c, ["ticks"], ["--execution-id", i])
        link = c.dir + "/d/executions/latest"
        equal(os.readlink(link), i, "latest")
    need(os.path.exists(link + "/procs.pftrace"), "no trace behind it")


# ---- Parts, packing, pipes ------------------------------------------------------------------------------


def test_rotate_size(c):
    """--rotate by size: each part is good by itself, together they are everything."""
    t = Target([c.targets["count"], "1", "1000", "spin"])
    tr = Tracer(["-v", "-p", str(t.pid), "--rotate", "256K", "--directory", c.dir + "/d"])
    t.go()
    time.sleep(0.4)  # files are looked at on each tick, every 50 ms
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    paths = files(c.dir + "/d")
    need(len(paths) >= 3, "only %d parts" % len(paths))
    events = scopes = 0
    for p in paths:
        k = good(p)
        events += k.instants
        scopes += k.spans
        equal(k.lost, 0, "lost")
    equal((events, scopes), (truth["events"], truth["scopes"]), "events and scopes in %d parts" % len(paths))
    need(any(".part-002.pftrace" in p for p in paths), "names: %r" % paths)
    return "%d parts" % len(paths)


def test_rotate_time(c):
    """--rotate by time: slices that span parts go on in the next one, marked."""
    _, paths, text = trace(c, ["long", "25", "100000"], ["--rotate", "1s"])
    need(len(paths) >= 3, "only %d parts" % len(paths))
    ticks, begun = [], 0
    for i, p in enumerate(sorted(paths, key=lambda p: (len(p), p))):
        k = good(p, "tick")
        ticks += [a["i"] for a in k.args_out]
        equal(k.names, {"all of it": 1}, p)
        begun += k.spans
        slices = [o for o in dump(p) if o["type"] == "slice"]
        need(slices[0]["dur"] is not None, "open at the end of " + p)
        equal("continued" in slices[0]["args"], i > 0, "part %d continued" % (i + 1))
    equal(ticks, list(range(25)), "ticks over all parts")
    equal(begun, 1, "spans")


def test_rotate_single_and_output(c):
    """Parts of the file of all, and of -o."""
    t = Target([c.targets["count"], "2", "40000"])
    tr = Tracer(["-p", str(t.pid), "--rotate", "256K", "-o", c.dir + "/t.pftrace"])
    tr2 = Tracer(["-p", str(t.pid), "--rotate", "256K", "--single", "--directory", c.dir + "/d"])
    t.go()
    truth = t.read()
    t.end()
    equal((tr.wait(), tr2.wait()), (0, 0), "exit status: %s%s" % (tr.text(), tr2.text()))
    for paths in ([os.path.join(c.dir, n) for n in os.listdir(c.dir) if n.endswith(".pftrace")], files(c.dir + "/d")):
        need(len(paths) >= 2, "parts: %r" % paths)
        equal(sum(good(p).instants for p in paths), truth["events"], "events")
    need(os.path.exists(c.dir + "/t.part-002.pftrace"), "names: %r" % os.listdir(c.dir))


def test_compress(c):
    sizes = []
    for args in ([], ["--compress"]):
        t = Target([c.targets["count"], "2", "20000"])
        tr = Tracer(["-p", str(t.pid), "--directory", c.dir + "/d"] + args)
        t.go()
        truth = t.read()
        t.end()
        equal(tr.wait(), 0, "exit status")
        path = files(c.dir + "/d")[0]
        equal(good(path).instants, truth["events"], "events")
        sizes.append(os.path.getsize(path))
        lib.remove(c.dir + "/d")
    need(sizes[1] * 2 < sizes[0], "sizes: %r" % sizes)
    return "%d to %d bytes" % tuple(sizes)


def test_standard_output(c):
    """-o -: the trace and nothing else."""
    t = Target([c.targets["count"], "1", "5000"])
    path = c.dir + "/t.pftrace"
    with open(path, "wb") as f:
        p = subprocess.Popen([lib.TOOL, "-p", str(t.pid), "-o", "-"], stdout=f, stderr=subprocess.PIPE)
        need(b"armed" in p.stderr.readline() + p.stderr.readline(), "not armed")
        t.go()
        truth = t.read()
        t.end()
        equal(p.wait(20), 0, "exit status")
    equal(good(path).instants, truth["events"], "events")


def test_filter_directives(c):
    """--filter and MONTRACE_FILTER by target and level; the option counts."""
    for args, env, n in ((["--filter", "procs=off"], None, 0), ([], {"MONTRACE_FILTER": "procs=off"}, 0),
                         (["--filter", "info"], {"MONTRACE_FILTER": "off"}, 3), (["--filter", "warn"], None, 0),
                         (["--filter", "off,procs=trace"], None, 3), (["--filter", "proc=off"], None, 3),
                         (["--filter", "proc=off", "--filter-compat", "prefix"], None, 0)):
        t = Target([c.targets["procs"], "ticks", "3"])
        tr = Tracer(["-p", str(t.pid), "--directory", c.dir + "/d"] + args, env=env)
        t.go()
        t.read()
        t.end()
        equal(tr.wait(), 0, "exit status of %r: %s" % (args, tr.text()))
        equal(sum(good(p).instants for p in files(c.dir + "/d")), n, "events with %r %r" % (args, env))
        lib.remove(c.dir + "/d")


def test_user_prefix(c):
    """--user-prefix makes targets user-facing; the others are hidden then."""
    _, paths, text = trace(c, ["ticks"], ["--user-prefix", "pro"])
    equal(good(paths[0]).instants, 3, "events")
    need("no callsite is user-facing" not in text, text)
    t = Target([c.targets["procs"], "ticks"])
    status, _, err = run_tool(["-p", str(t.pid), "-m", "user", "--user-prefix", "nothing", "--directory", c.dir + "/x"])
    equal(status, 1, "exit status")
    lib.one_error_line(err, "none is user-facing")
    t.end()


def test_mode_precedence(c):
    """Option over PERFETTO_TRACE_MODE over the default; off leaves nothing behind."""
    for args, mode, n in (([], "off", None), (["-m", "dev"], "off", 3), (["-m", "off"], "dev", None), ([], "ALL", 3),
                          ([], "None", None), ([], "bad", 3), ([], None, 3)):
        t = Target([c.targets["procs"], "ticks", "3"])
        env = {} if mode is None else {"PERFETTO_TRACE_MODE": mode}
        tr = Tracer(["-p", str(t.pid), "--directory", c.dir + "/d"] + args, env=env, quiet=n is None)
        if n is None:
            equal(tr.wait(), 0, "exit status")
            need("mode off" in tr.text(), tr.text())
            need(not os.path.exists(c.dir + "/d"), "a directory was made")
        t.go()
        t.read()
        t.end()
        if n is not None:
            equal(tr.wait(), 0, "exit status")
            equal(good(files(c.dir + "/d")[0]).instants, n, "%r %r" % (args, mode))
        equal(mode == "bad", "unknown trace mode: bad" in tr.text(), "warning: " + tr.text())
        lib.remove(c.dir + "/d")


def test_mode_off_runs_command(c):
    """off with -- COMMAND: it runs, untraced."""
    status, out, err = run_tool(["-m", "off", "--directory", c.dir + "/d", "--", "sh", "-c", "echo ran; exit 5"])
    equal((status, out), (5, "ran\n"), "status and output (%s)" % err)
    equal(files(c.dir + "/d"), [], "files")
    need(not os.path.exists(c.dir + "/d"), "a directory was made")


def test_naming(c):
    """Names of spans and events by --naming."""
    want = {
        "user": {"given name", "given message", "call"},
        "dev": {"naming::span", "naming::event", "monarch_hyperactor::telemetry::endpoint::call"},
        "upstream": {"naming::span", "given message", "mesh.method.call()"},
        "plain": {"span", "event", "call"},
    }
    for way, expected in want.items():
        _, paths, _ = trace(c, [], ["-m", "dev", "--naming", way], program="naming")
        got = {o["name"] for o in dump(paths[0]) if o["type"] in ("slice", "instant")}
        equal(got, expected, way)
        lib.remove(c.dir + "/d")


def test_idle_flush_per_process(c):
    """On disk within 100 ms of the event, in the file of each process."""
    ts = [Target([c.targets["procs"], "ticks", "5"]) for _ in range(2)]
    tr = Tracer(["-p", str(ts[0].pid), "-p", str(ts[1].pid), "--directory", c.dir + "/d"])
    for t in ts:
        t.go()
        t.read()
    time.sleep(0.15)
    equal([good(p, allow_open=True).instants for p in files(c.dir + "/d")], [5, 5], "events on disk")
    equal(tr.stop(), 0, "exit status")
    for t in ts:
        t.end()


def test_flush_thousand(c):
    """1,000 events are written out without waiting for the process or the tracer to end."""
    t = Target([c.targets["count"], "1", "1000"])
    tr = Tracer(["-p", str(t.pid), "--directory", c.dir + "/d"])
    t.go()
    truth = t.read()
    time.sleep(0.15)
    equal(good(files(c.dir + "/d")[0], allow_open=True).instants, truth["events"], "events on disk")
    tr.stop()
    t.end()


def test_two_tracers_of_all(c):
    """Two tracers on the same processes, by file and by pid; each is right."""
    t = Target([c.targets["procs"], "forks", "5", "10"])
    trs = [Tracer(["--all", c.targets["procs"], "--directory", c.dir + "/a"]),
           Tracer(["-p", str(t.pid), "--follow", "--directory", c.dir + "/b"]),
           Tracer(["-p", str(t.pid), "--directory", c.dir + "/c"])]
    t.go()
    t.read()
    t.end()
    equal(trs[0].stop(), 0, "exit status")
    equal([tr.wait() for tr in trs[1:]], [0, 0], "exit status")
    for d, n in (("a", 6), ("b", 6), ("c", 1)):
        found = by_pid(files(c.dir + "/" + d))
        equal(len(found), n, "processes of " + d)
        equal(sum(len(v) for v in found.values()), 5 + (50 if n == 6 else 0), "ticks of " + d)


def test_upstream_workloads(c):
    """The workloads of the originals' own measurements, counted."""
    _, paths, _ = trace(c, ["workloads"])
    k = good(paths[0])
    equal(k.instants, 100 + 20 + 100 + 125 + 90, "events")
    equal(k.names, {"fields": 100, "outer": 20, "middle": 20, "inner": 20, "around": 30}, "slices")


def test_worked_example(c):
    """The worked example of docs/parity.md, in its content."""
    truth, paths, _ = trace(c, [], ["-m", "dev"], program="worked")
    slices, instants = ([o for o in dump(paths[0]) if o["type"] == kind] for kind in ("slice", "instant"))
    equal((len(slices), len(instants)), (1, 1), "slices and events")
    s, i = slices[0], instants[0]
    equal((s["name"], s["cat"], s["args"]["a"]), ("T::outer", "T", 1), "the slice")
    equal((i["name"], i["cat"], i["args"]["message"]), ("T::hi", "T", "hi"), "the event")
    for o in (s, i):
        equal((o["pid"], o["tid"], o["process"], o["thread"]), (truth["pid"], truth["pid"], "worked", "worked"), "track")
        need(o["file"].endswith("worked.c") and o["line"] > 0, "location: %r" % o)
        equal(o["args"]["level"], "info", "level")
    need(s["ts"] <= i["ts"] <= s["ts"] + s["dur"], "the event is not in the slice")
    equal(i["depth"], 1, "depth of the event")
