/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slices of one thread.
 *
 * An end does not need to be the innermost. What lies above it is either
 *   - suspect: it was open when records of this thread were lost, so its own end may be among them.
 *     It is ended with MT_END_LOST and does not come back;
 *   - or a scope that nests by its nature (MT_HOW_NESTED): the program left it by a jump. It is ended with
 *     MT_END_LEFT;
 *   - or known to be still open (async code holds several spans in any order). It is ended with
 *     MT_END_OUTER and begins again at the same time in a continued slice.
 * The suspect ones are always the lower part of the stack, for a gap makes everything suspect that is open
 * then and nothing that begins later.
 *
 * Begins beyond max_depth are remembered (hidden), for their ends must not be taken for ends of shown slices
 * of the same callsite. As long as one is left, everything that begins is hidden too: it is inside.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spans_int.h"

#define MAX_EXTRA (SP_MAX_RECORDED + 3)

struct mt_field sp_field_u64(const char *name, uint64_t u)
{
	return (struct mt_field){.name = sp_str(name, strlen(name)),
				 .value = {.type = MONTRACE_TYPE_U64, .u = u}};
}

void sp_tell_process(struct mt_spans *s, struct sp_process *p, uint64_t time)
{
	if (p->told)
		return;
	p->told = true;
	if (s->sink->ops->process)
		sp_err(s, s->sink->ops->process(s->sink, &p->pub, time));
}

void sp_tell_thread(struct mt_spans *s, struct sp_thread *t, uint64_t time)
{
	if (t->told)
		return;
	sp_tell_process(s, t->proc, time);
	t->told = true;
	if (s->sink->ops->thread)
		sp_err(s, s->sink->ops->thread(s->sink, &t->pub, time));
}

static struct mt_name_plan *grow_plans(struct mt_spans *s, uint32_t id)
{
	uint32_t n = s->nplans ? s->nplans : 64;
	struct mt_name_plan *v;

	if (id >= SP_MAX_SITES)
		return NULL;
	while (n <= id)
		n *= 2;
	v = realloc(s->plans, n * sizeof(*v));
	if (!v)
		return NULL;
	memset(v + s->nplans, 0, (n - s->nplans) * sizeof(*v));
	s->plans = v;
	s->nplans = n;
	return &v[id];
}

/* Valid until the next call. A callsite that finds no place of its own goes by its static name. */
const struct mt_name_plan *sp_plan(struct mt_spans *s, const struct mt_callsite *cs)
{
	struct mt_name_plan *p = cs->id < s->nplans ? &s->plans[cs->id] : grow_plans(s, cs->id);

	if (p && p->cs == cs)
		return p;
	if (p && !p->cs) {
		mt_name_plan_init(p, s->opts.naming, cs);
		return p;
	}
	mt_name_plan_init(&s->odd_plan, MT_NAMING_PLAIN, cs);
	return &s->odd_plan;
}

static bool own_name(struct mt_spans *s, struct sp_slice *sl, struct mt_str name)
{
	char *to;

	if (name.len <= SP_NAME_BLOCK && s->name_pool) {
		struct name_block *b = s->name_pool;

		s->name_pool = b->next;
		to = b->text;
		sl->name_kind = SP_NAME_POOL;
	} else if (name.len <= SP_NAME_BLOCK) {
		struct name_block *b = malloc(sizeof(*b));

		if (!b)
			return false;
		to = b->text;
		sl->name_kind = SP_NAME_POOL;
	} else {
		to = malloc(name.len);
		if (!to)
			return false;
		sl->name_kind = SP_NAME_HEAP;
	}
	sl->name = sp_str(memcpy(to, name.p, name.len), name.len);
	return true;
}

static void drop_name(struct mt_spans *s, struct sp_slice *sl)
{
	if (sl->name_kind == SP_NAME_POOL) {
		struct name_block *b = (struct name_block *)((char *)(uintptr_t)sl->name.p -
							     offsetof(struct name_block, text));

		b->next = s->name_pool;
		s->name_pool = b;
	} else if (sl->name_kind == SP_NAME_HEAP) {
		free((char *)(uintptr_t)sl->name.p);
	}
}

