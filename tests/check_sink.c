/* SPDX-License-Identifier: BSD-3-Clause */
#include "check_sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strings.h"

#define BUCKETS 256

struct open {
	uint64_t key, span, time;
	const struct mt_callsite *cs;
	char *name;
	uint32_t name_len;
};

/* A process (thread == false) or thread that was told and is not gone. Its fields are copies from then. */
struct known {
	struct known *next;
	const void *p;
	const void *process;
	bool thread;
	bool parted; /* gone from a file that ended; only its end and those of its spans may be told */
	uint32_t pid, tid;
	uint64_t start;
	uint64_t time;     /* last one */
	struct open *open; /* of a thread: its stack; of a process: spans with a key, in no order */
	uint32_t depth, cap;
};

struct check {
	struct mt_sink sink;
	struct mt_sink *inner;
	bool want_log;
	struct known *known[BUCKETS];
	uint64_t calls;
	struct mt_check_counts n;
	char error[256];
	char *log;
	size_t log_len, log_cap;
	uint64_t *flows;
	uint32_t nflows;
};

static struct check *check_of(const struct mt_sink *s)
{
	return (struct check *)(uintptr_t)s;
}

__attribute__((format(printf, 2, 3))) static void fail(struct check *c, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (c->error[0])
		return;
	n = snprintf(c->error, sizeof(c->error), "call %" PRIu64 ": ", c->calls);
	va_start(ap, fmt);
	vsnprintf(c->error + n, sizeof(c->error) - (size_t)n, fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void put(struct check *c, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!c->want_log)
		return;
	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (c->log_len + (size_t)n + 1 > c->log_cap) {
		c->log_cap = (c->log_len + (size_t)n + 1) * 2;
		c->log = realloc(c->log, c->log_cap);
		if (!c->log)
			abort();
	}
	va_start(ap, fmt);
	vsnprintf(c->log + c->log_len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	c->log_len += (size_t)n;
}

static void put_value(struct check *c, const struct mt_value *v)
{
	if (v->missing)
		put(c, "?%.*s", (int)v->s.len, v->s.p);
	else if (v->type == MONTRACE_TYPE_I64)
		put(c, "%" PRId64, v->i);
	else if (v->type == MONTRACE_TYPE_F64)
		put(c, "%g", v->f);
	else if (v->type == MONTRACE_TYPE_BOOL)
		put(c, "%s", v->u ? "true" : "false");
	else if (v->type == MONTRACE_TYPE_U64)
		put(c, "%" PRIu64, v->u);
	else
		put(c, "\"%.*s\"", (int)v->s.len, v->s.p);
	if (v->cut)
		put(c, "+%u", v->full_len);
}

static void put_fields(struct check *c, const struct mt_callsite *cs, const struct mt_value *v, uint32_t n,
		       const struct mt_field *extra, uint32_t nextra)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		put(c, " %s=", cs ? cs->fields[i].name : "?");
		put_value(c, &v[i]);
	}
	for (i = 0; i < nextra; i++) {
		put(c, "%s %.*s=", i ? "" : " |", (int)extra[i].name.len, extra[i].name.p);
		put_value(c, &extra[i].value);
	}
	put(c, "\n");
}

static void put_flow(struct check *c, uint64_t flow)
{
	uint32_t i;

	for (i = 0; i < c->nflows && c->flows[i] != flow; i++)
		;
	if (i == c->nflows) {
		c->flows = realloc(c->flows, (i + 1) * sizeof(*c->flows));
		if (!c->flows)
			abort();
		c->flows[c->nflows++] = flow;
	}
	put(c, " flow=F%u", i + 1);
}

static struct known **find(struct check *c, const void *p)
{
	struct known **at = &c->known[((uintptr_t)p >> 4) % BUCKETS];

	while (*at && (*at)->p != p)
		at = &(*at)->next;
	return at;
}

static void check_text(struct check *c, const char *what, const char *p, size_t len)
{
	if (len && !p)
		fail(c, "%s: no text", what);
	else if (!mt_utf8_valid(p, len))
		fail(c, "%s: not valid UTF-8", what);
}

