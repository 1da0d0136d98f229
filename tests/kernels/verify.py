#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""verify.py TOOL LINES DIR: the traces that a virtual machine sent (run.sh, guest.sh), checked outside of it.

Prints `ok NAME` or `FAIL NAME why` for each trace, and one for a trace that did not come.
"""

import base64
import gzip
import json
import os
import subprocess
import sys

CHECK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "check_trace.py")


class Failed(Exception):
    pass


def equal(got, want, what):
    if got != want:
        raise Failed("%s: got %r, want %r" % (what, got, want))


def received(path):
    """{name: (bytes of the trace, {key: value the target said})}"""
    traces, data, name = {}, [], None
    with open(path, "rb") as f:
        for line in f.read().decode("ascii", "replace").split("\n"):
            line = line.strip()
            if line.startswith("trace "):
                name, data = line.split()[1], []
            elif line.startswith("truth ") and name:
                words = dict(w.split("=", 1) for w in line.split()[2:] if "=" in w)
                traces[name] = (gzip.decompress(base64.b64decode("".join(data))), words)
                name = None
            elif name:
                data.append(line)
    return traces


def check(path):
    p = subprocess.run([sys.executable, "-B", CHECK, path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = p.stdout.decode(errors="replace").strip()
    if p.returncode:
        raise Failed("check_trace.py: " + " ".join(text.split())[:500])
    return json.loads(text.splitlines()[-1])


def dump(tool, path):
    rows = {}
    out = subprocess.run([tool, "dump", "--json", path], stdout=subprocess.PIPE, check=True).stdout
    for line in out.decode().splitlines():
        o = json.loads(line)
        if o["type"] in ("instant", "slice", "counter"):
            rows.setdefault(o["name"], []).append(o)
    return rows


def values(row):
    return [v for k, v in row["args"].items() if k.startswith("arg")]


def verify_count(tool, path, truth):
    got = check(path)
    equal(got["lost"], 0, "lost")
    equal(got["instants"], int(truth["events"]), "events")
    equal(got["slices"], int(truth["scopes"]), "scopes")


def verify_small(tool, path, truth):
    got = check(path)
    equal(got["lost"], int(truth["lost"]), "lost")
    equal(got["perf_lost"], got["lost"], "losses for the importer")


def verify_die(tool, path, truth):
    check(path)
    rows = dump(tool, path)
    equal({k: len(v) for k, v in rows.items()}, {"before": 10, "outer": 1, "inner": 1, "last words": 1}, "rows")
    got = [[r["args"][k] for k in "ibcde"] for r in rows["before"]]
    equal(got, [[i, i + 10, i + 20, i + 30, i + 40] for i in range(10)], "values of before")
    equal(rows["inner"][0]["args"]["depth"], 2, "depth")
    for name in ("outer", "inner"):
        equal(rows[name][0]["args"].get("end"), "process killed by signal 9 (SIGKILL)", "end of " + name)


def verify_arm64(rows):
    """The operands that only arm64 has (operands.c)."""
    equal(values(rows["extend"][0]), [-2, -4, -77], "extend")
    equal(values(rows["halves"][0]), [-0x7a797878, 0x85868788, -0x78, 0x8788, 0x1122334485868788, 0, 0], "halves")
    stack = values(rows["stack"][0])
    equal((stack[0], stack[1] % 16), (4711, 0), "stack")
    bad = values(rows["bad"][0])
    equal(bad[0], -6, "the good one among bad ones")
    for v in bad[1:]:
        if "unavailable" not in str(v):
            raise Failed("bad: %r" % bad)


def verify_operands(tool, path, truth):
    equal(check(path)["lost"], 0, "lost")
    rows = dump(tool, path)
    equal(values(rows["imm"][0]), [-5, 2**64 - 1, -2**63, 255, -1, 16, 65535], "imm")
    equal(values(rows["global"][0]), [1, -2, -4, 3], "global")
    equal(values(rows["address"][0])[0], int(truth["address"]), "address")
    if "thread" in truth:
        equal(values(rows["tls"][0]), [1111, -2222, int(truth["thread"])], "tls")
    else:
        verify_arm64(rows)
    equal(values(rows["untouched"][0]), [-77, 78], "memory that nobody touched before")
    equal([values(r)[0] for r in rows["texts"]][:3], ["with\ufffdnul", "", "eeee"], "texts")
    equal(len(rows["pred"]), 1001, "pred")
    equal([values(r)[0] for r in rows["brackets"]], [-500, -499, 490], "brackets")
    equal((len(rows["real"]), len(rows.get("no", []))), (1, 0), "floating arguments")
    equal(len(rows["job"]), 100, "spans with a key: none is cut")
    equal(sorted(r["args"]["done"] for r in rows["job"]), list(range(1, 101)), "what their ends tell")


def verify_pages(tool, path, truth):
    equal(check(path)["lost"], 0, "lost")
    equal([values(r) for r in dump(tool, path)["ptr"]], [["<unavailable: unreadable>", i] for i in range(3)], "ptr")


VERIFY = {"count": verify_count, "small": verify_small, "die": verify_die, "operands": verify_operands,
          "pages": verify_pages, "command": verify_count}


def main():
    tool, lines, d = sys.argv[1:4]
    os.makedirs(d, exist_ok=True)
    traces = received(lines)
    bad = False
    for name, verify in VERIFY.items():
        try:
            if name not in traces:
                raise Failed("no trace came")
            path = os.path.join(d, name + ".pftrace")
            with open(path, "wb") as f:
                f.write(traces[name][0])
            verify(tool, path, traces[name][1])
            print("ok trace-%s (%d bytes)" % (name, len(traces[name][0])))
        except (Failed, KeyError, IndexError, ValueError, OSError, subprocess.CalledProcessError) as e:
            print("FAIL trace-%s %s" % (name, e if isinstance(e, Failed) else repr(e)))
            bad = True
    return bad


if __name__ == "__main__":
    sys.exit(main())
