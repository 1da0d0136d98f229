# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of operand, made by hand and by compilers, in programs, libraries and libraries that come later."""

import json
import os
import platform
import shutil
import struct
import subprocess
import time

import lib
from lib import Skipped, Target, Tracer, check, dump, equal, need, run_tool
from test_foreign import f32, values

NOTE = r"""
#define NOTE(name, args) "990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n" \
    ".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b,0,0\n" \
    ".asciz \"k\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n994: .balign 4\n.popsection\n"
#define FIRE(name, args, ...) __asm__ volatile(NOTE(name, args) : : __VA_ARGS__ : "memory")
"""


def signed(v, size):
    v &= (1 << 8 * size) - 1
    return v - (1 << 8 * size) if v >> (8 * size - 1) else v


def unsigned(v, size):
    return v & ((1 << 8 * size) - 1)


def compile_(c, name, text, cc, *flags):
    src, out = os.path.join(c.dir, name + ".c"), os.path.join(c.dir, name)
    with open(src, "w") as f:
        f.write(text)
    p = subprocess.run([cc, "-g", "-w", "-o", out, src] + list(flags), stderr=subprocess.PIPE)
    need(p.returncode == 0, "%s: %s" % (name, p.stderr.decode()[:600]))
    return out


def run(c, name, argv, specs=("k:*",), env=None):
    """{probe: values of its one hit}, and what the program says."""
    path = os.path.join(c.dir, name + ".pftrace")
    t = Target(argv, env=env)
    a = ["-v", "-p", str(t.pid), "-o", path]
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
        if o["type"] == "instant":
            need(o["name"] not in rows, "two hits of " + o["name"])
            rows[o["name"]] = values(o)
    return rows, truth, tr.text()


def x86_only():
    if platform.machine() != "x86_64":
        raise Skipped("for x86-64")


# ---- Registers ------------------------------------------------------------------------------------------------------

NAMED = {"rax": ("eax", "ax", "al", "ah"), "rbx": ("ebx", "bx", "bl", "bh"), "rcx": ("ecx", "cx", "cl", "ch"),
         "rdx": ("edx", "dx", "dl", "dh"), "rsi": ("esi", "si", "sil"), "rdi": ("edi", "di", "dil"),
         "rbp": ("ebp", "bp", "bpl"), "rsp": ("esp", "sp", "spl")}
NAMED.update({"r%d" % i: ("r%dd" % i, "r%dw" % i, "r%db" % i) for i in range(8, 16)})


def register_args(r):
    """Operands of a register, all widths and signs, and what they are made of: (size, shift, signed)."""
    names = [r] + list(NAMED[r])
    args, kinds = [], []
    for n, size, shift in zip(names, (8, 4, 2, 1, 1), (0, 0, 0, 0, 8)):
        for sign in ("", "-"):
            args.append("%s%d@%%%s" % (sign, size, n))
            kinds.append((size, shift, bool(sign)))
    return " ".join(args), kinds


def test_foreign_registers(c):
    """All general registers in all widths, high bytes too, signed and unsigned."""
    x86_only()
    loads, fires = [], []
    value = {r: (0x81f2e3d4c5b6a798 * (2 * i + 1)) & (1 << 64) - 1 for i, r in enumerate(NAMED)}
    for r in NAMED:
        if r != "rsp":
            loads.append('"movabs $%#x, %%%s\\n"' % (value[r], r))
        fires.append('NOTE("%s", "%s")' % (r, register_args(r)[0]))
    text = "#include <stdio.h>\n#include <unistd.h>\n" + NOTE + """
unsigned long sp, ip;
__asm__(".text\\nall_registers:\\n"
    "push %%rbx\\npush %%rbp\\npush %%r12\\npush %%r13\\npush %%r14\\npush %%r15\\n"
    "mov %%rsp, sp(%%rip)\\nlea here(%%rip), %%rax\\nmov %%rax, ip(%%rip)\\n"
    LOADS
    FIRES
    "here: " NOTE("rip", "8@%%rip")
    "pop %%r15\\npop %%r14\\npop %%r13\\npop %%r12\\npop %%rbp\\npop %%rbx\\nret\\n");
extern void all_registers(void);
int main(void)
{
    char c;
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    if (read(0, &c, 1) == 1)
        all_registers();
    printf("sp=%lu\\nip=%lu\\ndone\\n", sp, ip);
    fflush(stdout);
    while (read(0, &c, 1) == 1);
    return 0;
}
""".replace("LOADS", "\n    ".join(loads)).replace("FIRES", "\n    ".join(fires)).replace("%%", "%")
    rows, truth, _ = run(c, "registers", [compile_(c, "registers", text, "cc", "-O1", "-no-pie")])
    value["rsp"] = truth["sp"]
    n = 0
    for r in NAMED:
        want = [(signed if s else unsigned)(value[r] >> shift, size) for size, shift, s in register_args(r)[1]]
        equal(rows[r], want, r)
        n += len(want)
    equal(rows["rip"], [truth["ip"]], "rip")
    return "%d operands" % (n + 1)