static void check_value(struct check *c, const struct mt_value *v)
{
	if (v->missing || v->type == MONTRACE_TYPE_STR || v->type == MONTRACE_TYPE_DEBUG)
		check_text(c, "value", v->s.p, v->s.len);
	else if (v->type == MONTRACE_TYPE_BOOL && v->u > 1)
		fail(c, "bool is %" PRIu64, v->u);
	else if (v->type < MONTRACE_TYPE_I64 || v->type > MONTRACE_TYPE_DEBUG)
		fail(c, "value of type %u", v->type);
}

static void check_fields(struct check *c, const struct mt_callsite *cs, const struct mt_value *v, uint32_t n,
			 const struct mt_field *extra, uint32_t nextra)
{
	uint32_t i;

	if (n > MONTRACE_MAX_FIELDS || (cs && n > cs->nfields))
		fail(c, "%u values", n);
	for (i = 0; i < n; i++)
		check_value(c, &v[i]);
	for (i = 0; i < nextra; i++) {
		check_text(c, "field name", extra[i].name.p, extra[i].name.len);
		check_value(c, &extra[i].value);
	}
}

/* The thread's entry if it may be used at this time; NULL and a failure if not (S1, S3). */
static struct known *check_who(struct check *c, const struct mt_thread *t)
{
	struct known *k = *find(c, t);

	if (!k || !k->thread) {
		fail(c, "S1: thread not told");
		return NULL;
	}
	if (k->tid != t->tid || k->start != t->start || k->process != t->process || k->pid != t->process->pid)
		fail(c, "S5: thread %u/%u changed who it is", k->pid, k->tid);
	return k;
}

static struct known *check_thread(struct check *c, const struct mt_thread *t, uint64_t time)
{
	struct known *k = check_who(c, t);

	if (!k)
		return NULL;
	if (time < k->time)
		fail(c, "S3: time of %u/%u runs back from %" PRIu64 " to %" PRIu64, k->pid, k->tid, k->time,
		     time);
	k->time = time;
	return k;
}

static struct known *learn(struct check *c, const void *p)
{
	struct known **at = find(c, p);

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at)
			abort();
		(*at)->p = p;
	}
	return *at;
}

static int check_process(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	struct check *c = check_of(s);
	bool is_new = !*find(c, p);
	struct known *k = learn(c, p);

	c->calls++;
	c->n.processes++;
	if (!is_new && (k->thread || k->pid != p->pid || k->start != p->start))
		fail(c, "S5: process %u changed who it is", k->pid);
	k->pid = p->pid;
	k->start = p->start;
	k->parted = false;
	if (!p->name || !p->cmdline || !p->execution_id) {
		fail(c, "process %u without a text", p->pid);
	} else {
		check_text(c, "process name", p->name, strlen(p->name));
		check_text(c, "cmdline", p->cmdline, strlen(p->cmdline));
		check_text(c, "execution id", p->execution_id, strlen(p->execution_id));
		put(c, "process %u name=%s", p->pid, p->name);
		if (p->ppid)
			put(c, " ppid=%u", p->ppid);
		if (p->uid)
			put(c, " uid=%u", p->uid);
		if (p->cmdline[0])
			put(c, " cmdline=%s", p->cmdline);
		if (p->execution_id[0])
			put(c, " exec=%s", p->execution_id);
		put(c, "\n");
	}
	return c->inner && c->inner->ops->process ? c->inner->ops->process(c->inner, p, time) : 0;
}

static int check_thread_op(struct mt_sink *s, struct mt_thread *t, uint64_t time)
{
	struct check *c = check_of(s);
	const struct known *p = *find(c, t->process);
	bool is_new = !*find(c, t);
	struct known *k = learn(c, t);

	c->calls++;
	c->n.threads++;
	if (!p || p->thread || p->parted)
		fail(c, "S1: thread %u before its process", t->tid);
	if (!is_new && (!k->thread || k->tid != t->tid || k->start != t->start || k->process != t->process))
		fail(c, "S5: thread %u changed who it is", t->tid);
	k->thread = true;
	k->process = t->process;
	k->pid = t->process->pid;
	k->tid = t->tid;
	k->start = t->start;
	if (!t->name)
		fail(c, "thread %u without name", t->tid);
	else
		check_text(c, "thread name", t->name, strlen(t->name));
	put(c, "thread %u/%u name=%s\n", k->pid, k->tid, t->name ? t->name : "(none)");
	return c->inner && c->inner->ops->thread ? c->inner->ops->thread(c->inner, t, time) : 0;
}

