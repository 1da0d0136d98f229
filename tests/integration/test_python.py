# SPDX-License-Identifier: BSD-3-Clause
"""The profiles of Python on the distribution's interpreter: what the trace says against the script's own count."""

import glob
import os
import re
import subprocess

import lib
from lib import Skipped, Target, Tracer, check, dump, equal, need

LOAD = os.path.join(lib.HERE, "loads", "python_load.py")
N = 1000


def python():
    """(path, version) of the newest interpreter of the distribution that has the probes."""
    found = []
    for path in glob.glob("/usr/bin/python3.*"):
        m = re.search(r"python3\.(\d+)$", path)
        if m and b"gc__start" in subprocess.run(["readelf", "-nW", path], stdout=subprocess.PIPE).stdout:
            found.append((int(m[1]), path))
    if not found:
        raise Skipped("no /usr/bin/python3.* with probes (package python3)")
    return max(found)[1], max(found)[0]


def trace(c, args, name="t"):
    """Rows of the trace by name; what the script says; what the tool says."""
    path, d = os.path.join(c.dir, name + ".pftrace"), os.path.join(c.dir, "modules")
    for p in (path, os.path.join(d, "opened")):
        if os.path.exists(p):
            os.unlink(p)
    os.makedirs(d, exist_ok=True)
    for module, text in (("mt_outer", "import mt_inner\n"), ("mt_inner", "x = 1\n")):
        with open(os.path.join(d, module + ".py"), "w") as f:
            f.write(text)
    t = Target([python()[0], "-S", "-E", "-B", LOAD, d, str(N)])
    tr = Tracer(["-v", "-p", str(t.pid), "-o", path] + args)
    t.go()
    out = t.read()
    t.go()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    equal(check(path)["lost"], 0, "lost")
    rows = {}
    for o in dump(path):
        if o["type"] in ("slice", "instant", "counter") and not o["args"].get("continued"):
            rows.setdefault(o["name"], []).append(o)
    return rows, out, tr.text()


def within(a, b):
    return b["ts"] <= a["ts"] and a["ts"] + a["dur"] <= b["ts"] + b["dur"]


def test_python_profile(c):
    """Without an option: collections with what they found, imports in each other, audit events."""
    for _ in range(10 if c.long else 2):
        rows, out, said = trace(c, [])
        need("profile python (it knows this program" in said, said)
        gc = sorted((o for n, v in rows.items() if n.startswith("gc generation") for o in v), key=lambda o: o["ts"])
        equal([o["name"] for o in gc[:5]], ["gc generation %d" % g for g in (0, 1, 2, 0, 2)], "collections")
        equal(",".join("%d:%d" % (o["args"]["generation"], o["args"]["collected"]) for o in gc[:5]), out["collected"],
              "generation and collected objects; the script's own count")
        need(all(o["args"]["generation"] == 2 for o in gc[5:]), "others than those at the end of the interpreter: %r" % gc[5:])
        outer, inner, missing = (rows["import " + m] for m in ("mt_outer", "mt_inner", "mt_missing"))
        equal([len(x) for x in (outer, inner, missing)], [1, 1, 1], "imports")
        need(within(inner[0], outer[0]) and not within(missing[0], outer[0]), "imports do not lie as they were made")
        equal([o[0]["args"]["found"] for o in (outer, inner, missing)], [True, True, False], "found")
        equal(outer[0]["args"]["module"], "mt_outer", "module")
        equal(len(rows.get("audit mt.event", [])), 7, "audit events")
        need(len(rows["audit open"]) >= 1 and rows["audit open"][0]["args"]["event"] == "open", "audit open")
        need("audit builtins.id" not in rows, "the audit event of id() is left out")
        need(" 0 stray exits" in said and " 0 lost ends" in said, said)


def test_python_functions(c):
    """Calls, as far as this build tells them: each return by itself, or spans."""
    version = python()[1]
    if 12 <= version <= 14:
        raise Skipped("Python 3.%d has no function probes" % version)
    # work: from Python and from C; a return by an exception is one too
    truth = {"work": 2 * N, "fails": N // 10, "in_turn": 10}
    for _ in range(10 if c.long else 2):
        if version == 11:
            rows, _, _ = trace(c, ["--profile", "python", "--profile", "python-returns"])
            got = {f: len(rows.get("return " + f, [])) for f in truth}
            equal(got, truth, "returns")
            a = rows["return work"][0]["args"]
        else:
            rows, _, said = trace(c, ["--profile", "python", "--profile", "python-functions"])
            equal({f: len(rows.get(f, [])) for f in truth}, truth, "calls")
            turns = sorted(rows["in_turn"], key=lambda o: o["ts"])
            need(all(within(y, x) for x, y in zip(turns, turns[1:])), "calls do not lie in each other")
            a = rows["work"][0]["args"]
        equal((a["function"], a["file"]), ("work", LOAD), "function and file")
        with open(LOAD) as f:
            lines = f.read().split("\n")
        # a return tells the line it is on, a call the first one
        need(lines[a["line"] - 1].strip().startswith(("def work", "return x + 1")), "line %d" % a["line"])
        equal(sum(len(v) for n, v in rows.items() if n.startswith("gc generation ")) >= 5, True, "the other profile too")
    return "%d returns of work" % truth["work"] if version == 11 else "%d calls of work" % truth["work"]
