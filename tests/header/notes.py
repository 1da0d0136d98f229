#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the probe notes of an ELF file and checks what include/montrace.h promises about them.

An independent reader: it shares no code with the tracer. `notes.py FILE` prints the callsites;
`notes.py -c FILE [SOURCE...]` checks the file, against the "@" comments of the sources if given.
"""
import ast
import os
import re
import struct
import subprocess
import sys

CLASSES = {1: 'scope', 2: 'span', 3: 'event', 4: 'counter', 5: 'record', 6: 'recording', 7: 'thread_name',
           8: 'process_name', 9: 'execution_id'}
LEVELS = {1: 'trace', 2: 'debug', 3: 'info', 4: 'warn', 5: 'error'}
TYPES = {1: 'i64', 2: 'u64', 3: 'f64', 4: 'bool', 5: 'str', 6: 'debug'}
SPAN = ['span_new', 'span_enter', 'span_exit', 'span_close']
PROBES = {'scope': ['scope_begin', 'scope_end'], 'span': SPAN, 'recording': SPAN, 'event': ['event'],
          'counter': ['counter'], 'record': ['span_record'], 'thread_name': ['thread_name'],
          'process_name': ['process_name'], 'execution_id': ['execution_id']}
X86_64, AARCH64 = 62, 183
ARGS = {X86_64: '8@%rdi 8@%rsi', AARCH64: '8@x0 8@x1'}
NT_TEXT, NT_CALLSITE, NT_STAPSDT = 2, 1, 3


class Bad(Exception):
    pass


class Elf:
    """Sections and segments of a little-endian 64-bit ELF file."""

    def __init__(self, path):
        self.data = d = open(path, 'rb').read()
        if d[:4] != b'\x7fELF' or d[4] != 2 or d[5] != 1:
            raise Bad('no ELF file of 64 bits')
        (self.type, self.machine, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum,
         shstrndx) = struct.unpack_from('<HHIQQQIHHHHHH', d, 16)
        self.segments = [struct.unpack_from('<IIQQQQQQ', d, phoff + i * phentsize) for i in range(phnum)]
        raw = [struct.unpack_from('<IIQQQQIIQQ', d, shoff + i * shentsize) for i in range(shnum)]
        names = raw[shstrndx][4]
        self.sections = [(d[names + s[0]:d.index(b'\0', names + s[0])].decode(),) + s[1:] for s in raw]

    def section(self, name):
        found = [s for s in self.sections if s[0] == name]
        if len(found) > 1:
            raise Bad('%d sections %s' % (len(found), name))
        return found[0] if found else None

    def notes(self, name):
        """(owner, type, descriptor) of each note of the section."""
        s = self.section(name)
        if not s:
            return
        if s[1] != 7:
            raise Bad('%s is of type %d, not SHT_NOTE' % (name, s[1]))
        pos, end = s[4], s[4] + s[5]
        while pos < end:
            nlen, dlen, typ = struct.unpack_from('<III', self.data, pos)
            desc = pos + 12 + (nlen + 3 & ~3)
            if desc + dlen > end:
                raise Bad('%s: a note runs out of its section' % name)
            yield self.data[pos + 12:pos + 12 + nlen].rstrip(b'\0').decode(), typ, self.data[desc:desc + dlen]
            pos = desc + (dlen + 3 & ~3)

    def at(self, addr, n, flag):
        """n bytes at the address, which must be in a loaded segment with flag (4 read, 2 write, 1 execute)."""
        for typ, flags, off, vaddr, _, filesz, _, _ in self.segments:
            if typ == 1 and flags & flag and vaddr <= addr and addr + n <= vaddr + filesz:
                return self.data[off + addr - vaddr:off + addr - vaddr + n]
        return None

    def in_section(self, addr, name):
        s = self.section(name)
        return bool(s) and s[3] <= addr < s[3] + s[5]


class Site:
    pass


def callsites(elf):
    """All callsites in file order; .dropped: the linker dropped the function."""
    out, text = [], None
    for owner, typ, d in elf.notes('.note.montrace'):
        if owner != 'montrace':
            raise Bad('note of %r in .note.montrace' % owner)
        abi, key = struct.unpack_from('<II', d)
        if abi != 1:
            raise Bad('ABI version %d' % abi)
        if typ == NT_TEXT:
            if text is not None:
                raise Bad('a text note without a callsite note')
            text = key, d[8:]
            continue
        if typ != NT_CALLSITE:
            raise Bad('note type %d' % typ)
        if text is None or text[0] != key:
            raise Bad('callsite note without its text note')
        s = Site()
        (_, _, s.code, s.base, s.sem, s.thunk, cls, level, s.flags, s.line, s.nfields, s.nprobes, s.nop_at,
         s.nop5_at, reserved) = struct.unpack_from('<IIQQQQBBHIBBBBI', d)
        strings = text[1].split(b'\0')
        if strings[-1] != b'' or len(strings) != 4 + s.nfields:
            raise Bad('%d strings for %d fields: %r' % (len(strings) - 1, s.nfields, strings))
        strings = [x.decode('utf-8', 'surrogateescape') for x in strings]
        s.cls, s.level, s.name, s.target, s.file = CLASSES[cls], LEVELS[level], *strings[:3]
        if len(d) < 56 + s.nfields or any(d[56 + s.nfields:]) or reserved:
            raise Bad('types of %r' % s.name)
        s.fields = list(zip(strings[3:-1], (TYPES[t] for t in d[56:56 + s.nfields])))
        s.dropped = elf.at(s.code, 1, 1) is None
        s.user, s.file_target, s.message = bool(s.flags & 1), bool(s.flags & 2), bool(s.flags & 8)
        if s.file_target != (s.target == ''):
            raise Bad('target of %r' % s.name)
        text = None
        out.append(s)
    if text is not None:
        raise Bad('a text note without a callsite note')
    return out


def stapsdt(elf):
    """(address, base, semaphore, provider, name, arguments) of each stapsdt note."""
    out = []
    for owner, typ, d in elf.notes('.note.stapsdt'):
        if (owner, typ) == ('stapsdt', NT_STAPSDT):
            p, n, a = (x.decode() for x in d[24:].split(b'\0')[:3])
            out.append(struct.unpack_from('<QQQ', d) + (p, n, a))
    return out


def loaded_address(elf, at):
    """The address that the instructions at `at`, a callsite's code, put into a register; None: others."""
    code = elf.at(at, 8, 1)
    if code is None:
        return None
    if elf.machine == X86_64:  # lea disp32(%rip), %reg
        good = code[0] & 0xfb == 0x48 and code[1] == 0x8d and code[2] & 0xc7 == 5
        return at + 7 + struct.unpack_from('<i', code, 3)[0] if good else None
    a, b = struct.unpack('<II', code)
    if a == 0xd503201f and b & 0x9f000000 == 0x10000000:  # nop; adr
        a, b, at, page = b, None, at + 4, 0
    elif a & 0x9f000000 == 0x90000000 and b & 0xffc00000 == 0x91000000:  # adrp; add
        page = 12
        if not a & 31 == b & 31 == b >> 5 & 31:
            return None
    else:
        return None
    imm = (a >> 5 & 0x7ffff) << 2 | a >> 29 & 3
    imm -= (imm & 1 << 20) << 1
    return (at >> page << page) + (imm << page) + (b >> 10 & 0xfff if b is not None else 0)


