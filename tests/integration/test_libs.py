# SPDX-License-Identifier: BSD-3-Clause
"""The profiles of libraries: libstdcxx with a C++ program, glibc with a program that has probes of its names,
libvirt with a daemon that is started here."""

import collections
import os
import re
import shutil
import subprocess
import time

import lib
from lib import Skipped, Target, Tracer, check, dump, equal, need

PROFILES = os.path.join(lib.ROOT, "profiles")
ENV = {"MONTRACE_PROFILES": PROFILES}


def rows_of(path):
    equal(check(path)["lost"], 0, "lost")
    return [o for o in dump(path) if o["type"] in ("instant", "slice", "counter")]


def fields(o):
    return {k: v for k, v in o["args"].items() if k != "level"}


def test_libstdcxx(c):
    """Each exception of each thread; the profile comes by itself."""
    exe = os.path.join(c.dir, "throws")
    if not shutil.which("c++"):
        raise Skipped("no C++ compiler (g++)")
    subprocess.check_call(["c++", "-O2", "-g", os.path.join(lib.HERE, "targets", "throws.cc"), "-o", exe, "-pthread"])
    rounds = 10 if c.long else 2
    for i in range(rounds):
        path = os.path.join(c.dir, "t%d.pftrace" % i)
        t = Target([exe])
        status, out, err = lib.run_tool(["list", "-p", str(t.pid)], env=ENV)
        if "libstdcxx:throw" not in out:
            t.end()
            raise Skipped("this libstdc++ is built without probes")
        tr = Tracer(["-v", "-p", str(t.pid), "-o", path], env=ENV)
        t.go()
        truth = t.read()
        t.end()
        equal(tr.wait(), 0, "exit status: " + tr.text())
        need("profile libstdcxx (" in tr.text(), tr.text())
        per = collections.defaultdict(collections.Counter)
        types = collections.Counter()
        thrown = collections.defaultdict(list)
        for o in rows_of(path):
            per[o["tid"]][o["name"]] += 1
            types[o["name"], o["args"]["type"]] += 1
            equal(o["args"]["level"], "info" if o["name"] == "catch" else "warn", "level of " + o["name"])
            # what is caught or thrown again is what this thread threw last
            if o["name"] == "throw":
                thrown[o["tid"]] = o["args"]["exception"], o["args"]["type"]
            equal((o["args"]["exception"], o["args"]["type"]), thrown[o["tid"]], o["name"])
        want = [{k: truth["%s %d" % (k, n)] for k in ("throw", "catch", "rethrow")} for n in range(4)]
        equal(sorted((dict(p) for p in per.values()), key=lambda p: p["throw"]), want, "counts of the threads")
        own, error = ("0x%x" % truth[k] for k in ("own", "error"))
        total = sum(w["throw"] for w in want)
        equal(types["rethrow", own], sum(w["rethrow"] for w in want), "thrown again")
        equal(types["throw", own] + types["throw", error], total, "types")
        os.unlink(path)
    return "%d rounds" % rounds


def test_libstdcxx_not_beside_montrace(c):
    """A program with callsites of montrace.h has those, and no exceptions unless asked for."""
    src, exe = (os.path.join(c.dir, "both" + x) for x in (".cc", ""))
    with open(src, "w") as f:
        f.write('#include <cstdio>\n#include <unistd.h>\n#include "montrace.h"\nint main()\n{\n\tchar x;\n'
                '\tprintf("ready %d\\n", (int)getpid());\n\tfflush(stdout);\n\tif (read(0, &x, 1) != 1)\n\t\treturn 1;\n'
                '\ttry { throw 1; } catch (int) { MONTRACE_EVENT(MONTRACE_INFO, "caught"); }\n'
                '\tprintf("done\\n");\n\tfflush(stdout);\n\twhile (read(0, &x, 1) == 1)\n\t\t;\n}\n')
    if not shutil.which("c++"):
        raise Skipped("no C++ compiler (g++)")
    subprocess.check_call(["c++", "-O2", "-I", os.path.join(lib.ROOT, "include"), src, "-o", exe])
    for args, want in (([], ["caught"]), (["--profile", "libstdcxx"], ["throw", "catch", "caught"])):
        path = os.path.join(c.dir, "t%d.pftrace" % len(args))
        t = Target([exe])
        tr = Tracer(["-p", str(t.pid), "-o", path] + args, env=ENV)
        t.go()
        t.read()
        t.end()
        equal(tr.wait(), 0, "exit status: " + tr.text())
        equal([o["name"] for o in rows_of(path)], want, "events")


