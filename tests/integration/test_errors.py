# SPDX-License-Identifier: BSD-3-Clause
"""Bad input gets one clear line, and the right exit status."""

import os
import signal
import subprocess
import time

import lib
from lib import Target, Tracer, check, equal, need, one_error_line, run_tool


def fails(args, status, *words, env=None):
    got, _, err = run_tool(args, env=env)
    equal(got, status, "exit status of %r (%s)" % (args, err.strip()))
    one_error_line(err, *words)


def test_no_such_pid(c):
    p = subprocess.Popen(["true"])
    p.wait()
    fails(["-p", str(p.pid), "-o", c.dir + "/t"], 1, "no process %d" % p.pid)
    need(not os.path.exists(c.dir + "/t"), "a file was left behind")


def test_pid_zombie(c):
    """A process that has ended, and that nobody has waited for."""
    p = subprocess.Popen(["true"])
    os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
    fails(["-p", str(p.pid), "-o", c.dir + "/t"], 1, "no process %d" % p.pid)
    fails(["list", "-p", str(p.pid)], 1, "process %d: does not exist" % p.pid)
    need(not os.path.exists(c.dir + "/t"), "a file was left behind")
    p.wait()


def test_pid_without_probes(c):
    t = Target([c.targets["plain"]])
    fails(["-p", str(t.pid), "-o", c.dir + "/t"], 1, "no montrace probes", "docs/probes.md")
    need(not os.path.exists(c.dir + "/t"), "a file was left behind")
    t.end()


