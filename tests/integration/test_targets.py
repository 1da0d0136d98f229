# SPDX-License-Identifier: BSD-3-Clause
"""Targets beside the checkout (../shared/targets/NAME.sh), if there: they start a program and say what its probes did."""

import os
import re
import subprocess

import lib
from lib import Skipped, Tracer, check, dump, equal, need

TARGETS = os.path.join(os.path.dirname(lib.ROOT), "shared", "targets")


class Driven:
    """NAME.sh with a directory of its own."""

    def __init__(self, c, name):
        self.script = os.path.join(TARGETS, name + ".sh")
        if not os.path.exists(self.script):
            raise Skipped("no ../shared/targets/%s.sh" % name)
        # short, for the sockets in it, and one that others may enter
        self.dir = os.path.join("/tmp", "mt-%s-%d" % (name, os.getpid()))
        self.env = dict(os.environ, RUN=self.dir, N=str(1000))
        self.meta = dict(line.split("=", 1) for line in self.run("meta").splitlines() if "=" in line)
        self.meta = {k: v.strip("\"'") for k, v in self.meta.items()}
        if not os.path.exists(self.meta["BIN"]):
            raise Skipped("no " + self.meta["BIN"])

    def run(self, what):
        # into files: what start leaves running keeps its output open
        os.makedirs(self.dir, exist_ok=True)
        out = os.path.join(self.dir, "driver.out")
        with open(out, "w") as f:
            code = subprocess.run([self.script, what], env=self.env, stdin=subprocess.DEVNULL, stdout=f,
                                  stderr=subprocess.STDOUT, timeout=120).returncode
        with open(out) as f:
            text = f.read()
        need(code == 0, "%s %s: %s" % (self.script, what, text[-500:]))
        return text

    def truth(self):
        """{"prov:name" or "prov:name of FUNCTION": count}"""
        return {m[1]: int(m[2]) for m in re.finditer(r"^(\w+:\w+(?: of \w+)?) (\d+)\b", self.run("truth"), re.M)}

    def __enter__(self):
        self.run("start")
        with open(os.path.join(self.dir, "pid")) as f:
            self.pid = int(f.read())
        return self

    def __exit__(self, *a):
        self.run("stop")
        lib.remove(self.dir)


def drive(c, name, args_of, of_program):
    """
    A load under the profile and one counter of hits a probe. Rows of the trace, the truth; the counts of hits are
    compared here. of_program: is this pid of the target?
    """
    d = Driven(c, name)
    path = os.path.join(c.dir, name + ".pftrace")
    if os.path.exists(path):
        os.unlink(path)
    with d:
        tr = Tracer(args_of(d) + ["-o", path])
        d.run("load")
        truth = d.truth()
        pids = of_program(d)
        equal(tr.stop(), 0, "exit status: " + tr.text())
    equal(check(path)["lost"], 0, "lost")
    rows = [o for o in dump(path) if o["type"] in ("slice", "instant", "counter") and pids(o["pid"])
            and not o["args"].get("continued")]
    need(truth, "the target says nothing")
    return rows, truth


def count(rows, name):
    return len([o for o in rows if o["name"] == name])


def test_targets_postgres(c):
    for _ in range(10 if c.long else 1):
        own = {}

        def args(d):
            return ["--all", d.meta["BIN"], "--profile", "postgresql", "--usdt", "postgresql:query__start -",
                    "--usdt", "postgresql:query__done -"]

        def backends(d):
            with open(os.path.join(d.dir, "log")) as f:
                lines = f.read().splitlines()
            with open(os.path.join(d.dir, "log0")) as f:
                lines = lines[int(f.read()):]
            own.update({i: t for i, t in enumerate(m[1] for m in (re.search(r"statement: (.*)", x) for x in lines) if m)})
            pids = {int(x.split()[0]) for x in lines if "statement:" in x}
            return lambda pid: pid in pids

        rows, truth = drive(c, "postgres", args, backends)
        equal({n: count(rows, n.split(":")[1]) for n in truth}, truth, "probes")
        equal(count(rows, "query"), truth["postgresql:query__start"], "query spans")
        said = [o["args"]["text"] for o in sorted(rows, key=lambda o: o["ts"]) if o["name"] == "query"]
        equal(said, list(own.values()), "texts")
    return "%d statements" % truth["postgresql:query__start"]


def test_targets_python(c):
    for _ in range(10 if c.long else 1):
        rows, truth = drive(c, "python", lambda d: [
            "-p", str(d.pid), "--profile", "python", "--profile", "python-returns", "--usdt", "python:gc__start -",
            "--usdt", "python:gc__done -"], lambda d: lambda pid: pid == d.pid)
        got = {n: count(rows, "return " + n.split(" of ")[1] if " of " in n else n.split(":")[1]) for n in truth}
        equal(got, truth, "probes")
        equal(len([o for o in rows if o["name"].startswith("gc generation ")]), truth["python:gc__start"], "gc spans")
        equal(sorted(n for n in {o["name"] for o in rows} if n in ("import zipfile", "import colorsys")),
              ["import colorsys", "import zipfile"], "imports")
    return "%d returns" % truth["python:function__return of work"]
