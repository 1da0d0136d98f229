# SPDX-License-Identifier: BSD-3-Clause
"""What test_python.py traces: python_load.py DIR N. Says what it did, by its own count; says nothing else."""
import gc
import os
import sys

d, n = sys.argv[1], int(sys.argv[2])
collected = []


def work(x):
    return x + 1


def fails(x):
    raise ValueError(x)


def numbers(k):
    for i in range(k):
        yield i


def in_turn(level):
    return level and in_turn(level - 1)


class Node:
    pass


def rings(k):
    for _ in range(k):
        a = Node()
        a.self = a


def told(phase, info):
    if phase == "stop":
        collected.append((info["generation"], info["collected"]))


sys.path.insert(0, d)
gc.disable()
gc.collect()
print("ready %d" % os.getpid(), flush=True)
sys.stdin.readline()
for i in range(n):
    work(i)
list(map(work, range(n)))  # called from C
for i in range(n // 10):
    try:
        fails(i)
    except ValueError:
        pass
generated = sum(numbers(10))
in_turn(9)
gc.callbacks.append(told)
for generation, k in ((0, 3), (1, 0), (2, 50), (0, 1), (2, 7)):
    rings(k)
    gc.collect(generation)
gc.callbacks.remove(told)
import mt_outer  # noqa: E402,F401  imports mt_inner, then one that is not there
try:
    import mt_missing  # noqa: F401
except ImportError:
    pass
for i in range(7):
    sys.audit("mt.event", i)
    id(i)
open(os.path.join(d, "opened"), "w").close()
print("collected=" + ",".join("%d:%d" % c for c in collected))
print("done", flush=True)
sys.stdin.readline()