static void push(struct known *k, const struct mt_slice *sl)
{
	struct open *o;

	if (k->depth == k->cap) {
		k->cap = k->cap ? k->cap * 2 : 16;
		k->open = realloc(k->open, k->cap * sizeof(*k->open));
		if (!k->open)
			abort();
	}
	o = &k->open[k->depth++];
	*o = (struct open){
		.key = sl->key, .span = sl->span, .time = sl->time, .cs = sl->cs, .name_len = sl->name.len};
	o->name = malloc(sl->name.len + 1u);
	if (!o->name)
		abort();
	if (sl->name.len)
		memcpy(o->name, sl->name.p, sl->name.len);
}

static void put_begin(struct check *c, const struct mt_slice *sl)
{
	static const char *const names[] = {"reentered", "continued", "unseen", "cut"};
	const char *sep = " ";
	unsigned i;

	if (sl->thread)
		put(c, "begin %u/%u", sl->thread->process->pid, sl->thread->tid);
	else
		put(c, "kbegin %u", sl->process->pid);
	put(c, " @%" PRIu64 " %.*s #%" PRIu64 " span=%" PRIu64, sl->time, (int)sl->name.len, sl->name.p,
	    sl->key, sl->span);
	if (sl->parent)
		put(c, " parent=%" PRIu64, sl->parent);
	if (sl->flow && c->want_log)
		put_flow(c, sl->flow);
	for (i = 0; i < 4; i++) {
		if (!(sl->flags >> i & 1))
			continue;
		put(c, "%s%s", sep, names[i]);
		sep = ",";
	}
	put_fields(c, sl->cs, sl->values, sl->nvalues, sl->extra, sl->nextra);
}

static void check_slice(struct check *c, const struct mt_slice *sl)
{
	if (sl->key == 0)
		fail(c, "slice 0");
	if (sl->span == 0)
		fail(c, "slice of span 0");
	if (sl->flags & ~15u)
		fail(c, "slice flags %x", sl->flags);
	if ((sl->flags & MT_SLICE_REENTERED) && !sl->flow)
		fail(c, "reentered without flow");
	check_text(c, "slice name", sl->name.p, sl->name.len);
	check_fields(c, sl->cs, sl->values, sl->nvalues, sl->extra, sl->nextra);
}

static int check_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct check *c = check_of(s);
	struct known *k;

	c->calls++;
	c->n.begins++;
	c->n.open++;
	k = check_thread(c, sl->thread, sl->time);
	check_slice(c, sl);
	if (k)
		push(k, sl);
	put_begin(c, sl);
	return c->inner && c->inner->ops->begin ? c->inner->ops->begin(c->inner, sl) : 0;
}

/* o has the key of e. */
static void check_pair(struct check *c, const struct open *o, const struct mt_slice_end *e)
{
	if (o->span != e->span || o->cs != e->cs)
		fail(c, "S2: end of slice %" PRIu64 " has another span or callsite", e->key);
	else if (o->name_len != e->name.len || (o->name_len && memcmp(o->name, e->name.p, o->name_len) != 0))
		fail(c, "S2: end of slice %" PRIu64 " has another name", e->key);
}

static void pop(struct check *c, struct known *k, const struct mt_slice_end *e)
{
	struct open *o;

	if (k->depth == 0) {
		fail(c, "S2: end on %u/%u where nothing is open", k->pid, k->tid);
		return;
	}
	o = &k->open[--k->depth];
	c->n.open--;
	if (o->key != e->key)
		fail(c, "S2: end of slice %" PRIu64 ", innermost is %" PRIu64, e->key, o->key);
	else
		check_pair(c, o, e);
	free(o->name);
}

static void pop_keyed(struct check *c, struct known *k, const struct mt_slice_end *e)
{
	uint32_t i;

	for (i = 0; i < k->depth && k->open[i].key != e->key; i++)
		;
	if (i == k->depth) {
		fail(c, "S6: end of slice %" PRIu64 " of process %u, which is not open", e->key, k->pid);
		return;
	}
	check_pair(c, &k->open[i], e);
	if (e->time < k->open[i].time)
		fail(c, "S6: slice %" PRIu64 " ends before it begins", e->key);
	free(k->open[i].name);
	k->open[i] = k->open[--k->depth];
	c->n.open--;
}

