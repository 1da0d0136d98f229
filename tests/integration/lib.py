# SPDX-License-Identifier: BSD-3-Clause
"""What the integration tests share: targets, the tracer, the checker. Standard library only."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("MT_BUILD", os.path.join(ROOT, "build")))
TOOL = os.path.abspath(os.environ.get("MT_TOOL", os.path.join(BUILD, "montrace-bpf")))
SANITIZED = bool(os.environ.get("MT_SANITIZED"))
CHECK = os.path.join(ROOT, "tests", "check_trace.py")


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def need(cond, text):
    if not cond:
        raise Failed(text)


def equal(got, want, what):
    if got != want:
        raise Failed("%s: got %r, want %r" % (what, got, want))


def not_sanitized(why="needs the tool at its full speed"):
    """For tests that mean nothing when the tool is built under sanitizers, which make it many times slower."""
    if SANITIZED:
        raise Skipped(why)


class Target:
    """A program that prints `ready PID`, and goes on when a line comes."""

    def __init__(self, argv, env=None, cwd=None):
        full = dict(os.environ)
        full.update(env or {})
        self.p = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=full, cwd=cwd, bufsize=0)
        self.buf = b""
        self.pid = 0
        line = self.line(time.time() + 20)
        need(line.startswith("ready "), "%s did not get ready: %r" % (argv[0], line))
        self.pid = int(line.split()[1])
        self.out = {}

    def go(self):
        self.p.stdin.write(b"g\n")
        self.p.stdin.flush()

    def line(self, end):
        """The next line, "" at the end of the output. Fails when `end` (time) comes first."""
        while b"\n" not in self.buf:
            left = end - time.time()
            need(left > 0, "target %d says nothing more" % self.pid)
            if not select.select([self.p.stdout], [], [], left)[0]:
                continue
            more = os.read(self.p.stdout.fileno(), 65536)
            if not more:
                break
            self.buf += more
        line, _, self.buf = self.buf.partition(b"\n")
        return line.decode(errors="replace") + ("\n" if line or self.buf else "")

    def read(self, until="done", timeout=120):
        """key=value lines up to `done` or the end."""
        end = time.time() + timeout
        while True:
            line = self.line(end)
            if not line or line.strip() == until:
                break
            if "=" in line:
                k, v = line.strip().rsplit("=", 1)
                self.out[k] = v
        return {k: int(v) if re.fullmatch(r"-?\d+", v) else v for k, v in self.out.items()}

    def end(self, timeout=10):
        """Lets it end, or kills it. Returns the exit status."""
        try:
            self.p.stdin.close()
        except BrokenPipeError:
            pass
        try:
            return self.p.wait(timeout)
        except subprocess.TimeoutExpired:
            self.p.kill()
            return self.p.wait()


class Tracer:
    """montrace-bpf in the background. armed() waits until it says so."""

    def __init__(self, args, env=None, quiet=False, prefix=()):
        full = dict(os.environ)
        for k in ("PERFETTO_TRACE_MODE", "MONTRACE_FILTER", "MONTRACE_TRACE_DIR", "MONARCH_TRACE_DIR"):
            full.pop(k, None)
        full.update(env or {})
        self.err = tempfile.TemporaryFile()
        self.p = subprocess.Popen(list(prefix) + [TOOL] + args, stdout=subprocess.DEVNULL, stderr=self.err, env=full)
        if not quiet:
            self.armed()

    def text(self):
        self.err.seek(0)
        return self.err.read().decode(errors="replace")

    def armed(self, timeout=90): # detaching and attaching wait for the kernel, on a loaded machine for long
        end = time.time() + timeout
        while time.time() < end:
            if re.search(r"callsites? armed", self.text()):
                return
            if self.p.poll() is not None:
                raise Failed("tracer ended early: " + self.text())
            time.sleep(0.01)
        raise Failed("tracer did not arm: " + self.text())

    def stop(self, sig=signal.SIGINT, timeout=60):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        return self.wait(timeout)

    def wait(self, timeout=60):
        try:
            return self.p.wait(timeout)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise Failed("tracer did not end: " + self.text())


def run_tool(args, env=None, timeout=60, prefix=(), **more):
    """(status, stdout, stderr)"""
    full = dict(os.environ)
    for k in ("PERFETTO_TRACE_MODE", "MONTRACE_FILTER", "MONTRACE_TRACE_DIR", "MONARCH_TRACE_DIR"):
        full.pop(k, None)
    full.update(env or {})
    p = subprocess.run(list(prefix) + [TOOL] + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=full,
                       timeout=timeout, **more)
    return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")


def mount_namespaces():
    """Skips the test where there can be none, as in a tree that is no mount of its own."""
    p = subprocess.run(["unshare", "-m", "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode:
        raise Skipped("no mount namespaces: " + p.stdout.decode(errors="replace").strip())


def check(path, *args):
    """Runs the independent checker; fails on any violation. Returns its counts."""
    p = subprocess.run([sys.executable, CHECK, path, "--json"] + list(args), stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    text = p.stdout.decode(errors="replace").strip()
    need(p.returncode == 0, "trace %s is not good: %s %s" % (path, text[:2000], p.stderr.decode()[:500]))
    return json.loads(text.splitlines()[-1])


def annotations(path, name):
    """The annotation dicts of all begins and instants of that name."""
    p = subprocess.run([sys.executable, CHECK, path, "--args", name], stdout=subprocess.PIPE)
    rows = [json.loads(l) for l in p.stdout.decode().splitlines() if l.startswith("{")]
    return rows[:-1]  # the last one is the counts


def dump(path):
    """Objects of `montrace-bpf dump --json`."""
    status, out, err = run_tool(["dump", "--json", path])
    need(status == 0, "dump failed: " + err)
    return [json.loads(l) for l in out.splitlines()]


def one_error_line(err, *words):
    """A failed run says exactly one line, with these words in it."""
    lines = [l for l in err.splitlines() if l.strip()]
    need(len(lines) == 1, "not one line: %r" % err)
    for w in words:
        need(w in lines[0], "%r is not in %r" % (w, lines[0]))


class Memory:
    """Code at the probes and semaphores of a process, read through /proc/PID/mem."""

    def __init__(self, pid):
        self.pid = pid
        exe = "/proc/%d/exe" % pid
        notes = subprocess.run(["readelf", "-nW", exe], stdout=subprocess.PIPE).stdout.decode()
        self.sites = [tuple(int(x, 16) for x in m) for m in re.findall(
            r"Location: (0x[0-9a-f]+), Base: 0x[0-9a-f]+, Semaphore: (0x[0-9a-f]+)", notes)]
        need(self.sites, "no notes in " + exe)
        path = os.path.realpath(exe)
        self.base = 0
        if "DYN" in subprocess.run(["readelf", "-hW", exe], stdout=subprocess.PIPE).stdout.decode():
            for line in open("/proc/%d/maps" % pid):
                f = line.split()
                if len(f) > 5 and f[5] == path and int(f[2], 16) == 0:
                    self.base = int(f[0].split("-")[0], 16)
                    break

    def snapshot(self):
        with open("/proc/%d/mem" % self.pid, "rb", buffering=0) as m:
            r = []
            for code, sem in self.sites:
                m.seek(self.base + code)
                c = m.read(8)
                m.seek(self.base + sem)
                r.append((c, m.read(2)))
            return r


def tmp():
    return tempfile.mkdtemp(prefix="mt-test-")


def example(name):
    p = os.path.join(BUILD, "examples", name)
    if not os.path.exists(p):
        raise Failed("no " + p)
    return p


def compile_targets(directory):
    """Builds tests/integration/targets/*.c; returns name -> path."""
    made = {}
    src = os.path.join(HERE, "targets")
    for f in sorted(os.listdir(src)):
        if not f.endswith(".c"):
            continue
        exe = os.path.join(directory, f[:-2])
        subprocess.check_call(["cc", "-O2", "-g", "-Wall", "-Wextra", "-I", os.path.join(ROOT, "include"),
                               os.path.join(src, f), "-o", exe, "-lpthread", "-ldl"])
        made[f[:-2]] = exe
    return made


def remove(path):
    shutil.rmtree(path, ignore_errors=True)