def test_not_permitted(c):
    """Without rights: names the missing capabilities."""
    t = Target([c.targets["count"], "1", "10"])
    tool = os.path.join(c.dir, "montrace-bpf")
    subprocess.check_call(["cp", lib.TOOL, tool])
    os.chmod(c.dir, 0o755)
    os.chmod(os.path.dirname(c.dir), 0o755)
    p = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", tool, "-p", str(t.pid),
                        "-o", "/tmp/never.pftrace"], stderr=subprocess.PIPE)
    equal(p.returncode, 1, "exit status")
    one_error_line(p.stderr.decode(), "not permitted", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE")
    t.end()


def test_hold_without_kill(c):
    """--hold without CAP_KILL would stop processes that it cannot let go: it is refused."""
    t = Target([c.targets["count"], "1", "10"])
    p = subprocess.run(["setpriv", "--bounding-set", "-kill", "--inh-caps", "-all", lib.TOOL, "-p", str(t.pid), "--follow",
                        "--hold", "-d", "1", "-o", c.dir + "/t.pftrace"], stderr=subprocess.PIPE)
    equal(p.returncode, 1, "exit status")
    one_error_line(p.stderr.decode(), "--hold", "CAP_KILL")
    t.end()


def test_thread_id_given(c):
    p = subprocess.Popen(["python3", "-c",
                          "import threading,time;t=threading.Thread(target=time.sleep,args=(5,));t.start();"
                          "print(t.native_id,flush=True);time.sleep(5)"], stdout=subprocess.PIPE)
    tid = int(p.stdout.readline())
    fails(["-p", str(tid), "-o", c.dir + "/t"], 1, "is a thread of process %d" % p.pid)
    p.kill()
    p.wait()


def test_output_directory_missing(c):
    t = Target([c.targets["count"], "1", "10"])
    fails(["-p", str(t.pid), "-o", c.dir + "/none/t.pftrace"], 1, c.dir + "/none/t.pftrace", "No such file")
    t.end()


def test_output_not_writable(c):
    t = Target([c.targets["count"], "1", "10"])
    fails(["-p", str(t.pid), "-o", "/proc/t.pftrace"], 1, "/proc/t.pftrace")
    fails(["-p", str(t.pid), "--directory", "/proc/x"], 1, "/proc")
    t.end()


def test_output_exists(c):
    path = c.dir + "/t.pftrace"
    with open(path, "w") as f:
        f.write("precious")
    t = Target([c.targets["count"], "1", "10"])
    fails(["-p", str(t.pid), "-o", path], 1, path, "never overwritten")
    equal(open(path).read(), "precious", "the file")
    t.end()


def test_disk_full(c):
    """Ends with exit 1 and one line; the file opens."""
    mnt = c.dir + "/small"
    os.mkdir(mnt)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", mnt]).returncode:
        raise lib.Skipped("cannot mount a small file system")
    try:
        t = Target([c.targets["count"], "2", "1000", "spin"])
        tr = Tracer(["-p", str(t.pid), "-o", mnt + "/t.pftrace"])
        t.go()
        equal(tr.wait(20), 1, "exit status")
        last = [l for l in tr.text().splitlines() if "writing" in l and "failed" in l]
        equal(len(last), 1, "lines about it in %r" % tr.text())
        need("No space left" in last[0], last[0])
        got = check(mnt + "/t.pftrace", "--allow-open")
        need(got["instants"] > 100, "nothing in the file")
        t.go()
        t.read()
        equal(t.end(), 0, "exit status of the target")
    finally:
        subprocess.run(["umount", mnt])


def test_bad_options(c):
    for args, word in (
            (["--nonsense"], "--nonsense"), (["-p"], "-p"), (["-p", "abc"], "abc"), (["-p", "0"], "-p 0"),
            (["-p", "1", "-d", "soon"], "soon"), (["-p", "1", "-m", "loud"], "loud"),
            (["-p", "1", "--ring", "lots"], "lots"), ([], "nothing to trace"), (["frobnicate"], "frobnicate"),
            (["dump"], "trace file"), (["list"], "list what"), (["-p", "1", "--naming", "x"], "--naming x")):
        fails(args, 2, word)


def test_bad_filter(c):
    t = Target([c.targets["count"], "1", "10"])
    fails(["-p", str(t.pid), "--filter", "info,a=loud", "-o", c.dir + "/t"], 1, "--filter", "unknown level", "at `loud`")
    t.end()


def test_mode_user_hides_all(c):
    t = Target([c.targets["count"], "1", "10"])
    fails(["-p", str(t.pid), "-m", "user", "-o", c.dir + "/t"], 1, "hides all 2 callsites", "-m dev")
    fails(["-p", str(t.pid), "-o", c.dir + "/t"], 1, "hides all 2 callsites", env={"PERFETTO_TRACE_MODE": "user"})
    need(not os.path.exists(c.dir + "/t"), "a file was left behind")
    t.end()


def test_mode_off(c):
    """Nothing is attached, no file, no directory."""
    t = Target([c.targets["count"], "1", "10"])
    status, _, err = run_tool(["-p", str(t.pid), "-m", "off", "--directory", c.dir + "/d"])
    equal(status, 0, "exit status")
    need("mode off" in err, err)
    need(not os.path.exists(c.dir + "/d"), "a directory was made")
    t.end()


def test_bad_environment_mode(c):
    """A bad value is reported and the default used."""
    path = c.dir + "/t.pftrace"
    t = Target([c.targets["count"], "1", "10"])
    tr = Tracer(["-p", str(t.pid), "-o", path], env={"PERFETTO_TRACE_MODE": "loud"})
    need("unknown trace mode: loud" in tr.text(), tr.text())
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    check(path)


def test_dump_of_no_trace(c):
    path = c.dir + "/x"
    with open(path, "wb") as f:
        f.write(b"this is not a trace at all" * 10)
    for cmd in ("dump", "summary"):
        status, _, err = run_tool([cmd, path])
        equal(status, 1, "exit status of " + cmd)
        need(err.startswith("montrace-bpf: ") and path in err, err)
    status, _, err = run_tool(["dump", c.dir + "/none"])
    equal(status, 1, "exit status")
    one_error_line(err, c.dir + "/none", "No such file")


def test_list_of_no_elf(c):
    path = c.dir + "/x"
    with open(path, "w") as f:
        f.write("#!/bin/sh\n")
    fails(["list", path], 1, path, "ELF")


def test_quiet_in_a_pipe(c):
    """No progress line in a pipe; -q says nothing at all."""
    path = c.dir + "/t.pftrace"
    t = Target([c.targets["count"], "1", "1000"])
    tr = Tracer(["-q", "-p", str(t.pid), "-o", path, "-d", "1500ms"], quiet=True)
    time.sleep(0.7)
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status")
    equal(tr.text(), "", "output with -q")
    equal(check(path)["lost"], 0, "lost")


def test_progress_on_a_terminal(c):
    path = c.dir + "/t.pftrace"
    t = Target([c.targets["count"], "1", "1000", "spin"])
    t.go()
    p = subprocess.run(["script", "-qec", "%s -p %d -o %s -d 2" % (lib.TOOL, t.pid, path), "/dev/null"],
                       stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    text = p.stdout.decode(errors="replace")
    need("events/s" in text and "lost" in text and "\r" in text, "no progress line in %r" % text[-500:])
    t.go()
    t.read()
    t.end()
