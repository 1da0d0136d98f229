# SPDX-License-Identifier: BSD-3-Clause
"""Surroundings and targets that mean harm. One clear line each; nothing outside the directory is touched."""

import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time

import lib
from lib import Target, Tracer, dump, equal, need, run_tool
from test_processes import files, good, library, names, processes, trace, values

NOBODY = 65534


def ticks(c):
    return Target([c.targets["procs"], "ticks", "3"])


# ---- Directories ----------------------------------------------------------------------------------------


def refused(c, base, *words):
    """By pid: one line before anything is traced. By command: it runs, and the failure is told."""
    t = ticks(c)
    status, _, err = run_tool(["-p", str(t.pid), "--directory", base, "--execution-id", "e", "-d", "3"])
    equal(t.end(), 0, "exit status of the target")
    equal(status, 1, "exit status: " + err)
    # What is attached is told before; what went wrong is one line.
    wrong = [l for l in err.splitlines() if "error:" in l]
    equal(len(wrong), 1, "lines of error: " + err)
    for w in words:
        need(w in wrong[0], "%r is not in %r" % (w, wrong[0]))
    status, _, err = run_tool(["--directory", base, "--execution-id", "e", "--", c.targets["short"]])
    equal(status, 1, "exit status of the command: " + err)
    equal(len([l for l in err.splitlines() if "error:" in l]), 1, "lines of error: " + err)


def snapshot(directory):
    return sorted((p, os.lstat(p).st_mode, os.lstat(p).st_uid, os.lstat(p).st_size) for p in files(directory))


def test_directory_symlinks(c):
    """The trace directory of another's making, executions, the execution directory: no link is followed."""
    victim = c.dir + "/victim"
    os.makedirs(victim + "/executions/e")
    with open(victim + "/executions/e/procs.pftrace", "w") as f:
        f.write("precious")
    before = snapshot(victim)
    os.mkdir(c.dir + "/a")
    os.symlink(victim + "/executions", c.dir + "/a/executions")
    refused(c, c.dir + "/a", "executions", "link")
    os.makedirs(c.dir + "/b/executions")
    os.symlink(victim + "/executions/e", c.dir + "/b/executions/e")
    refused(c, c.dir + "/b", "/e", "link")
    os.symlink(victim, c.dir + "/s")
    os.lchown(c.dir + "/s", NOBODY, NOBODY)
    refused(c, c.dir + "/s", "/s", "link")
    equal(snapshot(victim), before, "the victim's files")
    equal(files(c.dir + "/a") + files(c.dir + "/b"), [], "files left behind")


def test_directory_of_others(c):
    """Directories that belong to someone else, or that anybody may write to."""
    for where, change in (("", "own"), ("/executions", "own"), ("/executions/e", "own"), ("/executions", "mode"),
                          ("/executions/e", "mode")):
        base = c.dir + "/d"
        os.makedirs(base + "/executions/e")
        if change == "own":
            os.chown(base + where, NOBODY, NOBODY)
        else:
            os.chmod(base + where, 0o777)
        refused(c, base, base + where)
        equal(files(base), [], "files left behind")
        lib.remove(base)


def test_latest_in_the_way(c):
    """latest as a link elsewhere is replaced, not followed; as a file or directory it stays; the trace is fine."""
    victim = c.dir + "/victim"
    os.mkdir(victim)
    for kind in ("link", "dangling", "file", "directory"):
        base = c.dir + "/" + kind
        os.makedirs(base + "/executions")
        latest = base + "/executions/latest"
        if kind == "file":
            open(latest, "w").close()
        elif kind == "directory":
            os.mkdir(latest)
        else:
            os.symlink(victim if kind == "link" else "/none/at/all", latest)
        t = ticks(c)
        tr = Tracer(["-p", str(t.pid), "--directory", base, "--execution-id", "e"])
        t.go()
        t.read()
        t.end()
        equal(tr.wait(), 0, "exit status: " + tr.text())
        equal(values(base + "/executions/e/procs.pftrace"), [0, 1, 2], "ticks")
        if kind in ("link", "dangling"):
            equal(os.readlink(latest), "e", "latest")
        else:
            need(not os.path.islink(latest), "latest was replaced")
    equal(os.listdir(victim), [], "the victim's directory")


