# SPDX-License-Identifier: BSD-3-Clause
"""Probes that nobody wrote for montrace: operands, texts, spans, predicates, profiles. Exact values."""

import os
import platform
import re
import struct
import subprocess
import time

import lib
from lib import Skipped, Target, Tracer, check, dump, equal, need


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def trace_operands(c, specs, args=()):
    """Rows of the trace by probe name, and what the program says of itself."""
    if platform.machine() not in ("x86_64", "aarch64"):
        raise Skipped("operands.c is for x86-64 and arm64")
    path = os.path.join(c.dir, "t.pftrace")
    t = Target([c.targets["operands"]])
    a = ["-v", "-p", str(t.pid), "-o", path] + list(args)
    for s in specs:
        a += ["--usdt", s]
    tr = Tracer(a)
    t.go()
    truth = t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    equal(check(path)["lost"], 0, "lost")
    rows = {}
    for o in dump(path):
        if o["type"] in ("instant", "slice", "counter"):
            rows.setdefault(o["name"], []).append(o)
    return rows, truth, tr


def values(o):
    """Values of argN; one that could not be had as its reason alone."""
    v = [v for k, v in o["args"].items() if k.startswith("arg")]
    return [x[len("<unavailable: "):-1] if isinstance(x, str) and x.startswith("<unavailable: ") else x for x in v]


def one(rows, name):
    equal(len(rows.get(name, [])), 1, "hits of " + name)
    return values(rows[name][0])


def test_foreign_operands(c):
    """Each kind of operand, its value exactly; what cannot be read says why and is nothing else."""
    rows, truth, _ = trace_operands(c, ["op:*"])
    equal(one(rows, "imm"), [-5, 2**64 - 1, -2**63, 255, -1, 16, 65535], "imm")
    equal(one(rows, "global"), [1, -2, -4, 3], "global")
    equal(one(rows, "address"), [truth["address"], truth["address"] + 8], "address")
    v = one(rows, "floats")
    equal(v[:4], [2.5, f32(-0.75), 2.5, f32(-0.75)], "floats")
    need("vector register" in v[4], "xmm: %r" % v[4])
    equal(one(rows, "unaligned"), [0x80000001, -0x7fffffff], "unaligned")
    equal(one(rows, "untouched"), [-77, 78], "memory that nobody touched before")
    if platform.machine() != "x86_64":
        return  # what only arm64 has: tests/kernels/verify.py
    equal(one(rows, "tls"), [1111, -2222, truth["thread"]], "tls")
    v = one(rows, "bad")
    equal((v[0], v[4]), (5, -6), "the good ones among bad ones")
    for i, text in ((1, "struct by value"), (2, "x87"), (3, "symbol unknown"), (5, "unreadable"), (6, "GOT")):
        need(text in str(v[i]), "bad, arg%d: %r" % (i, v[i]))
    equal(one(rows, "addr32"), ["unreadable"], "addr32")


def test_foreign_texts(c):
    rows, _, _ = trace_operands(c, [
        "op:text|edge|utf8 arg0:str", "op:cut arg0:str arg1=arg0:str(arg1)", "op:length arg0:str(arg1)"])
    equal(one(rows, "text"), ["far text"], "text")
    # behind a cut text is its length, as far as it is known
    equal(one(rows, "cut"), ["e" * 1024, 1025, "e" * 1024, 3000], "cut")
    need(rows["cut"][0]["args"]["cut"] is True, "cut is not said")
    got = [values(o)[0] for o in rows["length"]]
    equal(got[:3], ["with\ufffdnul", "", "eeee"], "texts with a length")
    for i, want in enumerate(["unreadable", "unreadable", "negative length", "unreadable", "unreadable"]):
        equal(got[3 + i], want, "length %d" % (3 + i))
    equal(one(rows, "edge"), ["unreadable"], "text without an end")
    need(one(rows, "utf8")[0].startswith("ok \ufffd"), "utf8: %r" % one(rows, "utf8"))