def check_site(elf, s, probes):
    """One callsite that is not dropped. probes: address of a probe -> its stapsdt notes."""
    what = '%s %r line %d' % (s.cls, s.name, s.line)
    names = PROBES[s.cls]
    if s.nprobes != len(names):
        raise Bad('%s: %d probes' % (what, s.nprobes))
    base = elf.section('.stapsdt.base')
    if not base or s.base != base[3]:
        raise Bad('%s: base %#x' % (what, s.base))
    if not elf.in_section(s.sem, '.probes') or elf.at(s.sem, 8, 2) is None:
        raise Bad('%s: semaphore %#x is not in writable .probes' % (what, s.sem))
    if loaded_address(elf, s.code) != s.sem:
        raise Bad('%s: the code at %#x does not use the semaphore' % (what, s.code))
    sem, zero, thunk = struct.unpack('<HHi', elf.at(s.sem, 8, 2))
    if sem or zero or s.sem + thunk != s.thunk or s.sem % 8 or s.thunk % 16:
        raise Bad('%s: semaphore %d, thunk at %+d of %#x' % (what, sem, thunk, s.sem))
    for i, name in enumerate(names):
        code = elf.at(s.thunk + 16 * i, 16, 1)
        if code is None:
            raise Bad('%s: thunk not in code' % what)
        if elf.machine == X86_64:
            want = b'\x90\x0f\x1f\x44\0\0\xc3'
            good = s.nop5_at == s.nop_at + 1 and code[:s.nop_at] in (b'', b'\xf3\x0f\x1e\xfa')
        else:
            want = b'\x1f\x20\x03\xd5\xc0\x03\x5f\xd6'
            good = s.nop5_at == 0 and code[:s.nop_at] in (b'', b'\x5f\x24\x03\xd5')
        if not good or code[s.nop_at:s.nop_at + len(want)] != want:
            raise Bad('%s: thunk %d is %s' % (what, i, code.hex()))
        addr = s.thunk + 16 * i + s.nop_at
        if probes.pop(addr, None) != [(addr, s.base, s.sem, 'montrace', name, ARGS[elf.machine])]:
            raise Bad('%s: no single stapsdt note %s at %#x' % (what, name, addr))


