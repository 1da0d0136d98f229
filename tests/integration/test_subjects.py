# SPDX-License-Identifier: BSD-3-Clause
"""Recordings by subject, end to end: what the originals' recorder promises, and what it did wrong."""

import os
import signal
import subprocess
import time

import lib
from lib import Target, Tracer, equal, need
from test_flight import ask, rows, run_tool, status, wait_for


def subjects(c, *args):
    return Target([c.targets["subjects"]] + list(args))


def trace(c, *pids, args=()):
    av = ["-m", "dev", "--naming", "plain", "--directory", os.path.join(c.dir, "d")]
    for pid in pids:
        av += ["-p", str(pid)]
    return Tracer(av + list(args))


def tail(tr, subject=None, n=5000):
    return rows(ask(tr, "tail", "--json", "-n", str(n), *(["--subject", subject] if subject else [])))


def run(c, *args, tracer=()):
    """(target, tracer) when all that the target did was heard."""
    t = subjects(c, *args)
    tr = trace(c, t.pid, args=tracer)
    t.go()
    t.read()
    wait_for("the end was not heard", lambda: tail(tr, "end"), 20)
    return t, tr


def over(t, tr, want=0):
    t.end()
    equal(tr.wait(), want, "exit status: " + tr.text())


def seqs(v, key="i"):
    return [(r["seq"], r["fields"].get(key)) for r in v]


def what(c, *args):
    """What the recording `job` (or all but `end`) has: events."""
    t, tr = run(c, *args)
    v = [r for r in tail(tr) if r["subject"] != "end"]
    over(t, tr)
    return v


def test_recorder_events_are_recorded(c):
    """In order, with the fields that they had and no others."""
    v = what(c, "recorded")
    equal([r["fields"] for r in v], [{"message": "This event should be recorded"}, {"message": "another event"}], "fields")
    equal([(r["subject"], r["level"], r["span_name"]) for r in v], [("job", "INFO", "recording")] * 2, "events")


def test_recorder_last_n_seq(c):
    equal([(r["seq"], r["fields"]) for r in what(c, "last_n")],
          [(i, {"message": "event %d" % i}) for i in range(5, 10)], "events")


def test_recorder_outside_not_recorded(c):
    """W19: in the original a span with two certain fields is a recording, whoever makes it: event 5 would be in one."""
    equal(what(c, "outside"), [], "events")


def test_recorder_child_inherits(c):
    v = what(c, "child")
    equal([r["fields"].get("message", r["fields"].get("i")) for r in v], ["Event from inner span", 2, 3], "events")
    equal([r["span_name"] for r in v], ["child", "scope", "grandchild"], "spans")
    need(v[2]["tid"] != v[1]["tid"], "not on another thread")


def test_recorder_nested_isolated(c):
    v = what(c, "nested")
    equal([(r["subject"], r["fields"]["i"]) for r in v], [("A", 1), ("B", 2), ("A", 3)], "events")


def test_recorder_explicit_parent_not_entered(c):
    equal(seqs(what(c, "explicit_parent")), [(0, 1), (1, 2)], "events")


def test_recorder_explicit_root_not_recorded(c):
    equal(what(c, "explicit_root"), [], "events")


def test_recorder_dropped_spans_alive(c):
    """What spans do whose subject is gone is nobody's, and no fault."""
    equal(seqs(what(c, "dropped")), [(0, 1)], "events")


def test_recorder_id_never_reused(c):
    """
    R22, W19: 200 times a recording ends, another is made in its place, and a span of the first has an event. The
    original's keys are addresses, which are handed out again: all 200 events are in the wrong recording there.
    """
    t, tr = run(c, "reuse")
    v = tail(tr)
    equal([(r["subject"], r["recording"]) for r in v], [("end", 401)], "events, number of the last recording")
    need(v[0]["span"] < 10000, "an address: %r" % v[0])
    over(t, tr)


def stack_names(tr, subject="job"):
    return sorted([(f["name"], f["entered"]) for f in s["stack"]] for s in rows(ask(tr, "stacks", "--subject", subject, "--json")))


def test_recorder_stacks(c):
    """
    Leaf to root, broken where a span is not entered, recursion, two threads in one span. R20, W21: the original
    forgets a span at its first exit; it has no stack where this one has child entered once.
    """
    t = subjects(c, "stacks")
    tr = trace(c, t.pid)
    root = ("recording", 1)
    for want in ([[("child", 1), root]], [[("leaf", 1)], [root]], [[("child", 2), root]], [[("child", 1), root]],
                 [[("child", 2), root]], [[("child", 1), root]]):
        t.go()
        t.read()
        wait_for("stacks %r, want %r" % (stack_names(tr), want), lambda: stack_names(tr) == want)
    t.go()
    t.read()
    wait_for("entered at the end: %r" % stack_names(tr), lambda: stack_names(tr) == [])
    over(t, tr)


