/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes are traced, and how they are found: by pid, by file, by name, by birth.
 *
 * The kernel side's map `targets` is the truth about who is traced; the table here is what we know of it,
 * for arming new code and for knowing when to stop. A process that is born, runs and dies between two looks
 * is in the trace all the same: its records and life records say all that is needed.
 */
#include "session_int.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procinfo.h"

#define SCAN_EVERY 2 /* ticks between looks at the files of targets when there is no watch */

static int explain_pid(int code, uint32_t pid, struct mt_session_err *err)
{
	if (code == -ESRCH)
		return mt_session_say(err, code, "no process %u: it does not exist or has just ended", pid);
	if (code == -EACCES || code == -EPERM)
		return mt_session_say(err, code, "not permitted to look at process %u: run as root (sudo)",
				      pid);
	return mt_session_say(err, code, "process %u: %s", pid, strerror(-code));
}

struct target *mt_session_target(struct mt_session *s, uint32_t pid)
{
	struct target *t;

	for (t = s->targets[pid % TARGET_SLOTS]; t; t = t->next)
		if (t->pid == pid)
			return t;
	return NULL;
}

static void unlink_target(struct mt_session *s, struct target *t)
{
	struct target **at = &s->targets[t->pid % TARGET_SLOTS];

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (t->pidfd >= 0)
		close(t->pidfd); /* which takes it out of the epoll set */
	free(t);
	s->ntargets--;
}

void mt_session_free_targets(struct mt_session *s)
{
	uint32_t i;

	for (i = 0; i < TARGET_SLOTS; i++)
		while (s->targets[i])
			unlink_target(s, s->targets[i]);
}

struct target *mt_session_target_found(struct mt_session *s, uint32_t pid, bool follow)
{
	struct target *t = mt_session_target(s, pid);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t) {
		s->error = s->error ? s->error : -ENOMEM;
		return NULL;
	}
	t->pid = pid;
	t->pidfd = -1;
	t->follow = follow;
	t->next = s->targets[pid % TARGET_SLOTS];
	s->targets[pid % TARGET_SLOTS] = t;
	s->ntargets++;
	s->ever++;
	return t;
}

void mt_session_target_gone(struct mt_session *s, uint32_t pid)
{
	struct target *t = mt_session_target(s, pid);

	if (!t)
		return;
	mt_attach_drop(s->attach, pid);
	bpf_map_delete_elem(bpf_map__fd(s->skel->maps.targets), &pid);
	unlink_target(s, t);
}

/* ---- By pid --------------------------------------------------------------------------------------- */