# ---- Constants, memory, what cannot be read -------------------------------------------------------------------------

# name, operands, inputs, values. `a` is an array of ints, a[i] = 1000 * i - 3; in the middle m.
A = [1000 * i - 3 for i in range(64)]
BY_HAND = [
    ("imm8", "8@$0 8@$18446744073709551615 8@$0xffffffffffffffff -8@$-9223372036854775808 -8@$9223372036854775807 "
     "-8@$-0x10 8@$017 -8@$-1 8@$-1 8@$0x8000000000000000", "",
     [0, 2**64 - 1, 2**64 - 1, -2**63, 2**63 - 1, -16, 15, -1, 2**64 - 1, 2**63]),
    ("imm4", "4@$4294967295 -4@$-2147483648 -4@$2147483647 -4@$4294967295 4@$-1 4@$0x80000000", "",
     [2**32 - 1, -2**31, 2**31 - 1, -1, 2**32 - 1, 2**31]),
    ("imm21", "2@$65535 -2@$-32768 2@$-1 -2@$32767 1@$255 -1@$-128 1@$-1 -1@$127 1@$65 $7 $-7", "",
     [65535, -32768, 65535, 32767, 255, -128, 255, 127, 65, 7, 2**64 - 7]),
    ("sums", "4@$1+2 4@$(8-3)+1 -4@$-(2+3) 8@$1-2", "", [3, 6, -5, 2**64 - 1]),
    ("base", "-4@(%%rbx) -4@8(%%rbx) -4@-8(%%rbx) -4@0x10(%%rbx) -4@-0x10(%%rbx) -4@4+4(%%rbx) -4@(4)(%%rbx) "
     "-4@-(4)(%%rbx) -4@%%ds:4(%%rbx) -4@%%es:(%%rbx) -4@%%cs:(%%rbx) -4@%%ss:8(%%rbx)", '"b"(m)',
     [A[32], A[34], A[30], A[36], A[28], A[34], A[33], A[31], A[33], A[32], A[32], A[34]]),
    ("index", "-4@(%%rbx,%%rcx) -4@(%%rbx,%%rcx,1) -4@(%%rbx,%%rcx,2) -4@(%%rbx,%%rcx,4) -4@(%%rbx,%%rcx,8) "
     "-4@-4(%%rbx,%%rcx,4) -4@0x4(%%rbx, %%rcx, 8) -4@(%%rbx,%%rdx,4) -4@8(%%rbx,%%rdx,4) -4@(,%%rsi,4) -4@4(,%%rsi,4)",
     '"b"(m), "c"(4L), "d"(-3L), "S"((unsigned long)m / 4)',
     [A[33], A[33], A[34], A[36], A[40], A[35], A[41], A[29], A[31], A[32], A[33]]),
    ("high", "-4@(%%r8) -4@4(%%r9) -4@-4(%%r10,%%r11,2) -4@(%%r12) -4@(%%r13) -4@4(%%r14,%%r15,4)",
     '"r"(r8), "r"(r9), "r"(r10), "r"(r11), "r"(r12), "r"(r13), "r"(r14), "r"(r15)',
     [A[32], A[33], A[33], A[1], A[0], A[36]]),
    ("symbol", "-4@a(%%rip) -4@a+4(%%rip) -4@4+a(%%rip) -4@a+0x8(%%rip) -4@a_end-4(%%rip) -4@a+8-4(%%rip) "
     "-4@(a+4)(%%rip) -4@hidden(%%rip)", "", [A[0], A[1], A[1], A[2], A[63], A[1], A[1], -77]),
    ("address", "8@$a 8@$a+8 -8@$a-4", "", "address"),
    ("sizes", "1@(%%rbx) -1@(%%rbx) 2@(%%rbx) -2@(%%rbx) 4@(%%rbx) -4@(%%rbx) 8@(%%rbx) -8@(%%rbx) (%%rbx)", '"b"(&odd)',
     [0xf8, -8, 0xf9f8, signed(0xf9f8, 2), 0xfbfaf9f8, signed(0xfbfaf9f8, 4), 0xfffefdfcfbfaf9f8,
      signed(0xfffefdfcfbfaf9f8, 8), 0xfffefdfcfbfaf9f8]),
    ("floats", "8f@(%%rbx) 4f@(%%rcx) 8f@%%rdx 4f@%%esi 8f@dbl(%%rip) 4f@flt(%%rip)",
     '"b"(&dbl), "c"(&flt), "d"(0x4004000000000000), "S"(0xbf800001L)',
     [-1.5e300, f32(3.3), 2.5, -1.00000011920928955078125, -1.5e300, f32(3.3)]),
    ("thread", "-4@%%fs:tls@tpoff -4@%%fs:tls@tpoff+4 -4@%%fs:tls@TPOFF(%%rbx) -4@tls@tpoff(%%rcx) -4@%%fs:(%%rdx) "
     "-4@%%fs:4(%%rdx) -4@%%fs:(%%rdx,%%rbx) 8@%%fs:0 8@%%fs:0x0", '"b"(4L), "c"(tp), "d"((char *)tls - (char *)tp)',
     "thread"),
    ("twelve", " ".join("-4@%d(%%%%rbx)" % (4 * i) for i in range(12)), '"b"(m)', A[32:44]),
    ("fourteen", " ".join("$%d" % i for i in range(14)), "", list(range(12))),
    ("vector", "8f@%%xmm0 4f@%%xmm15 8@%%ymm3 8@%%zmm30 8@%%k1 16@%%xmm1 -4@$5", "",
     ["in a vector register (not readable from outside)"] * 5 + [None, 5]),
    ("x87", "8f@%%st 8f@%%st(1) 10f@%%st(0) 8@%%mm7 -4@$6", "",
     ["in an x87 or MMX register (not readable from outside)"] * 2 + [None] +
     ["in an x87 or MMX register (not readable from outside)"] + [6]),
    ("structs", "16@(%%rbx) 3@(%%rbx) 0@(%%rbx) 10f@(%%rbx) 2f@(%%rbx) -4@$7", '"b"(m)',
     ["a struct by value (not a number)"] * 5 + [7]),
    ("unknown", "8@%%cr0 4@what 8@a@GOTPCREL(%%rip) 8@a@gottpoff(%%rip) 4@%%gs:0 4@tls(%%rip) 8@(%%rbx,%%rcx,3) "
     "8@$99999999999999999999 -4@$8", '"b"(m), "c"(0L)',
     ["operand not understood", "symbol unknown or ambiguous"] + ["address made at run time (GOT)"] * 2 +
     ["thread-local, place not known", "symbol unknown or ambiguous", "operand not understood", "operand not understood",
      8]),
]