def check_readelf(path, notes):
    """readelf sees the same stapsdt notes."""
    env = dict(os.environ, LC_ALL='C')
    text = subprocess.run(['readelf', '-nW', path], capture_output=True, text=True, env=env).stdout
    seen = re.findall(r'Provider: (\S+)\s+Name: (\S+)\s+Location: (\w+), Base: (\w+), Semaphore: (\w+)\s+'
                      r'Arguments: ([^\n]*)', text)
    seen = sorted((int(a, 16), int(b, 16), int(s, 16), p, n, g.strip()) for p, n, a, b, s, g in seen)
    if seen != sorted(notes):
        raise Bad('readelf sees %d stapsdt notes, this reader %d, or others' % (len(seen), len(notes)))


class Expect:
    """A comment `@class level "name" target field:type... [n=N] [dead]` on the line before a callsite."""

    def __init__(self, file, lines, i, m):
        self.file, self.first = file, i + 2
        self.last = next((k + 1 for k in range(i + 1, len(lines)) if ';' in lines[k]), i + 2)
        flags = m[1].split('-')
        self.cls = flags[-1] if flags[-1] != 'message' else flags[-2]
        self.user, self.message = 'user' in flags, 'message' in flags
        self.level, self.name = m[2], ast.literal_eval(m[3])
        self.target = '' if m[4] == '-' else m[4]
        rest = m[5].split()
        self.dead = 'dead' in rest
        self.count = next((int(r[2:]) for r in rest if re.match(r'n=\d+$', r)), None)
        self.fields = [tuple(r.rsplit(':', 1)) for r in rest if ':' in r]

    def matches(self, s):
        return ((s.cls, s.level, s.name, s.target, s.fields, s.user, s.message) ==
                (self.cls, self.level, self.name, self.target, self.fields, self.user, self.message) and
                self.first <= s.line <= self.last)


def expectations(sources):
    out = []
    for path in sources:
        lines = open(path, encoding='utf-8').read().split('\n')
        for i, line in enumerate(lines):
            m = re.search(r'/\* @(\S+) (\w+) ("(?:[^"\\]|\\.)*") (\S+) ?(.*?) ?\*/', line)
            if m:
                out.append(Expect(path, lines, i, m))
            elif '/* @' in line:
                raise Bad('%s:%d: not understood' % (path, i + 1))
    return out


def check(path, sources=(), exact=False, dropped_ok=False):
    """Raises Bad. exact: as many instances as the comments say (without optimisation). Number of callsites."""
    elf = Elf(path)
    sites, notes = callsites(elf), stapsdt(elf)
    probes = {}
    for n in notes:
        probes.setdefault(n[0], []).append(n)
    for s in sites:
        if not s.dropped:
            check_site(elf, s, probes)
        elif not dropped_ok:
            raise Bad('%r is dropped' % s.name)
    dropped = sum(s.nprobes for s in sites if s.dropped)
    if sum(len(v) for k, v in probes.items() if v[0][3] == 'montrace') > dropped:
        raise Bad('stapsdt notes without callsite')
    if len({s.sem for s in sites if not s.dropped}) != sum(not s.dropped for s in sites):
        raise Bad('a semaphore twice')
    check_readelf(path, notes)
    if sources:
        check_expected(sites, expectations(sources), exact)
    return len(sites)


def check_expected(sites, expected, exact):
    files = {os.path.realpath(e.file) for e in expected}
    for e in expected:
        e.found = [s for s in sites if os.path.realpath(s.file) == os.path.realpath(e.file) and e.matches(s)]
        live = [s for s in e.found if not s.dropped]
        if not live and not e.dead:
            near = [(s.cls, s.level, s.name, s.target, s.fields, s.line) for s in sites
                    if os.path.realpath(s.file) == os.path.realpath(e.file) and e.first <= s.line <= e.last]
            raise Bad('%s:%d: not found; there: %s' % (e.file, e.first, near))
        if exact and e.count is not None and len(live) != e.count:
            raise Bad('%s:%d: %d instances, not %d' % (e.file, e.first, len(live), e.count))
    for s in sites:
        if os.path.realpath(s.file) in files and not any(s in e.found for e in expected):
            raise Bad('%s:%d: not expected: %s %r %s' % (s.file, s.line, s.cls, s.name, s.fields))


def main(argv):
    if argv[:1] == ['-c'] and len(argv) > 1:
        try:
            print('%d callsites' % check(argv[1], argv[2:]))
            return 0
        except Bad as bad:
            print('%s: %s' % (argv[1], bad), file=sys.stderr)
            return 1
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    for s in callsites(Elf(argv[0])):
        print('%s%s %s %r target=%r %s:%d %s' % ('dropped ' if s.dropped else '', s.cls, s.level, s.name, s.target,
              s.file, s.line, ' '.join('%s:%s' % f for f in s.fields)))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
