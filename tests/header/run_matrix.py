#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""include/montrace.h through compilers, optimisation levels and ways to link: build, run, check the notes.

One line per cell that fails, last line `N passed, N failed`. A compiler that is not there is skipped, with
a line that says so. -j N: jobs (2); -k TEXT: cells whose name has TEXT; -w DIR: work there and keep it.
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import notes  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, '..', '..', 'include')
BASE = ['-D_GNU_SOURCE', '-I' + INCLUDE, '-I' + HERE, '-Wall', '-Wextra', '-Wshadow', '-Wpedantic', '-Werror']
STD = {'c': {'-O0': 'c11', '-O2': 'gnu11', '-O3': 'gnu17'}, 'c++': {'-O0': 'c++14', '-O2': 'c++20', '-O3': 'c++17'}}
CXX = {'gcc': 'g++', 'clang': 'clang++', 'aarch64-linux-gnu-gcc': 'aarch64-linux-gnu-g++'}

# How to link: flags for compiling and linking; 'lib' = as a library that is dlopened.
MODES = {
    'no-pie': ['-no-pie', '-fno-pie'],
    'pie': ['-pie', '-fPIE'],
    'static': ['-static'],
    'static-pie': ['-static-pie', '-fPIE'],
    'lib': ['-shared', '-fPIC'],
    'lto': ['-flto'],
    'gc': ['-ffunction-sections', '-fdata-sections', '-Wl,--gc-sections'],
    'cet': ['-fcf-protection=full'],
    'intel': ['-masm=intel'],
}
SOURCES = {
    't_c': ('c', ['t_c.c', 'same.c', 'sub/same.c'], ['same.h']),
    't_cc': ('c++', ['t_cc.cc', 'a.cc', 'b.cc'], ['tmpl.h']),
}
WARN = {
    'c': ['-Wmissing-prototypes', '-Wstrict-prototypes', '-Wconversion', '-Wdouble-promotion', '-Wundef',
          '-Wcast-qual', '-Wwrite-strings', '-Wvla', '-Wformat=2'],
    'c++': ['-Wold-style-cast', '-Wmissing-declarations', '-Wzero-as-null-pointer-constant', '-Wconversion',
            '-Wsign-conversion', '-Wundef', '-Wcast-qual', '-Wformat=2', '-Woverloaded-virtual'],
}


class Failed(Exception):
    pass


def run(cmd, cwd=None, ok=True):
    """Runs it; raises Failed unless it exits with 0. What it prints is bounded, however much it is."""
    cmd = ['sh', '-c', 'ulimit -f 131072; exec "$@"', 'sh'] + cmd
    with tempfile.TemporaryFile() as f:
        p = subprocess.run(cmd, cwd=cwd, stdin=subprocess.DEVNULL, stdout=f, stderr=f, timeout=120,
                           env=dict(os.environ, ASAN_OPTIONS='detect_leaks=0', LC_ALL='C'))
        f.seek(0)
        p.text = f.read(1 << 20).decode(errors='replace')
    if ok and p.returncode:
        text = [x for x in p.text.split('\n') if x.strip()]
        bad = [x for x in text if 'error' in x or 'failed' in x or 'warning' in x]
        raise Failed('%s: exit code %d: %s' % (os.path.basename(cmd[4]), p.returncode, ' | '.join((bad or text)[:4])))
    return p


def src(names):
    return [os.path.join(HERE, n) for n in names]


def compiler(cc, lang):
    """Command of compiler cc (maybe with flags) for the language."""
    head, *rest = cc.split()
    return [CXX[head] if lang == 'c++' else head] + rest


def flags_for(cc, mode):
    flags = list(MODES[mode])
    if cc == 'clang':
        if mode == 'lto':
            flags += ['-fuse-ld=lld']
        if mode == 'static-pie':
            flags = ['-static-pie', '-fPIE', '-Wno-unused-command-line-argument']
        if mode == 'no-pie':
            flags += ['-Wno-unused-command-line-argument']
    return flags


