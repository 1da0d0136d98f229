# SPDX-License-Identifier: BSD-3-Clause
"""The socket of a running tracer: who may ask, what harm a client can do, and which tracer is asked."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import lib
from lib import Target, Tracer, check, equal, need
from test_flight import ask, memory, recorder, rows, run_tool, status, tracer, wait_for
from test_subjects import subjects, tail, trace


def path_of(tr):
    return "/run/montrace-bpf/%d.sock" % tr.p.pid


def connect(path, timeout=10):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)  # waits while the queue is full, as clients do
    s.settimeout(timeout)
    return s


def answer(s):
    got = b""
    with contextlib.suppress(OSError):
        while True:
            more = s.recv(1 << 16)
            if not more:
                break
            got += more
    return got


def request(path, line):
    with contextlib.closing(connect(path)) as s:
        with contextlib.suppress(BrokenPipeError):  # refused already
            s.sendall(line)
        return answer(s)


def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))


# ---- What clients can do ------------------------------------------------------------------------------


def drip(path, result):
    """Sends a request byte by byte, for a second."""
    with contextlib.closing(connect(path)) as s:
        with contextlib.suppress(BrokenPipeError):
            for b in b"mt1 status\n":
                s.send(bytes([b]))
                time.sleep(0.08)
        result.append(answer(s))


def thousand_at_once(path):
    """Connections that say nothing, or half of something. Returns those that are open."""
    v = []
    for i in range(1000):
        s = connect(path)
        v.append(s)
        if i % 2:
            with contextlib.suppress(OSError):
                s.send(b"mt1 tail n=")
    return v


def thousand_after_another(path):
    huge = b"mt1 tail subject=" + b"a" * 100000 + b"\n"
    for i in range(1000):
        with contextlib.suppress(OSError):
            s = connect(path)
            s.setblocking(False)
            s.send((huge, b"mt1 tail n=65536\n", b"\0\xff\n", b"mt1 status\n", b"mt1 stacks", b"mt1 tail follow\n")[i % 6])
            if i % 3 == 0:
                s.recv(10)  # the beginning of an answer
            s.close()


def test_flight_socket_load(c):
    """
    W21: reading stops nobody. A thousand clients at once, a thousand one after another, huge and half requests,
    answers that are not heard to their end: the program's events are all recorded, the others get answers, and
    memory is bounded.
    """
    many_files()
    t = subjects(c, "paced")
    tr = trace(c, t.pid)
    path, slow = path_of(tr), []
    t.go()
    wait_for("no events", lambda: status(tr)["recordings"]["events"] > 100)
    before = memory(tr.p.pid)["RssAnon"]
    top = before
    open_ones = thousand_at_once(path)
    wait_for("no answer beside a thousand", lambda: request(path, b"mt1 status\n").endswith(b"\nend\n"), 5)
    equal(run_tool(["status", "--tracer", str(tr.p.pid)])[0], 0, "status beside a thousand")
    dripper = threading.Thread(target=drip, args=(path, slow))
    for s in open_ones:
        s.close()
    dripper.start()
    thousand_after_another(path)
    top = max(top, memory(tr.p.pid)["RssAnon"])
    dripper.join()
    wait_for("no answer after a thousand", lambda: run_tool(["status", "--tracer", str(tr.p.pid)])[0] == 0, 5)
    drip(path, slow)
    need(slow[1].endswith(b"\nend\n"), "who is slow when there is room: %r" % slow)
    t.read()
    wait_for("not all recorded: %r" % status(tr), lambda: status(tr)["recordings"]["events"] == 20001, 10)
    equal(status(tr)["lost"], 0, "lost")
    equal([r["seq"] for r in tail(tr, "job")], list(range(20000 - 4096, 20000)), "numbers")
    need(slow and (slow[0].endswith(b"\nend\n") or b"too many" in slow[0]), "who is slow, not silent: %r" % slow)
    need(lib.SANITIZED or top - before < 24, "memory went from %.1f to %.1f MiB" % (before, top))
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    return "memory %.1f, at most %.1f MiB" % (before, top)


def test_flight_socket_slow_readers(c):
    """Followers that never read, at full rate: bounded memory, and one that does read is told what he misses."""
    t = subjects(c, "spin")
    tr = trace(c, t.pid)
    path = path_of(tr)
    before = memory(tr.p.pid)["RssAnon"]
    v = []
    for i in range(40):
        s = connect(path)
        s.sendall(b"mt1 tail follow json n=%d\n" % (i * 1000))
        v.append(s)
    for s in v[24:]:
        need(b"error too many" in answer(s), "a 25th follower")
        s.close()
    v[0].close()
    wait_for("place of one who left", lambda: status(tr)["recordings"] is not None)
    p = subprocess.Popen([lib.TOOL, "tail", "-f", "-n", "0", "--json", "--tracer", str(tr.p.pid)], stdout=subprocess.PIPE)
    time.sleep(0.3)
    t.go()
    top, end, got = before, time.time() + 3, 0
    while time.time() < end:
        os.read(p.stdout.fileno(), 1 << 16)
        got += 1
        if got % 50 == 0:
            top = max(top, memory(tr.p.pid)["RssAnon"])
    rest = []
    reader = threading.Thread(target=lambda: rest.append(p.stdout.read()))
    reader.start()
    equal(run_tool(["status", "--tracer", str(tr.p.pid)])[0], 0, "status")
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    reader.join()
    equal(p.wait(), 0, "who reads is not dropped")
    lines = rest[0].decode().splitlines()[1:]  # the first may be half of one
    seq, missed = None, 0
    for r in rows("\n".join(lines)):
        if "left_out" in r:
            missed += r["left_out"]
            seq = seq + r["left_out"] if seq is not None else None
        elif r["subject"] == "job":
            need(seq is None or r["seq"] == seq + 1, "%r after %r" % (r, seq))
            seq = r["seq"]
    for s in v[1:24]:
        s.close()
    need(lib.SANITIZED or top - before < 48, "memory went from %.1f to %.1f MiB" % (before, top))
    return "memory %.1f, at most %.1f MiB; %d left out at the end" % (before, top, missed)


def test_flight_socket_tracer_dies(c):
    """Who follows is told when the tracer is gone; the next tracer takes over what it left."""
    t = subjects(c, "last_n")
    tr = trace(c, t.pid)
    p = subprocess.Popen([lib.TOOL, "tail", "-f", "--tracer", str(tr.p.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    tr.p.kill()
    out, err = p.communicate(timeout=5)
    equal((p.returncode, out), (1, b""), "tail")
    lib.one_error_line(err.decode(), "the tracer ended")
    tr.p.wait()
    need(os.path.exists(path_of(tr)), "who left this?")
    s, _, err = run_tool(["status", "--tracer", str(tr.p.pid)])
    equal(s, 1, "status")
    lib.one_error_line(err, "no tracer with pid %d is running" % tr.p.pid)
    os.unlink(path_of(tr))
    t.end()


def test_flight_socket_tracer_stopped(c):
    """Whoever asks a tracer that is stopped gets one line after a while, also if its queue is full."""
    t = subjects(c, "last_n")
    tr = trace(c, t.pid)
    asked = {}

    def question(*args):
        asked[args] = subprocess.Popen([lib.TOOL] + list(args) + ["--tracer", str(tr.p.pid)], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)

    tr.p.send_signal(signal.SIGSTOP)
    full = []
    try:
        start = time.monotonic()
        question("status")
        question("stacks")
        question("tail")
        time.sleep(0.5)  # these are in the queue, the next ones are not
        with contextlib.suppress(BlockingIOError):
            while len(full) < 1000:
                full.append(socket.socket(socket.AF_UNIX))
                full[-1].setblocking(False)
                full[-1].connect(path_of(tr))
        need(len(full) < 1000, "the queue is never full")
        question("status", "--json")
        question("snapshot")
        for args, p in asked.items():
            out, err = p.communicate(timeout=30)
            equal((p.returncode, out), (1, b""), "%r: %r" % (args, err))
            lib.one_error_line(err.decode(), "the tracer does not answer")
            need(9 < time.monotonic() - start < 25, "%r: after %.1f s" % (args, time.monotonic() - start))
    finally:
        for s in full:
            s.close()
        tr.p.send_signal(signal.SIGCONT)
    equal(status(tr)["lost"], 0, "lost, when it goes on")
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")


# ---- Who may ask --------------------------------------------------------------------------------------


def as_user(uid):
    def f():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)

    return f


def tool_for_all(c):
    """A copy that anybody may run."""
    os.chmod(os.path.dirname(c.dir), 0o755)
    os.chmod(c.dir, 0o755)
    return shutil.copy(lib.TOOL, os.path.join(c.dir, "tool"))


def test_flight_socket_sudo_user(c):
    """Who started the tracer through sudo may ask, and gets the files; another user is refused, whatever he tries."""
    tool, nobody, other = tool_for_all(c), 65534, 65533
    t = recorder(c, "jobs", "1", "5")
    tr = tracer(c, t.pid, env={"SUDO_UID": str(nobody), "SUDO_GID": str(nobody)})
    st = os.stat(path_of(tr))
    equal((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid), (0o600, nobody, nobody), "socket")
    t.go()
    t.read()
    wait_for("events", lambda: status(tr)["recordings"]["events"] == 5)

    def tool_as(uid, *args, **more):
        p = subprocess.run([tool] + list(args) + ["--tracer", str(tr.p.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           preexec_fn=as_user(uid), env={"PATH": "/bin"}, timeout=20, **more)
        return p.returncode, p.stdout.decode(), p.stderr.decode()

    s, out, err = tool_as(nobody, "tail", "--json")
    equal((s, len(out.splitlines())), (0, 5), "tail of who may: " + err)
    s, out, err = tool_as(other, "tail", "--json")
    equal((s, out), (1, ""), "tail of who may not")
    lib.one_error_line(err, "Permission denied")
    # He opens the file himself, where he may; the tracer gets no path.
    d = os.path.join(c.dir, "his")
    os.mkdir(d)
    os.chown(d, nobody, nobody)
    s, out, err = tool_as(nobody, "snapshot", "-o", "x.pftrace", cwd=d)
    equal((s, out.split(": ")[0]), (0, "x.pftrace"), "snapshot: " + err)
    st = os.stat(d + "/x.pftrace")
    equal((st.st_uid, stat.S_IMODE(st.st_mode)), (nobody, 0o640), "his snapshot")
    check(d + "/x.pftrace")
    s, out, err = tool_as(nobody, "snapshot", "-o", "/root/x.pftrace")
    equal(s, 1, "a snapshot in root's directory")
    lib.one_error_line(err, "/root/x.pftrace")
    equal(tool_as(nobody, "snapshot")[0], 0, "snapshot beside the others")
    t.end()
    tr.wait()


def test_flight_socket_modes_do_not_matter(c):
    """Should the socket's mode let somebody in, his uid does not."""
    t = recorder(c, "jobs", "1", "5")
    tr = tracer(c, t.pid)
    os.chmod(path_of(tr), 0o666)
    code = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(%r)\n"
            "try: s.send(b'mt1 status\\n'); d=s.recv(4096)\nexcept OSError: d=b''\nsys.exit(3 if d else 7)" % path_of(tr))
    equal(subprocess.run(["python3", "-c", code], preexec_fn=as_user(65534)).returncode, 7, "nobody")
    equal(subprocess.run(["python3", "-c", code]).returncode, 3, "root")
    t.end()
    tr.wait()


