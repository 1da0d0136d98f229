# SPDX-License-Identifier: BSD-3-Clause
"""The profile of PostgreSQL on a server of our own: what the trace says against the server's log and its own numbers."""

import glob
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time

import lib
from lib import Skipped, Tracer, check, dump, equal, need

PORT = "54871"  # the name of a socket: the server does not listen on the network
CONF = """listen_addresses = ''
unix_socket_directories = '%s'
port = %s
log_statement = all
log_line_prefix = '%%p '
log_checkpoints = on
log_connections = on
max_prepared_transactions = 2
log_min_messages = log
autovacuum = off
max_parallel_workers_per_gather = 0
shared_buffers = 16MB
fsync = off
full_page_writes = off
synchronous_commit = off
deadlock_timeout = 100ms
checkpoint_timeout = 1h
lc_messages = 'C'
"""


def bindir():
    """Of the newest server that is installed and has the probes."""
    dirs = glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/usr/pgsql-*/bin")
    dirs = [d for d in dirs if os.path.exists(d + "/postgres") and os.path.exists(d + "/pgbench")]
    if not dirs:
        raise Skipped("no PostgreSQL server (package postgresql)")
    best = max(dirs, key=lambda d: int(re.search(r"(\d+)/bin$", d)[1]))
    notes = subprocess.run(["readelf", "-nW", best + "/postgres"], stdout=subprocess.PIPE).stdout
    if b"statement__status" not in notes:
        raise Skipped("%s/postgres has no probes" % best)
    return best


