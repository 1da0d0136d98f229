/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways that processes and threads come and go: `procs WAY [ARG...]`. Prints `ready PID`, waits for a
 * line, does it, prints what it fired as key=value, `done`, waits for a line. Children fire events `tick`
 * with fields i and pid and say nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "montrace.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **args;
static long nargs;

static long arg(long i, long otherwise)
{
	return nargs > i ? atol(args[i]) : otherwise;
}

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void nap(long us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

static void tick(long i)
{
	MONTRACE_EVENT(MONTRACE_INFO, "tick", MT_I64("i", i), MT_I64("pid", getpid()));
}

/* ---- Processes ------------------------------------------------------------------------------------ */

/* forks N HITS: a server with N children, each with a scope of its own around HITS ticks */
static void serve(long child, long hits)
{
	MONTRACE_SCOPE("child", MT_I64("child", child));
	long i;

	for (i = 0; i < hits; i++)
		tick(child * 1000 + i);
}

static void forks(void)
{
	long n = arg(0, 50), hits = arg(1, 20), i;

	for (i = 0; i < n; i++) {
		tick(-i);
		if (!fork()) {
			serve(i, hits);
			_exit((int)(i % 7));
		}
	}
	while (wait(NULL) > 0)
		;
	printf("parent=%ld\nchildren=%ld\n", n, n * hits);
}

/* Two children, one grandchild, no exec. */
static void noexec(void)
{
	tick(0);
	if (!fork()) {
		tick(1000);
		_exit(0);
	}
	wait(NULL);
	tick(1);
	if (!fork()) {
		if (!fork()) {
			tick(2000);
			_exit(0);
		}
		wait(NULL);
		_exit(0);
	}
	wait(NULL);
	tick(2);
}

/* vforks N PROGRAM: N children that exec PROGRAM ID 3; the first one waits, so that the file is known then. */
static void vforks(void)
{
	volatile long n = arg(0, 10), i; /* as they are after vfork */
	char id[24];

	for (i = 0; i < n; i++) {
		char *const argv[] = {args[1], id, (char *)"3", (char *)"0", (char *)(i ? "0" : "400"), NULL};
		pid_t pid;

		snprintf(id, sizeof(id), "%ld", i);
		tick(i);
		pid = vfork();
		if (!pid) {
			execv(argv[0], argv);
			_exit(127);
		}
		waitpid(pid, NULL, 0);
	}
}

/* Inside a scope, with another thread inside one too, the process replaces itself by the same program. */
static char *self;

static void *sit(void *arg_)
{
	MONTRACE_SCOPE("sitting");

	*(volatile int *)arg_ = 1;
	for (;;)
		pause();
	return NULL;
}

static void self_exec(void)
{
	MONTRACE_SCOPE("before exec");
	volatile int sits = 0;
	pthread_t t;

	tick(0);
	if (pthread_create(&t, NULL, sit, (void *)&sits))
		exit(1);
	while (!sits)
		nap(1000);
	execl("/proc/self/exe", self, "again", NULL);
	exit(1);
}

static void *exec_there(void *arg_)
{
	(void)arg_;
	tick(1);
	execl("/proc/self/exe", self, "again", NULL);
	exit(1);
}

/* Another thread than the first does it. */
static void thread_exec(void)
{
	pthread_t t;

	tick(0);
	if (pthread_create(&t, NULL, exec_there, NULL))
		exit(1);
	pthread_join(t, NULL);
}

/* What comes after the exec: ticks until it is told to end. */
static void again(void)
{
	long i;

	for (i = 10; i < 10 + arg(0, 3); i++)
		tick(i);
	nap(1000000); /* who had to attach again has done it now */
	tick(100);
	tick(101);
}

/* ---- Threads -------------------------------------------------------------------------------------- */

static void *short_life(void *arg_)
{
	double end = now() + 0.001;

	{
		MONTRACE_SCOPE("life", MT_I64("i", (long)arg_));
		tick((long)arg_);
		while (now() < end)
			;
	}
	return NULL;
}

/* threads N: live a millisecond each, eight at a time */
static void threads(void)
{
	long n = arg(0, 200), i, k;
	pthread_t t[8];

	for (i = 0; i < n; i += k) {
		for (k = 0; k < 8 && i + k < n; k++)
			if (pthread_create(&t[k], NULL, short_life, (void *)(i + k)))
				exit(1);
		for (long j = 0; j < k; j++)
			pthread_join(t[j], NULL);
	}
	printf("threads=%ld\n", n);
}

static void *renamer(void *arg_)
{
	long n = (long)arg_, i;
	char name[32]; /* cut at 15 by the kernel */

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "name-%ld", i);
		prctl(PR_SET_NAME, name);
		tick(i);
		nap(1000);
	}
	prctl(PR_SET_NAME, "last");
	tick(n);
	return NULL;
}

/* renames N: a thread renames itself a thousand times a second */
static void renames(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, renamer, (void *)arg(0, 500)))
		exit(1);
	pthread_join(t, NULL);
}