def everything(directory):
    """The directory and all that is in it, links not followed."""
    found = [directory]
    for at, dirs, fs in os.walk(directory):
        found += [os.path.join(at, n) for n in dirs + fs]
    return found


def test_umask(c):
    """umask 0: nobody else may read or write what is made."""
    t = ticks(c)
    p = subprocess.Popen(["sh", "-c", 'umask 0; exec "$@"', "sh", lib.TOOL, "-p", str(t.pid), "--directory", c.dir + "/d",
                          "-d", "1"], stderr=subprocess.PIPE)
    t.go()
    t.read()
    equal(p.wait(20), 0, "exit status")
    t.end()
    made = [p for p in everything(c.dir + "/d") if not os.path.islink(p)]
    equal(len(made), 4, "made: %r" % made)
    for p in made:
        equal(os.stat(p).st_mode & 0o027, 0, "mode %o of %s" % (os.stat(p).st_mode, p))
    out = c.dir + "/o.pftrace"
    status, _, err = run_tool(["-o", out, "--", "sh", "-c", "umask 0; " + c.targets["short"]])
    equal(status, 0, err)
    equal(os.stat(out).st_mode & 0o027, 0, "mode %o of %s" % (os.stat(out).st_mode, out))


def test_files_belong_to_caller(c):
    """As root by sudo: directories, the link and files belong to who called, of -o and merge too."""
    t = ticks(c)
    env = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
    base = c.dir + "/d"
    os.mkdir(base)
    os.chown(base, NOBODY, NOBODY)
    tr = Tracer(["-p", str(t.pid), "--directory", base], env=env)
    t.go()
    t.read()
    t.end()
    equal(tr.wait(), 0, "exit status: " + tr.text())
    out = c.dir + "/o.pftrace"
    status, _, err = run_tool(["-o", out, "--", c.targets["short"]], env=env)
    equal(status, 0, "exit status: " + err)
    merged = c.dir + "/m.pftrace"
    status, _, err = run_tool(["merge", out, "-o", merged], env=env)
    equal(status, 0, "exit status: " + err)
    made = everything(base)
    equal(len(made), 5, "made: %r" % made)
    for p in made + [out, merged]:
        equal((os.lstat(p).st_uid, os.lstat(p).st_gid), (NOBODY, NOBODY), "owner of " + p)


# ---- Names ----------------------------------------------------------------------------------------------

BAD_NAMES = ("../../etc/x", "/etc/passwd", "..", ".", ".hidden", "-rf", "x" * 4096, "a\x1b[31mb\nc\x07", "\xff\xfe\x80",
             "a/b/c", "con\u202etrol", " ")


def stays_inside(c):
    for at, dirs, fs in os.walk(c.dir + "/d"):
        for n in dirs + fs:
            need(len(os.fsencode(n)) < 256, "name of %d bytes" % len(n))
            need(not re.search(rb"[\x00-\x1f\x7f/]", os.fsencode(n)), "control characters in %r" % n)
    for p in files(c.dir + "/d"):
        if not os.path.islink(p):
            need(re.fullmatch(re.escape(c.dir) + r"/d/executions/[^/]+/[^/]+\.pftrace", p), p)