/* Fields that the callsite's note does not have. below: number of the slice that this one lies in. */
static uint32_t begin_extra(const struct sp_slice *sl, uint64_t below, struct mt_field *f)
{
	const struct sp_span *sp = sl->span;
	uint32_t n = 0, i;

	if (sp)
		f[n++] = sp_field_u64("span", sl->num);
	if (sl->parent != below)
		f[n++] = sp_field_u64("parent", sl->parent);
	if (!sp)
		return n;
	if (!sp->seen)
		f[n++] = (struct mt_field){.name = {"fields", 6},
					   .value = {.type = MONTRACE_TYPE_STR, .s = {"not seen", 8}}};
	for (i = 0; i < sp->nrecorded; i++)
		f[n++] = sp->recorded[i].field;
	return n;
}

/* Tells the sink about the begin of sl, which is going to be the innermost slice of t. */
static void emit_begin(struct mt_spans *s, struct sp_thread *t, struct sp_slice *sl, const struct sp_begin *b,
		       uint32_t flags)
{
	struct mt_field extra[MAX_EXTRA];
	struct mt_slice out;

	sl->key = ++s->last_key;
	if (sl->span)
		sl->gen = sl->span->gen;
	s->stats.slices++;
	if (!s->sink->ops->begin)
		return;
	out.thread = &t->pub;
	out.time = b->time;
	out.cs = sl->cs;
	out.name = sl->name;
	out.key = sl->key;
	out.span = sl->num;
	out.parent = sl->parent;
	out.flow = sl->span ? sl->span->flow : flags & MT_SLICE_CONTINUED ? sp_flow(t->proc, sl->num) : 0;
	out.flags = flags;
	out.nvalues = b->nvalues;
	out.values = b->values;
	out.nextra = begin_extra(sl, sp_top(t), extra);
	out.extra = extra;
	sp_err(s, s->sink->ops->begin(s->sink, &out));
}

void sp_emit_end(struct mt_spans *s, struct sp_thread *t, const struct sp_slice *sl, uint64_t time,
		 enum mt_end_reason reason, uint32_t status)
{
	const struct sp_span *sp = sl->span;
	struct mt_field extra[SP_MAX_RECORDED + MONTRACE_MAX_FIELDS];
	struct mt_slice_end out;
	uint32_t i;

	if (!s->sink->ops->end)
		return;
	out.thread = &t->pub;
	out.time = time;
	out.cs = sl->cs;
	out.name = sl->name;
	out.key = sl->key;
	out.span = sl->num;
	out.reason = reason;
	out.exit_status = status;
	out.in_doubt = mt_end_of_surroundings(reason) && (uint64_t)(sl - t->stack) < t->suspect;
	out.nextra = 0;
	out.extra = extra;
	for (i = 0; sp && sp->gen != sl->gen && i < sp->nrecorded; i++)
		if (sp->recorded[i].gen > sl->gen)
			extra[out.nextra++] = sp->recorded[i].field;
	for (i = 0; reason == MT_END_NORMAL && i < s->nending; i++)
		extra[out.nextra++] = s->ending[i];
	sp_err(s, s->sink->ops->end(s->sink, &out));
}

static void slice_done(struct mt_spans *s, struct sp_slice *sl)
{
	drop_name(s, sl);
	if (sl->span)
		sp_span_release(sl->span);
}

/* Forgets n hidden entries from at. */
static void hidden_del(struct mt_spans *s, struct sp_thread *t, uint32_t at, uint32_t n)
{
	uint32_t i;

	if (n == 0)
		return;
	for (i = at; i < at + n; i++)
		if (t->hidden[i].span)
			sp_span_release(t->hidden[i].span);
	t->nhidden -= n;
	s->nhidden -= n;
	memmove(t->hidden + at, t->hidden + at + n, (t->nhidden - at) * sizeof(*t->hidden));
}

/* Forgets the suspect ones among the hidden entries from at and among those beyond. */
static void hidden_del_suspect(struct mt_spans *s, struct sp_thread *t, uint32_t shown, uint32_t at)
{
	uint64_t first = (uint64_t)shown + at, n;

	if (t->suspect <= first)
		return;
	n = t->suspect - first;
	if (n <= t->nhidden - at) {
		hidden_del(s, t, at, (uint32_t)n);
		return;
	}
	n -= t->nhidden - at;
	hidden_del(s, t, at, t->nhidden - at);
	t->deeper -= n < t->deeper ? n : t->deeper;
}