HAND = "#include <stdio.h>\n#include <unistd.h>\n" + NOTE + """
int a[64];
__asm__(".globl a_end\\n.set a_end, a+256\\n");
static int hidden __attribute__((used)) = -77;
static __thread int tls[2] __attribute__((used)) = {-1234, 5678};
static double dbl __attribute__((used)) = -1.5e300;
static float flt __attribute__((used)) = 3.3f;
static struct { char pad[3]; unsigned long v; } __attribute__((packed)) odd_ = {{0}, 0xfffefdfcfbfaf9f8};
#define odd odd_.v
int main(void)
{
    int *m = a + 32;
    char c, *tp;
    for (int i = 0; i < 64; i++)
        a[i] = 1000 * i - 3;
    __asm__("mov %%fs:0, %0" : "=r"(tp));
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    if (read(0, &c, 1) == 1) {
        register int *r8 __asm__("r8") = m;
        register int *r9 __asm__("r9") = m;
        register int *r10 __asm__("r10") = m;
        register long r11 __asm__("r11") = 4;
        register long r12 __asm__("r12") = (long)a + 4;
        register long r13 __asm__("r13") = (long)a;
        register int *r14 __asm__("r14") = m;
        register long r15 __asm__("r15") = 3;
FIRES
    }
    printf("a=%lu\\ntp=%lu\\ndone\\n", (unsigned long)a, (unsigned long)tp);
    fflush(stdout);
    while (read(0, &c, 1) == 1);
    return 0;
}
"""


