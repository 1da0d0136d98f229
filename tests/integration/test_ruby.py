# SPDX-License-Identifier: BSD-3-Clause
"""The profile of Ruby on a load of our own: what the trace says against what the load counted."""

import collections
import os
import shutil
import subprocess

import lib
from lib import Skipped, Target, Tracer, check, dump, equal, need

LOAD = os.path.join(lib.HERE, "loads", "load.rb")
FAST = 100000
PROFILES = {"MONTRACE_PROFILES": os.path.join(lib.ROOT, "profiles")}
# Methods of the load that are called from its main program, and how often; and from those: depths behind.
TREE = {"nest": {0: 11, 1: 10, 2: 10, 3: 10}, "with_block": {0: 5}, "outer": {0: 20}, "boom": {1: 20},
        "catching": {0: 7}, "thrower": {1: 7}, "early": {0: 6}, "of_class": {0: 4}, "mixed": {0: 3}, "at_top": {0: 2},
        "upcase": {0: 8}, "fetch": {0: 20}, "fibers": {0: 1}, "after_fibers": {0: 1}, "fast": {0: FAST},
        "reverse": {0: 1}}


def interpreter():
    """The ruby in PATH, if it has probes: in itself, or in its library."""
    exe = shutil.which("ruby")
    if not exe:
        raise Skipped("no ruby (package ruby)")
    t = subprocess.Popen([exe, "--disable-gems", "-e", "$stdout.sync = true; puts 1; STDIN.gets"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.stdout.readline()
    with open("/proc/%d/maps" % t.pid) as f:
        files = {l.split()[5] for l in f if len(l.split()) > 5 and "ruby" in l.split()[5]}
    t.stdin.close()
    t.wait()
    if not any("method__entry" in subprocess.run(["readelf", "-nW", f], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
               .stdout.decode(errors="replace") for f in files):
        raise Skipped("ruby has no probes here (built without --enable-dtrace)")
    return exe


def trace_load(c, points, args=()):
    """Rows of the trace, what the load says of itself, the tracer."""
    exe = interpreter()
    d = os.path.join(c.dir, "lib")
    os.makedirs(d, exist_ok=True)
    for name, text in (("wanted", "1\n"), ("broken", "raise 'broken'\n"), ("raises", "raise 'raises'\n")):
        with open(os.path.join(d, name + ".rb"), "w") as f:
            f.write(text)
    path = os.path.join(c.dir, "t.pftrace")
    t = Target([exe, "--disable-gems", LOAD, str(FAST), d] + (["points"] if points else []))
    tr = Tracer(["-v", "-p", str(t.pid), "-o", path] + list(args), env=PROFILES)
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    equal(check(path)["lost"], 0, "lost")
    rows = dump(path)
    os.unlink(path)
    return rows, truth, tr, d


def spans_of(rows):
    """The slices of the load's own code, each once: what the pieces of one span have in common is the first."""
    return [o for o in rows if o["type"] == "slice" and not o["args"].get("continued")]


def split_truth(truth):
    """{method: line}, {(C method, line): calls}, {method or other thing: count}."""
    lines = {k[5:]: v for k, v in truth.items() if k.startswith("line:")}
    cs = {(k.rsplit(":", 1)[0], int(k.rsplit(":", 1)[1])): v for k, v in truth.items()
          if not k.startswith("line:") and ":" in k}
    return lines, cs, {k: v for k, v in truth.items() if ":" not in k}


def check_c_methods(spans, cs):
    """All calls of these, with class, method, file and the line of the call."""
    names = {name for name, _ in cs}
    got = collections.Counter()
    for o in spans:
        a = o["args"]
        if o["name"] in names and a["file"] == LOAD:
            equal((o["name"], a["level"]), ("%s#%s" % (a["class"], a["method"]), "debug"), "name and level")
            got[o["name"], a["line"]] += 1
    equal(dict(got), cs, "C methods")
    equal([o for o in spans if o["name"] in ("Kernel#raise", "Kernel#fail")], [], "spans that have no end")


def check_rest(rows, truth, d):
    """Exceptions, garbage collection, files."""
    spans = spans_of(rows)
    instants = [o for o in rows if o["type"] == "instant"]
    with open(LOAD) as f:
        raise_line = 1 + [l.strip() for l in f].index('raise ArgumentError, "boom"')
    got = collections.Counter((o["name"], o["args"]["class"], o["args"]["file"], o["args"]["line"]) for o in instants
                              if o["name"].startswith("raise "))
    equal(got["raise ArgumentError", "ArgumentError", LOAD, raise_line], truth["rescued"], "raises")
    equal(got["raise RuntimeError", "RuntimeError", d + "/broken.rb", 1], truth["broken"], "raises in a file that is loaded")
    by_class = collections.Counter(o["args"]["class"] for o in instants if o["name"].startswith("raise "))
    equal(by_class, {"ArgumentError": truth["rescued"], "KeyError": truth["key_error"], "LoadError": truth["load_error"],
                     "RuntimeError": truth["broken"] + truth["raises"]}, "classes of exceptions")
    equal(collections.Counter(o["name"] for o in spans)["gc mark"], truth["gcs"], "collections")
    need(sum(o["name"] == "gc sweep" for o in spans) >= truth["gcs"], "sweeps")
    left = [o["name"] for o in rows if o["args"].get("end") == "left"]
    equal(sorted(left), ["load %s/broken.rb" % d, "require %s/raises" % d], "what exceptions left")
    ends = {o["name"]: o["ts"] + o["dur"] for o in spans if o["name"].startswith(("load ", "require "))}
    methods = {o["ts"] + o["dur"] for o in spans if o["name"] in ("Kernel#require", "Kernel#load")}
    need(all(ends[name] in methods for name in left), "they do not end with the method around them")
    files = collections.Counter(o["name"] for o in rows if o["name"].split()[0] in ("require", "load", "find", "parse")
                                and d in o["name"] and not o["args"].get("continued"))
    want = ["require wanted", "require missing", "require raises", "find wanted", "find missing", "find raises",
            "parse wanted.rb", "parse raises.rb", "parse broken.rb", "load broken.rb"]
    equal(files, {"%s %s/%s" % (w.split()[0], d, w.split()[1]): 1 for w in want}, "files")
    o = [o for o in spans if o["name"] == "require %s/wanted" % d][0]
    equal((o["args"]["feature"], o["args"]["file"]), (d + "/wanted", LOAD), "fields of require")


def depths(spans, tid):
    """{method: {depth among these: count}} of one thread."""
    got = collections.defaultdict(collections.Counter)
    stack = []
    for o in sorted((o for o in spans if o["tid"] == tid), key=lambda o: (o["ts"], -o["dur"])):
        while stack and stack[-1] < o["ts"] + o["dur"]:
            stack.pop()
        got[o["args"]["method"]][len(stack)] += 1
        stack.append(o["ts"] + o["dur"])
    return {k: dict(v) for k, v in got.items()}


def check_fibers(rows):
    """Both are left open by a switch, and end in the order in which they began: each at its own end, in pieces."""
    def of(name):
        return sorted((o for o in rows if o["name"] == "Load#" + name), key=lambda o: o["ts"])
    leaves, one, two, after = (of(n) for n in ("leaf", "fiber_one", "fiber_two", "after_fibers"))
    end = [x[-1]["ts"] + x[-1]["dur"] for x in (one, two)]
    # leaf of one, leaf of two, one goes on: leaf, end; two goes on: leaf, end
    times = [one[0]["ts"], leaves[0]["ts"], two[0]["ts"], leaves[1]["ts"], leaves[2]["ts"], end[0], leaves[3]["ts"], end[1],
             after[0]["ts"]]
    equal(times, sorted(times), "order of begins and ends in fibers")


def check_methods(rows, truth, lines, pid):
    own = [o for o in spans_of(rows) if o["name"] in lines]
    for o in own:
        a = o["args"]
        equal((o["name"], a["file"], a["line"], a["level"]), ("%s#%s" % (a["class"], a["method"]), LOAD,
                                                             lines[o["name"]], "info"), "a method")
    got = collections.Counter(o["args"]["method"] for o in own)
    got = {k: v for k, v in got.items() if k in truth}
    equal(got, {k: truth[k] for k in got}, "calls")
    equal(set(got), {n.split("#")[1] for n in lines} - {"upcase", "fetch", "catching", "reverse", "fibers"}, "methods")
    in_fibers = ("fiber_one", "fiber_two", "leaf")
    equal(depths([o for o in own if o["args"]["method"] not in in_fibers], pid), TREE, "what lies in what")
    equal(sum(o["tid"] != pid for o in own), 6, "methods on other threads")  # which Ruby may use again
    check_fibers(rows)


def test_ruby_methods(c):
    """With a trace point: all methods, 100,000 calls at full speed, exactly; the profile is found by itself."""
    for _ in range(10 if c.long else 1):
        rows, truth, tr, d = trace_load(c, True)
        lines, cs, counts = split_truth(truth)
        pid = [o["pid"] for o in rows if o["type"] == "slice"][0]
        check_methods(rows, counts, lines, pid)
        check_c_methods(spans_of(rows), cs)
        check_rest(rows, counts, d)
        need("profile ruby (it knows this program" in tr.text(), tr.text())
    return "%d slices" % sum(o["type"] == "slice" for o in rows)


def test_ruby_c_methods(c):
    """Without one: C methods and the rest, and no methods, nor ends of such."""
    for _ in range(10 if c.long else 1):
        rows, truth, tr, d = trace_load(c, False)
        lines, cs, counts = split_truth(truth)
        equal([o["name"] for o in rows if o["name"] in lines], [], "methods")
        check_c_methods(spans_of(rows), cs)
        check_rest(rows, counts, d)
    return "%d slices" % sum(o["type"] == "slice" for o in rows)


def test_ruby_filter(c):
    """What the page says of --filter: C methods are of level debug."""
    rows, truth, _, d = trace_load(c, True, ["--filter", "ruby=info"])
    lines, cs, counts = split_truth(truth)
    pid = [o["pid"] for o in rows if o["type"] == "slice"][0]
    check_methods(rows, counts, lines, pid)
    equal([o["name"] for o in rows if o["name"] in {name for name, _ in cs}], [], "C methods")
