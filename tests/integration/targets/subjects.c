/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the originals' recorder promises, as a program: `subjects WHAT`. Prints `ready PID`, waits for a line, does
 * it, has an event in the recording `end`, prints `done`, and stays until its input ends. In between each further
 * line is a step, where there are steps.
 */
#include "montrace.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8

static struct montrace_span job;
static int per_thread;

/* False at the end of the input. */
static int wait_line(void)
{
	char c;
	ssize_t n;

	while ((n = read(0, &c, 1)) == 1 && c != '\n')
		;
	return n == 1;
}

static void done(void)
{
	printf("done\n");
	fflush(stdout);
}

static void event(int i)
{
	MONTRACE_EVENT(MONTRACE_INFO, "event", MT(i));
}

static void event_in(struct montrace_span *s, int i)
{
	MONTRACE_EVENT_IN(s, MONTRACE_INFO, "event in", MT(i));
}

static void recorded(void)
{
	MONTRACE_RECORDING(&job, "job", 10);
	montrace_enter(&job);
	MONTRACE_LOG(MONTRACE_INFO, "%s event should be recorded", "This");
	MONTRACE_LOG(MONTRACE_INFO, "another event");
	montrace_exit(&job);
}

static void last_n(void)
{
	int i;

	MONTRACE_RECORDING(&job, "job", 5);
	montrace_enter(&job);
	for (i = 0; i < 10; i++)
		MONTRACE_LOG(MONTRACE_INFO, "event %d", i);
	montrace_exit(&job);
}

static void outside(void)
{
	struct montrace_span other, spoof;

	event(1);
	MONTRACE_RECORDING(&job, "job", 10);
	event(2); /* made, not entered */
	MONTRACE_SPAN(&other, MONTRACE_INFO, "other");
	montrace_enter(&job);
	montrace_enter(&other); /* within it in time, not by parentage */
	event(3);
	montrace_exit(&other);
	montrace_exit(&job);
	event(4);
	/* In the original any span with these two fields is a recording. */
	MONTRACE_SPAN(&spoof, MONTRACE_INFO, "recording", MT_U64("recording", 1), MT_U64("recorder", 1),
		      MT_STR("subject", "spoof"));
	montrace_enter(&spoof);
	event(5);
	montrace_exit(&spoof);
	montrace_close(&spoof);
	montrace_close(&other);
}

static void *enters(void *span)
{
	montrace_enter(span);
	event(3);
	montrace_exit(span);
	return NULL;
}

static void child(void)
{
	struct montrace_span inner, grandchild;
	pthread_t t;

	MONTRACE_RECORDING(&job, "job", 10);
	montrace_enter(&job);
	MONTRACE_SPAN(&inner, MONTRACE_INFO, "child");
	montrace_enter(&inner);
	MONTRACE_LOG(MONTRACE_INFO, "Event from inner span");
	{
		MONTRACE_SCOPE("scope");
		event(2);
	}
	MONTRACE_SPAN(&grandchild, MONTRACE_INFO, "grandchild");
	montrace_exit(&inner);
	montrace_exit(&job);
	pthread_create(&t, NULL, enters, &grandchild); /* on a thread where nothing of it is entered */
	pthread_join(t, NULL);
}

static void nested(void)
{
	struct montrace_span b;

	MONTRACE_RECORDING(&job, "A", 10);
	montrace_enter(&job);
	event(1);
	MONTRACE_RECORDING(&b, "B", 10);
	montrace_enter(&b);
	event(2);
	montrace_exit(&b);
	event(3);
	montrace_exit(&job);
}

static void explicit_parent(void)
{
	struct montrace_span inner;

	MONTRACE_RECORDING(&job, "job", 10);
	event_in(&job, 1);
	MONTRACE_SPAN_IN(&inner, &job, MONTRACE_INFO, "inner");
	event_in(&inner, 2);
}

static void explicit_root(void)
{
	struct montrace_span root;

	MONTRACE_RECORDING(&job, "job", 10);
	montrace_enter(&job);
	MONTRACE_EVENT_ROOT(MONTRACE_INFO, "event", MT_I64("i", 1));
	MONTRACE_SPAN_ROOT(&root, MONTRACE_INFO, "root");
	montrace_enter(&root);
	event(2);
	montrace_exit(&root);
	montrace_exit(&job);
}