def test_foreign_by_hand(c):
    """Constants, memory, symbols, thread-local, floats, 12 arguments; and what cannot be read says why."""
    x86_only()
    # "high" uses registers that the compiler may not touch in between: first
    order = sorted(BY_HAND, key=lambda r: r[0] != "high")
    fires = "\n".join('FIRE("%s", "%s"%s);' % (n, args, ", " + ins if ins else ", \"i\"(0)") for n, args, ins, _ in order)
    text = HAND.replace("FIRES", fires)
    note = []
    for name, flags in (("nopie", ["-no-pie", "-O1"]), ("pie", ["-pie", "-fPIE", "-O1"]), ("static", ["-static", "-O1"])):
        rows, truth, _ = run(c, name, [compile_(c, name, text, "cc", *flags)])
        for probe, _, _, want in BY_HAND:
            if want == "address":
                want = [truth["a"], truth["a"] + 8, truth["a"] - 4]
            elif want == "thread":
                want = [-1234, 5678, 5678, -1234, -1234, 5678, 5678, truth["tp"], truth["tp"]]
            got = rows[probe]
            equal(len(got), len(want), "%s: fields of %s: %r" % (name, probe, got))
            for i, (g, w) in enumerate(zip(got, want)):
                if w is None:
                    need(isinstance(g, str), "%s: %s arg%d has a value: %r" % (name, probe, i, g))
                else:
                    equal(g, w, "%s: %s arg%d" % (name, probe, i))
        note.append("%s %d" % (name, sum(len(v) for v in rows.values())))
    return "operands: " + ", ".join(note)


# ---- As compilers print them ----------------------------------------------------------------------------------------

TYPES = {"i8": ("signed char", 1, -101), "u8": ("unsigned char", 1, 0xfe), "i16": ("short", 2, -30001),
         "u16": ("unsigned short", 2, 0xfedc), "i32": ("int", 4, -2000000011), "u32": ("unsigned", 4, 0xfedcba98),
         "i64": ("long", 8, -9000000000000000001), "u64": ("unsigned long", 8, 0xfedcba9876543210),
         "f32": ("float", 4, 1.25), "f64": ("double", 8, -3.0e-200), "str": ("const char *", 8, "text of a probe")}
# How each value is kept: what is written in C.
KEPT = [("file", "file_%s"), ("global", "global_%s"), ("local", "local_%s"), ("element", "array_%s[at]"),
        ("member", "p->m_%s"), ("thread", "thread_%s"), ("through", "*through_%s")]

COMPILED = "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n" + NOTE + """
/* The template of an argument: size, sign and place as the compiler prints them. */
#define P(name, minus, size, f, value) __asm__ volatile(NOTE(name, "%n[s]" f "@%[a]") : : \\
    [s] "n" (minus (size)), [a] CONSTRAINT (value) : "memory")
DECLARATIONS
struct all { char odd; MEMBERS } __attribute__((packed));
static struct all all = {1, VALUES};
__attribute__((noinline)) void fire(long at, struct all *p)
{
LOCALS
PROBES
}
/* Raised when those probes are armed: one of registers only, one that reads memory. */
static unsigned short raised[2] __attribute__((section(".probes"), used));
#define GUARDED(n, sem, args) "990: nop\\n.pushsection .note.stapsdt,\\"\\",\\"note\\"\\n.balign 4\\n" \\
    ".4byte 992f-991f,994f-993f,3\\n991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b,0," sem "\\n" \\
    ".asciz \\"k\\"\\n.asciz \\"if_armed" n "\\"\\n.asciz \\"" args "\\"\\n994: .balign 4\\n.popsection\\n"
__attribute__((used)) static void never(void)
{
    __asm__ volatile(GUARDED("0", "raised", "8@%rax") GUARDED("1", "raised+2", "8@(%rax)"));
}
void fire_all(void)
{
    for (int i = 0; i < 20000 && (!*(volatile unsigned short *)raised || !*(volatile unsigned short *)(raised + 1)); i++)
        usleep(1000);
    fire(2, &all);
}
"""