# ---- Where the socket is, and which tracer is asked -----------------------------------------------------


@contextlib.contextmanager
def own_run():
    """A mount namespace with an empty /run: the prefix of commands in it, and its /run as seen from here."""
    lib.mount_namespaces()
    p = subprocess.Popen(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /run && echo ok && exec sleep 600"],
                         stdout=subprocess.PIPE)
    try:
        need(p.stdout.readline() == b"ok\n", "no mount namespace")
        yield ["nsenter", "-m", "-r", "-t", str(p.pid), "--"], "/proc/%d/root/run" % p.pid
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def test_flight_socket_directory_attacks(c):
    """What others put where the socket should be: no socket, one line that says why, and tracing goes on."""
    with own_run() as (prefix, run):
        d = run + "/montrace-bpf"
        trap = run + "/trap"
        os.mkdir(trap)

        def link():
            os.symlink("trap", d)

        def others():
            os.mkdir(d)
            os.chown(d, 65534, 65534)

        def writable():
            os.mkdir(d)
            os.chmod(d, 0o777)

        def file():
            open(d, "w").close()

        for make, word in ((link, "/run/montrace-bpf"), (others, "somebody else"), (writable, "others may write"),
                           (file, "/run/montrace-bpf")):
            make()
            before = os.lstat(d)
            t = subjects(c, "last_n")
            tr = Tracer(["-m", "dev", "-p", str(t.pid), "-o", os.path.join(c.dir, make.__name__ + ".pftrace")], prefix=prefix)
            need("no socket for" in tr.text() and word in tr.text(), "%s: %s" % (make.__name__, tr.text()))
            t.go()
            t.read()
            t.end()
            equal(tr.wait(), 0, make.__name__)
            equal(check(os.path.join(c.dir, make.__name__ + ".pftrace"))["instants"], 11, "events")
            equal(os.listdir(trap), [], "in the trap")
            equal((os.lstat(d).st_mode, os.lstat(d).st_uid), (before.st_mode, before.st_uid), "changed")
            s, _, err = run_tool(["status"], prefix=prefix)
            equal(s, 1, "status: " + make.__name__)
            lib.one_error_line(err, "no tracer is running")
            (os.rmdir if os.path.isdir(d) and not os.path.islink(d) else os.unlink)(d)