static void dropped(void)
{
	struct montrace_span inner, late;

	MONTRACE_RECORDING(&job, "job", 10);
	MONTRACE_SPAN_IN(&inner, &job, MONTRACE_INFO, "inner");
	montrace_enter(&inner);
	event(1);
	montrace_close(&job);
	event(2);
	montrace_exit(&inner);
	montrace_enter(&inner);
	event(3);
	MONTRACE_SPAN(&late, MONTRACE_INFO, "late");
	event_in(&late, 4);
	montrace_exit(&inner);
	montrace_close(&late);
	montrace_close(&inner);
}

/* The new recording has the old one's memory. */
static void reuse(void)
{
	struct montrace_span old;
	int i;

	for (i = 0; i < 200; i++) {
		MONTRACE_RECORDING(&job, "old", 5);
		MONTRACE_SPAN_IN(&old, &job, MONTRACE_INFO, "of the old");
		montrace_close(&job);
		MONTRACE_RECORDING(&job, "new", 5);
		montrace_enter(&old);
		event(i);
		montrace_exit(&old);
		montrace_close(&old);
		montrace_close(&job);
	}
}

static struct montrace_span inner_span;

static void *holds(void *arg)
{
	montrace_enter(&inner_span);
	done();
	pthread_mutex_lock(arg);
	montrace_exit(&inner_span);
	pthread_mutex_unlock(arg);
	return NULL;
}

/* Each step is another picture of what is entered. */
static void stacks(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct montrace_span leaf;
	pthread_t t;

	MONTRACE_RECORDING(&job, "job", 10);
	montrace_enter(&job);
	MONTRACE_SPAN(&inner_span, MONTRACE_INFO, "child");
	montrace_enter(&inner_span);
	MONTRACE_SPAN(&leaf, MONTRACE_INFO, "leaf");
	done();
	wait_line();
	montrace_exit(&inner_span); /* child is not entered any more, leaf below it is */
	montrace_enter(&leaf);
	done();
	wait_line();
	montrace_exit(&leaf);
	montrace_enter(&inner_span); /* twice */
	montrace_enter(&inner_span);
	done();
	wait_line();
	montrace_exit(&inner_span);
	done();
	wait_line();
	pthread_mutex_lock(&m);
	pthread_create(&t, NULL, holds, &m); /* on two threads */
	wait_line();
	montrace_exit(&inner_span);
	done();
	wait_line();
	pthread_mutex_unlock(&m);
	pthread_join(t, NULL);
	montrace_exit(&job);
}

static void capacities(void)
{
	static const int n[] = {0, 1, 2, 3, 1000000000};
	struct montrace_span s[5];
	char name[32];
	int i, k;

	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "cap %d", n[i]);
		MONTRACE_RECORDING(&s[i], name, (uint64_t)n[i]);
		for (k = 0; k < (i < 4 ? 5 : 5000); k++)
			event_in(&s[i], k);
	}
}

static void values(void)
{
	MONTRACE_RECORDING(&job, "job \033[1m7", 10);
	MONTRACE_EVENT_IN(&job, MONTRACE_ERROR, "odd", MT_STR("z", "\033]0;x\a\"\\\n"), MT_I64("b", -1),
			  MT_F64("nan", NAN), MT_F64("a", INFINITY), MT_F64("minus", -INFINITY),
			  MT_BOOL("t", 1), MT_U64("b", UINT64_MAX));
	MONTRACE_EVENT_IN(&job, MONTRACE_WARN, "says", MT_STR("k", "v"), MT_STR("message", "hello\nworld"));
}

static void stale(void)
{
	int i;

	MONTRACE_RECORDING(&job, "job", 2);
	montrace_enter(&job);
	for (i = 0; i < 6; i++)
		MONTRACE_EVENT(MONTRACE_INFO, "five", MT_STR("a", "secret"), MT_STR("b", "secret"),
			       MT_STR("c", "secret"), MT_STR("d", "secret"), MT_STR("e", "secret"));
	MONTRACE_EVENT(MONTRACE_INFO, "one", MT_I64("a", 1));
	MONTRACE_EVENT(MONTRACE_INFO, "none");
	montrace_exit(&job);
}

