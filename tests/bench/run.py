#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What montrace-bpf costs on this machine, beside its peers on the same binary in the same run.

The target times itself in short batches; what counts is the best batch of all rounds. The tools take turns, round
by round, so what else runs on the machine disturbs all of them alike. A value of a group is comparable with the
others of the group, its ratios with those of other machines of the kind."""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import lib  # noqa: E402
import tools  # noqa: E402

MODES = ["none", "event3", "scope3", "scope0", "counter"]
TITLES = {"event3": "event, 3 fields", "scope3": "scope, 3 fields", "scope0": "scope, no field",
          "counter": "counter"}
HITS_A_TURN = {"none": 0, "event3": 1, "scope3": 2, "scope0": 2, "counter": 1, "paced": 1,
               "aside": 0}  # it is measured only where it is filtered
PEERS = ["bpftrace count()", "perf record"]
FLOOR = "empty program, trap"  # what to compare with where no peer is installed


class Table:
    def __init__(self):
        self.rows = []

    def add(self, group, what, value, unit, ratios=(), note=""):
        """ratios: (name of the reference row, its value). value None: the note says why."""
        kept = [{"to": name, "ratio": round(value / ref, 3)} for name, ref in ratios
                if value is not None and ref and ref > 0]
        self.rows.append({"group": group, "what": what, "value": None if value is None else round(value, 2),
                          "unit": unit, "ratios": kept, "note": note})
        print("  %s: %s" % (what, value if value is None else round(value, 2)), file=sys.stderr)

    def text(self):
        out, group = [], None
        cells = []
        for r in self.rows:
            v = r["value"]
            value = "-" if v is None else "%.2f" % v if abs(v) < 10 else "%.1f" % v if abs(v) < 100 else "%.0f" % v
            ratio = ", ".join("%.2f of %s" % (x["ratio"], x["to"]) for x in r["ratios"])
            cells.append((r["what"], value, r["unit"], "; ".join(x for x in (ratio, r["note"]) if x)))
        w = [max(len(c[i]) for c in cells) for i in range(3)]
        for r, c in zip(self.rows, cells):
            if r["group"] != group:
                group = r["group"]
                out += ["", group]
            out.append(("  %-*s  %*s  %-*s  %s" % (w[0], c[0], w[1], c[1], w[2], c[2], c[3])).rstrip())
        return "\n".join(out[1:])


def machine():
    model = platform.machine()
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    weak = []
    directory = "/sys/devices/system/cpu/vulnerabilities"
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        state = open(os.path.join(directory, name)).read().strip()
        if state != "Not affected":
            state = re.sub(r"^Mitigation[:;] |; [\w -]+: Not affected", "", state)
            weak.append("%s (%s)" % (name, state))
    virtual = any("hypervisor" in l.split() for l in open("/proc/cpuinfo") if l.startswith("flags"))
    return {"kernel": platform.release(), "cpu": model, "cores": os.cpu_count(), "virtual": virtual,
            "mitigations": weak}


def machine_text(m):
    return "kernel %s, %s, %d cores%s\nmitigations: %s" % (
        m["kernel"], m["cpu"], m["cores"], ", virtual machine" if m["virtual"] else "",
        "; ".join(m["mitigations"]) or "none")


# ---- One measurement -------------------------------------------------------------------------------------

def turn(tool, modes, count, rounds, batch=500):
    """stress under a tool: mode -> best ns. Checks that the tool saw all of it."""
    exe = lib.example("stress")
    t = lib.Target([exe, "--mode", ",".join(modes), "--count", str(count), "--rounds", str(rounds), "--batch",
                    str(batch), "--wait", "--hold"])
    best = {}
    try:
        with tool(exe, t.pid) as on:
            t.go()
            mode, end = None, time.time() + 120
            while True:
                k, _, v = t.line(end).strip().partition("=")
                if k == "mode":
                    mode = v
                elif k == "best_ns":
                    best[mode] = float(v)
                elif k in ("done", ""):
                    break
    finally:
        t.end()
    return best, on


class Contest:
    """Several tools, several modes, in rounds; the best of each."""

    def __init__(self, competitors, modes, count, rounds, batch=500):
        self.competitors, self.modes, self.count, self.rounds, self.batch = competitors, modes, count, rounds, batch
        self.best = {name: {} for name in competitors}
        self.notes = {name: "" for name in competitors}
        self.whole = {name: False for name in competitors}

    def run(self, times):
        for _ in range(times):
            for name, tool in self.competitors.items():
                if self.notes[name].startswith("not available"):
                    continue
                try:
                    got, on = turn(tool, self.modes, self.count, self.rounds, self.batch)
                except tools.Unavailable as e:
                    self.notes[name] = "not available: %s" % e
                    continue
                self.take(name, on, got)
        return self

    def take(self, name, on, got):
        """Lost hits are cheap ones: a round that lost some counts only as long as there is none that did not."""
        want = sum(HITS_A_TURN.get(m, 0) for m in self.modes) * self.count * self.rounds
        whole = on.hits is None or on.hits == want
        if self.whole[name] and not whole:
            return
        if whole and not self.whole[name]:
            self.best[name], self.whole[name] = {}, True
        self.notes[name] = on.note
        if not whole:
            self.notes[name] += "%s%d of %d hits recorded" % (", " if on.note else "", on.hits, want)
        for mode, ns in got.items():
            self.best[name][mode] = min(ns, self.best[name].get(mode, ns))

    def value(self, name, mode, base="none"):
        """ns above the empty loop under the same tool."""
        b = self.best[name]
        return b[mode] - b[base] if mode in b and base in b else None


# ---- Groups ----------------------------------------------------------------------------------------------

def not_armed(table, o):
    group = "Not armed (above the empty loop)"
    aside = tools.montrace("--filter", "trace,stress::aside=off", wait_all=False)
    modes = MODES + ["aside"]
    c = Contest({"detached": tools.Detached}, modes, 400000, 5, 20000).run(o.times)
    d = Contest({"filtered": aside}, ["none", "aside"], 400000, 5, 20000).run(o.times)
    table.add(group, "empty loop", c.best["detached"]["none"], "ns/turn")
    base = [("empty loop", c.best["detached"]["none"])]
    for m in MODES[1:]:
        table.add(group, TITLES[m] + ", detached", max(0.0, c.value("detached", m)), "ns/turn", base)
    table.add(group, "event, 3 fields, filtered, others armed", max(0.0, d.value("filtered", "aside")), "ns/turn",
              base, "" if d.whole["filtered"] else d.notes["filtered"])


def armed(table, o):
    idle = Contest({"detached": tools.Detached}, ["none", "syscall"], 4000, o.rounds).run(o.times)
    table.add("The way into the kernel and back", "a system call that does nothing", idle.value("detached", "syscall"),
              "ns")
    competitors = {
        "record built, no probe": tools.RecordOnly,
        FLOOR: tools.FloorTrap,
        "empty program, call": tools.FloorCall,
        "montrace-bpf, nop": tools.montrace("--nop5", "never"),
        "montrace-bpf, 5-byte nop": tools.montrace("--nop5", "always"),
        "montrace-bpf, default": tools.montrace(),
        "bpftrace { }": tools.BpftraceEmpty,
        "bpftrace count()": tools.Bpftrace,
        "perf record": tools.Perf,
    }
    tools.Perf.prepare(lib.example("stress"))
    try:
        c = Contest(competitors, MODES, 4000, o.rounds).run(o.times)
    finally:
        tools.Perf.clean()
    for m in MODES[1:]:
        group = "Armed: %s (%d hit%s)" % (TITLES[m], HITS_A_TURN[m], "s" if HITS_A_TURN[m] > 1 else "")
        for name in competitors:
            there = [p for p in PEERS if c.value(p, m)] or [FLOOR]
            peers = [(p, c.value(p, m)) for p in there if p != name]
            table.add(group, name, c.value(name, m), "ns", peers, c.notes[name])
    return c


def paced(table, o):
    group = "Paced: one event with 3 fields every 200 us"
    competitors = {"detached": tools.Detached, "montrace-bpf, default": tools.montrace(),
                   "bpftrace count()": tools.Bpftrace}
    c = Contest(competitors, ["none", "event3", "paced"], 1000, 4).run(o.times)
    clock = c.best["detached"].get("paced")
    table.add(group, "reading the clock, nothing armed", clock, "ns")
    for name in list(competitors)[1:]:
        at = c.best[name].get("paced")
        table.add(group, name, None if at is None else at - clock, "ns", [("its burst", c.value(name, "event3"))],
                  c.notes[name])


def attaching(table, o):
    exe, first = lib.example("many"), None
    for what, args, want in (("5,000 callsites", [], 5000),
                             ("10 of 5,000 callsites", ["--filter", "off,many::hot=trace"], 10)):
        best = None
        for _ in range(2 * o.times):
            t = lib.Target([exe, "--wait"])
            try:
                with tools.montrace(*args, wait_all=False)(exe, t.pid) as on:
                    pass
                lib.equal(on.armed, want, "callsites armed")
                best = on.times if not best else tuple(min(a) for a in zip(best, on.times))
            finally:
                t.p.kill()
                t.end()
        first = first or best
        for i, verb in enumerate(("attach", "detach")):
            table.add("Attach and detach", "%s, %s" % (verb, what), best[i], "ms",
                      [] if want == 5000 else [("all 5,000", first[i])])


def tracer(table, o):
    """CPU time of the tracer a record, and the size of what it writes: scopes with one integer field, full rate."""
    group = "Tracer: scopes with one integer field, at full rate"
    exe = lib.example("stress")
    best, size, lost = None, None, 0
    for _ in range(o.times):
        t = lib.Target([exe, "--mode", "scope1", "--count", str(o.spans), "--wait", "--hold"])
        try:
            with tools.montrace(wait_all=True)(exe, t.pid) as on:
                start = on.cpu_ns()
                t.go()
                t.read()
                time.sleep(0.5)  # it polls every 50 ms: all is read
                cpu = on.cpu_ns() - start
        finally:
            t.end()
        ns = cpu / on.hits
        lost += on.lost
        if best is None or ns < best:
            best, size = ns, on.bytes / on.spans
    note = "%d lost" % lost if lost else "nothing lost"
    table.add(group, "CPU time of the tracer", best, "ns/record", (), note)
    table.add(group, "size of the trace", size, "bytes/span")


def memory(table, o):
    exe = lib.example("stress")

    def rss(pid):
        text = open("/proc/%d/status" % pid).read()
        return [int(re.search(k + r":\s+(\d+)", text).group(1)) / 1024.0 for k in ("VmRSS", "RssAnon")]

    t = lib.Target([exe, "--mode", "scope1", "--count", str(10 ** 9), "--wait"])
    try:
        with tools.montrace()(exe, t.pid) as on:
            t.go()
            time.sleep(2)
            early = rss(on.tracer.p.pid)
            time.sleep(8)
            late = rss(on.tracer.p.pid)
            t.p.kill()
            t.p.wait()
    finally:
        t.p.kill()
        t.end()
    group = "Memory: 10 s at full rate (%.1f million records, %d lost)" % (on.hits / 1e6, on.lost)
    table.add(group, "resident, with the mapped ring", late[0], "MiB")
    table.add(group, "own memory", late[1], "MiB")
    table.add(group, "... its growth from 2 s to 10 s", late[1] - early[1], "MiB")


def core(table, o):
    exe = os.path.join(lib.BUILD, "bench", "bench_core")
    group = "Core alone: no kernel, no target"
    if not os.path.exists(exe):
        table.add(group, "bench_core", None, "ns/record", (), "not built")
        return
    text = subprocess.run([exe, "1000000" if o.times > 1 else "100000"], stdout=subprocess.PIPE).stdout.decode()
    whole = re.search(r"^decode, spans, pftrace +([0-9.]+) +([0-9.]+)", text, re.M)
    ref = [("all three", float(whole.group(1)))]
    for what in ("decode", "decode, spans", "decode, spans, pftrace"):
        m = re.search("^" + what + r" {2,}([0-9.]+)", text, re.M)
        table.add(group, what, float(m.group(1)), "ns/record", ref if what != "decode, spans, pftrace" else ())
    table.add(group, "span with one integer field, 10 us long", float(whole.group(2)), "bytes/span")


GROUPS = {"detached": not_armed, "armed": armed, "paced": paced, "attach": attaching, "tracer": tracer,
          "memory": memory, "core": core}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", action="append", choices=list(GROUPS), help="only this group; may be given again")
    p.add_argument("--quick", action="store_true", help="fewer rounds: numbers to try the script with")
    p.add_argument("--json", action="store_true", help="print JSON in place of the table")
    o = p.parse_args()
    o.times = 1 if o.quick else 4
    o.rounds = 2 if o.quick else 8
    o.spans = 100000 if o.quick else 1000000
    if not os.geteuid():
        os.nice(-15)  # all that is measured gets it: what else runs disturbs less
    table, status = Table(), 0
    for name in o.only or GROUPS:
        print(name, file=sys.stderr)
        if os.geteuid() and name != "core":
            table.add(name, "not available", None, "", (), "needs root")
            continue
        try:
            GROUPS[name](table, o)
        except (lib.Failed, tools.Unavailable) as e:
            table.add(name, "failed", None, "", (), str(e).strip())
            status = 1
    m = machine()
    if o.json:
        print(json.dumps({"machine": m, "rows": table.rows}, indent=1))
    else:
        print(table.text() + "\n\n" + machine_text(m))
    return status


if __name__ == "__main__":
    sys.exit(main())