MAIN = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
extern void fire_all(void);
int main(int argc, char **argv)
{
    void (*fire)(void) = DIRECT;
    char c;
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    if (read(0, &c, 1) == 1) {
        if (!fire)
            *(void **)&fire = dlsym(dlopen(argv[1], RTLD_NOW), "fire_all");
        fire();
    }
    puts("done");
    fflush(stdout);
    while (read(0, &c, 1) == 1);
    return 0;
}
"""


def literal(k, v):
    return '"%s"' % v if k == "str" else repr(v) + "f" if k == "f32" else repr(v) if k == "f64" else \
        "(%s)%sUL" % (TYPES[k][0], v & (1 << 64) - 1)


def compiled_source():
    decl, members, values_, locals_, probes = [], [], [], [], []
    for k, (ty, size, v) in TYPES.items():
        lit = literal(k, v)
        decl.append("static volatile %s file_%s = %s; %s global_%s = %s; static volatile __thread %s thread_%s = %s;" %
                    (ty, k, lit, ty, k, lit, ty, k, lit))
        decl.append("static %s array_%s[4] = {[2] = %s}; %s *volatile through_%s = &global_%s;" % (ty, k, lit, ty, k, k))
        decl.append("static volatile %s;" % ("char *source_str = (char *)" + lit if k == "str" else
                                             "%s source_%s = %s" % (ty, k, lit)))
        members.append("%s m_%s;" % (ty, k))
        values_.append(lit)
        locals_.append("    %s local_%s = (%s)source_%s;" % (ty, k, ty, k))
        minus = "-1 *" if not k.startswith("i") else ""
        f = "f" if k.startswith("f") else ""
        for how, text in KEPT:
            value = text % k
            if f: # what the constraint "r" would put into a vector register: as a number's bits, as programs do
                probes.append("#ifdef FLOATS\n    P(\"%s_%s\", %s, %d, \"f\", %s);\n#endif" % (k, how, minus, size, value))
            else:
                probes.append('    P("%s_%s", %s, %d, "", %s);' % (k, how, minus, size, value))
        if k[0] in "iu":
            probes.append('    __asm__ volatile(NOTE("%s_const", "%%n[s]@%%[a]") : : [s] "n" (%s %d), [a] "n" (%s));' % (
                k, minus, size, lit))
    return (COMPILED.replace("DECLARATIONS", "\n".join(decl)).replace("MEMBERS", " ".join(members))
            .replace("VALUES", ", ".join(values_)).replace("LOCALS", "\n".join(locals_))
            .replace("PROBES", "\n".join(probes)))


def compiled_want(constraint):
    want = {}
    for k, (_, _, v) in TYPES.items():
        if k[0] == "f" and constraint == "r":
            continue
        for how, _ in KEPT:
            want["%s_%s" % (k, how)] = [v]
        if k[0] in "iu":
            want["%s_const" % k] = [v]
    return want


def compiled_check(c, name, argv, constraint, env=None):
    rows, _, text = run(c, name, argv, ["k:i*|u*|f*", "k:str* arg0:str"], env)
    want = compiled_want(constraint)
    equal(sorted(rows), sorted(want), name + ": probes")
    for k, v in want.items():
        equal(rows[k], v, "%s: %s" % (name, k))
    return len(want)


def compilers():
    return [cc for cc in ("gcc", "clang") if shutil.which(cc)]


def test_foreign_compiled(c):
    """Variables of every type, kept in every way, as gcc and clang write their operands."""
    x86_only()
    n = 0
    for cc in compilers():
        for flags in ("-O0", "-O2", "-O3 -fno-omit-frame-pointer", "-O2 -no-pie -fno-pie"):
            for constraint in ("nor", "m", "r"):
                if constraint == "nor" and "-O3" in flags:
                    continue
                name = "%s%s-%s" % (cc, flags.split()[0] + flags[-4:].strip(), constraint)
                exe = compile_(c, name, compiled_source() + MAIN.replace("DIRECT", "fire_all"), cc, *flags.split(),
                               '-DCONSTRAINT="%s"' % constraint, *(["-DFLOATS"] if constraint != "r" else []))
                n += compiled_check(c, name, [exe], constraint)
    return "%d values" % n


def test_foreign_libraries(c):
    """The same in shared libraries: linked, and loaded while the program runs; both ways to have thread-local memory."""
    x86_only()
    n = 0
    for cc in compilers():
        for model in ("global-dynamic", "initial-exec"):
            for constraint in ("nor", "r"):
                name = "%s-%s-%s" % (cc, model, constraint)
                lib_ = compile_(c, "lib%s.so" % name, compiled_source(), cc, "-O2", "-shared", "-fPIC",
                                "-ftls-model=" + model, '-DCONSTRAINT="%s"' % constraint,
                                *(["-DFLOATS"] if constraint != "r" else []))
                linked = compile_(c, name, MAIN.replace("DIRECT", "fire_all"), cc, lib_)
                n += compiled_check(c, name, [linked], constraint)
                loaded = compile_(c, name + "-late", MAIN.replace("DIRECT", "0"), cc, "-ldl")
                n += compiled_check(c, name + "-late", [loaded, lib_], constraint)
    return "%d values" % n


def test_foreign_library_tls(c):
    """A thread-local symbol of a library, written as an offset that only a program's has: no value, never a wrong one."""
    x86_only()
    text = NOTE + """
static __thread int mine[2] __attribute__((used)) = {7, 8};
void fire_all(void)
{
    int *at = mine;
    char *tp;
    __asm__("mov %%fs:0, %0" : "=r"(tp));
    FIRE("tls", "-4@%%fs:mine@tpoff -4@%%fs:(%%rax) -4@4(%%rbx)", "a"((char *)at - tp), "b"(at));
}
"""
    lib_ = compile_(c, "libtls.so", text, "cc", "-O2", "-shared", "-fPIC")
    exe = compile_(c, "tls", MAIN.replace("DIRECT", "fire_all"), "cc", lib_)
    rows, _, _ = run(c, "tls", [exe])
    equal(rows["tls"], ["thread-local, place not known", 7, 8], "thread-local of a library")