def test_flight_socket_in_the_way(c):
    """A tracer with a pid that another one had: a dead one's socket and a file give way, a living one's does not."""
    code = "import os,sys,socket\np='/run/montrace-bpf/%d.sock'%os.getpid()\nos.makedirs('/run/montrace-bpf',0o755,True)\n"
    dead = code + "s=socket.socket(socket.AF_UNIX)\ns.bind(p)\ns.close()\nos.execv(sys.argv[1],sys.argv[1:])"
    alive = code + "s=socket.socket(socket.AF_UNIX)\ns.bind(p)\ns.listen(1)\nos.set_inheritable(s.fileno(),True)\nos.execv(sys.argv[1],sys.argv[1:])"
    link = code + "os.symlink('/run/trap',p)\nos.execv(sys.argv[1],sys.argv[1:])"
    with own_run() as (prefix, run):
        for what, script in (("dead", dead), ("alive", alive), ("link", link)):
            t = subjects(c, "last_n")
            tr = Tracer(["-m", "dev", "-p", str(t.pid), "-o", os.path.join(c.dir, what + ".pftrace")],
                        prefix=prefix + ["python3", "-c", script])
            s, out, err = run_tool(["status", "--tracer", str(tr.p.pid)], prefix=prefix, timeout=20) if what == "dead" else (0, "", "")
            equal(s, 0, "status: " + err)
            equal("no socket for" in tr.text(), what != "dead", what + ": " + tr.text())
            t.go()
            t.read()
            t.end()
            equal(tr.wait(), 0, what)
            equal(os.path.lexists(run + "/montrace-bpf/%d.sock" % tr.p.pid), what != "dead", what + ": left over")
            need(not os.path.exists(run + "/trap"), "made through a link")


