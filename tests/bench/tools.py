# SPDX-License-Identifier: BSD-3-Clause
"""Tools that can sit on the probes of a running program: montrace-bpf, an empty program, bpftrace, perf.

Each is a context manager made from a process id. Inside it all wanted probes are in; `hits` and `lost`, where the
tool says them, are known after it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import floor
import lib

Unavailable = floor.Unavailable


def wait_armed(memory, before, alive, timeout=30):
    """Until every site has a probe and a semaphore that is up."""
    end = time.time() + timeout
    while time.time() < end:
        now = memory.snapshot()
        if all(a[0] != b[0] and b[1] != b"\0\0" for a, b in zip(before, now)):
            return
        if not alive():
            break
        time.sleep(0.02)
    raise Unavailable("does not attach")


def raise_semaphores(memory):
    """Holds the semaphores of all sites up, as one more tracer would."""
    with open("/proc/%d/mem" % memory.pid, "r+b", buffering=0) as m:
        for at in sorted(set(s for _, s in memory.sites)):
            m.seek(memory.base + at)
            n = int.from_bytes(m.read(2), "little")
            m.seek(memory.base + at)
            m.write((n + 1).to_bytes(2, "little"))


class Tool:
    hits = lost = None
    note = ""

    def __init__(self, exe, pid):
        self.exe, self.pid = exe, pid
        self.directory = tempfile.mkdtemp(prefix="mt-bench-")

    def __enter__(self):
        try:
            self.memory = lib.Memory(self.pid)
            self.before = self.memory.snapshot()
            self.start()
            return self
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self):
        pass

    def stop(self):
        pass


class Detached(Tool):
    pass


class RecordOnly(Tool):
    """The target's own share: the records are built, but no probe takes them."""

    def start(self):
        raise_semaphores(self.memory)


class FloorTrap(Tool):
    by_call = 0

    def start(self):
        self.floor = floor.Floor(self.exe, self.pid, self.by_call)
        wait_armed(self.memory, self.before, lambda: True)

    def stop(self):
        self.floor.close()


class FloorCall(FloorTrap):
    by_call = 1

    def stop(self):
        """The kernel makes the call at a site's first hit. Where it makes none, this was a trap too."""
        with open("/proc/%d/mem" % self.pid, "rb", buffering=0) as m:
            calls = 0
            for code, _ in self.memory.sites:
                m.seek(self.memory.base + code + 1)
                calls += m.read(1) == b"\xe8"
        if not calls:
            self.note = "this kernel makes no call of it"
        super().stop()


class Montrace(Tool):
    args = []
    wait_all = True

    def start(self):
        self.path = os.path.join(self.directory, "t.pftrace")
        self.tracer = lib.Tracer(["-v", "-p", str(self.pid), "-o", self.path, "-m", "dev"] + self.args)
        self.note = "on 5-byte nops" if "(5-byte nops)" in self.tracer.text() else "on nops"
        if self.wait_all:
            wait_armed(self.memory, self.before, lambda: self.tracer.p.poll() is None)

    def cpu_ns(self):
        return int(open("/proc/%d/schedstat" % self.tracer.p.pid).read().split()[0])

    def stop(self):
        self.tracer.stop()
        text = self.tracer.text()
        m = re.search(r"(\d+) hits delivered", text)
        self.hits = int(m.group(1)) if m else None
        m = re.search(r"(\d+) lost,", text)
        self.lost = int(m.group(1)) if m else None
        m = re.search(r"attached in ([0-9.]+) ms, detached in ([0-9.]+) ms", text)
        self.times = (float(m.group(1)), float(m.group(2))) if m else None
        m = re.search(r"(\d+) of (\d+) callsites? armed", text)
        self.armed = int(m.group(1)) if m else None
        self.spans = int(re.search(r"(\d+) spans?, \d+ event", text).group(1))
        self.bytes = os.path.getsize(self.path) if os.path.exists(self.path) else 0


def montrace(*args, wait_all=True):
    return type("MontraceWith", (Montrace,), {"args": list(args), "wait_all": wait_all})


class Bpftrace(Tool):
    """bpftrace puts probes at all places of a name, but raises only one semaphore a name: here the bench does."""

    program = "{ @ = count(); }"

    def start(self):
        if not shutil.which("bpftrace"):
            raise Unavailable("not installed")
        raise_semaphores(self.memory)
        self.out = open(os.path.join(self.directory, "out"), "w+")
        self.p = subprocess.Popen(["bpftrace", "-p", str(self.pid), "-e",
                                   "usdt:%s:montrace:* %s" % (self.exe, self.program)],
                                  stdout=self.out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            wait_armed(self.memory, self.before, lambda: self.p.poll() is None)
        except Unavailable:
            self.p.kill()
            self.p.wait()
            raise

    def stop(self):
        self.p.send_signal(signal.SIGINT)
        self.p.wait()
        self.out.seek(0)
        m = re.search(r"@: (\d+)", self.out.read())
        self.out.close()
        self.hits = int(m.group(1)) if m else None


class BpftraceEmpty(Bpftrace):
    program = "{ }"


class Perf(Tool):
    """perf record of the probes as uprobe events. They are the system's: made by prepare, taken away by clean."""

    events = None
    why = ""
    cache = ""

    @classmethod
    def prepare(cls, exe):
        if not shutil.which("perf"):
            cls.why = "not installed"
            return
        cls.cache = tempfile.mkdtemp(prefix="mt-bench-perf-")
        perf = ["perf", "--buildid-dir", cls.cache]

        def run(*args):
            p = subprocess.run(perf + list(args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            return p.stdout.decode()

        run("buildid-cache", "--add", exe)
        kinds = sorted(set(re.findall(r"sdt_montrace:(\w+)", run("list", "sdt"))))
        made = []
        for k in kinds:
            text = run("probe", "sdt_montrace:" + k)
            # one name may stand for many places, and is listed once for each
            made += re.findall(r"^\s+(sdt_montrace:\w+) +\(on", text, re.M)
            if not made:
                cls.why = text.strip().splitlines()[-1] if text.strip() else "no uprobe events"
        cls.events = sorted(set(made))
        if not kinds:
            cls.why = "perf finds no probes"

    @classmethod
    def clean(cls):
        for e in cls.events or []:
            subprocess.run(["perf", "probe", "-q", "-d", e], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if cls.cache:
            shutil.rmtree(cls.cache, ignore_errors=True)
        cls.events = None

    def start(self):
        if not self.events:
            raise Unavailable(self.why)
        self.err = open(os.path.join(self.directory, "err"), "w+")
        # -m: with the buffer that it takes by itself it loses hits, and lost ones are cheap
        self.p = subprocess.Popen(["perf", "record", "-m", "16M", "-e", ",".join(self.events), "-p", str(self.pid),
                                   "-o", os.path.join(self.directory, "perf.data")], stdout=self.err, stderr=self.err)
        try:
            wait_armed(self.memory, self.before, lambda: self.p.poll() is None)
        except Unavailable:
            self.p.kill()
            self.p.wait()
            raise
        time.sleep(0.3)  # perf enables its events after it made them

    def stop(self):
        self.p.send_signal(signal.SIGINT)
        self.p.wait()
        self.err.seek(0)
        m = re.search(r"\((?:~)?(\d+) samples\)", self.err.read())
        self.err.close()
        self.hits = int(m.group(1)) if m else None