/* Tells the kernel side, opens the pidfd, reads the files. */
static int add(struct mt_session *s, uint32_t pid, uint32_t flags)
{
	struct target *t;
	int code = 0, fd;

	if (mt_session_target(s, pid))
		return 0;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return -errno;
	code = mt_attach_scan(s->attach, pid, NULL);
	if (!code && bpf_map_update_elem(bpf_map__fd(s->skel->maps.targets), &pid, &flags, BPF_ANY))
		code = -errno;
	if (!code)
		code = mt_session_watch_fd(s, fd, W_PID, pid);
	t = code ? NULL : mt_session_target_found(s, pid, flags & MT_TARGET_FOLLOW);
	if (!t) {
		close(fd);
		return code ? code : -ENOMEM;
	}
	t->pidfd = fd;
	__atomic_fetch_add(&s->skel->data->epoch, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static uint32_t by_pid(const struct mt_session *s)
{
	return MT_TARGET_ON | (s->opts.follow ? MT_TARGET_FOLLOW : 0);
}

/* A fork without exec runs the file too; another file only counts if children are followed. */
static uint32_t by_file(const struct mt_session *s)
{
	return MT_TARGET_ON | MT_TARGET_FOLLOW | (s->opts.follow ? 0 : MT_TARGET_FILE);
}

static bool ended(struct mt_session *s, uint32_t pid)
{
	bool is = true;
	int dir;

	if (!mt_proc_pid(s->proc, pid, &dir)) {
		is = mt_proc_ended(dir);
		close(dir);
	}
	return is;
}

int mt_session_add(struct mt_session *s, uint32_t pid, struct mt_session_err *err)
{
	uint32_t tgid;
	int code;

	code = mt_proc_tgid(s->proc, pid, &tgid);
	if (!code && tgid != pid)
		return mt_session_say(err, -EINVAL, "%u is a thread of process %u: use -p %u", pid, tgid,
				      tgid);
	if (!code && tgid == (uint32_t)getpid())
		return mt_session_say(err, -EINVAL, "%u is montrace-bpf itself", pid);
	if (!code)
		code = ended(s, pid) ? -ESRCH : add(s, pid, by_pid(s));
	return code ? explain_pid(code, pid, err) : 0;
}

/* ---- By file -------------------------------------------------------------------------------------- */

static bool runs_file(struct mt_session *s, uint32_t pid, const struct stat *file)
{
	struct stat st;
	bool same = false;
	int dir;

	if (mt_proc_pid(s->proc, pid, &dir))
		return false;
	if (!mt_proc_exe_stat(dir, &st))
		same = st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	close(dir);
	return same;
}

static bool runs_glob(struct mt_session *s, uint32_t pid, const char *glob)
{
	struct mt_proc_stat st;
	bool match = false;
	int dir;

	if (mt_proc_pid(s->proc, pid, &dir))
		return false;
	if (!mt_proc_stat(dir, &st))
		match = !fnmatch(glob, st.comm, 0);
	close(dir);
	return match;
}

/* Adds all processes there are that run file or (file NULL) match glob. Those that vanish meanwhile do not
 * count. */
static int add_present(struct mt_session *s, const struct stat *file, const char *glob)
{
	uint32_t *pids, self = (uint32_t)getpid();
	size_t n, i;
	int code;

	code = mt_proc_pids(s->proc, &pids, &n);
	if (code)
		return code;
	for (i = 0; i < n && !code; i++) {
		if (pids[i] == self || !(file ? runs_file(s, pids[i], file) : runs_glob(s, pids[i], glob)))
			continue;
		code = add(s, pids[i], file ? by_file(s) : by_pid(s));
		if (code == -ESRCH || code == -EACCES)
			code = 0;
	}
	free(pids);
	return code;
}

static int explain_file(int code, const char *path, struct mt_session_err *err)
{
	if (code == -ENOEXEC)
		return mt_session_say(
			err, code, "%s is no program that can be traced: not an executable ELF file", path);
	return mt_session_say(err, code, "%s: %s", path, strerror(-code));
}

/* The kernel side takes every process that execs this file. */
static int want_file(struct mt_session *s, const char *path)
{
	uint32_t flags = by_file(s);
	struct mt_exe_key key = {0};
	struct mt_attach_id id;
	int code;

	code = mt_attach_scan_file(s->attach, path, &id);
	if (code)
		return code;
	key.inode = id.inode;
	key.dev = id.dev;
	if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.exes), &key, &flags, BPF_ANY))
		return -errno;
	return 0;
}

int mt_session_add_file(struct mt_session *s, const char *path, struct mt_session_err *err)
{
	struct stat st;
	int code;

	if (stat(path, &st))
		return explain_file(-errno, path, err);
	code = S_ISREG(st.st_mode) ? want_file(s, path) : -ENOEXEC;
	if (!code)
		code = add_present(s, &st, NULL);
	s->open_ended = true;
	return code ? explain_file(code, path, err) : 0;
}

/* ---- By name -------------------------------------------------------------------------------------- */

int mt_session_add_comm(struct mt_session *s, const char *glob, struct mt_session_err *err)
{
	int code;

	if (s->nglobs == sizeof(s->globs) / sizeof(s->globs[0]))
		return mt_session_say(err, -E2BIG, "too many --comm");
	s->globs[s->nglobs++] = glob;
	s->skel->bss->report_execs = 1;
	s->open_ended = true;
	code = add_present(s, NULL, glob);
	return code ? mt_session_say(err, code, "--comm %s: %s", glob, strerror(-code)) : 0;
}