# Probes of the C library, its loader: arguments as C, and what is to be in the trace.
P, Q, R = "0x7f0000001000", "0x7f0000002000", "0x7f0000003000"
LIBC = [
    ("libc", "memory_sbrk_more", [P, "135168ul"], "sbrk more", {"end": P, "bytes": 135168}),
    ("libc", "memory_sbrk_less", [P, "4096ul"], "sbrk less", {"end": P, "bytes": 4096}),
    ("libc", "memory_heap_new", [P, "8192ul"], "heap new", {"heap": P, "bytes": 8192}),
    ("libc", "memory_heap_free", [P, "8193ul"], "heap free", {"heap": P, "bytes": 8193}),
    ("libc", "memory_heap_more", [P, "8194ul"], "heap more", {"heap": P, "bytes": 8194}),
    ("libc", "memory_heap_less", [P, "8195ul"], "heap less", {"heap": P, "bytes": 8195}),
    ("libc", "memory_arena_new", [P, "200ul"], "arena new", {"arena": P, "bytes": 200}),
    ("libc", "memory_arena_reuse", [P, Q], "arena reuse", {"arena": P, "old": Q}),
    ("libc", "memory_arena_reuse_wait", [P, Q, R], "arena wait", {"mutex": P, "arena": Q, "old": R}),
    ("libc", "memory_arena_reuse_free_list", [P], "arena reuse free", {"arena": P}),
    ("libc", "memory_arena_retry", ["77ul", Q], "arena retry", {"bytes": 77, "arena": Q}),
    ("libc", "memory_mallopt", ["-3", "-70000"], "mallopt", {"parameter": -3, "value": -70000}),
    ("libc", "memory_mallopt_free_dyn_thresholds", ["100ul", "200ul"], "malloc thresholds", {"mmap": 100, "trim": 200}),
    ("libc", "memory_tcache_double_free", [P, "5"], "double free?", {"address": P, "bin": 5}),
    ("libc", "setjmp", [P, "1", Q], "setjmp", {"buffer": P, "savemask": 1, "to": Q}),
    ("libc", "longjmp", [P, "-1", Q], "longjmp", {"buffer": P, "value": -1, "to": Q}),
    ("libc", "pthread_create", [P, "0ul", Q, R], "pthread_create", {"thread": P, "function": Q, "argument": R}),
    ("libc", "pthread_start", [P, Q, R], "pthread_start", {"thread": P, "function": Q, "argument": R}),
    ("libc", "pthread_join", [P], "pthread_join", {"thread": P, "result": 3}),
    ("libc", "pthread_join_ret", [P, "3", Q], None, None),
    ("libc", "lll_lock_wait_private", [P], "lock wait", {"lock": P}),
    ("libc", "lll_lock_wait", [Q], "lock wait", {"lock": Q}),
    ("libc", "cond_wait", [P, Q], "cond_wait", {"cond": P, "mutex": Q}),
    ("libc", "cond_signal", [P], "cond_signal", {"cond": P}),
    ("libc", "cond_broadcast", [P], "cond_broadcast", {"cond": P}),
    ("rtld", "init_start", ["0l", P], "ld.so init", {}),
    ("rtld", "init_complete", ["0l", P], None, None),
    ("rtld", "map_start", ["0l", P], "ld.so map", {"namespace": 0}),
    ("rtld", "map_failed", ["1l", P], "ld.so map failed", {"namespace": 1}),
    ("rtld", "map_complete", ["2l", P, Q], "ld.so mapped", {"namespace": 2}),
    ("rtld", "reloc_start", ["3l", P], "ld.so relocate", {"namespace": 3}),
    ("rtld", "reloc_complete", ["4l", P, Q], "ld.so relocated", {"namespace": 4}),
    ("rtld", "unmap_start", ["5l", P], "ld.so unmap", {"namespace": 5}),
    ("rtld", "unmap_complete", ["5l", P], None, None),
]