/* Case 17: three threads, one after the other, each renamed twice. */
static void *twice(void *arg_)
{
	long i = (long)arg_;
	char name[16];

	tick(i * 10);
	snprintf(name, sizeof(name), "w\xc3\xb6rk/%ld\"", i);
	prctl(PR_SET_NAME, name);
	tick(i * 10 + 1);
	prctl(PR_SET_NAME, "second");
	tick(i * 10 + 2);
	return NULL;
}

static void renamed_twice(void)
{
	pthread_t t;
	long i;

	for (i = 0; i < 3; i++) {
		if (pthread_create(&t, NULL, twice, (void *)i))
			exit(1);
		pthread_join(t, NULL);
	}
}

static pthread_barrier_t all;

static void *named(void *arg_)
{
	char **name = arg_;

	if (name[0])
		prctl(PR_SET_NAME, name[0]);
	if (name[1])
		montrace_thread_name(name[1]);
	tick(name - args);
	pthread_barrier_wait(&all);
	tick(100 + (name - args));
	return NULL;
}

/* names: long names, an equal pair, an empty pair */
static void names(void)
{
	static char *each[] = {"monarch-pytokio",
			       "monarch-pytokio-worker-0",
			       "monarch-pytokio",
			       "monarch-pytokio-worker-1",
			       "same",
			       NULL,
			       "same",
			       NULL,
			       "",
			       NULL,
			       "",
			       NULL};
	pthread_t t[6];
	int i;

	args = each;
	pthread_barrier_init(&all, NULL, 6);
	for (i = 0; i < 6; i++)
		if (pthread_create(&t[i], NULL, named, each + 2 * i))
			exit(1);
	for (i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
}

/* ---- Libraries ------------------------------------------------------------------------------------ */

struct library {
	void *handle;
	void (*work)(long);
	int (*armed)(void);
};

static struct library load(const char *path)
{
	struct library l = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};

	if (!l.handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&l.work = dlsym(l.handle, "late_work");
	*(void **)&l.armed = dlsym(l.handle, "late_armed");
	return l;
}

/* dlopen PATH: how long until it is armed? Then four events; unload, load again, one more. */
static void library(void)
{
	struct library l;
	double start = now();
	long i;

	l = load(args[0]);
	while (!l.armed() && now() - start < 5)
		nap(200);
	printf("armed_us=%ld\n", (long)((now() - start) * 1e6));
	for (i = 0; i < 4; i++)
		l.work(i);
	dlclose(l.handle);
	l = load(args[0]);
	while (!l.armed() && now() - start < 5)
		nap(200);
	l.work(100);
}

/* dlopens PATH N: loaded and unloaded N times while another thread fires at full rate */
static volatile int stop;

static void *full_rate(void *arg_)
{
	long i;

	for (i = 0; !stop; i++)
		tick(i);
	*(long *)arg_ = i;
	return NULL;
}

static void libraries(void)
{
	long n = arg(1, 100), i, k, ticks = 0, fired = 0;
	pthread_t t;

	if (pthread_create(&t, NULL, full_rate, &ticks))
		exit(1);
	for (i = 0; i < n; i++) {
		struct library l = load(args[0]);

		for (k = 0; k < 50; k++) {
			int before = l.armed();

			l.work(i);
			fired += before && l.armed();
			nap(50);
		}
		dlclose(l.handle);
	}
	stop = 1;
	pthread_join(t, NULL);
	printf("ticks=%ld\nlate=%ld\n", ticks, fired);
}

/* lib_ticks PATH: it is there before `ready`, and fires five events. */
static struct library early;

static void library_ticks(void)
{
	long i;

	for (i = 0; i < 5; i++)
		early.work(i);
}

/* A library that is a memory file. */
static void memory_library(void)
{
	char path[64], buf[65536];
	FILE *f = fopen(args[0], "r");
	int fd = memfd_create("lib", 0);
	struct library l;
	double start;
	size_t n;

	while (f && (n = fread(buf, 1, sizeof(buf), f)))
		if (write(fd, buf, n) != (ssize_t)n)
			exit(1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	start = now();
	l = load(path);
	while (!l.armed() && now() - start < 5)
		nap(200);
	l.work(7);
}

/* ---- Names of processes --------------------------------------------------------------------------- */

/* name NAME: tells its name after the first event */
static void process_name(void)
{
	tick(0);
	montrace_process_name(args[0]);
	tick(1);
}

static void execution_id(void)
{
	tick(0);
	montrace_execution_id(args[0]);
	tick(1);
}

/* process_names N: another name about a thousand times a second */
static void process_names(void)
{
	long n = arg(0, 500), i;
	char name[32];

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "name %ld", i);
		montrace_process_name(name);
		tick(i);
		nap(1000);
	}
}

/* execids N: another execution id for each event */
static void execution_ids(void)
{
	long n = arg(0, 100), i;
	char id[32];

	for (i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "id-%ld", i);
		montrace_execution_id(id);
		tick(i);
	}
}

static void ticks(void)
{
	long n = arg(0, 3), i;

	for (i = 0; i < n; i++)
		tick(i);
}