def test_foreign_keyed_spans(c):
    """Spans that begin on one thread and end on another, found by their key."""
    rows, _, tr = trace_operands(c, ["op:job__start..job__done key=arg0 what=arg1:str name=\"job {what}\" "
                                     "end.done=arg1"])
    need(not any("continued" in o["args"] or o["track"] != "job" for v in rows.values() for o in v), "cut, or on a thread")
    equal({k: len(v) for k, v in rows.items()}, {"job odd": 50, "job even": 50}, "spans")
    done = sorted(o["args"]["done"] for v in rows.values() for o in v if "done" in o["args"])
    equal(done, list(range(1, 101)), "field that the end tells")
    need(" 0 stray exits" in tr.text(), tr.text())


def test_foreign_predicates(c):
    rows, _, tr = trace_operands(c, [
        "op:pred arg0 if arg0 >= 490 && arg1 == \"other\" || arg0 < -498",
        "op:pred name=\"ten\" arg0 if arg1 == \"ten\" && arg0 != 0",
        "op:pred name=\"ne\" arg0 if arg1 != \"ten\" && arg0 >= 498",
        "op:pred name=\"never\" - if arg0 > 5000",
        "op:nest__start..nest__done n=arg0 if arg1 == \"yes\"",
        "op:count counter=arg0"])
    equal([values(o)[0] for o in rows["pred"]], [-500, -499] + list(range(491, 500)), "and, or")
    equal([values(o)[0] for o in rows["ten"]], [k - 500 for k in range(0, 1000, 10) if k != 500], "text equal")
    equal([values(o)[0] for o in rows["ne"]], [498, 499], "text not equal; unreadable is neither")
    need("never" not in rows, "a predicate that is false let something through")
    equal(len(rows["nest"]), 10, "spans with a predicate")
    need(all(o["args"]["n"] == 0 for o in rows["nest"]), "the wrong spans")
    need(" 0 stray exits" in tr.text() and " 0 lost ends" in tr.text(), tr.text())
    # 11 + 99 + 2 instants, 10 begins and ends, 2 counter values: who was turned away is no hit
    need("%d hits delivered" % (11 + 99 + 2 + 20 + 2) in tr.text(), tr.text())
    equal([o["value"] for o in rows["count"]], [10, -20], "counter")


def test_foreign_state_and_sums(c):
    """while=: each hit ends the span before and begins one unless it says 0; counters that add up."""
    rows, _, tr = trace_operands(c, [
        "op:pred while=arg0 name=\"state\" v=arg0", "op:pred name=\"hits\" counter=+1", "op:count counter=+arg0"])
    state = rows["state"]
    equal([o["args"]["v"] for o in state], [k - 500 for k in range(1000) if k != 500] + [499], "states")
    need(all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(state, state[1:])), "states overlap")
    gap = [i for i, (a, b) in enumerate(zip(state, state[1:])) if a["ts"] + a["dur"] != b["ts"]]
    equal(gap, [499], "where no state was: at the hit that said 0")
    equal([o["value"] for o in rows["hits"]], list(range(1, 1002)), "hits counted")
    equal([o["value"] for o in rows["count"]], [10, -10], "sum")
    need(" 0 stray exits" in tr.text(), tr.text())


def test_foreign_nested(c):
    """A span that is left by a jump ends with the one around it; without the word it would go on."""
    for word, ends, pieces in ((" nested", {"left": 100}, 100), ("", {"continued": 100}, 200)):
        # the ends of the jobs are on another thread: without a key they are nobody's
        rows, _, _ = trace_operands(c, ["op:imm..count name=\"outer\" -", "op:job__start..job__done -" + word])
        equal(len(rows["outer"]), 1, "the one around them")
        equal(len(rows["job"]), pieces, "pieces" + word)
        end = rows["outer"][0]["ts"] + rows["outer"][0]["dur"]
        inside = [o for o in rows["job"] if o["ts"] < end]
        equal({w: len([o for o in inside if o["args"].get("end") == w]) for w in ends}, ends, "ends" + word)
        need(all(o["ts"] + o["dur"] == end for o in inside), "they do not end with the one around them")
        os.unlink(os.path.join(c.dir, "t.pftrace"))