def test_glibc_itself(c):
    """The C library of this system, where it has its probes: counts and values."""
    t = Target([c.targets["libc_user"]])
    libc = [line.split()[-1] for line in open("/proc/%d/maps" % t.pid) if line.rstrip().endswith("/libc.so.6")][0]
    if b"pthread_create" not in subprocess.run(["readelf", "-nW", libc], stdout=subprocess.PIPE).stdout:
        t.p.kill()
        t.p.wait()
        raise Skipped("%s is built without probes" % libc)
    path = os.path.join(c.dir, "t.pftrace")
    tr = Tracer(["-p", str(t.pid), "-o", path, "--profile", "glibc"], env=ENV)
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    rows = rows_of(path)
    values = {k: str(truth.pop(k)) for k in ("jump_from", "function", "cond")}
    equal({k: len([o for o in rows if o["name"] == k]) for k in truth}, truth, "counts")

    def of(name, field):
        return [o["args"][field] for o in sorted(rows, key=lambda o: o["ts"]) if o["name"] == name]

    equal(of("longjmp", "value"), list(range(3, 10)), "values of longjmp")
    equal(set(of("longjmp", "buffer")), {values["jump_from"]}, "buffer of longjmp")
    for name in ("pthread_create", "pthread_start"):
        equal(of(name, "argument"), ["0x%x" % (40 + i) for i in range(5)], "arguments of " + name)
        equal(set(of(name, "function")), {values["function"]}, "function of " + name)
    equal(of("pthread_join", "thread"), of("pthread_start", "thread"), "threads")
    equal(set(of("cond_signal", "cond")), {values["cond"]}, "condition")
    equal((of("mallopt", "parameter"), of("mallopt", "value")), ([-1], [123456]), "mallopt")