/* slow N US: a tick every so often */
static void slow_ticks(long n, long us)
{
	long i;

	for (i = 0; i < n; i++) {
		tick(i);
		nap(us);
	}
}

static void slow(void)
{
	slow_ticks(arg(0, 10), arg(1, 10000));
}

/* survive N: children that hit a probe which their parent has hit before; how many end as they should? */
static void survive(void)
{
	long n = arg(0, 10), well = 0, i;
	int status;

	for (i = 0; i < 5; i++)
		tick(i);
	for (i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			tick(1000 + i);
			_exit(3);
		}
		well += waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3;
	}
	printf("well=%ld\n", well);
}

/* forkloop: children come and go as fast as they can until a line comes */
static void *fork_on(void *arg_)
{
	long *count = arg_;
	int status;

	while (!stop) {
		pid_t pid;

		tick(0);
		pid = fork();
		if (!pid) {
			tick(1);
			_exit(3);
		}
		count[1] += waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3;
		count[0]++;
	}
	return NULL;
}

static void forkloop(void)
{
	pthread_t t;
	long count[2] = {0, 0};

	if (pthread_create(&t, NULL, fork_on, count))
		exit(1);
	wait_line();
	stop = 1;
	pthread_join(t, NULL);
	printf("forks=%ld\nbadly=%ld\n", count[0], count[1]);
}

/* killed: a child sits in a span and is killed */
static void killed(void)
{
	int p[2];
	char c;
	pid_t pid;

	if (pipe(p))
		exit(1);
	pid = fork();
	if (!pid) {
		MONTRACE_SCOPE("victim");
		tick(5);
		if (write(p[1], "x", 1) == 1)
			for (;;)
				pause();
	}
	if (read(p[0], &c, 1) != 1)
		exit(1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tick(6);
}

/* long N US: one scope around N ticks */
static void long_scope(void)
{
	MONTRACE_SCOPE("all of it");

	slow_ticks(arg(0, 10), arg(1, 100000));
}

/* The workloads of BEHAVIOUR scenario 54. */
static void nested(long i)
{
	MONTRACE_SCOPE("outer", MT(i));
	MONTRACE_SCOPE("middle", MT(i));
	MONTRACE_SCOPE("inner", MT(i));
	MONTRACE_EVENT(MONTRACE_INFO, "inside");
}

static void with_fields(long i)
{
	MONTRACE_SCOPE("fields", MT(i), MT_STR("text", "x"), MT_F64("ratio", 0.5));
}

static void around(long i)
{
	MONTRACE_SCOPE("around", MT(i));
	MONTRACE_EVENT(MONTRACE_INFO, "first");
	MONTRACE_EVENT(MONTRACE_INFO, "second");
	MONTRACE_EVENT(MONTRACE_INFO, "third");
}

static void workloads(void)
{
	long i;

	for (i = 0; i < 100; i++) {
		MONTRACE_EVENT(MONTRACE_INFO, "simple");
		with_fields(i);
		MONTRACE_EVENT(MONTRACE_INFO, "five", MT(i), MT_STR("a", "a"), MT_U64("b", 2),
			       MT_BOOL("c", 1), MT_F64("d", 1.5));
	}
	for (i = 0; i < 20; i++)
		nested(i);
	for (i = 0; i < 25; i++) {
		MONTRACE_EVENT(MONTRACE_TRACE, "trace");
		MONTRACE_EVENT(MONTRACE_DEBUG, "debug");
		MONTRACE_EVENT(MONTRACE_INFO, "info");
		MONTRACE_EVENT(MONTRACE_WARN, "warn");
		MONTRACE_EVENT(MONTRACE_ERROR, "error");
	}
	for (i = 0; i < 30; i++)
		around(i);
}

static const struct {
	const char *name;
	void (*fn)(void);
} ways[] = {
	{"forks", forks},
	{"noexec", noexec},
	{"vforks", vforks},
	{"selfexec", self_exec},
	{"threadexec", thread_exec},
	{"again", again},
	{"threads", threads},
	{"renames", renames},
	{"renamed_twice", renamed_twice},
	{"names", names},
	{"dlopen", library},
	{"dlopens", libraries},
	{"memlib", memory_library},
	{"name", process_name},
	{"execid", execution_id},
	{"process_names", process_names},
	{"execids", execution_ids},
	{"lib_ticks", library_ticks},
	{"ticks", ticks},
	{"slow", slow},
	{"survive", survive},
	{"forkloop", forkloop},
	{"long", long_scope},
	{"workloads", workloads},
	{"killed", killed},
};

int main(int argc, char **argv)
{
	size_t i;

	self = argv[0];
	if (argc < 2)
		return 2;
	args = argv + 2;
	nargs = argc - 2;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name))
			break;
	if (i == sizeof(ways) / sizeof(ways[0]))
		return 2;
	if (ways[i].fn == library_ticks)
		early = load(args[0]);
	if (strcmp(argv[1], "again")) { /* else it is ready since before its exec */
		printf("ready %d\n", (int)getpid());
		fflush(stdout);
		wait_line();
	}
	ways[i].fn();
	printf("done\n");
	fflush(stdout);
	wait_line();
	return 0;
}