class Matrix:
    def __init__(self, work):
        self.work = work
        self.cells = []
        self.objects = [os.path.join(work, 'harness.o'), os.path.join(work, 'run_main.o')]
        self.loader = os.path.join(work, 'loader')

    def add(self, name, fn, *args):
        self.cells.append((name, fn, args))

    def setup(self):
        cc = ['gcc', '-std=gnu11', '-O1', '-g', '-fPIC'] + BASE
        for obj in self.objects:
            run(cc + ['-c', os.path.join(HERE, os.path.basename(obj)[:-1] + 'c'), '-o', obj])
        run(cc + ['-DLOAD', os.path.join(HERE, 'run_main.c'), '-o', self.loader, '-ldl', '-pthread'])

    def out(self, name):
        return os.path.join(self.work, name.replace(' ', '_').replace('/', '_').replace('=', '_'))

    def program(self, name, cc, opt, mode, test, extra=()):
        """Build, run, check the notes."""
        lang, sources, headers = SOURCES[test]
        out = self.out(name)
        cmd = compiler(cc, lang) + ['-std=' + STD[lang].get(opt, 'gnu11' if lang == 'c' else 'c++17'), opt] + BASE
        cmd += flags_for(cc, mode) + list(extra) + src(sources)
        cmd += self.objects[:1] if mode == 'lib' else self.objects
        run(cmd + ['-o', out, '-pthread', '-lm'])
        program = [self.loader, out] if mode == 'lib' else [out]
        if any('sanitize' in x for x in extra) and shutil.which('setarch'):
            # the sanitizers of these compilers loop for ever where addresses are too random
            program = ['setarch', '-R'] + program
        run(program)
        notes.check(out, src(sources + headers), exact=opt == '-O0' and mode != 'lto')
        os.unlink(out)

    def texts(self, name, cc, opt, extra=()):
        out = self.out(name)
        run(compiler(cc, 'c') + ['-std=gnu11', opt] + BASE + list(extra) + src(['t_text.c']) + ['-o', out])
        if 'aarch64' not in cc:
            run([out])
        notes.check(out, src(['t_text.c']))

    def libraries(self, name, cc):
        d = self.out(name)
        os.makedirs(d)
        so = ['-O2', '-shared', '-fPIC'] + BASE
        lib = src(['t_lib.c'])
        run(compiler(cc, 'c') + so + lib + ['-o', 'lib1.so'], d)
        run(compiler(cc, 'c') + so + lib + ['-o', 'lib2.so'], d)
        run(compiler(cc, 'c++') + so + ['-x', 'c++'] + lib + ['-o', 'libcc.so'], d)
        run(compiler(cc, 'c') + ['-O2', '-std=gnu11'] + BASE + src(['t_dl.c']) + self.objects[:1] +
            ['-o', 't_dl', '-ldl', '-pthread'], d)
        run(['./t_dl', './lib1.so', './lib2.so', './libcc.so'], d)
        for f in ('lib1.so', 'libcc.so'):
            notes.check(os.path.join(d, f))
            run(['strip', f], d)
            notes.check(os.path.join(d, f))
        run(['./t_dl', './lib1.so', './lib2.so', './libcc.so'], d)

    def collected(self, name, cc, lang, linker):
        """A function that the linker dropped: no callsite of it is left, or it is known to be dropped."""
        out = self.out(name)
        run(compiler(cc, lang) + ['-O2', '-x', lang, '-fuse-ld=' + linker] + BASE + MODES['gc'] + src(['t_gc.c']) +
            ['-o', out])
        run([out])
        notes.check(out, src(['t_gc.c']), dropped_ok=True)
        symbols = run(['nm', '-C', out]).text
        for s in notes.callsites(notes.Elf(out)):
            function = {'dead': 'dead_function', 'dead template': 'dead_template'}.get(s.name, 'main')
            if s.dropped == (' T %s' % function in symbols or ' W int %s' % function in symbols):
                raise Failed('%r is %s' % (s.name, 'dropped, its function is not' if s.dropped else 'not dropped'))

    def disabled(self, name, cc, lang):
        out = self.out(name)
        run(compiler(cc, lang) + ['-O0', '-x', lang] + BASE + ['-DMONTRACE_DISABLE'] + src(['t_off.c']) + ['-o', out])
        run([out])
        elf = notes.Elf(out)
        for s in ('.note.montrace', '.note.stapsdt', '.probes', '.stapsdt.base'):
            if elf.section(s):
                raise Failed('has ' + s)
        if 'montrace__' in run(['nm', out]).text:
            raise Failed('has symbols of montrace')
        run([CXX[cc] if lang == 'c++' else cc, '-fsyntax-only', '-x', lang, '-DMONTRACE_DISABLE'] + BASE + WARN[lang] +
            src(['t_off.c']))

    def warnings(self, name, cc, lang, std):
        run(compiler(cc, lang) + ['-fsyntax-only', '-x', lang, '-std=' + std] + BASE + WARN[lang] + src(['t_off.c']))

    def must_fail(self, name, cc, lang):
        cmd = compiler(cc, lang) + ['-fsyntax-only', '-x', lang] + BASE + src(['t_bad.c'])
        run(cmd + ['-DCASE=0'])
        for case in range(1, 16):
            p = run(cmd + ['-DCASE=%d' % case], ok=False)
            if not p.returncode or '#error' in p.text:
                raise Failed('case %d compiles' % case)
            if case in (4, 5, 6, 15) and 'the level must be a constant' not in p.text and 'onstant' not in p.text:
                raise Failed('case %d: the message does not say what is wrong' % case)

    def cross(self, name, cc, opt, test):
        lang, sources, headers = SOURCES[test]
        out = self.out(name)
        cmd = compiler(cc, lang) + ['-std=' + STD[lang][opt], opt, '-shared', '-fPIC'] + BASE
        run(cmd + src(sources) + ['-o', out])
        if notes.Elf(out).machine != notes.AARCH64:
            raise Failed('not of aarch64')
        notes.check(out, src(sources + headers), exact=opt == '-O0')

    def fill(self):
        for cc in ('gcc', 'clang'):
            if not shutil.which(cc) or not shutil.which(CXX[cc]):
                print('skipped: no %s' % cc)
                continue
            for opt in ('-O0', '-O2', '-O3'):
                for mode in MODES:
                    for test in SOURCES:
                        name = '%s %s %s %s' % (cc, opt, mode, test)
                        self.add(name, self.program, cc, opt, mode, test)
                self.add('%s %s text' % (cc, opt), self.texts, cc, opt)
            if cc == 'gcc':  # clang 14 loses each $ of a text there
                self.add('%s intel text' % cc, self.texts, cc, '-O2', MODES['intel'])
            for test in SOURCES:
                self.add('%s sanitizers %s' % (cc, test), self.program, cc, '-O1', 'pie', test,
                         ['-fsanitize=address,undefined', '-fno-sanitize-recover=undefined'])
                self.add('%s hardened %s' % (cc, test), self.program, cc, '-O2', 'pie', test,
                         ['-fstack-protector-all', '-fstack-clash-protection', '-D_FORTIFY_SOURCE=2',
                          '-Wl,-z,relro,-z,now', '-fvisibility=hidden'])
            self.add('%s libraries' % cc, self.libraries, cc)
            for lang, stds in (('c', ('c11', 'gnu17')), ('c++', ('c++14', 'c++20'))):
                for linker in ('bfd', 'lld'):
                    if shutil.which('ld.' + linker):
                        self.add('%s collected %s %s' % (cc, lang, linker), self.collected, cc, lang, linker)
                self.add('%s disabled %s' % (cc, lang), self.disabled, cc, lang)
                self.add('%s must-fail %s' % (cc, lang), self.must_fail, cc, lang)
                for std in stds:
                    self.add('%s warnings %s' % (cc, std), self.warnings, cc, lang, std)
        if shutil.which('aarch64-linux-gnu-gcc'):
            for cc in ('aarch64-linux-gnu-gcc', 'clang --target=aarch64-linux-gnu'):
                for opt in ('-O0', '-O2'):
                    for test in SOURCES:
                        self.add('%s %s %s' % (cc, opt, test), self.cross, cc, opt, test)
                self.add('%s text' % cc, self.texts, cc, '-O2')
                self.add('%s bti text' % cc, self.texts, cc, '-O2', ['-mbranch-protection=standard'])
        else:
            print('skipped: no aarch64-linux-gnu-gcc')

    def cell(self, name, fn, args):
        try:
            fn(name, *args)
            return None
        except (Failed, notes.Bad, subprocess.TimeoutExpired, OSError, ValueError, KeyError, IndexError) as e:
            return '%s: %s' % (type(e).__name__, e) if not isinstance(e, (Failed, notes.Bad)) else str(e)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('-j', type=int, default=2)
    p.add_argument('-k', default='')
    p.add_argument('-w')
    p.add_argument('-v', action='store_true', help='print the cells that pass, too')
    a = p.parse_args()
    work = a.w or tempfile.mkdtemp(prefix='montrace-header-')
    passed = failed = 0
    try:
        os.makedirs(work, exist_ok=True)
        m = Matrix(work)
        m.setup()
        m.fill()
        cells = [c for c in m.cells if a.k in c[0]]
        with concurrent.futures.ThreadPoolExecutor(a.j) as pool:
            for (name, _, _), bad in zip(cells, pool.map(lambda c: m.cell(*c), cells)):
                if bad:
                    print('FAILED %s: %s' % (name, bad), flush=True)
                elif a.v:
                    print('passed %s' % name)
                failed += bool(bad)
                passed += not bad
    finally:
        if not a.w:
            shutil.rmtree(work)
    print('%d passed, %d failed' % (passed, failed))
    return bool(failed or not passed)


if __name__ == '__main__':
    sys.exit(main())
