#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""First inputs for the fuzzers of foreign probes, and their dictionaries: seeds.py DIRECTORY

Makes DIRECTORY/NAME/* and DIRECTORY/NAME.dict for NAME = fuzz_notes, fuzz_operand, fuzz_spec, fuzz_predicate,
fuzz_profile. The same each time.
"""

import itertools
import os
import struct
import sys

X86, I386, ARM64 = 62, 3, 183

# ---- Operands -------------------------------------------------------------------------------------------------------

REGS = ("rax eax ax al ah bh ch dh sil dil bpl spl r8 r8d r8w r8b r15 r15d r15w r15b r9l rip eip rsp ebp xmm0 ymm15 "
        "zmm31 k1 st st(1) mm7 cr0").split()
ARM = "x0 x29 x30 w3 sp wsp xzr wzr fp lr x31 d0 s1 q2 v3 h4 b5 z6".split()
TYPES = ["", "1@", "-1@", "2@", "-2@", "4@", "-4@", "8@", "-8@", "4f@", "8f@", "16@", "3@", "10f@", "-0@", "99999@"]
EXPRS = ["0", "-5", "0x7f", "-0xFFFFFFFFFFFFFFFF", "18446744073709551615", "-9223372036854775808", "010", "08",
         "18446744073709551616", "sym", "sym+4", "4+sym", "-4+sym-8", "(4+sym)", "((1+2)-(3))", "-(4-8)", "sym@tpoff",
         "sym@ntpoff+4", "sym@GOTPCREL", "sym@gottpoff", "sym@tlsgd", ".LC0", "x.1$2", "1+", "sym+sym", "4-sym", "@", ""]
FORMS = ["$%s", "%s(%%rip)", "%s(%%rbp)", "%s(%%rax,%%rcx,8)", "%s(,%%rbx,4)", "%s(%%rax,%%rcx)", "%%fs:%s", "%%gs:%s",
         "%%ds:%s(%%rax)", "%%fs:%s(%%rax,%%rbx,2)", "%s", "%s(%%eax)", "%s(%%rax, %%rcx, 2)", "(%s)(%%rsp)", "%s(%%rax"]
ARM_FORMS = ["%s", "#%s", "[sp, %s]", "[x0, #%s]", "[x29,%s]", "[x0, #:lo12:%s]", "[sp], %s", "[sp, %s]!"]
ARM_ONLY = ["[x0]", "[x0, x1]", "[x0, x1, lsl 3]", "[x0, w1, sxtw 2]", "[x0, w1, uxtw #2]", "[x0, w1, uxtw]",
            "[ x0 , x1 , lsl #3 ]", "[x0, x1, lsl 9]", "[w0]", "[x0, 16"]


def operands():
    x86 = ["%" + r for r in REGS] + [f % e for f in FORMS for e in EXPRS]
    arm = ARM + [f % e for f in ARM_FORMS for e in EXPRS] + ARM_ONLY
    for machine, all_ in ((0, x86), (1, x86), (2, arm)):
        for i, (t, o) in enumerate(zip(itertools.cycle(TYPES), all_)):
            yield bytes([machine | (0x80 if i % 7 == 0 else 0)]) + (t + o).encode()
        for i in range(0, len(all_) - 12, 12):
            yield bytes([machine]) + " ".join(t + o for t, o in zip(TYPES[1:], all_[i:i + 13])).encode()


# ---- Notes ----------------------------------------------------------------------------------------------------------

def pad(b, n=4):
    return b + b"\0" * (-len(b) % n)


def note(desc, owner=b"stapsdt\0", kind=3, align=4):
    head = struct.pack("<III", len(owner), len(desc), kind) + owner
    return pad(pad(head, align) + desc, align)


def stap(pc, base, sem, provider, name, args, word="Q"):
    return struct.pack("<3" + word, pc, base, sem) + b"\0".join(x.encode() for x in (provider, name, args)) + b"\0"


def lies(code, data, word="Q"):
    """Sections of notes, sound and not."""
    good = stap(code, 0, 0, "p", "name", "8@%rdi -4@8(%rsp)", word)
    sem = stap(code + 16, 0, data, "p", "x__start", "4@$1", word)
    yield note(good)
    yield note(good) + note(sem) + note(stap(code + 32, 0, data, "p", "x__done", "", word))
    yield note(good) * 3
    yield note(good, align=8) + note(sem, align=8)
    for cut in (1, 8, 12, 23, 24, 25, len(good) - 1):
        yield note(good[:cut]) + note(sem)
    for at, value in ((0, 0), (0, 7), (0, 0xffffffff), (4, 0), (4, 8), (4, 0xfffffff0), (8, 2)):
        n = bytearray(note(good))
        struct.pack_into("<I", n, at, value)
        yield bytes(n) + note(sem)
    yield note(good.replace(b"\0p\0", b"\0\xff\x1b")) + note(stap(code, 0, 0, "p" * 300, "n" * 1100, "8@%rax " * 40, word))
    yield note(stap(0, 0, 0, "p", "gone", "", word)) + note(stap(1 << 30, 0, 0, "p", "wild", "", word))
    for s in (data + 1, data - 1, code, 1 << 31, (1 << 31) - 1):
        yield note(stap(code, 0, s, "p", "sem", "", word))
    yield note(stap(code - 0x100, data - 0x100, data - 0x100, "p", "moved", "", word))
    yield note(good, b"GNU\0", 3) + note(b"\x11" * 20, b"GNU\0", 3) + note(good, b"stapsdt", 3)
    yield note(b"\0" * 64, b"montrace\0", 1) + note(b"\1" * 64, b"montrace\0", 2) + note(
        stap(code, 0, data, "montrace", "event", "8@%rdi 8@%rsi", word))


def image(notes, machine=X86, bits=64, sections=True, base=None, sem=True, big=False, flags=0, relro=False):
    """An ELF file: code at 0x1400, data at 0x3800, notes in a section or a segment."""
    eh, ph, sh = (64, 56, 64) if bits == 64 else (52, 32, 40)
    code_off, code_n, data_n = 0x400, 0x100, 0x40
    data_off = code_off + code_n
    notes_off = data_off + data_n
    names = b"\0.note.stapsdt\0.stapsdt.base\0.probes\0.shstrtab\0.gnu_debuglink\0"
    names_off = notes_off + len(notes)
    link = pad(b"x.debug\0") + b"\1\2\3\4"
    link_off = names_off + len(names)
    table = -(-(link_off + len(link)) // 8) * 8
    segs = [(1, 5, code_off, 0x1400, code_n), (1, 6, data_off, 0x3800, data_n)]
    segs += [(0x6474e552, 4, data_off, 0x3800, 8)] if relro else []
    segs += [(4, 4, notes_off, 0, len(notes))]
    secs = [(0,) * 7, (1, 7, flags, 0, notes_off, len(notes), 4)]
    secs += [(15, 1, 2, base, code_off, 1, 1)] if base is not None else []
    secs += [(29, 1, 3, 0x3800, data_off, 16, 2)] if sem else []
    secs += [(47, 1, 0, 0, link_off, len(link), 4), (37, 3, 0, 0, names_off, len(names), 1)]
    n = len(secs) if sections else 0
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 2 if big else 1, 1]) + b"\0" * 9
    word = "Q" if bits == 64 else "I"
    out = ident + struct.pack("<HHI3" + word + "IHHHHHH", 3, machine, 1, 0x1400, eh, table if n else 0, 0, eh, ph,
                              len(segs), sh if n else 0, n, n - 1 if n else 0)
    for kind, f, off, addr, size in segs:
        out += (struct.pack("<IIQQQQQQ", kind, f, off, addr, addr, size, size, 4) if bits == 64 else
                struct.pack("<IIIIIIII", kind, off, addr, addr, size, size, f, 4))
    out = out.ljust(code_off, b"\0")
    out += b"\x90\x0f\x1f\x44\0\0\xc3".ljust(16, b"\0") * (code_n // 16) + b"\0" * data_n + notes + names + link
    out = out.ljust(table, b"\0")
    for name, kind, f, addr, off, size, align in secs if n else ():
        out += (struct.pack("<IIQQQQIIQQ", name, kind, f, addr, off, size, 0, 0, align, 0) if bits == 64 else
                struct.pack("<IIIIIIIIII", name, kind, f, addr, off, size, 0, 0, align, 0))
    return out


def files():
    some = list(lies(0x1400, 0x3800))
    for s in some:
        yield b"\1" + s
        yield b"\0" + image(s)
    for kw in ({"sections": False}, {"base": 0x3800}, {"base": 0}, {"sem": False}, {"big": True}, {"flags": 0x800},
               {"relro": True}, {"machine": ARM64}, {"machine": I386}, {"machine": 8}):
        for s in some[:3] + some[-3:]:
            yield b"\0" + image(s, **kw)
    for s in lies(0x1400, 0x3800, "I"):
        yield b"\0" + image(s, I386, 32)


# ---- Specs, predicates, profiles ------------------------------------------------------------------------------------

PREDICATES = """arg0 > 1000
arg0 == -1 && arg1 != 0x10 || arg2 <= 18446744073709551615
arg1 == "text" && arg2 != "other \\" one" || arg3 >= -9223372036854775808
arg0<1&&arg1>2||arg2==3&&arg3!=4||arg4<=5&&arg5>=6||arg6==7&&arg7==8
arg0 == 1 || arg0 == 2 || arg0 == 3 || arg0 == 4 || arg0 == 5 || arg0 == 6 || arg0 == 7 || arg0 == 8 || arg0 == 9
arg11 == "0123456789012345678901234567890123456789012345678901234567890123"
arg12 == 1
arg0 = 1
arg0 == "open
arg0 > "x"
(arg0 == 1)
arg0 == 1 &&
arg0 == 1 & arg1 == 2""".split("\n")

SPECS = """c:a
c:a -
c:a bytes=arg1 arg2
c:*__start..*__done
c:a__start|b__start..a__done|b__end key=arg0
c:a__start..c:a__done key=arg0/arg0 url=arg1:str name="req {url}" level=warn end.n=arg0:u8
c:a counter=arg0:i32
c:a counter=+arg0 name="sum of {arg1}"
c:a counter=+1
c:a while=arg0 text=arg0:str name="{text}" if arg1 != 0
c:a__start..a__done - nested
c:a__start..a__done fn=arg0 s=arg1:str end.fn=arg0 end.s=arg0:str
auto:c
auto:*
*:*
p:x_entry..x_return name="{arg0:hex} {arg1}"
c:b* arg0:i8 arg1:i16 arg2:i32 arg3:i64 arg4:u8 arg5:u16 arg6:u32 arg7:u64 arg8:f32 arg9:f64 arg10:bool arg11:hex
c:a name=arg0 x=arg0:str(arg1)
c:a t=arg0:str(arg1) name="{t}{t}{t}" level=trace
c:? x=arg77
c:a arg0 arg0:hex x=arg0 y=arg0 z=arg0 key=arg0
c:a name="open
c:a:b
..
c:..d
c:a if
c:a__start..a__done key=arg0 if arg0 != 0 x=arg1""".split("\n")

DICTS = {
    "fuzz_operand": TYPES[1:] + ["%" + r for r in REGS] + ARM + ["(%rip)", "%fs:", "%gs:", "@tpoff", "@GOTPCREL", "$",
                                                                "#:lo12:", "lsl", "sxtw", "uxtw", "[sp, ", ",8)", "0x"],
    "fuzz_notes": ["stapsdt\0", "montrace\0", "GNU\0", ".note.stapsdt\0", ".note.montrace\0", ".stapsdt.base\0",
                   ".gnu_debuglink\0", ".probes\0", "\x7fELF\2\1\1", "\x7fELF\1\1\1", "\3\0\0\0", "\x08\0\0\0", "\0\x14\0\0\0\0\0\0",
                   "\0\x38\0\0\0\0\0\0", "\x52\xe5\x74\x64", "8@%rdi", "4@$1"],
    "fuzz_predicate": ["arg0", "arg11", "==", "!=", "<=", ">=", "&&", "||", "\"", "0x", "-1", "\"text\"",
                       "18446744073709551615", "\\\"", "\\\\"],
    "fuzz_spec": ["c:a", "c:a__start", "..", "a__done", "auto:", "key=", "counter=", "counter=+1", "while=", "nested", "name=", "level=", "end.", "arg0",
                  ":str", ":str(arg1)", ":hex", ":f64", ":i8", ":bool", " if ", "*", "?", "|", "{arg0}", "\"", "&&", "=="],
}
DICTS["fuzz_profile"] = DICTS["fuzz_spec"] + ["when ", "\nwhen c:a\n", "#", "\\\n", "\r\n"]


def profiles():
    yield "# comment\nwhen c:a\nc:a arg0\n"
    yield "when c:a\nwhen p:*\n" + "\n".join(SPECS[:15]) + "\nwhen x:y\nc:a \\\n  name=\"a\" \\\n if arg0 == 1\n"
    yield "\n".join("when c:n%d" % i for i in range(17)) + "\nc:a\n"
    yield "when c:a"
    yield "c:a\r\n\r\nwhen : \r\n"
    yield "when c:a\nc:a \\"
    for s in SPECS:
        yield "when c:*\n" + s + "\n"
        yield s
    for p in PREDICATES:
        yield "when c:a\nc:a if " + p + "\n"


def quoted(word):
    return "\"" + "".join(chr(b) if 0x20 <= b < 0x7f and b not in b"\"\\" else "\\x%02x" % b
                          for b in word.encode("latin-1")) + "\""


def main(directory):
    corpora = {
        "fuzz_operand": operands(),
        "fuzz_notes": files(),
        "fuzz_spec": [s.encode() for s in SPECS + ["c:a if " + p for p in PREDICATES]],
        "fuzz_predicate": [p.encode() for p in PREDICATES],
        "fuzz_profile": [p.encode() for p in profiles()],
    }
    for name, inputs in corpora.items():
        os.makedirs(os.path.join(directory, name), exist_ok=True)
        for i, data in enumerate(inputs):
            with open(os.path.join(directory, name, "seed-%04d" % i), "wb") as f:
                f.write(data)
        with open(os.path.join(directory, name + ".dict"), "w") as f:
            f.write("".join(quoted(w) + "\n" for w in DICTS[name]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