static const char *const reasons[] = {"normal", "outer",  "closed", "lost", "thread", "process",
				      "exec",   "detach", "part",   "left", "again",  "forgotten"};

static void put_end(struct check *c, const struct mt_slice_end *e)
{
	check_fields(c, NULL, NULL, 0, e->extra, e->nextra);
	if (e->reason > MT_END_FORGOTTEN) {
		fail(c, "end reason %d", (int)e->reason);
		return;
	}
	c->n.ends_by[e->reason]++;
	if (e->thread)
		put(c, "end %u/%u", e->thread->process->pid, e->thread->tid);
	else
		put(c, "kend %u", e->process->pid);
	put(c, " @%" PRIu64 " %.*s #%" PRIu64 " span=%" PRIu64 " %s", e->time, (int)e->name.len, e->name.p,
	    e->key, e->span, reasons[e->reason]);
	if (e->exit_status)
		put(c, " status=%u", e->exit_status);
	if (e->in_doubt)
		put(c, " doubt");
	if (e->in_doubt && !mt_end_of_surroundings(e->reason))
		fail(c, "end %s in doubt", reasons[e->reason]);
	put_fields(c, NULL, NULL, 0, e->extra, e->nextra);
}

/* The process's entry if it may be used (S1). */
static struct known *check_keyed(struct check *c, const struct mt_thread *t, const struct mt_process *p)
{
	struct known *k = p ? *find(c, p) : NULL;

	if (t || !p || !k || k->thread)
		fail(c, "S6: a span with a key of no process that was told, or of a thread");
	return k;
}

static int check_keyed_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct check *c = check_of(s);
	struct known *k = check_keyed(c, sl->thread, sl->process);
	uint32_t i;

	c->calls++;
	c->n.keyed_begins++;
	c->n.open++;
	check_slice(c, sl);
	for (i = 0; k && i < k->depth; i++)
		if (k->open[i].key == sl->key)
			fail(c, "S6: slice %" PRIu64 " begins twice", sl->key);
	if (k)
		push(k, sl);
	put_begin(c, sl);
	return c->inner && c->inner->ops->keyed_begin ? c->inner->ops->keyed_begin(c->inner, sl) : 0;
}

static int check_keyed_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	struct check *c = check_of(s);
	struct known *k = check_keyed(c, e->thread, e->process);

	c->calls++;
	c->n.keyed_ends++;
	if (k)
		pop_keyed(c, k, e);
	put_end(c, e);
	return c->inner && c->inner->ops->keyed_end ? c->inner->ops->keyed_end(c->inner, e) : 0;
}

static int check_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	struct check *c = check_of(s);
	struct known *k;

	c->calls++;
	c->n.ends++;
	k = check_thread(c, e->thread, e->time);
	if (k)
		pop(c, k, e);
	put_end(c, e);
	return c->inner && c->inner->ops->end ? c->inner->ops->end(c->inner, e) : 0;
}

static int check_instant(struct mt_sink *s, const struct mt_instant *i)
{
	struct check *c = check_of(s);

	c->calls++;
	c->n.instants++;
	check_thread(c, i->thread, i->time);
	check_text(c, "instant name", i->name.p, i->name.len);
	check_fields(c, i->cs, i->values, i->nvalues, i->extra, i->nextra);
	put(c, "instant %u/%u @%" PRIu64 " %.*s", i->thread->process->pid, i->thread->tid, i->time,
	    (int)i->name.len, i->name.p);
	if (i->parent)
		put(c, " parent=%" PRIu64, i->parent);
	if (i->flags & MT_SLICE_CUT)
		put(c, " cut");
	put_fields(c, i->cs, i->values, i->nvalues, i->extra, i->nextra);
	return c->inner && c->inner->ops->instant ? c->inner->ops->instant(c->inner, i) : 0;
}