class Server:
    """A server with a data directory of its own; `with` stops it and removes that."""

    def __init__(self):
        self.bin = bindir()
        try:
            self.user = pwd.getpwnam("postgres")
        except KeyError:
            self.user = pwd.getpwnam("nobody")
        self.dir = tempfile.mkdtemp(prefix="mt-pg-")
        os.chown(self.dir, self.user.pw_uid, self.user.pw_gid)
        self.log = os.path.join(self.dir, "log")
        self.data = os.path.join(self.dir, "data")
        self.p = None
        self.run(["initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-N"])
        with open(self.data + "/postgresql.conf", "a") as f:
            f.write(CONF % (self.dir, PORT))
        self.start()

    def popen(self, args, **kw):
        def become():
            os.setgroups([])
            os.setgid(self.user.pw_gid)
            os.setuid(self.user.pw_uid)
        return subprocess.Popen([os.path.join(self.bin, args[0])] + args[1:], preexec_fn=become, cwd=self.dir,
                                stdin=kw.pop("stdin", subprocess.DEVNULL), stdout=kw.pop("stdout", subprocess.PIPE),
                                stderr=kw.pop("stderr", subprocess.STDOUT),
                                env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": self.dir}, **kw)

    def run(self, args, ok=True):
        p = self.popen(args)
        out = p.communicate(timeout=120)[0].decode(errors="replace")
        need(p.returncode == 0 or not ok, "%s: %s" % (" ".join(args), out[-1000:]))
        return out

    def start(self):
        with open(self.log, "ab") as f:
            self.p = self.popen(["postgres", "-D", self.data], stdout=f, stderr=f)
        self.pid = self.p.pid
        end = time.time() + 60
        while self.popen(["pg_isready", "-h", self.dir, "-p", PORT, "-q"]).wait():
            need(time.time() < end and self.p.poll() is None, "the server does not start: " + self.log_text()[-1000:])
            time.sleep(0.05)

    def stop(self):
        if self.p and self.p.poll() is None:
            self.p.send_signal(2)  # fast shutdown
            try:
                self.p.wait(60)
            except subprocess.TimeoutExpired:
                self.p.send_signal(3)
                self.p.wait(30)

    def connection(self):
        return ["-h", self.dir, "-p", PORT, "-U", "postgres"]

    def sql(self, *commands, ok=True):
        """Each one a message of its own, on one connection."""
        args = ["psql", "-X", "-A", "-t", "-q"] + self.connection()
        for s in commands:
            args += ["-c", s]
        return self.run(args + ["postgres"], ok).strip()

    def session(self):
        """psql that is told commands as they come; `session_do` waits until they are done."""
        return self.popen(["psql", "-X", "-A", "-t", "-q"] + self.connection() + ["postgres"], stdin=subprocess.PIPE)

    def bench(self, *args):
        return self.run(["pgbench"] + self.connection() + ["-n"] + list(args) + ["postgres"])

    def log_text(self):
        with open(self.log, "rb") as f:
            return f.read().decode(errors="replace")

    def logged(self, since, what="statement"):
        """[(pid, text)] of the statements in the log behind position `since`."""
        text = self.log_text()[since:]
        return [(int(m[1]), m[2]) for m in re.finditer(r"^(\d+) LOG:  %s: (.*)$" % what, text, re.M)]

    def __enter__(self):
        return self

    def __exit__(self, *a):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


def session_do(p, text, mark="done"):
    """Sends it, and waits for its last line."""
    p.stdin.write(("%s\n\\echo %s\n" % (text, mark)).encode())
    p.stdin.flush()
    out = []
    while True:
        line = p.stdout.readline().decode()
        need(line, "psql ended: %r" % out)
        if line.strip() == mark:
            return out
        out.append(line.strip())


def trace(c, server, args, load, name="t"):
    """What is in the trace of what `load` does, but of other servers; where the log was, what load said, and the tool."""
    path = os.path.join(c.dir, name + ".pftrace")
    if os.path.exists(path):
        os.unlink(path)
    tr = Tracer(args + ["-v", "-o", path])
    since = len(server.log_text())
    got = load()
    time.sleep(0.2)
    equal(tr.stop(), 0, "exit status: " + tr.text())
    equal(check(path)["lost"], 0, "lost")
    pids = {int(x) for x in re.findall(r"^(\d+) LOG:", server.log_text(), re.M)} | children(server)
    rows = [o for o in dump(path) if o["type"] in ("slice", "instant", "counter") and o["pid"] in pids]
    return rows, since, got, tr.text()


def children(server):
    p = subprocess.run(["pgrep", "-P", str(server.pid)], stdout=subprocess.PIPE)
    return {int(x) for x in p.stdout.split()}


def named(rows, name, pid=None):
    """Whole spans and events: pieces that continue one are left out."""
    return [o for o in rows if o["name"] == name and not o["args"].get("continued") and pid in (None, o["pid"])]


def by_pid(pairs):
    r = {}
    for pid, text in pairs:
        r.setdefault(pid, []).append(text)
    return r


def texts(rows, pids):
    """What each of these backends was asked, in order."""
    return by_pid((o["pid"], o["args"]["text"]) for o in sorted(named(rows, "query"), key=lambda o: o["ts"])
                  if o["pid"] in pids)


SCRIPT = ["SELECT 40+2", "BEGIN", "SELECT 'caf\u00e9 \u2603'", "COMMIT", "SELECT 1/0", "SELEC 4", "BEGIN", "SELECT 6", "SELECT 2/0",
          "SELECT 7", "ROLLBACK", "SELECT g/(g-5) FROM generate_series(1,10) g ORDER BY 1 DESC",
          "DO $$ BEGIN PERFORM 1; BEGIN PERFORM 1/0; EXCEPTION WHEN others THEN NULL; END; PERFORM 2; END $$",
          "SELECT '%s'" % ("x" * 3000), "SELECT 1; SELECT 2", "SELECT 9"]


def script(server):
    p = server.popen(["psql", "-X", "-A", "-t", "-q", "-f", "-"] + server.connection() + ["postgres"], stdin=subprocess.PIPE)
    p.communicate("".join("%s \\g\n" % s.replace(";", "\\;") if "$$" not in s else s + ";\n" for s in SCRIPT).encode(), 60)


def test_postgresql_queries(c):
    """Each statement in the server's log is a span with its text, also after errors; what errors leave is over."""
    with Server() as s:
        for _ in range(10 if c.long else 2):
            rows, since, _, said = trace(c, s, ["--all", s.bin + "/postgres"], lambda: script(s))
            need("profile postgresql (it knows this program" in said, said)
            log = by_pid(s.logged(since))
            equal(len(log), 1, "backends in the log: %r" % log)
            pid = list(log)[0]
            want = list(log[pid])
            want.insert(SCRIPT.index("SELEC 4"), "SELEC 4 ") # the log has it as an error only
            equal(len(want), len(SCRIPT), "statements in the log: %r" % log)
            equal(texts(rows, {pid})[pid], [t.encode()[:1024].decode(errors="ignore") for t in want], "queries")
            queries = named(rows, "query", pid)
            need(max(o["depth"] for o in queries) <= 1, "queries lie in each other")
            need(all(o["dur"] is not None for o in queries), "a query has no end")
            order = sorted(queries, key=lambda o: o["ts"])
            need(all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(order, order[1:])), "queries overlap")
            equal(len(named(rows, "parse", pid)), len(SCRIPT), "parse")
            equal(len(named(rows, "abort", pid)), 4, "aborts")
            left = {n: len([o for o in named(rows, n, pid) if o["args"].get("end") == "left"])
                    for n in ("parse", "plan", "execute")}
            equal(left, {"parse": 1, "plan": 3, "execute": 1}, "left by errors")
            # the first is that of the connection; the two transaction blocks are one each
            equal(len(named(rows, "transaction", pid)), 1 + len(SCRIPT) - 2 - 4, "transactions")