/* Begins again what end_at ended with MT_END_OUTER; it is at stack[depth .. upto). */
void sp_continue_slices(struct mt_spans *s, struct sp_thread *t, uint32_t upto, uint64_t time)
{
	while (t->depth < upto) {
		struct sp_slice *sl = &t->stack[t->depth];
		struct sp_begin b = {.time = time};
		uint32_t flags = MT_SLICE_CONTINUED;

		if (sl->span) {
			b.nvalues = sl->span->nvalues;
			b.values = sl->span->values;
			flags |= MT_SLICE_REENTERED | (sl->span->seen ? 0 : MT_SLICE_UNSEEN);
		}
		flags |= sl->cut || (sl->span && sl->span->cut) ? MT_SLICE_CUT : 0;
		emit_begin(s, t, sl, &b, flags);
		t->depth++;
	}
}

/*
 * Is a scope of cs left by a jump when one of outer, around it, ends? Where ends say which scope they mean, not when
 * that is another one of its own callsite: then the thread has more than one stack, and is on another.
 */
static bool is_left(const struct mt_callsite *cs, uint64_t match, const struct mt_callsite *outer)
{
	return (cs->how & MT_HOW_NESTED) && !(match && cs == outer);
}

static bool slice_left(const struct sp_slice *sl, const struct mt_callsite *outer)
{
	return !sl->span && is_left(sl->cs, sl->match, outer);
}

/* The same for those from at on that were too deep to show. Those beyond are taken to be like the deepest. */
static void hidden_left(struct mt_spans *s, struct sp_thread *t, uint32_t at, const struct mt_callsite *outer)
{
	for (uint32_t i = t->nhidden; i-- > at;) {
		struct sp_hidden *h = &t->hidden[i];

		if (h->span || !is_left(h->cs, h->match, outer))
			continue;
		if (i + 1 == t->nhidden)
			t->deeper = 0;
		hidden_del(s, t, i, 1);
	}
}

/* Takes slice i off the stack, wherever it is. */
static void end_at(struct mt_spans *s, struct sp_thread *t, uint32_t i, uint64_t time,
		   enum mt_end_reason reason)
{
	const struct mt_callsite *outer = t->stack[i].cs;
	uint32_t old = t->depth, j, keep = i;

	if (i + 1 < old && t->suspect < old && reason != MT_END_LOST)
		s->stats.reordered++;
	for (j = old - 1; j > i; j--)
		sp_emit_end(s, t, &t->stack[j], time,
			    j < t->suspect                    ? MT_END_LOST
			    : slice_left(&t->stack[j], outer) ? MT_END_LEFT
							      : MT_END_OUTER,
			    0);
	sp_emit_end(s, t, &t->stack[i], time, reason, 0);
	slice_done(s, &t->stack[i]);
	for (j = i + 1; j < old; j++) {
		if (j < t->suspect) {
			slice_done(s, &t->stack[j]);
			s->stats.lost_ends++;
			t->proc->pub.unpaired.lost_ends++;
		} else if (slice_left(&t->stack[j], outer)) {
			slice_done(s, &t->stack[j]);
		} else {
			t->stack[keep++] = t->stack[j];
		}
	}
	if (t->suspect > i) {
		hidden_del_suspect(s, t, old, 0);
		t->suspect = i;
	}
	hidden_left(s, t, 0, outer);
	t->depth = i;
	sp_continue_slices(s, t, keep, time);
}

void sp_end_all(struct mt_spans *s, struct sp_thread *t, uint64_t time, enum mt_end_reason reason,
		uint32_t status)
{
	if (time < t->last_time)
		time = t->last_time;
	while (t->depth) {
		t->depth--;
		sp_emit_end(s, t, &t->stack[t->depth], time, reason, status);
		slice_done(s, &t->stack[t->depth]);
	}
	hidden_del(s, t, 0, t->nhidden);
	t->deeper = 0;
	t->suspect = 0;
	t->last_time = time;
}

void sp_gap(struct sp_thread *t)
{
	t->suspect = (uint64_t)t->depth + t->nhidden + t->deeper;
}

/* Is the scope of open the one that an end of cs means? */
static bool meant(const struct mt_spans *s, const struct mt_callsite *cs, const struct mt_callsite *open,
		  uint64_t match)
{
	return cs == open && (!s->match || s->match == match);
}