# ---- A library that many use ----------------------------------------------------------------------------------------

WIDE = NOTE + """
#include <stdio.h>
#include <unistd.h>
static volatile unsigned short sem __attribute__((section(".probes"), used));
int sem_now(void) { return sem; }
void work(long i)
{
    FIRE("always", "-8@%%rax", "a"(i));
    if (sem)
        __asm__ volatile("990: nop\\n.pushsection .note.stapsdt,\\"\\",\\"note\\"\\n.balign 4\\n"
            ".4byte 992f-991f,994f-993f,3\\n991: .asciz \\"stapsdt\\"\\n992: .balign 4\\n993: .8byte 990b,0,sem\\n"
            ".asciz \\"k\\"\\n.asciz \\"guarded\\"\\n.asciz \\"-8@%%rax\\"\\n994: .balign 4\\n.popsection\\n" : : "a"(i));
}
"""
WIDE_MAIN = """
#include <stdio.h>
#include <unistd.h>
extern int sem_now(void);
extern void work(long);
int main(void)
{
    char c;
    int seen = 0;
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    if (read(0, &c, 1) == 1) {
        for (long i = 0; i < 20000; i++) {
            seen |= sem_now();
            work(getpid() * 100000L + i);
        }
    }
    printf("semaphore=%d\\ndone\\n", seen);
    fflush(stdout);
    while (read(0, &c, 1) == 1);
    return 0;
}
"""


def kernel_at_least(*want):
    return tuple(int(x) for x in platform.release().split("-")[0].split(".")[:2]) >= want


BSS = NOTE.replace("990b,0,0", "990b,0,sem_\" name \"") + """
#include <stdio.h>
#include <unistd.h>
/* By assembly, so that it is known where they are: one at the beginning of .bss, in a page of the file, one far behind. */
__asm__(".data\\n.balign 4096\\n.8byte 1\\n.bss\\n.balign 2\\nsem_near: .2byte 0\\n.space 65536\\nsem_far: .2byte 0\\n.text\\n");
extern unsigned short sem_near, sem_far;
static void line(void) { char c; while (read(0, &c, 1) == 1 && c != '\\n'); }
int main(void)
{
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    line();
    if (*(volatile unsigned short *)&sem_near)
        FIRE("near", "-4@$7", "r"(0));
    if (*(volatile unsigned short *)&sem_far)
        FIRE("far", "-4@$8", "r"(0));
    printf("near=%d\\nfar=%d\\ndone\\n", sem_near, sem_far);
    fflush(stdout);
    line();
    for (int i = 0; i < 500 && *(volatile unsigned short *)&sem_near; i++)
        usleep(10000);
    return sem_near + sem_far;
}
"""


def test_foreign_bss_semaphore(c):
    """A semaphore in .bss: raised where its page is one of the file, else named."""
    path = c.dir + "/t.pftrace"
    for name, flags in (("pie", ["-pie", "-fPIE"]), ("fixed", ["-no-pie"])):
        t = Target([compile_(c, "bss-" + name, BSS, "cc", "-O2", *flags)])
        tr = Tracer(["-v", "-p", str(t.pid), "-o", path, "--usdt", "k:*"])
        t.go()
        equal(t.read(), {"near": 1, "far": 0}, name + ": semaphores")
        equal(tr.stop(), 0, "exit status: " + tr.text())
        equal(t.end(), 0, name + ": semaphores at the end")
        equal([(o["name"], values(o)) for o in dump(path) if o["type"] == "instant"], [("near", [7])], name + ": hits")
        need("1 USDT note cannot be used" in tr.text(), name + ": " + tr.text())
        os.unlink(path)