def test_bad_names(c):
    """Names of the program, of the environment, of options: one file in its directory, always."""
    for n in BAD_NAMES:
        _, paths, text = trace(c, ["name", n])
        equal(len(files(c.dir + "/d")), 1, "files for %r: %r" % (n, files(c.dir + "/d")))
        need("\x1b" not in text, "an escape in %r" % text)
        stays_inside(c)
        good(paths[0])
        lib.remove(c.dir + "/d")
    for n in (BAD_NAMES[0], BAD_NAMES[2], BAD_NAMES[6], BAD_NAMES[7]):
        if len(n) > 1000:
            status, _, err = run_tool(["--name", n, "--directory", c.dir + "/d", "--", c.targets["short"]])
            equal(status, 1, "exit status: " + err)
            need("--name: the name is too long" in err, err)
            n = n[:1000]
        _, paths, _ = trace(c, ["execid", n], env={"HYPERACTOR_PROCESS_NAME": n, "HYPERACTOR_EXECUTION_ID": n})
        stays_inside(c)
        equal(len(paths), 1, "files for %r" % n)
        lib.remove(c.dir + "/d")
        _, paths, _ = trace(c, ["ticks"], ["--name", n.replace("%", ""), "--execution-id", n])
        stays_inside(c)
        lib.remove(c.dir + "/d")
    need(not os.path.exists("/etc/x.pftrace") and not os.path.exists(c.dir + "/etc"), "a file outside")


def test_many_names(c):
    """A process that names itself anew 1,000 times a second: one file, named as it is at last."""
    _, paths, text = trace(c, ["process_names", "500"])
    equal(names(c.dir + "/d"), ["name 499.pftrace"], "files")
    equal(values(paths[0]), list(range(500)), "ticks")
    need(", 0 lost," in text, text)


def test_many_executions(c):
    """A process that changes its execution id 1,000 times: bounded directories, nothing lost."""
    _, _, text = trace(c, ["execids", "1000"])
    found = [n for n in os.listdir(c.dir + "/d/executions") if n != "latest"]
    need(len(found) <= 65, "%d directories" % len(found))
    paths = files(c.dir + "/d")
    equal(len(paths), 1, "files")
    equal(values(paths[0]), list(range(1000)), "ticks")