def test_foreign_auto(c):
    rows, _, tr = trace_operands(c, ["auto:op"])
    equal({k: len(v) for k, v in rows.items()}, {"job": 100, "nest": 30}, "pairs by their names")
    need(" 100 stray exits" in tr.text(), "ends on another thread without a key: " + tr.text())


def test_foreign_per_site(c):
    """The same on one link per site, as on kernels before 6.6."""
    rows, _, _ = trace_operands(c, ["op:imm|text arg0:u64"], ["--per-site"])
    equal(one(rows, "imm"), [2**64 - 5], "imm")


def test_foreign_unmatched(c):
    """A spec that matches nothing is told, and costs nothing."""
    _, _, tr = trace_operands(c, ["op:imm", "op:nix", "op:job__start..job__never"])
    need("op:nix: no such probe" in tr.text() and "job__never: no such probe, or no end to it" in tr.text(), tr.text())


def test_foreign_errors(c):
    t = Target([c.targets["operands"]])
    for spec, words in (("op:imm x=arg77", ["12 arguments", "character 10"]), ("op", ["PROVIDER:NAME"])):
        status, _, err = lib.run_tool(["-p", str(t.pid), "-o", c.dir + "/x", "--usdt", spec])
        equal(status, 1, "exit status")
        lib.one_error_line(err, *words)
    status, _, err = lib.run_tool(["-p", str(t.pid), "-o", c.dir + "/x", "--profile", "nosuch"])
    equal(status, 1, "exit status")
    lib.one_error_line(err, "no profile `nosuch`")
    t.end()


def test_foreign_profile(c):
    """A profile is used without being asked for if its condition holds, and says so."""
    d = os.path.join(c.dir, "profiles")
    os.mkdir(d)
    with open(os.path.join(d, "op.profile"), "w") as f:
        f.write("# of this test\nwhen op:imm\nop:imm arg0\nop:nix\n")
    with open(os.path.join(d, "other.profile"), "w") as f:
        f.write("when op:nix\nop:imm name=\"wrong\"\n")
    with open(os.path.join(d, "always.profile"), "w") as f:
        f.write("op:imm name=\"wrong too\"\n")
    env = {"MONTRACE_PROFILES": d}
    for args, want in (([], {"imm": 1}), (["--profile", "always"], {"wrong too": 1})):
        path = os.path.join(c.dir, "t%d.pftrace" % len(args))
        t = Target([c.targets["operands"]])
        tr = Tracer(["-p", str(t.pid), "-o", path] + args, env=env)
        t.go()
        t.read()
        t.end()
        equal(tr.wait(), 0, "exit status")
        equal({o["name"]: 1 for o in dump(path) if o["type"] == "instant"}, want, "instants")
        need("profile %s" % (args[1] if args else "op (") in tr.text(), tr.text())
    status, out, _ = lib.run_tool(["list", c.targets["operands"]], env=env)
    equal(status, 0, "list")
    need(re.search(r"op:imm +1 +no +- +always +arg0:i32 arg1:u64 ", out), out)
    need(re.search(r"op:job__start +1 +no +\.\.job__done ", out), out)


