#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Integration tests: the built tool on real targets, as root.

    run.py [--list] [--repeat N] [--long] [NAME...]     (MT_BUILD: build directory)

Tests are functions named test_* in the files test_*.py here; each gets the context c (c.targets: programs
by name, c.dir: an empty directory, c.repeat, c.long). One line a test, then `N passed, N failed, N skipped`.
"""

import argparse
import importlib
import os
import sys
import time
import traceback

import lib


class Context:
    pass


def load():
    tests = {}
    for f in sorted(os.listdir(lib.HERE)):
        if f.startswith("test_") and f.endswith(".py"):
            m = importlib.import_module(f[:-3])
            for name, fn in vars(m).items():
                if name.startswith("test_") and callable(fn):
                    tests[name[5:]] = fn
    return tests


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--repeat", type=int, default=2)
    ap.add_argument("--long", action="store_true")
    ap.add_argument("names", nargs="*")
    a = ap.parse_args()
    tests = load()
    if a.list:
        print("\n".join(tests))
        return 0
    unknown = [n for n in a.names if n not in tests]
    if unknown:
        print("no such test: " + " ".join(unknown))
        return 2
    work = lib.tmp()
    made = lib.compile_targets(work)
    passed = failed = skipped = 0
    for name, fn in tests.items():
        if a.names and name not in a.names:
            continue
        c = Context()
        c.targets, c.repeat, c.long = made, a.repeat, a.long
        c.dir = os.path.join(work, "t-" + name)
        os.mkdir(c.dir)
        start = time.time()
        try:
            note = fn(c) or ""
            passed += 1
            print("ok   %-32s %6.1f s  %s" % (name, time.time() - start, note), flush=True)
            lib.remove(c.dir)
        except lib.Skipped as e:
            skipped += 1
            print("skip %-32s %s" % (name, e), flush=True)
        except Exception as e:
            failed += 1
            print("FAIL %-32s %6.1f s  %s" % (name, time.time() - start, e), flush=True)
            if not isinstance(e, lib.Failed):
                traceback.print_exc()
    if not failed:
        lib.remove(work)
    else:
        print("kept: " + work)
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
