# SPDX-License-Identifier: BSD-3-Clause
"""The profile of PHP on a load of our own: what the trace says against what the load counted."""

import collections
import os
import shutil
import socket
import subprocess
import time
import urllib.request

import lib
from lib import Skipped, Target, Tracer, check, dump, equal, need

LOAD = os.path.join(lib.HERE, "loads", "load.php")
FAST = 100000
PROFILES = {"MONTRACE_PROFILES": os.path.join(lib.ROOT, "profiles")}
# How deep the functions of the load lie in each other, and how often. The generator: its call, and each time it goes on.
TREE = {"nest": {0: 10, 1: 10, 2: 10, 3: 10}, "plain": {0: 12, 1: 5}, "of_class": {0: 7}, "method": {0: 14, 1: 7},
        "hidden": {1: 7, 2: 7}, "__destruct": {0: 19}, "outer": {0: 5}, "throws": {1: 5}, "passes": {0: 5},
        "thrower": {1: 5}, "generator": {0: 4}, "{closure}": {0: 3}, "after_fibers": {0: 1}, "fast": {0: FAST},
        "main": {0: 1}, "included": {1: 1}}


def interpreter():
    exe = shutil.which("php")
    if not exe:
        raise Skipped("no php (package php-cli)")
    exe = os.path.realpath(exe)
    notes = subprocess.run(["readelf", "-nW", exe], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    if b"function__entry" not in notes:
        raise Skipped("php has no probes here (built without --enable-dtrace)")
    return exe


def trace_load(c, env):
    exe = interpreter()
    d = os.path.join(c.dir, "inc")
    os.makedirs(d, exist_ok=True)
    for name, text in (("included", "<?php\nfunction included() { return 1; } included();\n"),
                       ("broken", "<?php function {")):
        with open(os.path.join(d, name + ".php"), "w") as f:
            f.write(text)
    path = os.path.join(c.dir, "t.pftrace")
    # -n: without the extensions of this machine, which may bring functions of their own
    t = Target([exe, "-n", LOAD, str(FAST), d], env=env)
    tr = Tracer(["-v", "-p", str(t.pid), "-o", path], env=PROFILES)
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    equal(check(path)["lost"], 0, "lost")
    rows = dump(path)
    os.unlink(path)
    need("profile php (it knows this program" in tr.text(), tr.text())
    return rows, truth, d


def check_exceptions(rows, truth):
    """All that are thrown, by class; PHP tells of those that are caught, too, in code that is not one call deep."""
    thrown = {k[7:]: v for k, v in truth.items() if k.startswith("thrown ")}
    got = collections.Counter(o["args"]["class"] for o in rows if o["name"].startswith("throw "))
    equal(got, thrown, "exceptions thrown")
    equal({o["name"] for o in rows if o["name"].startswith("throw ")}, {"throw " + k for k in thrown}, "their names")
    equal(sum(o["name"] == "catch" for o in rows), sum(thrown.values()), "exceptions caught")


def check_compile(rows, d):
    got = collections.Counter((o["name"], o["args"]["file"]) for o in rows if o["name"].startswith("compile "))
    files = [d + "/included.php", d + "/broken.php"]
    equal(got, {("compile " + f, f): 1 for f in files}, "files compiled")


def depths(spans):
    got = collections.defaultdict(collections.Counter)
    stack = []
    for o in sorted(spans, key=lambda o: (o["ts"], -o["dur"])):
        while stack and stack[-1] < o["ts"] + o["dur"]:
            stack.pop()
        name = o["args"]["function"].split("\\")[-1]
        got["{closure}" if name.startswith("{closure") else name][len(stack)] += 1
        stack.append(o["ts"] + o["dur"])
    return {k: dict(v) for k, v in got.items()}


def check_fibers(rows):
    """Both are left open by a switch, and end in the order in which they began: each at its own end, in pieces."""
    def of(name):
        return sorted((o for o in rows if o["name"] == name), key=lambda o: o["ts"])
    leaves, one, two, after = (of("App\\" + n) for n in ("leaf", "fiber_one", "fiber_two", "after_fibers"))
    end = [x[-1]["ts"] + x[-1]["dur"] for x in (one, two)]
    # leaf of one, leaf of two, one goes on: leaf, end; two goes on: leaf, end
    times = [one[0]["ts"], leaves[0]["ts"], two[0]["ts"], leaves[1]["ts"], leaves[2]["ts"], end[0], leaves[3]["ts"], end[1],
             after[0]["ts"]]
    equal(times, sorted(times), "order of begins and ends in fibers")


def test_php_functions(c):
    """Functions and methods, 100,000 calls at full speed, exactly; the profile is found by itself."""
    for _ in range(10 if c.long else 1):
        rows, truth, d = trace_load(c, {"USE_ZEND_DTRACE": "1"})
        check_exceptions(rows, truth)
        check_compile(rows, d)
        spans = [o for o in rows if o["type"] == "slice" and "function" in o["args"] and not o["args"].get("continued")]
        want = {(k.rsplit(":", 1)[0], int(k.rsplit(":", 1)[1])): v for k, v in truth.items() if ":" in k}
        names = {name for name, _ in want}
        got = collections.Counter()
        for o in spans:
            a = o["args"]
            equal(o["name"], a["class"] + a["scope"] + a["function"], "name")
            equal(a["scope"], "::" if a["class"] else "", "scope")
            equal(a["file"], d + "/included.php" if a["function"] in ("main", "included") else LOAD, "file")
            if o["name"] in names:
                got[o["name"], a["line"]] += 1
        equal(got, want, "calls")
        fibers = ("App\\fiber_one", "App\\fiber_two", "App\\leaf")
        equal(depths([o for o in spans if o["name"] not in fibers]), TREE, "what lies in what")
        check_fibers(rows)
    return "%d slices" % len(spans)


def test_php_not_asked_for(c):
    """Without USE_ZEND_DTRACE: no functions, no files; exceptions all the same."""
    for _ in range(10 if c.long else 1):
        rows, truth, _ = trace_load(c, {"USE_ZEND_DTRACE": "0"})
        check_exceptions(rows, truth)
        equal([o["name"] for o in rows if o["type"] == "slice"], [], "spans")


def requests_once(c, exe):
    with open(os.path.join(c.dir, "page.php"), "w") as f:
        f.write("<?php\nfunction work() { return 1; }\nwork();\necho 'made';\n")
    # an error that is no exception: nobody tells the ends of functions
    with open(os.path.join(c.dir, "fatal.php"), "w") as f:
        f.write("<?php\nfunction deep($n) { if ($n) deep($n - 1); else trigger_error('x', E_USER_ERROR); }\ndeep(600);\n")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    path = os.path.join(c.dir, "t.pftrace")
    p = subprocess.Popen([exe, "-n", "-S", "127.0.0.1:%d" % port, "-t", c.dir], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, env=dict(os.environ, USE_ZEND_DTRACE="1"))
    try:
        end = time.time() + 20
        while socket.socket().connect_ex(("127.0.0.1", port)):
            need(p.poll() is None and time.time() < end, "the server does not start")
            time.sleep(0.02)
        tr = Tracer(["-v", "-p", str(p.pid), "-o", path], env=PROFILES)
        for i in range(25):
            if i == 10:
                urllib.request.urlopen("http://127.0.0.1:%d/fatal.php" % port, timeout=20).read()
            url = "http://127.0.0.1:%d/page.php?n=%d" % (port, i)
            got = urllib.request.urlopen(url, data=b"x=1" if i % 5 == 0 else None, timeout=20).read()
            equal(got, b"made", "page")
        time.sleep(0.3)  # the end of the last request, which comes behind its answer
        equal(tr.stop(), 0, "exit status: " + tr.text())
    finally:
        p.kill()
        p.wait()
    equal(check(path)["lost"], 0, "lost")
    rows = [o for o in dump(path) if o["type"] == "slice"]
    os.unlink(path)
    reqs = [o for o in rows if "uri" in o["args"]]
    equal([o["name"] for o in reqs[10:11]], ["GET /fatal.php"], "the request with an error")
    fatal = reqs.pop(10)
    deep = [o for o in rows if o["name"] == "deep"]
    need(len(deep) > 400, "functions that the error left")
    equal({(o["args"].get("end"), o["ts"] + o["dur"]) for o in deep}, {("left", fatal["ts"] + fatal["dur"])}, "their ends")
    equal({o["depth"] for o in reqs}, {0}, "depths of requests")
    page = c.dir + "/page.php"
    want = [("GET" if i % 5 else "POST", "/page.php?n=%d" % i) for i in range(25)]
    equal([(o["name"], o["args"]["method"], o["args"]["uri"], o["args"]["file"]) for o in reqs],
          [("%s %s" % w, w[0], w[1], page) for w in want], "requests")
    works = [o for o in rows if o["name"] == "work"]
    equal(len(works), 25, "functions")
    for r, w in zip(reqs, works):
        need(r["ts"] < w["ts"] and w["ts"] + w["dur"] < r["ts"] + r["dur"], "a function outside of its request")


def test_php_requests(c):
    """Each request to a server is a span with its method and address; functions lie in it, also those that an error left."""
    exe = interpreter()
    for _ in range(10 if c.long else 1):
        requests_once(c, exe)