COPIES = NOTE.replace("990b,0,0", "990b,0,sem") + """
__asm__(".data\\n.balign 2\\nsem: .2byte 0\\n.text\\n");
extern unsigned short sem __attribute__((visibility("hidden")));
void fire(int i)
{
    FIRE("always", "-4@%0", "r"(i));
    if (*(volatile unsigned short *)&sem)
        FIRE("guarded", "-4@%0", "r"(i));
}
"""
COPIES_MAIN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static void line(void) { char c; while (read(0, &c, 1) == 1 && c != '\\n'); }
int main(int argc, char **argv)
{
    void *a = dlopen(argv[1], RTLD_NOW), *b = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    line();
    ((void (*)(int))dlsym(a, "fire"))(1);
    ((void (*)(int))dlsym(b, "fire"))(2);
    printf("done\\n");
    fflush(stdout);
    line();
}
"""


def test_foreign_copies(c):
    """A library mapped twice: all of its probes; of those with a semaphore the kernel serves one copy, which is said."""
    so, path = compile_(c, "copies.so", COPIES, "cc", "-O2", "-shared", "-fPIC"), c.dir + "/t.pftrace"
    t = Target([compile_(c, "copies", COPIES_MAIN, "cc", "-ldl"), so])
    tr = Tracer(["-p", str(t.pid), "-o", path, "--usdt", "k:always|guarded"])
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    rows = [(o["name"], values(o)) for o in dump(path) if o["type"] == "instant"]
    equal([r for r in rows if r[0] == "always"], [("always", [1]), ("always", [2])], "hits")
    equal(len(rows), 3, "hits of both: %r" % rows)
    need("copies.so is mapped 2 times in a process" in tr.text(), tr.text())


def test_foreign_writable_code(c):
    """Code that is mapped writable gets no probes from the kernel; that is said, and nothing else happens."""
    src = COPIES + COPIES_MAIN.replace("(int argc, char **argv)", "(void)").split("void *a")[0] + """
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    line();
    fire(1);
    printf("done\\n");
    fflush(stdout);
    line();
}
"""
    exe, path = compile_(c, "writable", src, "cc", "-O2"), c.dir + "/t.pftrace"
    d = bytearray(open(exe, "rb").read())
    at, n = struct.unpack_from("<Q", d, 32)[0], struct.unpack_from("<H", d, 56)[0]
    for i in range(n): # PT_LOAD with PF_X: PF_W too
        kind, flags = struct.unpack_from("<II", d, at + 56 * i)
        if kind == 1 and flags & 1:
            struct.pack_into("<I", d, at + 56 * i + 4, flags | 2)
    with open(exe, "wb") as f:
        f.write(d)
    t = Target([exe])
    tr = Tracer(["-p", str(t.pid), "-o", path, "--usdt", "k:always"])
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    equal([o for o in dump(path) if o["type"] == "instant"], [], "hits")
    need("/writable: code of it is mapped writable or shared" in tr.text(), tr.text())


DEEP = NOTE + """
#include <stdio.h>
#include <unistd.h>
static void line(void) { char c; while (read(0, &c, 1) == 1 && c != '\\n'); }
static int deep(int n)
{
    int r;
    FIRE("f__start", "-4@%0", "r"(n));
    r = n > 1 ? 1 + deep(n - 1) : 1;
    FIRE("f__done", "-4@%0", "r"(n));
    return r;
}
int main(void)
{
    printf("ready %d\\n", (int)getpid());
    fflush(stdout);
    line();
    printf("deep=%d\\n", deep(1700) + deep(500));
    printf("done\\n");
    fflush(stdout);
    line();
}
"""


def test_foreign_deep(c):
    """Recursion deeper than can be shown: the outer 500 spans, whole, and the others counted where one looks."""
    path = c.dir + "/t.pftrace"
    t = Target([compile_(c, "deep", DEEP, "cc", "-O1", "-fno-optimize-sibling-calls")])
    tr = Tracer(["-p", str(t.pid), "-o", path, "--usdt", "k:f__start..k:f__done n=arg0 end.m=arg0"])
    t.go()
    equal(t.read(), {"deep": 2200}, "calls")
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    rows = [o["args"] for o in dump(path) if o["type"] == "slice"]
    equal([(r["n"], r["m"]) for r in rows], [(n, n) for n in list(range(1700, 1200, -1)) + list(range(500, 0, -1))], "spans")
    need("warning: 1200 spans nested too deep, not in the trace" in tr.text(), tr.text())
    status, out, err = run_tool(["summary", "--json", path])
    equal(json.loads(out.splitlines()[0])["too_deep"], 1200, "summary: " + err)


WRITTEN = NOTE + """
int fire(int i)
{
    volatile long z = i; /* CODE */
    FIRE("x", "-4@%0", "r"(i + ADD));
    return (int)z;
}
"""
WRITTEN_MAIN = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static void line(void) { char c; while (read(0, &c, 1) == 1 && c != '\\n'); }
int main(int argc, char **argv)
{
    for (int i = 1; i < 3; i++) {
        void *l = dlopen(argv[1], RTLD_NOW);
        int (*fire)(int) = (int (*)(int))dlsym(l, "fire");
        if (i == 1) {
            printf("ready %d\\n", (int)getpid());
            fflush(stdout);
            line();
        } else {
            usleep(400000);
        }
        printf("r%d=%d\\n", i, fire(i));
        dlclose(l); /* before somebody writes to it */
        printf("done\\n");
        fflush(stdout);
        line();
    }
}
"""