static int check_counter(struct mt_sink *s, const struct mt_count *v)
{
	struct check *c = check_of(s);

	c->calls++;
	c->n.counters++;
	check_who(c, v->thread); /* it may be a value from before a window */
	if (v->value.missing || v->value.type < MONTRACE_TYPE_I64 || v->value.type > MONTRACE_TYPE_F64)
		fail(c, "counter that is no number");
	put(c, "counter %u/%u @%" PRIu64 " ", v->thread->process->pid, v->thread->tid, v->time);
	if (v->name.p) {
		check_text(c, "counter name", v->name.p, v->name.len);
		put(c, "%.*s=", (int)v->name.len, v->name.p);
	} else {
		put(c, "%s=", v->cs ? v->cs->name : "");
	}
	put_value(c, &v->value);
	put(c, "\n");
	return c->inner && c->inner->ops->counter ? c->inner->ops->counter(c->inner, v) : 0;
}

static int check_lost(struct mt_sink *s, const struct mt_loss *l)
{
	struct check *c = check_of(s);

	c->calls++;
	c->n.losses++;
	c->n.lost += l->count;
	if (l->thread) {
		check_thread(c, l->thread, l->time);
		put(c, "lost %u/%u", l->thread->process->pid, l->thread->tid);
	} else if (l->process) {
		if (!*find(c, l->process))
			fail(c, "S1: process %u not told", l->process->pid);
		put(c, "lost %u", l->process->pid);
	} else {
		put(c, "lost");
	}
	if (l->count == 0 || !l->cause)
		fail(c, "loss of nothing or without cause");
	put(c, " @%" PRIu64 " n=%" PRIu64 "%s%s\n", l->time, l->count, l->cause && l->cause[0] ? " " : "",
	    l->cause ? l->cause : "");
	return c->inner && c->inner->ops->lost ? c->inner->ops->lost(c->inner, l) : 0;
}

static void forget(struct known **at)
{
	struct known *k = *at;
	uint32_t i;

	*at = k->next;
	for (i = 0; i < k->depth; i++)
		free(k->open[i].name);
	free(k->open);
	free(k);
}

static bool has_threads(const struct check *c, const void *process)
{
	const struct known *k;
	unsigned i;

	for (i = 0; i < BUCKETS; i++)
		for (k = c->known[i]; k; k = k->next)
			if (k->thread && k->process == process)
				return true;
	return false;
}

static void put_gone(struct check *c, const struct mt_process *p)
{
	put(c, "gone %u", p->pid);
	if (p->end_reason != MT_END_NORMAL)
		put(c, " %s", p->end_reason <= MT_END_FORGOTTEN ? reasons[p->end_reason] : "?");
	if (p->exit_status)
		put(c, " status=%u", p->exit_status);
	put(c, "\n");
}

static int check_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	struct check *c = check_of(s);
	const void *who = p ? (const void *)p : (const void *)t;
	struct known **at = find(c, who);
	int rc = 0;

	c->calls++;
	c->n.gones++;
	if (!p == !t)
		fail(c, "gone() for both or none");
	else if (!*at || (*at)->thread != !p)
		fail(c, "S5: gone() of who is not known");
	else if ((*at)->depth)
		fail(c, "S4: gone() of %u/%u with %u slices open", (*at)->pid, (*at)->tid, (*at)->depth);
	else if (p && has_threads(c, p))
		fail(c, "S5: gone() of process %u before its threads", p->pid);
	else if (p && (*at)->parted && p->end_reason == MT_END_PART)
		fail(c, "S5: process %u was gone already", p->pid);
	if (t)
		put(c, "gone %u/%u\n", t->process->pid, t->tid);
	else if (p)
		put_gone(c, p);
	if (c->inner && c->inner->ops->gone)
		rc = c->inner->ops->gone(c->inner, p, t, time);
	if (*at && p && p->end_reason == MT_END_PART && !(*at)->parted)
		(*at)->parted = true;
	else if (*at)
		forget(at);
	return rc;
}

static int check_span_new(struct mt_sink *s, const struct mt_span_new *n)
{
	struct check *c = check_of(s);

	c->calls++;
	c->n.span_news++;
	if (!*find(c, n->process) || (*find(c, n->process))->parted)
		fail(c, "S1: process %u not told", n->process->pid);
	if (n->span == 0)
		fail(c, "span 0 made");
	check_fields(c, n->cs, n->values, n->nvalues, NULL, 0);
	put(c, "new %u @%" PRIu64 " span=%" PRIu64, n->process->pid, n->time, n->span);
	if (n->parent)
		put(c, " parent=%" PRIu64, n->parent);
	put_fields(c, n->cs, n->values, n->nvalues, NULL, 0);
	return c->inner && c->inner->ops->span_new ? c->inner->ops->span_new(c->inner, n) : 0;
}