def test_postgresql_clients(c):
    """8 clients, some that were there before and some that come and go: every backend, every statement."""
    note = ""
    with Server() as s:
        s.bench("-i", "-q", "-s", "1")
        for how in range(10 if c.long else 2):
            old = s.session()
            session_do(old, "SELECT 'before';")

            def load():
                session_do(old, "SELECT 'an old backend';")
                s.bench("-c", "8", "-j", "2", "-t", "100")
                s.bench("-c", "4", "-j", "2", "-t", "20", "-C")
                session_do(old, "SELECT 'still there';")

            rows, since, _, _ = trace(c, s, ["--all", s.bin + "/postgres"], load)
            old.communicate(b"\\q\n", 30)
            log = by_pid(s.logged(since))
            # pgbench looks at the tables on one more connection
            equal(len(log), 1 + (8 + 1) + (4 * 20 + 1), "backends in the log")
            got = texts(rows, set(log))
            equal({p: len(v) for p, v in got.items()}, {p: len(v) for p, v in log.items()}, "statements per backend")
            equal(got, log, "texts")
            note = "%d statements, %d backends" % (sum(map(len, log.values())), len(log))
        # -p of the postmaster: those that begin from then on
        rows, since, _, _ = trace(c, s, ["-p", str(s.pid), "--follow"],
                                  lambda: s.bench("-c", "8", "-j", "2", "-t", "20", "-C"))
        log = by_pid(s.logged(since))
        equal(texts(rows, set(log)), log, "texts, children of the postmaster")
    return note


def test_postgresql_prepared(c):
    """Prepared statements and the extended protocol: their texts too, a span for each message of the client."""
    with Server() as s:
        s.bench("-i", "-q", "-s", "1")
        for mode, per_run, per_statement in (("extended", 3, 0), ("prepared", 2, 1)) * (10 if c.long else 1):
            rows, since, _, _ = trace(c, s, ["--all", s.bin + "/postgres"],
                                      lambda: s.bench("-c", "2", "-t", "25", "-M", mode))
            log = by_pid(s.logged(since, r"execute [^:]*"))
            equal(len(log), 2, "backends")
            got = texts(rows, set(log))
            for pid, executed in log.items():
                equal(len(executed), 25 * 7, "executed")
                want = per_run * len(executed) + per_statement * len(set(executed))
                equal(len(got[pid]), want, mode + ": parse, bind and execute")
                equal(set(got[pid]), set(executed), "texts")


def test_postgresql_arguments(c):
    """Every argument that the profiles use, against what the server says."""
    for _ in range(10 if c.long else 1):
        arguments(c)