static bool name_wanted(const struct mt_session *s, const struct mt_event *ev)
{
	char comm[64];
	uint32_t i, n = ev->process.name.len < sizeof(comm) - 1 ? ev->process.name.len
								: (uint32_t)sizeof(comm) - 1;

	memcpy(comm, ev->process.name.p, n);
	comm[n] = 0;
	for (i = 0; i < s->nglobs; i++)
		if (!fnmatch(s->globs[i], comm, 0))
			return true;
	return false;
}

/* The executable is armed (or has nothing to arm): it needs no hold any more, and who is held for it goes on.
 */
static void let_go(struct mt_session *s, const struct mt_event *ev)
{
	struct mt_exe_key key = {.inode = ev->process.exe_inode, .dev = ev->process.exe_dev};
	uint32_t one = 1, pid = ev->tgid;

	bpf_map_update_elem(bpf_map__fd(s->skel->maps.known), &key, &one, BPF_ANY);
	if (!(ev->process.flags & MT_TARGET_HELD))
		return;
	kill((pid_t)pid, SIGCONT);
	bpf_map_delete_elem(bpf_map__fd(s->skel->maps.held), &pid);
}

void mt_session_target_exec(struct mt_session *s, const struct mt_event *ev)
{
	struct target *t = mt_session_target(s, ev->tgid);

	if (t && !ev->process.traced) { /* it runs another file than the one it was traced for */
		mt_session_feed_detach(s, ev->tgid, ev->time);
		mt_session_target_gone(s, ev->tgid);
		t = NULL;
	}
	if (!t && ev->process.traced) {
		t = mt_session_target_found(s, ev->tgid, true);
	} else if (!t) {
		if (!name_wanted(s, ev) || add(s, ev->tgid, by_pid(s)))
			return;
		mt_session_feed_process(s, ev->tgid, ev->time);
		mt_attach_arm(s->attach, ev->tgid);
		return;
	}
	/* Another image: its files are new, the old ones' probes are gone with the old memory. */
	if (t) {
		mt_session_feed_process(s, ev->tgid, ev->time);
		t->rescan = true;
		/* A link for one process knows it by its first thread, which is another one now. */
		if (ev->process.flags & MT_TARGET_MOVED)
			mt_attach_drop(s->attach, ev->tgid);
		if (!mt_attach_scan(s->attach, ev->tgid, NULL))
			mt_attach_arm(s->attach, ev->tgid);
	}
	let_go(s, ev);
}

/* ---- By birth ------------------------------------------------------------------------------------- */

/* Where execvp would find it. */
static int find_program(const char *name, char *path, size_t cap)
{
	const char *dirs = getenv("PATH"), *end;
	struct stat st;

	if (strchr(name, '/'))
		return snprintf(path, cap, "%s", name) < (int)cap ? 0 : -ENAMETOOLONG;
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (snprintf(path, cap, "%.*s/%s", end > dirs ? (int)(end - dirs) : 1,
			     end > dirs ? dirs : ".", name) >= (int)cap)
			continue;
		if (!stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
			return 0;
	}
	return -ENOENT;
}

/*
 * Waits for the tracer's end. If it ended without having let go all it held (it was killed), that is done
 * here. It keeps nothing of the tracer but the map and the word that says "hold": no link, no ring, so
 * nothing of the tracing outlives the tracer. But the kernel takes the tracer's programs away some time after
 * its end, and who was let go may exec again before that: so the word is taken back first, and who was being
 * held just then is found on the second look.
 */
static void guard(int tracer, int held, volatile unsigned int *hold_execs)
{
	struct timespec moment = {0, 20000000};
	uint32_t pid, *at = NULL;
	int looks;
	char c;

	setsid(); /* Ctrl-C is for the others */
	if (held != 3)
		dup3(held, 3, O_CLOEXEC);
	if (tracer != 4)
		dup3(tracer, 4, O_CLOEXEC);
	syscall(SYS_close_range, 5, ~0U, 0);
	while (read(4, &c, 1) < 0 && errno == EINTR)
		;
	*hold_execs = 0;
	for (looks = 0; looks < 2; looks++) {
		if (looks)
			nanosleep(&moment, NULL);
		while (!bpf_map_get_next_key(3, at, &pid)) {
			kill((pid_t)pid, SIGCONT);
			bpf_map_delete_elem(3, &pid);
		}
	}
	_exit(0);
}