def test_flight_which_tracer(c):
    """None, one, several; by pid of the tracer, by pid of the target; all with one clear line."""
    with own_run() as (prefix, run):
        a, b, free = subjects(c, "last_n"), recorder(c, "jobs", "1", "5"), recorder(c, "jobs", "1", "5")

        def tool(*args, want=0):
            s, out, err = run_tool(list(args), prefix=prefix)
            equal(s, want, "%r: %s" % (args, err))
            return err if want else out

        for verb in ("tail", "stacks", "snapshot", "status"):
            lib.one_error_line(tool(verb, want=1), "no tracer is running")
        t1 = Tracer(["-m", "dev", "-p", str(a.pid), "-o", c.dir + "/1.pftrace"], prefix=prefix)
        need("tracer      %d" % t1.p.pid in tool("status"), "the only one")
        t2 = Tracer(["-m", "dev", "--naming", "plain", "-p", str(b.pid), "-o", c.dir + "/2.pftrace"], prefix=prefix)
        err = tool("status", want=1)
        lib.one_error_line(err, "several", str(t1.p.pid), str(t2.p.pid))
        for tr in (t1, t2):
            need("tracer      %d" % tr.p.pid in tool("status", "--tracer", str(tr.p.pid)), "by pid")
            sock = "/run/montrace-bpf/%d.sock" % tr.p.pid
            need("tracer      %d" % tr.p.pid in tool("status", "--tracer", sock), "by path")
        lib.one_error_line(tool("status", "--tracer", "999999", want=1), "999999")
        b.go()
        b.read()
        wait_for("stacks", lambda: len(rows(tool("stacks", "-p", str(b.pid), "--json"))) == 2)
        need("no span is open" in tool("stacks", "-p", str(a.pid)), "of the first one's target")
        lib.one_error_line(tool("stacks", "-p", str(b.pid), "--tracer", str(t1.p.pid), want=1), "process %d is not traced" % b.pid)
        # Nobody traces this one: attach for a moment. What it entered before is not known, and that is said.
        free.go()
        free.read()
        start = time.time()
        s, out, err = run_tool(["stacks", "-p", str(free.pid), "-d", "200ms"], prefix=prefix)
        equal((s, out), (0, ""), "stacks of one that nobody traces: " + err)
        lib.one_error_line(err, "not known")
        need(0.2 < time.time() - start, "did not listen")
        for t in (a, b, free):
            t.end()
        equal((t1.wait(), t2.wait()), (0, 0), "exit status")