# A 32-bit program without a C library. Its thread segment is made by hand.
I386 = """
#define NOTE(name, args) "990: nop\\n.pushsection .note.stapsdt,\\"\\",\\"note\\"\\n.balign 4\\n" \\
    ".4byte 992f-991f,994f-993f,3\\n991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .4byte 990b\\n.4byte 0\\n.4byte 0\\n" \\
    ".asciz \\"op\\"\\n.asciz \\"" name "\\"\\n.asciz \\"" args "\\"\\n994: .balign 4\\n.popsection\\n"
#define FIRE(name, args, ...) __asm__ volatile(NOTE(name, args) : : __VA_ARGS__ : "memory")
static int sys(int n, int a, int b, int c)
{
    int r;
    __asm__ volatile("int $0x80" : "=a"(r) : "0"(n), "b"(a), "c"(b), "d"(c) : "memory");
    return r;
}
__attribute__((used)) static int op_global[4] = {1, -2, 3, -4};
static int segment[8] = {0, 0, 0, 0, 1234, -5};
static volatile int at = 3;
static volatile short half = -30001;
static volatile long long wide = -9000000000000000001LL;
static volatile double dbl = -3.0e-200;
static volatile float flt = 1.25f;
/* As the compiler prints them. */
__attribute__((noinline)) static void made(int local, unsigned char byte)
{
    FIRE("made", "%n[s]@%[a] %n[s]@%[b] %n[u]@%[c] %n[h]@%[d] %n[o]@%[e] %n[w]@%[f] 4f@%[g] 8f@%[i] %n[s]@%[j]",
         [s] "n"(4), [u] "n"(-4), [h] "n"(2), [o] "n"(-1), [w] "n"(8), [a] "m"(op_global[at]), [b] "r"(local),
         [c] "nor"(local), [d] "m"(half), [e] "q"(byte), [f] "m"(wide), [g] "m"(flt), [i] "m"(dbl), [j] "n"(-2147483647 - 1));
    FIRE("narrow", "1@%%al -1@%%al 1@%%ah -1@%%ah 1@%%bh -1@%%ch 2@%%si -2@%%di 1@%%dl -1@%%dh 4@%%ebp 4@%%eip",
         "a"(0x1f2f3), "b"(0xf400), "c"(0xf5ff), "d"(0xf6f7), "S"(0x3fff8), "D"(0x3fff9));
    FIRE("bad", "4@%%gs 8@%%rax 8f@%%xmm1 8f@%%st(0) 4@%%fs:0 8@(%%eax) -4@$-1 12@(%%eax)", "a"(8));
}
struct { unsigned entry, base, limit, flags; } desc = {-1u, 0, 0xfffff, 0x51};
void _start(void)
{
    char c, line[16] = "ready ";
    int n = sys(20, 0, 0, 0), i = 6, k;
    for (k = 1000000; k; k /= 10)
        if (n >= k || i > 6)
            line[i++] = '0' + n / k % 10;
    line[i++] = 10;
    desc.base = (unsigned)segment;
    sys(243, (int)&desc, 0, 0);
    __asm__ volatile("movw %w0, %%gs" : : "r"(desc.entry * 8 + 3));
    sys(4, 1, (int)line, i);
    sys(3, 0, (int)&c, 1);
    FIRE("regs", "4@%%eax -4@%%ecx 2@%%dx -1@%%dh %%esi", "a"(0x89abcdef), "c"(-7), "d"(0xfe12), "S"(5));
    FIRE("mem", "-4@op_global+4 -4@4(%%eax,%%ecx,4) -4@$-5 4@$4294967295", "a"(op_global), "c"(2));
    FIRE("seg", "-4@%%gs:16 -4@%%gs:4(%%eax)", "a"(16));
    FIRE("text", "4@%%eax", "a"("thirty-two"));
    made(-9, 0xfe);
    sys(4, 1, (int)"done\\n", 5);
    while (sys(3, 0, (int)&c, 1) == 1)
        ;
    sys(252, 0, 0, 0);
}
"""