/* In the child. Both descriptors above those that guard() uses. */
static void tracer_end(const int alive[2], int held, volatile unsigned int *hold_execs)
{
	int end = fcntl(alive[0], F_DUPFD_CLOEXEC, 10);

	guard(end, held, hold_execs);
}

/* With a guard for our death. */
int mt_session_hold(struct mt_session *s)
{
	int alive[2], held;
	pid_t pid;

	if (s->guard)
		return 0;
	if (pipe2(alive, O_CLOEXEC))
		return -errno;
	held = fcntl(bpf_map__fd(s->skel->maps.held), F_DUPFD_CLOEXEC, 10);
	pid = held < 0 ? -1 : fork();
	if (!pid)
		tracer_end(alive, held, &s->skel->bss->hold_execs);
	close(alive[0]);
	if (held >= 0)
		close(held);
	if (pid < 0) {
		close(alive[1]);
		return -errno;
	}
	s->alive = alive[1];
	s->guard = pid;
	s->skel->bss->hold_execs = 1;
	return 0;
}

static void child(int hold, char **argv)
{
	sigset_t none;
	char c;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(hold, &c, 1) != 1)
		_exit(127); /* the tracer went away before it was ready */
	close(hold);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "montrace-bpf: error: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

int mt_session_spawn(struct mt_session *s, char **argv, uint32_t *ret_pid, struct mt_session_err *err)
{
	struct mt_attach_id id;
	char path[4096];
	int hold[2], code;
	pid_t pid;

	code = find_program(argv[0], path, sizeof(path));
	if (!code)
		code = mt_attach_scan_file(s->attach, path, &id);
	if (code && code != -ENOEXEC) /* a script: its interpreter is armed when it is there */
		return mt_session_say(err, code, "cannot run %s: %s", argv[0], strerror(-code));
	if (pipe2(hold, O_CLOEXEC))
		return mt_session_say(err, -errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		code = -errno;
		close(hold[0]);
		close(hold[1]);
		return mt_session_say(err, code, "fork: %s", strerror(-code));
	}
	if (!pid) {
		close(hold[1]);
		child(hold[0], argv);
	}
	close(hold[0]);
	s->release = hold[1];
	code = add(s, (uint32_t)pid, by_pid(s));
	if (!code && s->opts.follow)
		code = mt_session_hold(s);
	if (code)
		return explain_pid(code, (uint32_t)pid, err);
	*ret_pid = (uint32_t)pid;
	return 0;
}

/* ---- New code ------------------------------------------------------------------------------------- */

static void mark(void *ctx, uint32_t pid, uint32_t dev, uint64_t inode)
{
	struct mt_session *s = ctx;
	struct target *t = mt_session_target(s, pid);

	if (!t)
		return;
	t->rescan = true;
	mt_attach_remapped(s->attach, pid, &(struct mt_attach_id){inode, dev});
}

void mt_session_maps_changed(struct mt_session *s)
{
	uint32_t i;
	struct target *t;

	if (mt_watch_read(s->watch, mark, s))
		return;
	for (i = 0; i < TARGET_SLOTS; i++)
		for (t = s->targets[i]; t; t = t->next)
			t->rescan = true;
}

void mt_session_rescan(struct mt_session *s, uint64_t tick)
{
	bool all = (!s->watch && tick % SCAN_EVERY == 0) || mt_attach_written(s->attach);
	struct target *t;
	uint32_t i, fresh;

	for (i = 0; i < TARGET_SLOTS; i++) {
		for (t = s->targets[i]; t; t = t->next) {
			if (!t->rescan && !all)
				continue;
			t->rescan = false;
			if (!mt_attach_scan(s->attach, t->pid, &fresh) && fresh)
				mt_attach_arm(s->attach, t->pid);
		}
	}
}