def test_foreign_file_written(c):
    """A library is written over in place, and loaded again: its new probes, with their values, and its new results."""
    old = compile_(c, "old.so", WRITTEN, "cc", "-O2", "-DADD=0", "-shared", "-fPIC")
    new = compile_(c, "new.so", WRITTEN.replace("/* CODE */", "for (int k = 0; k < 3; k++) z = z * 1234567 + 0x1122334455667788;"),
                   "cc", "-O2", "-DADD=1000", "-shared", "-fPIC")
    so, path = os.path.join(c.dir, "now.so"), c.dir + "/t.pftrace"
    z = 2
    for _ in range(3):
        z = z * 1234567 + 0x1122334455667788
    shutil.copyfile(old, so)
    t = Target([compile_(c, "written", WRITTEN_MAIN, "cc", "-ldl"), so])
    tr = Tracer(["-p", str(t.pid), "-o", path, "--usdt", "k:x"])
    t.go()
    equal(t.read(), {"r1": 1}, "old results")
    shutil.copyfile(new, so)
    time.sleep(1) # the probes of the old one go away within two ticks
    t.go()
    equal(t.read(), {"r1": 1, "r2": signed(z, 4)}, "new results")
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    equal([values(o) for o in dump(path) if o["type"] == "instant"], [[1], [1002]], "hits")


def test_foreign_wide(c):
    """A library with probes in three processes, one of them traced: its events only, exactly, and its semaphore only."""
    x86_only()
    lib_ = compile_(c, "libwide.so", WIDE, "cc", "-O2", "-shared", "-fPIC")
    exe = compile_(c, "wide", WIDE_MAIN, "cc", "-O2", lib_)
    note = []
    for args in ([], ["--per-site"]):
        procs = [Target([exe]) for _ in range(3)]
        path = os.path.join(c.dir, "wide%d.pftrace" % len(args))
        tr = Tracer(["-v", "-p", str(procs[1].pid), "-o", path, "--usdt", "k:*"] + args)
        for p in procs:
            p.go()
        truth = [p.read() for p in procs]
        equal(tr.stop(), 0, "exit status: " + tr.text())
        for p in procs:
            p.end()
        equal(check(path)["lost"], 0, "lost")
        rows = {"always": [], "guarded": []}
        for o in dump(path):
            if o["type"] == "instant":
                rows[o["name"]] += values(o)
        want = [procs[1].pid * 100000 + i for i in range(20000)]
        for k in rows:
            equal((len(rows[k]), rows[k] == want), (20000, True), "hits of %s: %r" % (k, rows[k][:3]))
        need(truth[1]["semaphore"] > 0, "the semaphore was not raised")
        if not args and kernel_at_least(6, 6):
            equal((truth[0]["semaphore"], truth[2]["semaphore"]), (0, 0), "semaphores of those that are not traced")
            note.append("others' semaphores 0")
    return ", ".join(note)
