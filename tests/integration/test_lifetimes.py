# SPDX-License-Identifier: BSD-3-Clause
"""--lifetimes: a slice for each span from its creation to its close, on pooled lanes under its process."""

from lib import Target, Tracer, check, dump, equal, need


def test_lifetimes(c):
    n = 20
    path = c.dir + "/t.pftrace"
    t = Target([c.targets["lives"], str(n)])
    tr = Tracer(["--lifetimes", "-p", str(t.pid), "-o", path])
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    check(path)
    slices = [o for o in dump(path) if o["type"] == "slice"]
    lives = [o for o in slices if o.get("track") == "span lifetimes" or not o.get("tid")]
    pieces = [o for o in slices if o.get("tid")]
    equal(len(lives), truth["spans"], "lifetimes")
    equal(len(pieces), 3 * n, "slices on threads")
    by_span = {o["args"]["span"]: o for o in lives}
    equal(len(by_span), truth["spans"], "different spans")
    for p in pieces:
        life = by_span[p["args"]["span"]]
        equal(p["name"], life["name"], "name")
        need(life["ts"] <= p["ts"] and p["ts"] + p["dur"] <= life["ts"] + life["dur"], "a piece outside its life")
        need(set(p["flows"]) & set(life["flows"]), "no flow from the life to its piece")
    long = [o for o in lives if o["name"] == "long life"]
    need(max(o["ts"] for o in long) < min(o["ts"] + o["dur"] for o in long), "not alive at once")
    equal(sum(o["name"] == "never closed" for o in lives), 1, "the one that was never closed")


def test_lifetimes_off(c):
    path = c.dir + "/t.pftrace"
    t = Target([c.targets["lives"], "5"])
    tr = Tracer(["-p", str(t.pid), "-o", path])
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    equal(check(path)["slices"], 15, "slices")
