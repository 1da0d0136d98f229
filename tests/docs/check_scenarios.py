#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that each scenario in docs/parity.md names tests, and that these tests exist.

    check_scenarios.py [--source DIR]
    check_scenarios.py --self-test

The last line is `N passed, N failed`. Exit status: 0 all is there, 1 it is not.
"""

import argparse
import os
import re
import sys

WANTED = list(range(1, 56))


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except OSError:
        return ""


class Tests:
    def __init__(self, source):
        self.source = source
        d = os.path.join(source, "tests", "integration")
        names = sorted(os.listdir(d)) if os.path.isdir(d) else []
        text = "\n".join(read(os.path.join(d, n)) for n in names if re.fullmatch(r"test_\w+\.py", n))
        self.integration = set(re.findall(r"^def test_(\w+)\(", text, re.M))

    def unit(self, module, name):
        """A test function that is in the list of tests, or an entry of the module's table of scenarios."""
        d = os.path.join(self.source, "tests", "unit")
        text = read(os.path.join(d, "test_%s.c" % module))
        word = re.escape(name)
        if re.search(r"^static void %s\(void \*\*" % word, text, re.M):
            short = re.escape(name[5:] if name.startswith("test_") else name)  # lists may be made by a macro
            return len(re.findall(r"\b%s\b" % word, text)) > 1 or bool(re.search(r"\bT\(%s\)" % short, text))
        return bool(re.search(r'\.name = "%s"' % word, text + read(os.path.join(d, module + "_scenarios.h"))))

    def exists(self, ref):
        kind, _, name = ref.partition(":")
        if kind == "integration":
            return name in self.integration
        if kind == "unit":
            module, _, test = name.partition(".")
            return self.unit(module, test)
        if kind == "bench":
            return os.path.exists(os.path.join(self.source, "tests", "bench", name + ".c"))
        return False


def faults(text, tests):
    """(number of references that are fine, what is wrong)"""
    rows, wrong, fine = {}, [], 0
    for number, cells in re.findall(r"^\| (\d+) \|(.*)\|$", text, re.M):
        refs = re.findall(r"`(\w+:[\w.]+)`", cells)
        if refs:
            rows.setdefault(int(number), []).extend(refs)
    for n in WANTED:
        if n not in rows:
            wrong.append("scenario %d names no test" % n)
        for ref in rows.get(n, []):
            if tests.exists(ref):
                fine += 1
            else:
                wrong.append("scenario %d: no test %s" % (n, ref))
    for ref in set(re.findall(r"`((?:unit|integration|bench):[\w.]+)`", text)) - {r for v in rows.values() for r in v}:
        if not re.fullmatch(r"(unit:M\.N|integration:N|bench:N)", ref) and not tests.exists(ref):
            wrong.append("no test " + ref)
    return fine, wrong


def self_test(source):
    tests = Tests(source)
    good = read(os.path.join(source, "docs", "parity.md"))
    cases = [
        ("a row is gone", re.sub(r"^\| 7 \|.*\n", "", good, flags=re.M), "scenario 7 names no test"),
        ("no test in a row", re.sub(r"^(\| 9 \|[^|]*\|).*$", r"\1 none |", good, flags=re.M), "scenario 9 names"),
        ("a unit test that is none", good.replace("spans.reenter_n_times", "spans.reenter"), "no test unit:spans.reenter"),
        ("another module", good.replace("unit:pftrace.test_interning", "unit:spans.test_interning"), "scenario 17"),
        ("an integration test that is none", good.replace("integration:values", "integration:value"), "scenario 12"),
        ("a recording's row is gone", re.sub(r"^\| 47 \|.*\n", "", good, flags=re.M), "scenario 47 names no test"),
        ("a bench that is none", good.replace("bench:bench_core", "bench:bench"), "scenario 55"),
        ("a kind that is none", good.replace("unit:names.", "units:names."), "scenario 14"),
        ("in the text", good + "\n`integration:no_such`\n", "no test integration:no_such"),
    ]
    failed = 0
    for what, text, expected in cases:
        found = faults(text, tests)[1]
        if text == good or not any(expected in f for f in found):
            failed += 1
            print("self-test %s: expected %r, got %r" % (what, expected, found))
    print("%d passed, %d failed" % (len(cases) - failed, failed))
    return 1 if failed else 0


def main():
    ap = argparse.ArgumentParser()
    here = os.path.dirname(os.path.abspath(__file__))
    ap.add_argument("--source", default=os.path.dirname(os.path.dirname(here)))
    ap.add_argument("--self-test", action="store_true")
    o = ap.parse_args()
    if o.self_test:
        return self_test(o.source)
    fine, wrong = faults(read(os.path.join(o.source, "docs", "parity.md")), Tests(o.source))
    for w in wrong:
        print(w)
    print("%d passed, %d failed" % (fine, len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