# ---- snapshot -o ----------------------------------------------------------------------------------------


def test_flight_snapshot_output(c):
    """Relative to who asks, never over anything, the caller's, and not there at all if it failed."""
    t = recorder(c, "jobs", "1", "5")
    tr = tracer(c, t.pid)
    d = os.path.join(c.dir, "here")
    os.mkdir(d)
    who = ["--tracer", str(tr.p.pid)]

    def snap(path, want, env=None, args=()):
        s, out, err = run_tool(["snapshot", "-o", path] + who + list(args), cwd=d, env=env)
        equal(s, want, "%s: %s" % (path, err))
        return err if want else out

    need(snap("a.pftrace", 0).startswith("a.pftrace: "), "answer")
    check(d + "/a.pftrace")
    content = open(d + "/a.pftrace", "rb").read()
    lib.one_error_line(snap("a.pftrace", 1), "exists")
    lib.one_error_line(snap("./a.pftrace", 1), "exists")
    equal(open(d + "/a.pftrace", "rb").read(), content, "overwritten")
    os.symlink("nowhere", d + "/dangling")
    lib.one_error_line(snap("dangling", 1), "dangling")
    os.symlink("a.pftrace", d + "/link")
    lib.one_error_line(snap("link", 1), "link")
    lib.one_error_line(snap("none/x", 1), "none/x: No such file")
    lib.one_error_line(snap("/dev/null", 1), "/dev/null")
    r = rows(snap("b.pftrace", 0, env={"SUDO_UID": "65534", "SUDO_GID": "65533"}, args=["--json"]))[0]
    st = os.stat(d + "/b.pftrace")
    equal((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode), st.st_size), (65534, 65533, 0o640, r["bytes"]), "for the user")
    equal(sorted(os.listdir(d)), ["a.pftrace", "b.pftrace", "dangling", "link"], "left over")
    t.end()
    tr.wait()
    t = recorder(c, "jobs", "1", "5")
    tr = Tracer(["-m", "dev", "-p", str(t.pid), "-o", c.dir + "/x.pftrace"])
    who = ["--tracer", str(tr.p.pid)]
    lib.one_error_line(snap("c.pftrace", 1), "-F")
    equal(sorted(os.listdir(d)), ["a.pftrace", "b.pftrace", "dangling", "link"], "left over")
    t.end()
    tr.wait()