static bool span_is_open(const struct check *c, uint64_t span)
{
	const struct known *k;
	uint32_t i, b;

	for (b = 0; b < BUCKETS; b++)
		for (k = c->known[b]; k; k = k->next)
			for (i = 0; i < k->depth; i++)
				if (k->open[i].span == span)
					return true;
	return false;
}

static int check_span_close(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time)
{
	struct check *c = check_of(s);

	c->calls++;
	c->n.span_closes++;
	if (!*find(c, p))
		fail(c, "S1: process %u not told", p->pid);
	if (span == 0 || span_is_open(c, span))
		fail(c, "span %" PRIu64 " closed while a slice of it is open", span);
	put(c, "close %u @%" PRIu64 " span=%" PRIu64 "\n", p->pid, time, span);
	return c->inner && c->inner->ops->span_close ? c->inner->ops->span_close(c->inner, p, span, time) : 0;
}

static int check_mark(struct mt_sink *s, uint64_t time, struct mt_str text)
{
	struct check *c = check_of(s);

	c->calls++;
	c->n.marks++;
	check_text(c, "mark", text.p, text.len);
	put(c, "mark @%" PRIu64 " %.*s\n", time, (int)text.len, text.p);
	return c->inner && c->inner->ops->mark ? c->inner->ops->mark(c->inner, time, text) : 0;
}

static int check_flush(struct mt_sink *s, uint64_t now)
{
	struct check *c = check_of(s);

	c->calls++;
	c->n.flushes++;
	return c->inner && c->inner->ops->flush ? c->inner->ops->flush(c->inner, now) : 0;
}

static int check_free(struct mt_sink *s)
{
	struct check *c = check_of(s);
	int rc = 0;
	unsigned i;

	if (!s)
		return 0;
	mt_check_final(s);
	if (c->inner && c->inner->ops->free)
		rc = c->inner->ops->free(c->inner);
	if (c->error[0])
		rc = -EBADMSG;
	for (i = 0; i < BUCKETS; i++)
		while (c->known[i])
			forget(&c->known[i]);
	free(c->log);
	free(c->flows);
	free(c);
	return rc;
}

static const struct mt_sink_ops check_ops = {
	.process = check_process,
	.thread = check_thread_op,
	.begin = check_begin,
	.end = check_end,
	.instant = check_instant,
	.counter = check_counter,
	.lost = check_lost,
	.gone = check_gone,
	.flush = check_flush,
	.free = check_free,
	.span_new = check_span_new,
	.span_close = check_span_close,
	.mark = check_mark,
	.keyed_begin = check_keyed_begin,
	.keyed_end = check_keyed_end,
};

int mt_check_new(struct mt_sink *inner, bool log, struct mt_sink **ret_sink)
{
	struct check *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->sink.ops = &check_ops;
	c->inner = inner;
	c->want_log = log;
	*ret_sink = &c->sink;
	return 0;
}

const char *mt_check_error(const struct mt_sink *sink)
{
	const struct check *c = check_of(sink);

	return c->error[0] ? c->error : NULL;
}

const char *mt_check_final(struct mt_sink *sink)
{
	struct check *c = check_of(sink);
	unsigned i;

	for (i = 0; i < BUCKETS; i++) {
		const struct known *k = c->known[i];

		if (k && k->depth)
			fail(c, "S4: %u/%u has %u slices open at the end", k->pid, k->tid, k->depth);
		else if (k)
			fail(c, "S5: %s %u was not told gone", k->thread ? "thread" : "process",
			     k->thread ? k->tid : k->pid);
	}
	return mt_check_error(sink);
}

const struct mt_check_counts *mt_check_counts(const struct mt_sink *sink)
{
	return &check_of(sink)->n;
}

const char *mt_check_log(const struct mt_sink *sink)
{
	const struct check *c = check_of(sink);

	return c->log_len ? c->log : "";
}

void mt_check_log_clear(struct mt_sink *sink)
{
	check_of(sink)->log_len = 0;
}