def arguments(c):
    with Server() as s:
        s.sql("CREATE TABLE big AS SELECT g AS a, 'text ' || g AS b FROM generate_series(1, 40000) g",
              "CREATE TABLE l (a int)", "VACUUM big", "CHECKPOINT")
        s.stop()
        s.start()
        db, rel, pages, lock = [int(x) for x in s.sql(
            "SELECT (SELECT oid FROM pg_database WHERE datname = 'postgres'), pg_relation_filenode('big'), "
            "pg_relation_size('big') / 8192, 'l'::regclass::oid").split("|")]
        first, second = s.session(), s.session()
        pids = [int(session_do(x, "SELECT pg_backend_pid();")[0]) for x in (first, second)]

        def load():
            r = {}
            s.sql("SELECT count(*) FROM big")
            s.sql("SET work_mem = '64kB'", "SELECT count(*) FROM (SELECT * FROM big ORDER BY b, a DESC OFFSET 0) x")
            r["sort"] = s.sql("SET work_mem = '64kB'", "EXPLAIN (ANALYZE, TIMING off) SELECT * FROM big ORDER BY b, a DESC")
            session_do(first, "BEGIN; LOCK TABLE l;")
            second.stdin.write(b"INSERT INTO l VALUES (1);\n")
            second.stdin.flush()
            wait_for_lock(s, 1)
            session_do(first, "COMMIT;")
            session_do(second, "")
            session_do(first, "BEGIN; SELECT pg_advisory_xact_lock(1);")
            session_do(second, "BEGIN; SELECT pg_advisory_xact_lock(2);")
            first.stdin.write(b"SELECT pg_advisory_xact_lock(2);\n")
            first.stdin.flush()
            wait_for_lock(s, 1)
            session_do(second, "SELECT pg_advisory_xact_lock(1);\nROLLBACK;")
            session_do(first, "ROLLBACK;")
            s.sql("UPDATE big SET a = a + 1", "SELECT pg_switch_wal()", "CHECKPOINT")
            return r

        rows, since, r, said = trace(c, s, ["--all", s.bin + "/postgres", "--profile", "postgresql", "--profile",
                                            "postgresql-buffers"], load)
        for p in (first, second):
            p.communicate(b"\\q\n", 30)
        need("profile postgresql:" in said and "profile postgresql-buffers:" in said, said)
        log = s.log_text()[since:]
        locks(rows, pids, db, lock)
        sorts(rows, r["sort"])
        checkpoints(rows, log)
        buffers(rows, s, db, rel, pages, by_pid(s.logged(since)))


def wait_for_lock(s, n):
    end = time.time() + 20
    while int(s.sql("SELECT count(*) FROM pg_locks WHERE NOT granted")) < n:
        need(time.time() < end, "nobody waits for a lock")
        time.sleep(0.02)


def locks(rows, pids, db, lock):
    waits = [o for o in named(rows, "lock wait") if o["pid"] in pids]
    fields = [[o["args"][k] for k in ("type", "mode", "field1", "field2")] for o in sorted(waits, key=lambda o: o["ts"])]
    # a relation: database and table; ROW EXCLUSIVE. Advisory locks: database, and the key in the second half
    equal(fields[0], [0, 3, db, lock], "lock of a table")
    equal(sorted((o["args"]["type"], o["args"]["mode"], o["args"]["field1"], o["args"]["field3"], o["args"]["field4"])
                 for o in waits[1:]), [(10, 7, db, 1, 1), (10, 7, db, 2, 1)], "advisory locks")
    equal(waits[0]["pid"], pids[1], "who waited")
    equal(len(named(rows, "deadlock")), 1, "deadlock")
    dead = named(rows, "deadlock")[0]["pid"]
    need(dead in pids and len(named(rows, "abort", dead)) == 1, "who was aborted")


def sorts(rows, plan):
    disk = int(re.search(r"external merge  Disk: (\d+)kB", plan)[1])
    done = [o["args"] for o in named(rows, "sort done") if o["args"]["on_disk"]]
    equal([o["space"] * 8 for o in done], [disk, disk], "blocks on disk; EXPLAIN says kB")
    begun = [o["args"] for o in named(rows, "sort start") if o["args"]["work_mem_kb"] == 64]
    equal([(o["kind"], o["unique"], o["keys"]) for o in begun], [(0, False, 2)] * 2, "sorts")


def checkpoints(rows, log):
    m = re.search(r"checkpoint complete: wrote (\d+) buffers .*?; (\d+) WAL file\(s\) added, (\d+) removed, (\d+) recycled", log)
    spans = named(rows, "checkpoint")
    equal(len(spans), 1, "checkpoints")
    a = spans[0]["args"]
    equal([a[k] for k in ("written", "wal_added", "wal_removed", "wal_recycled")], [int(x) for x in m.groups()],
          "what the checkpoint did")
    equal(a["buffers"], 2048, "buffers")
    need(int(a["flags"], 16) & 0x0c == 0x0c, "CHECKPOINT is immediate and forced: %s" % a["flags"])
    w = named(rows, "write buffers")[0]["args"]
    need(0 < w["written"] <= w["to_write"] <= w["buffers"] == 2048, "write buffers: %r" % w)
    need(w["written"] <= int(m[1]), "buffers and what else was written: %r" % w)
    for name in ("checkpoint buffers", "checkpoint clog", "checkpoint multixact", "checkpoint subtrans",
                 "checkpoint twophase", "sync files", "wal switch"):
        need(len(named(rows, name)) >= 1, "no " + name)