static void *writes(void *arg)
{
	int thread = (int)(intptr_t)arg, i;

	for (i = 0; i < per_thread; i++)
		MONTRACE_EVENT_IN(&job, MONTRACE_INFO, "write", MT(thread), MT(i));
	return NULL;
}

static void writers(int capacity, int n)
{
	pthread_t t[THREADS];
	intptr_t i;

	per_thread = n;
	if (!job.id)
		MONTRACE_RECORDING(&job, "job", (uint64_t)capacity);
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, writes, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* A burst that the tracer is kept from reading, then one event more. */
static void gaps(void)
{
	writers(4096, 10);
	done();
	wait_line();
	per_thread = 20000;
	writes((void *)0);
	done();
	wait_line();
	per_thread = 1;
	writes((void *)1);
}

static void dies(const char *how)
{
	int i;

	MONTRACE_RECORDING(&job, "job", 64);
	montrace_enter(&job);
	for (i = 0; i < 100; i++)
		event(i);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "exec"))
		execl("/proc/self/exe", "subjects", "last_n", NULL);
	_exit(!strcmp(how, "fails") ? 3 : 0);
}

static void forks(void)
{
	pid_t pid;

	MONTRACE_RECORDING(&job, "job", 10);
	montrace_enter(&job);
	event(1);
	pid = fork();
	if (pid == 0) {
		event(2);
		event_in(&job, 3);
		MONTRACE_RECORDING(&inner_span, "child's own", 10);
		event_in(&inner_span, 4);
		montrace_exit(&job);
		montrace_close(&job); /* its copy: the parent's goes on */
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	event(5);
	montrace_exit(&job);
}

/* Nothing is open when the file is rotated; a step: the first subject is closed. */
static void idle(void)
{
	MONTRACE_RECORDING(&job, "job", 10);
	event_in(&job, 1);
	MONTRACE_RECORDING(&inner_span, "other", 10);
	event_in(&inner_span, 2);
	done();
	wait_line();
	montrace_close(&job);
	done();
	wait_line();
	_exit(3);
}

/* Events without end, as fast as it goes; a line ends it. */
static void *spins(void *arg)
{
	int i;

	for (i = 0; !*(volatile int *)arg; i++)
		event_in(&job, i);
	return NULL;
}

/* 20,000 events in about as many half milliseconds: no tracer that runs at all may lose one. */
static void paced(void)
{
	int i;

	MONTRACE_RECORDING(&job, "job", 4096);
	for (i = 0; i < 20000; i++) {
		event_in(&job, i);
		if (i % 2)
			usleep(1000);
	}
}

static void spin(void)
{
	static int stop;
	pthread_t t;

	MONTRACE_RECORDING(&job, "job", 4096);
	pthread_create(&t, NULL, spins, &stop);
	wait_line();
	*(volatile int *)&stop = 1;
	pthread_join(t, NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{"recorded", recorded},
	{"last_n", last_n},
	{"outside", outside},
	{"child", child},
	{"nested", nested},
	{"explicit_parent", explicit_parent},
	{"explicit_root", explicit_root},
	{"dropped", dropped},
	{"reuse", reuse},
	{"stacks", stacks},
	{"capacities", capacities},
	{"values", values},
	{"stale", stale},
	{"gaps", gaps},
	{"forks", forks},
	{"idle", idle},
	{"spin", spin},
	{"paced", paced},
};

int main(int argc, char **argv)
{
	struct montrace_span end;
	size_t i;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (argc < 2 || !wait_line())
		return 2;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(argv[1], all[i].name))
			all[i].run();
	if (!strcmp(argv[1], "writers"))
		writers(argc > 2 ? atoi(argv[2]) : 64, argc > 3 ? atoi(argv[3]) : 2000);
	if (!strcmp(argv[1], "dies"))
		dies(argc > 2 ? argv[2] : "kill");
	MONTRACE_RECORDING(&end, "end", 2);
	event_in(&end, 0);
	done();
	while (wait_line())
		;
	return 0;
}