bool sp_end(struct mt_spans *s, struct sp_thread *t, const struct mt_callsite *cs, const struct sp_span *span,
	    uint64_t time, enum mt_end_reason reason)
{
	uint32_t i;

	if (t->deeper && t->suspect <= t->depth + t->nhidden && reason == MT_END_NORMAL) {
		t->deeper--;
		return true;
	}
	for (i = t->nhidden; i-- > 0;) {
		if (t->hidden[i].span != span ||
		    (!span && !meant(s, cs, t->hidden[i].cs, t->hidden[i].match)))
			continue;
		hidden_del_suspect(s, t, t->depth, i + 1);
		hidden_left(s, t, i + 1, t->hidden[i].cs);
		hidden_del(s, t, i, 1);
		if (t->suspect > t->depth + i)
			t->suspect = t->depth + i;
		return true;
	}
	for (i = t->depth; i-- > 0;) {
		if (t->stack[i].span != span || (!span && !meant(s, cs, t->stack[i].cs, t->stack[i].match)))
			continue;
		end_at(s, t, i, time, reason);
		return true;
	}
	return false;
}

static void hide(struct mt_spans *s, struct sp_thread *t, const struct sp_begin *b)
{
	s->stats.too_deep++;
	t->proc->pub.unpaired.too_deep++;
	if (t->deeper || t->nhidden == SP_MAX_HIDDEN || s->nhidden == SP_MAX_HIDDEN_ALL)
		goto beyond;
	if (t->nhidden == t->hidden_cap) {
		uint32_t cap = t->hidden_cap ? t->hidden_cap * 2 : 16;
		struct sp_hidden *v = realloc(t->hidden, cap * sizeof(*v));

		if (!v)
			goto beyond;
		t->hidden = v;
		t->hidden_cap = cap;
	}
	t->hidden[t->nhidden++] = (struct sp_hidden){b->cs, b->span, b->match};
	s->nhidden++;
	if (b->span)
		sp_span_hold(b->span);
	return;
beyond:
	t->deeper++;
}

static bool is_full(const struct mt_spans *s, const struct sp_thread *t)
{
	return t->depth >= s->opts.max_depth || t->nhidden || t->deeper;
}

void sp_make_room(struct mt_spans *s, struct sp_thread *t, uint64_t time)
{
	if (!is_full(s, t) || !t->suspect || !t->depth)
		return;
	s->stats.lost_ends++;
	t->proc->pub.unpaired.lost_ends++;
	end_at(s, t, 0, time, MT_END_LOST);
}

static bool stack_room(struct mt_spans *s, struct sp_thread *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 8;
	struct sp_slice *v;

	if (t->depth < t->cap)
		return true;
	v = realloc(t->stack, cap * sizeof(*v));
	if (!v) {
		sp_err(s, -ENOMEM);
		return false;
	}
	t->stack = v;
	t->cap = cap;
	return true;
}

void sp_begin(struct mt_spans *s, struct sp_thread *t, const struct sp_begin *b)
{
	struct sp_span *sp = b->span;
	struct sp_slice *sl;
	uint32_t flags = b->cut ? MT_SLICE_CUT : 0;

	if (is_full(s, t)) {
		hide(s, t, b);
		return;
	}
	if (!stack_room(s, t))
		return;
	sl = &t->stack[t->depth];
	sl->since = b->time;
	sl->cs = b->cs;
	sl->span = sp;
	sl->parent = b->parent;
	sl->match = b->match;
	sl->name_kind = SP_NAME_BORROWED;
	sl->cut = b->cut;
	if (sp) {
		sl->num = sp->num;
		sl->name = sp->name;
		flags |= sp->entered ? MT_SLICE_REENTERED : 0;
		flags |= sp->seen ? 0 : MT_SLICE_UNSEEN;
		s->stats.spans += !sp->entered;
		sp->entered = true;
		sp_span_hold(sp);
	} else {
		const struct mt_name_plan *plan = sp_plan(s, b->cs);
		struct mt_str name = mt_name_get(plan, b->values, b->nvalues, s->name_buf);

		sl->num = ++s->last_num;
		if (name.p == plan->fixed.p || !own_name(s, sl, name))
			sl->name = plan->fixed;
		s->stats.spans++;
	}
	sp_tell_thread(s, t, b->time);
	emit_begin(s, t, sl, b, flags);
	t->depth++;
}