def test_glibc(c):
    """Each spec of the profile, with values; it is not used unless it is named."""
    with open(os.path.join(PROFILES, "glibc.profile")) as f:
        named = set(re.findall(r"(?m)^(\w+):(\w+)", f.read()))
    ends = {(p, n) for p, n, _, name, _ in LIBC if name is None}
    equal({(p, n) for p, n, _, _, _ in LIBC} - ends, named, "probes of the profile")
    src, exe = (os.path.join(c.dir, "libc" + x) for x in (".c", ""))
    with open(src, "w") as f:
        f.write("#include <stdio.h>\n#include <unistd.h>\n#include <sys/sdt.h>\nint main(void)\n{\n\tchar x;\n"
                '\tprintf("ready %d\\n", (int)getpid());\n\tfflush(stdout);\n\tif (read(0, &x, 1) != 1)\n\t\treturn 1;\n')
        for p, n, args, _, _ in LIBC:
            f.write("\tSTAP_PROBE%d(%s, %s, %s);\n" % (len(args), p, n, ", ".join(args)))
        f.write('\tprintf("done\\n");\n\tfflush(stdout);\n\twhile (read(0, &x, 1) == 1)\n\t\t;\n\treturn 0;\n}\n')
    if subprocess.run(["cc", "-O1", src, "-o", exe], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("no sys/sdt.h (systemtap-sdt-dev)")
    for i in range(10 if c.long else 1):
        t = Target([exe])
        status, _, err = lib.run_tool(["-p", str(t.pid), "-o", c.dir + "/none"], env=ENV)
        equal(status, 1, "exit status without the profile's name")
        lib.one_error_line(err, "nothing to trace")
        path = os.path.join(c.dir, "t%d.pftrace" % i)
        tr = Tracer(["-v", "-p", str(t.pid), "-o", path, "--profile", "glibc"], env=ENV)
        t.go()
        t.read()
        t.end()
        equal(tr.wait(), 0, "exit status: " + tr.text())
        need(" 0 stray exits" in tr.text() and " 0 lost ends" in tr.text(), tr.text())
        equal([(o["name"], fields(o)) for o in rows_of(path)],
              [(name, want) for _, _, _, name, want in LIBC if name is not None], "events and spans")


def libvirtd(directory):
    """A session daemon of an unprivileged user, and how to talk to it; None if it does not start."""
    os.chmod(directory, 0o711)
    run = os.path.join(directory, "run")
    os.mkdir(run)
    shutil.chown(run, "nobody", "nogroup")
    user = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "env", "XDG_RUNTIME_DIR=" + run,
            "HOME=" + run]
    d = subprocess.Popen(user + [shutil.which("libvirtd"), "-p", run + "/pid"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    virsh = user + ["virsh", "-q", "-c", "test+unix:///default?socket=%s/libvirt/libvirt-sock" % run]
    for _ in range(100):
        if d.poll() is not None:
            break
        if not subprocess.run(virsh + ["hostname"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            return d, virsh
        time.sleep(0.1)
    d.kill()
    d.wait()
    return None, None


def test_libvirt(c):
    """Requests to a daemon with libvirt's test driver: each with its answer; the profile comes by itself."""
    if not shutil.which("libvirtd") or not shutil.which("virsh"):
        raise Skipped("no libvirtd, no virsh (libvirt-daemon, libvirt-clients)")
    os.chmod(os.path.dirname(c.dir), 0o711)
    d, virsh = libvirtd(c.dir)
    if not d:
        raise Skipped("libvirtd does not start here")
    try:
        rounds = 10 if c.long else 2
        for i in range(rounds):
            path = os.path.join(c.dir, "t%d.pftrace" % i)
            tr = Tracer(["-v", "-p", str(d.pid), "-o", path], env=ENV)
            for _ in range(3):
                subprocess.check_call(virsh + ["dominfo", "test"], stdout=subprocess.DEVNULL)
            equal(subprocess.run(virsh + ["dominfo", "nix"], stderr=subprocess.DEVNULL).returncode, 1, "virsh")
            time.sleep(0.3) # the daemon notices that the last client is gone
            equal(tr.stop(), 0, "exit status: " + tr.text())
            need("profile libvirt (" in tr.text(), tr.text())
            check_libvirt(rows_of(path))
    finally:
        d.terminate()
        d.wait()
    return "%d rounds" % rounds


def check_libvirt(rows):
    n = collections.Counter(o["name"] for o in rows)
    equal([n[k] for k in ("client new", "client gone", "socket new", "socket gone")], [4] * 4, "clients")
    asked, told = collections.defaultdict(list), collections.defaultdict(list)
    lives = collections.Counter() # a client may be where an earlier one was
    for o in sorted(rows, key=lambda o: o["ts"]):
        a = o["args"]
        lives[a.get("client")] += o["name"] == "client new"
        if o["name"] in ("server receives", "server sends"):
            what = asked if o["name"] == "server receives" else told
            what[a["client"], lives[a["client"]], a["procedure"], a["serial"]].append((a["type"], a["status"]))
    need(len(asked) >= 4 * 10, "requests")
    equal(set(asked), set(told), "requests and answers")
    equal({tuple(v) for v in asked.values()}, {((0, 0),)}, "requests: type call, status fine")
    equal(sum(v != [(1, 0)] for v in told.values()), 1, "answers that are errors")
    # the procedure "look up a domain by its name" has number 23
    equal([v for k, v in told.items() if v != [(1, 0)]], [[(1, 1)]], "the error")
    equal({k[2] for k, v in told.items() if v == [(1, 1)]}, {23}, "procedure of the error")