def test_escapes(c):
    """Terminal escapes in names and messages do not reach a terminal by list, dump, summary or messages."""
    _, paths, text = trace(c, [], ["-m", "dev", "--naming", "user"], program="escapes")
    stays_inside(c)
    said = [text]
    for args in (["dump", paths[0]], ["dump", "--json", paths[0]], ["summary", paths[0]], ["summary", "--json", paths[0]],
                 ["list", c.targets["escapes"]]):
        status, out, err = run_tool(args)
        equal(status, 0, "exit status of %r: %s" % (args, err))
        said += [out, err]
    weird = os.path.join(c.dir, "p\x1b[31m\x07\n")
    shutil.copy(c.targets["plain"], weird)
    t = Target([weird])
    for args in (["list", "-p", str(t.pid)], ["list", weird], ["-p", str(t.pid), "-o", c.dir + "/\x1b[0m"],
                 ["--filter", "\x1b[31m=loud", "-p", "1"], ["-m", "\x1b[31m", "-p", "1"], ["\x1b[31m"], ["dump", weird]):
        _, out, err = run_tool(args)
        said += [out, err]
    t.end()
    for s in said:
        need(not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", s), "control characters in %r" % s[:500])
    equal(len([p for p in processes(good(paths[0]))]), 1, "processes")


# ---- Disks and pipes ------------------------------------------------------------------------------------


def test_disk_full_of_command(c):
    """The disk is full in the middle of a command: exit 1, one line; the command ends as it would; the file opens."""
    mnt = c.dir + "/small"
    os.mkdir(mnt)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", mnt]).returncode:
        raise lib.Skipped("cannot mount a small file system")
    try:
        status, _, err = run_tool(["--directory", mnt + "/d", "--", "sh", "-c",
                                   "%s 1 200000; sleep 1; touch %s/end" % (c.targets["short"], c.dir)])
        equal(status, 1, "exit status: " + err)
        wrong = [l for l in err.splitlines() if "error:" in l]
        equal(len(wrong), 1, "lines of error: " + err)
        need("No space left" in wrong[0], wrong[0])
        need(os.path.exists(c.dir + "/end"), "the command was ended")
        paths = files(mnt)
        equal(len(paths), 1, "files")
        need(good(paths[0], allow_open=True).instants > 100, "nothing in the file")
    finally:
        subprocess.run(["umount", mnt])


def test_closed_pipe(c):
    """-o - into a pipe whose reader goes away: exit 1, one line."""
    t = Target([c.targets["count"], "1", "1000", "spin"])
    t.go()
    p = subprocess.Popen([lib.TOOL, "-p", str(t.pid), "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(len(p.stdout.read(10)), 10, "bytes read")
    p.stdout.close()
    try:
        status = p.wait(20)
    except subprocess.TimeoutExpired:
        p.kill()
        raise lib.Failed("it goes on")
    err = p.stderr.read().decode()
    equal(status, 1, "exit status: " + err)
    wrong = [l for l in err.splitlines() if "error:" in l]
    equal(len(wrong), 1, "lines of error: " + err)
    need("Broken pipe" in wrong[0] and "standard output" in wrong[0], wrong[0])
    t.go()
    t.read()
    equal(t.end(), 0, "exit status of the target")


# ---- Lies -----------------------------------------------------------------------------------------------


def told(text, words):
    m = re.search(r"lost (\d+): " + words, text)
    return int(m.group(1)) if m else 0


def test_lies(c):
    """Wrong lengths, wrong pointers, wrong records: lost or malformed, counted; what is true arrives."""
    path = c.dir + "/t.pftrace"
    t = Target([c.targets["liar"], "20"])
    tr = Tracer(["-v", "-p", str(t.pid), "-o", path])
    t.go()
    truth = t.read()
    equal(t.end(), 0, "exit status of the target")
    equal(tr.wait(), 0, "exit status: " + tr.text())
    text = tr.text()
    k = good(path, "truth")
    equal([a["i"] for a in k.args_out], list(range(truth["honest"])), "true events")
    equal(told(text, "records of impossible size"), truth["sizes"], "impossible sizes: " + text)
    equal(told(text, "records that could not be read"), truth["reads"], "unreadable: " + text)
    delivered = int(text.split(" hits delivered")[0].split()[-1])
    lost = int(re.search(r", (\d+) lost, ", text).group(1))
    equal(delivered + lost, truth["hits"], "delivered + lost: " + text)
    equal(k.lost, lost, "losses in the file")
    return "%d lies, %d of them lost or malformed" % (truth["hits"] - truth["honest"], lost)


def note_ranges(path):
    out = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE).stdout.decode()
    return [(int(o, 16), int(s, 16)) for o, s in
            re.findall(r"\.note\.(?:montrace|stapsdt)\s+NOTE\s+\S+\s+(\S+)\s+(\S+)", out)]


def damage(path, seed):
    """Rewrites the notes on disk: lengths, names, addresses."""
    r = random.Random(seed)
    with open(path, "r+b") as f:
        for offset, size in note_ranges(path):
            for _ in range(1 + size // 60):
                f.seek(offset + r.randrange(size))
                f.write(bytes([r.randrange(256)]))


def test_notes_rewritten(c):
    """A library whose notes are rewritten while it is mapped, before and after the tracer reads them."""
    so = library(c)
    ranges = note_ranges(so)
    need(len(ranges) == 2, "notes: %r" % ranges)
    for i in range(20 if c.long else 6):
        mine = c.dir + "/lib%d.so" % i
        shutil.copy(so, mine)
        t = Target([c.targets["procs"], "lib_ticks", mine])
        if i % 2:
            damage(mine, i)
        tr = Tracer(["-v", "-p", str(t.pid), "--directory", c.dir + "/d%d" % i])
        damage(mine, 100 + i)
        tr2 = Tracer(["-p", str(t.pid), "--directory", c.dir + "/e%d" % i])
        t.go()
        t.read()
        equal(t.end(), 0, "exit status of the target")
        equal((tr.wait(), tr2.wait()), (0, 0), "exit status: " + tr.text() + tr2.text())
        for d in ("d", "e"):
            for p in files(c.dir + "/%s%d" % (d, i)):
                good(p)
        if not i % 2:
            equal([a["i"] for a in good(files(c.dir + "/d%d" % i)[0], "late").args_out], list(range(5)),
                  "events of the library")


def test_notes_damaged(c):
    """A program with damaged notes: listed and traced as far as they go; neither tracer nor program falls."""
    for i in range(60 if c.long else 12):
        exe = c.dir + "/x%d" % i
        shutil.copy(c.targets["procs"], exe)
        damage(exe, i)
        status, out, err = run_tool(["list", exe])
        need(status in (0, 1), "list: exit status %d: %s" % (status, err))
        t = Target([exe, "ticks", "3"])
        tr = Tracer(["-p", str(t.pid), "--directory", c.dir + "/d"], quiet=True)
        end = time.time() + 20
        while time.time() < end and tr.p.poll() is None and "armed" not in tr.text():
            time.sleep(0.01)
        t.go()
        t.read()
        equal(t.end(), 0, "exit status of the target")
        need(tr.wait(20) in (0, 1), "exit status %d: %s" % (tr.p.returncode, tr.text()))
        need("Sanitizer" not in tr.text(), tr.text())
        for p in files(c.dir + "/d"):
            need(good(p).instants in (0, 3), "%d events" % good(p).instants)  # texts may be damaged, numbers not
        lib.remove(c.dir + "/d")
        os.unlink(exe)


CALLSITE, TEXT = 1, 2  # types of notes (montrace.h)
THUNK_AT = 32          # in struct montrace_note


def montrace_notes(path):
    """(offset of the note in the file, offset of its description, type)"""
    offset, size = note_ranges(path)[0]
    with open(path, "rb") as f:
        f.seek(offset)
        data = f.read(size)
    at, found = 0, []
    while at + 12 <= size:
        namesz, descsz, kind = struct.unpack_from("<III", data, at)
        desc = (at + 12 + namesz + 3) & ~3
        found.append((offset + at, offset + desc, kind))
        at = (desc + descsz + 3) & ~3
    return found


def rewrite(path, *changes):
    with open(path, "r+b") as f:
        for at, data in changes:
            f.seek(at)
            f.write(data)


def listed(path):
    status, out, err = run_tool(["list", "--json", path])
    equal(status, 0, "list: " + err)
    return json.loads(out.splitlines()[-1])


def test_notes_lying(c):
    """Sizes that reach far out lose one note and no other. Thunks that are code: nothing is put there."""
    exe = c.dir + "/procs"
    shutil.copy(c.targets["procs"], exe)
    whole = listed(exe)
    notes = montrace_notes(exe)
    equal(sum(k == CALLSITE for _, _, k in notes), whole["callsites"], "callsites in the notes")
    first = next(n for n in notes if n[2] == CALLSITE)
    for i, lie in enumerate((0xffffffff, 0xfffffff0, 0x7fffffff, 1 << 20)):
        for field in (0, 4):  # length of the owner's name, of the description
            lied = "%s-%d-%d" % (exe, i, field)
            shutil.copy(exe, lied)
            rewrite(lied, (first[0] + field, struct.pack("<I", lie)))
            got = listed(lied)
            equal(got["callsites"], whole["callsites"] - 1, "callsites with a size of %#x" % lie)
            need(got["malformed"] > 0, "nothing is said of a size of %#x" % lie)
    symbols = subprocess.run(["nm", exe], stdout=subprocess.PIPE).stdout.decode()
    code = int(re.search(r"^([0-9a-f]+) . ticks$", symbols, re.M).group(1), 16)
    rewrite(exe, *((desc + THUNK_AT, struct.pack("<Q", code + 1)) for _, desc, k in notes if k == CALLSITE))
    equal(listed(exe)["callsites"], 0, "callsites whose thunks are code")
    t = Target([exe, "ticks", "3"])
    status, _, err = run_tool(["-p", str(t.pid), "--directory", c.dir + "/d", "-d", "1"])
    equal(status, 1, "exit status: " + err)
    t.go()
    t.read()
    equal(t.end(), 0, "exit status of the target")