def buffers(rows, s, db, rel, pages, log):
    pid = [p for p, v in log.items() if v == ["SELECT count(*) FROM big"]][0]
    reads = [o["args"] for o in named(rows, "read", pid)]
    mine = [a for a in reads if a["relation"] == rel and a["fork"] == 0]
    read = [b for a in mine for b in range(a["block"], a["block"] + a["bytes"] // 8192)]  # 17 reads some in one call
    equal(sorted(read), list(range(pages)), "blocks of the table that were read")
    need(all(a["database"] == db and a["bytes"] % 8192 == 0 for a in mine), "database and size: %r" % mine[:2])
    last = {}
    for o in rows:
        if o["type"] == "counter" and o["pid"] == pid:
            last[o["name"]] = o["value"]
    equal(last["bytes read"], sum(a["bytes"] for a in reads), "bytes read")
    equal(last["buffer misses"], last["bytes read"] // 8192, "buffer misses")
    need(last["buffer hits"] > 0, "no buffer hits")
    wrote = [p for p, v in log.items() if v[0].startswith("UPDATE big")][0]
    need(sum(1 for o in rows if o["name"] == "wal records" and o["pid"] == wrote) > 40000, "wal records")
    flushed = [o["args"] for o in rows if o["name"] == "flush buffer" and o["args"].get("relation") == rel]
    need(flushed and all(0 <= a["block"] < 3 * pages and a["fork"] in (0, 1, 2) and a["database"] == db for a in flushed),
         "flushes: %r" % flushed[:2])
    need(any(o["name"] == "bytes written" and o["value"] % 8192 == 0 for o in rows), "bytes written")


def stuck(c, s, p, pid, *args):
    """`stacks -p PID` while the backend sleeps in a statement that came after it was attached: (stack, what was said)."""
    look = subprocess.Popen([lib.TOOL, "stacks", "-p", str(pid), "-d", "2s", "--json"] + list(args), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, bufsize=0)  # a line is read, the rest left to communicate()
    said = ""
    while "USDT callsite" not in said:
        line = look.stderr.readline().decode()
        need(line, "it ended: " + said)
        said += line
    time.sleep(0.2)  # it is told right before the run begins
    p.stdin.write(b"SELECT pg_sleep(600);\n")
    p.stdin.flush()
    out, err = look.communicate(timeout=20)
    said += err.decode()
    equal(look.returncode, 0, said)
    s.sql("SELECT pg_cancel_backend(%d)" % pid)
    found = [json.loads(l) for l in out.decode().splitlines()]
    equal(len(found), 1, "stacks: %r" % found)
    equal(found[0]["pid"], pid, "pid")
    need(all(0 < f["open_ns"] < 2.5e9 for f in found[0]["stack"]), "ages: %r" % found)
    return [f["name"] for f in found[0]["stack"]], said


def test_postgresql_stacks(c):
    """What a backend is stuck in, without a tracer and without any option: the profile knows."""
    with Server() as s:
        p = s.session()
        pid = int(session_do(p, "SELECT pg_backend_pid();")[-1])
        stack, said = stuck(c, s, p, pid)
        equal(stack, ["execute", "transaction", "query"], said)
        need("profile postgresql (it knows this program" in said, said)
        session_do(p, "SELECT 1;")
        stack, said = stuck(c, s, p, pid, "--profile", "postgresql")
        equal(stack, ["execute", "transaction", "query"], said)
        session_do(p, "SELECT 1;")
        p.communicate(b"\\q\n", 30)
    status, out, err = lib.run_tool(["stacks", "-p", str(os.getpid()), "--usdt", "span"])
    equal((status, out), (1, ""), "a wrong spec")
    lib.one_error_line(err, "--usdt: ")
    for args in (["tail", "--usdt", "span a:b..a:c"], ["status", "--profile", "x"], ["stacks", "--profile", "x"]):
        status, out, err = lib.run_tool(args)
        equal((status, out), (2, ""), args)
        lib.one_error_line(err, "it goes with record and stacks -p")