def test_foreign_i386(c):
    """Operands of a 32-bit program on x86-64."""
    src, exe, path = (os.path.join(c.dir, "i386" + x) for x in (".c", "", ".pftrace"))
    with open(src, "w") as f:
        f.write(I386)
    if platform.machine() != "x86_64" or subprocess.run(
            ["cc", "-m32", "-O1", "-fno-pic", "-no-pie", "-nostdlib", "-static", "-ffreestanding",
             "-fno-stack-protector", src, "-o", exe], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("no compiler for i386")
    try:
        t = Target([exe])
    except (OSError, lib.Failed):
        raise Skipped("this kernel runs no 32-bit programs")
    tr = Tracer(["-p", str(t.pid), "-o", path, "--usdt", "op:regs|mem|seg|made|narrow|bad", "--usdt", "op:text arg0:str"])
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    rows = {o["name"]: values(o) for o in dump(path) if o["type"] == "instant"}
    equal(rows["regs"], [0x89abcdef, -7, 0xfe12, -2, 5], "registers")
    equal(rows["mem"], [-2, -4, -5, 2**32 - 1], "memory and constants")
    equal(rows["seg"], [1234, -5], "thread segment")
    equal(rows["made"], [-4, -9, 2**32 - 9, -30001, 0xfe, -9000000000000000001, 1.25, -3.0e-200, -2**31], "by the compiler")
    equal(rows["narrow"][:10], [0xf3, -13, 0xf2, -14, 0xf4, -11, 0xfff8, -7, 0xf7, -10], "narrow registers")
    need(all(isinstance(v, int) and 0 < v < 2**32 for v in rows["narrow"][10:]), "ebp, eip: %r" % rows["narrow"])
    for v, want in zip(rows["bad"], ("not understood", "not understood", "vector", "x87", "thread-local", "unreadable")):
        need(want in str(v), "%r, not %s" % (v, want))
    equal(rows["bad"][6], -1, "the good one among bad ones")
    need("struct by value" in rows["bad"][7], "12 bytes: %r" % rows["bad"][7])
    equal(rows["text"], ["thirty-two"], "text")


MANY = """
#include <stdio.h>
#include <unistd.h>
#define NOTE(name) "990: nop\\n.pushsection .note.stapsdt,\\"\\",\\"note\\"\\n.balign 4\\n" \\
    ".4byte 992f-991f,994f-993f,3\\n991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b\\n.8byte 0\\n.8byte 0\\n" \\
    ".asciz \\"m\\"\\n.asciz \\"" name "\\"\\n.asciz \\"-4@%%eax\\"\\n994: .balign 4\\n.popsection\\n"
#define F(name) __asm__ volatile(NOTE(name) : : "a"(n++));
int main(void)
{
    char c;
    int n = 0;
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    if (read(0, &c, 1) == 1) {
BODY
    }
    printf("hits=%d\\ndone\\n", n);
    fflush(stdout);
    while (read(0, &c, 1) == 1);
    return 0;
}
"""


def many(c, name, body):
    src, exe = os.path.join(c.dir, name + ".c"), os.path.join(c.dir, name)
    with open(src, "w") as f:
        f.write(MANY.replace("BODY", body))
    subprocess.check_call(["cc", "-O0", src, "-o", exe])
    return exe


def test_foreign_scale(c):
    """1,500 sites of one name, 5,000 specs of different names: attached and detached in under a second each."""
    lib.not_sanitized()
    if platform.machine() != "x86_64":
        raise Skipped("for x86-64")
    note = []
    profile = os.path.join(c.dir, "many.profile")
    with open(profile, "w") as f:
        f.write("".join("m:p%d v=arg0\n" % i for i in range(5000)))
    for name, body, args, n in (
            ("one", 'F("same")\n' * 1500, ["--usdt", "m:same v=arg0"], 1500),
            ("all", "".join('F("p%d")\n' % i for i in range(5000)), ["--profile", profile], 5000)):
        exe, path, best = many(c, name, body), os.path.join(c.dir, name + ".pftrace"), (99, 99, 99)
        for _ in range(5): # of the best, for the machine may be busy with other things
            t = Target([exe])
            start = time.time()
            tr = Tracer(["-v", "-p", str(t.pid), "-o", path] + args)
            whole = time.time() - start
            t.go()
            t.read()
            start = time.time()
            equal(tr.stop(), 0, "exit status")
            whole += time.time() - start
            m = re.search(r"attached in ([\d.]+) ms, detached in ([\d.]+) ms", tr.text())
            best = tuple(map(min, best, (float(m[1]) / 1e3, float(m[2]) / 1e3, whole)))
            t.end()
            got = sorted(o["args"]["v"] for o in dump(path) if o["type"] == "instant")
            equal(got, list(range(n)), "values")
            os.unlink(path)
            if max(best) < 1:
                break
        # The rest is the start of the tool and of its programs in the kernel, and the end of the file.
        need(best[0] < 1 and best[1] < 1, "%s: attached in %.2f s, detached in %.2f s (of %.2f)" % ((name,) + best))
        need(best[2] < 3, "%s: started and stopped in %.2f s" % (name, best[2]))
        note.append("%s: %.2f s to attach, %.2f to detach, %.2f all in all" % ((name,) + best))
    return "; ".join(note)