def test_recorder_cap_min_2(c):
    """At least 2, at most 4,096: the last so many."""
    t, tr = run(c, "capacities")
    for subject, first, last in (("cap 0", 3, 4), ("cap 1", 3, 4), ("cap 2", 3, 4), ("cap 3", 2, 4),
                                 ("cap 1000000000", 904, 4999)):
        equal(seqs(tail(tr, subject)), [(i, i) for i in range(first, last + 1)], subject)
    over(t, tr)


def test_recorder_json_sorted_and_nonfinite(c):
    """R23, W18: NaN and infinities make the original panic."""
    t, tr = run(c, "values")
    text = ask(tr, "tail", "--json", "--subject", "job*").splitlines()[0]
    need('"fields":{"a":"inf","b":18446744073709551615,"minus":"-inf","nan":"NaN","t":true,"z":"' in text, text)
    need(not [ch for ch in text if ord(ch) < 32 or 127 <= ord(ch) < 160], "control characters: %r" % text)
    r = rows(text)[0]
    equal(r["fields"]["z"], "\x1b]0;x\x07\"\\\n", "text")
    equal(set(r), {"timestamp", "seq", "level", "target", "name", "fields", "subject", "recording", "span", "span_name",
                   "thread", "pid", "tid", "file", "line"}, "keys")
    wall = time.time() - time.mktime(time.strptime(r["timestamp"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone
    need(-1 < wall < 60, "time %s" % r["timestamp"])
    need(r["timestamp"][19] == "." and len(r["timestamp"]) == 30 and r["timestamp"][-1] == "Z", r["timestamp"])
    equal((r["level"], r["target"], r["name"], r["pid"], r["tid"]), ("ERROR", "subjects", "odd", t.pid, t.pid), "who")
    need(r["file"].endswith("subjects.c") and r["line"] > 0, "source")
    # For people: local time, level, subject, message, fields, and nothing that a terminal obeys.
    env = {"TZ": "XXX-5:30"}
    s, text, err = run_tool(["tail", "--subject", "job*", "--tracer", str(tr.p.pid)], env=env)
    equal(s, 0, err)
    need(not [ch for ch in text if (ord(ch) < 32 and ch != "\n") or 127 <= ord(ch) < 160], "control characters: %r" % text)
    a, b = text.splitlines()
    need(a.startswith("E ") and "<job \ufffd[1m7> odd " in a and "nan=nan" in a and "b=-1" in a, a)
    need(b.startswith("W ") and b.endswith("<job \ufffd[1m7> hello\ufffdworld k=v (subjects)"), b)
    over(t, tr)


def test_recorder_stale_fields_not_leaked(c):
    """W17: where an event with more fields was before, the original's export shows the old ones as well."""
    equal([r["fields"] for r in what(c, "stale")], [{"a": 1}, {}], "fields")


def by_thread(v):
    r = {}
    for e in v:
        r.setdefault(e["fields"]["thread"], []).append(e["fields"]["i"])
    return r


def test_recorder_concurrent_writers(c):
    """
    W20, W21: eight threads write to one recording. No torn entry, no hole in the numbers, each thread's events in
    its order. The original's ring of two has two writers in one place at its first lap, and gives numbers before it
    puts events in: an overtaken writer's number is never seen.
    """
    for capacity, n in ((4096, 500), (2, 3000)):
        t, tr = run(c, "writers", str(capacity), str(n))
        v = tail(tr, "job")
        total = 8 * n
        equal([r["seq"] for r in v], list(range(max(0, total - capacity), total)), "numbers")
        need(all(set(r["fields"]) == {"thread", "i"} and r["level"] == "INFO" for r in v), "torn")
        for k, i in by_thread(v).items():
            equal(i, list(range(i[0], i[0] + len(i))), "order of thread %d" % k)
        equal(status(tr)["recordings"]["events"], total + 1, "recorded")
        over(t, tr)


def test_recorder_gaps_are_told(c):
    """
    W21: what is lost before it is recorded has no number; the next event says how many hits that were. The original
    counts drops of its queue elsewhere, and its recordings do not tell. The tracer is stopped during a burst.
    """
    t = subjects(c, "gaps")
    tr = trace(c, t.pid, args=["--ring", "256K"])
    t.go()
    t.read()
    wait_for("events", lambda: status(tr)["recordings"]["events"] == 80)
    need(all("lost_before" not in r for r in tail(tr)), "lost already")
    tr.p.send_signal(signal.SIGSTOP)
    t.go()
    t.read()
    tr.p.send_signal(signal.SIGCONT)
    wait_for("ring", lambda: status(tr)["recordings"]["events"] > 80)
    time.sleep(0.3)  # the rest of the ring
    t.go()
    t.read()
    wait_for("the end", lambda: tail(tr, "end"))
    v = tail(tr, "job")
    equal([r["seq"] for r in v], list(range(v[-1]["seq"] + 1 - len(v), v[-1]["seq"] + 1)), "numbers")
    told = [r for r in tail(tr) if "lost_before" in r]
    recorded = status(tr)["recordings"]["events"]
    equal(sum(r["lost_before"] for r in told if r["subject"] == "job"), 80 + 20000 + 1 + 1 - recorded, "lost")
    equal(told[0]["fields"], {"thread": 1, "i": 0}, "told with")
    need(("(subjects, %d lost before)" % told[0]["lost_before"]) in ask(tr, "tail", "--subject", "job", "-n", "1"), "as text")
    over(t, tr)


def test_recorder_tail_repeatable(c):
    t, tr = run(c, "last_n")
    for args in (("tail", "--json"), ("tail",), ("tail", "-n", "2", "--subject", "j?b")):
        first = ask(tr, *args)
        need(len(first.splitlines()) > 1, first)
        for _ in range(3):
            equal(ask(tr, *args), first, "again: %r" % (args,))
    over(t, tr)


def with_keeper(c, *args, tracer=()):
    """A target and another one that keeps the tracer when the first is gone."""
    t, keeper = subjects(c, *args), subjects(c, "last_n")
    return t, keeper, trace(c, t.pid, keeper.pid, args=tracer)


def states(tr):
    st = status(tr)["recordings"]
    return st["live"], st["kept"]


def test_recorder_death_keeps_64(c):
    """R29: in the original the recorder dies with the process. Here its last 64 events can be asked for afterwards."""
    for how in ("kill", "fails", "ends"):
        t, keeper, tr = with_keeper(c, "dies", how)
        t.go()
        t.p.wait(10)
        wait_for("still live: %r" % (states(tr),), lambda: states(tr) == (0, 1))
        equal(seqs(tail(tr, "job")), [(i, i) for i in range(36, 100)], how)
        equal(rows(ask(tr, "stacks", "--subject", "job", "--json")), [], "stacks of the dead")
        t.end()
        over(keeper, tr)


def test_recorder_exec(c):
    """A new image: the old one's recordings have ended, and their names are free."""
    t, keeper, tr = with_keeper(c, "dies", "exec", tracer=["--follow"])
    t.go()
    need(t.line(time.time() + 20).startswith("ready"), "no new image")
    wait_for("still live: %r" % (states(tr),), lambda: states(tr) == (0, 1))
    equal(seqs(tail(tr, "job"))[-1], (99, 99), "the old image's")
    time.sleep(0.5)
    t.go()
    t.read()
    wait_for("nothing of the new image", lambda: tail(tr, "end"))
    v = tail(tr, "job")
    equal(len({r["recording"] for r in v}), 2, "recordings called job")
    equal([r["seq"] for r in v], list(range(36, 100)) + list(range(5, 10)), "events")
    t.end()
    over(keeper, tr)


def test_recorder_fork(c):
    """A forked child has none of its parent's recordings: what it does in them is nobody's. Its own are its own."""
    t, tr = run(c, "forks", tracer=["--follow"])
    equal([(r["subject"], r["fields"]["i"]) for r in tail(tr) if r["subject"] != "end"],
          [("job", 1), ("child's own", 4), ("job", 5)], "events")
    equal(stack_names(tr, "*"), [], "stacks")
    over(t, tr)


def test_recorder_two_processes(c):
    """The same program twice: the same spans, the same subjects, two recordings."""
    a, b = subjects(c, "last_n"), subjects(c, "last_n")
    tr = trace(c, a.pid, b.pid)
    for t in (a, b):
        t.go()
        t.read()
    wait_for("the ends", lambda: len(tail(tr, "end")) == 2)
    v = tail(tr, "job")
    equal({(r["pid"], r["recording"]) for r in v}, {(a.pid, v[0]["recording"]), (b.pid, v[-1]["recording"])}, "whose")
    equal([r["seq"] for r in v], list(range(5, 10)) * 2, "events")
    a.end()
    over(b, tr)


def test_recorder_over_rotation(c):
    """Files are rotated while nothing is open; then a subject is closed, and the process ends: both are told."""
    t, keeper, tr = with_keeper(c, "idle", tracer=["--rotate", "1s"])
    keeper.go()
    keeper.read()
    t.go()
    t.read()
    wait_for("events", lambda: tail(tr, "other"))
    equal(states(tr), (4, 0), "recordings")

    def open_files():
        d = "/proc/%d/fd/" % tr.p.pid
        return [f for f in os.listdir(d) if os.path.realpath(d + f).endswith(".pftrace")]

    wait_for("not rotated", lambda: not open_files(), 10)
    t.go()  # closes `job`
    t.read()
    wait_for("job is live: %r" % (states(tr),), lambda: states(tr) == (3, 1), 3)
    t.go()  # and ends badly
    equal(t.p.wait(10), 3, "status")
    wait_for("other is live: %r" % (states(tr),), lambda: states(tr) == (2, 2), 3)
    equal([(r["subject"], r["fields"]["i"]) for r in tail(tr) if r["pid"] == t.pid], [("job", 1), ("other", 2)], "events")
    t.end()
    over(keeper, tr)
