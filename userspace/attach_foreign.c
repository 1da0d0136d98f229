/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Foreign USDT probes that specs ask for. Each site gets a number and a plan (bpf/shared.h) under that number; then
 * it is attached like any other, to one of two programs: the one that may sleep reads memory that was never
 * touched, and costs a little more.
 *
 * A site that the kernel refuses, or that is on a 5-byte nop (A6), costs itself; a span's costs its callsite (A5).
 */
#include "attach_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "elfsyms.h"

int mt_attach_foreign_find(struct mt_attach *a, struct binary *b)
{
	struct mt_usdt_found *found = NULL;
	struct mt_elfsyms *syms = NULL;
	struct foreign *f;
	int err;

	if (!a->usdt || b->notes->nprobes == b->notes->nnative)
		return 0;
	err = mt_elfsyms_new(b->fd, &syms);
	if (!err)
		err = mt_usdt_find(b->notes, a->usdt, a->next_id, mt_elfsyms_find, syms, &found);
	mt_elfsyms_free(syms);
	if (err)
		return err;
	f = found->nsites ? calloc(1, sizeof(*f)) : NULL;
	if (!f) {
		err = found->nsites ? -ENOMEM : 0;
		mt_usdt_found_free(found);
		return err;
	}
	b->foreign = f;
	f->found = found;
	a->next_id += found->ncallsites;
	f->numbers = calloc(found->nsites, sizeof(*f->numbers));
	f->site_failed = calloc(found->nsites, sizeof(*f->site_failed));
	f->verdicts = calloc(found->ncallsites, sizeof(*f->verdicts));
	return f->numbers && f->site_failed && f->verdicts ? 0 : -ENOMEM;
}

void mt_attach_foreign_free(struct binary *b)
{
	struct foreign *f = b->foreign;

	if (!f)
		return;
	mt_usdt_found_free(f->found);
	free(f->numbers);
	free(f->site_failed);
	free(f->verdicts);
	free(f);
	b->foreign = NULL;
}

static bool is_span(const struct mt_callsite *cs)
{
	return cs->class_ == MONTRACE_CLASS_SCOPE || cs->class_ == MONTRACE_CLASS_SPAN;
}

/* Failed: all its sites are refused; of a span, one of them. */
static void judge(struct mt_attach *a, struct foreign *f)
{
	const struct mt_usdt_found *d = f->found;
	enum mt_verdict_rule rule;
	uint32_t i, k;

	for (i = 0; i < d->ncallsites; i++)
		f->verdicts[i] = mt_filter_verdict(a->filter, &d->callsites[i], &rule, NULL) ? V_FAILED
				 : rule == MT_RULE_DIRECTIVE                                 ? V_DIRECTIVE
											     : V_MODE;
	for (i = 0; i < d->nsites; i++)
		if (!f->site_failed[i] && f->verdicts[d->sites[i].callsite] == V_FAILED)
			f->verdicts[d->sites[i].callsite] = V_ARMED;
	for (i = 0; i < d->nsites; i++) {
		k = d->sites[i].callsite;
		if (f->site_failed[i] && is_span(&d->callsites[k]) && f->verdicts[k] == V_ARMED)
			f->verdicts[k] = V_FAILED;
	}
}

/* Its number, and its plan in the kernel. */
static int number(struct mt_attach *a, struct foreign *f, uint32_t i)
{
	const struct mt_usdt_site *s = &f->found->sites[i];
	int err;

	if (f->numbers[i])
		return 0;
	if (a->opts.nop5_call && s->probe->on_nop5) { /* A6 */
		f->site_failed[i] = true;
		f->error = -EOPNOTSUPP;
		return 0;
	}
	err = mt_sites_add(a->opts.sites, &f->found->callsites[s->callsite], &f->numbers[i]);
	if (err)
		return err;
	if (bpf_map_update_elem(a->opts.plans, &f->numbers[i], &s->plan, BPF_ANY)) {
		f->site_failed[i] = true; /* too many: what is beyond is not armed, and said */
		f->error = -errno;
	}
	return 0;
}

static bool is_bare(const struct mt_plan *p)
{
	return !p->nops && !p->nfields && !p->ntests && !(p->flags & MT_PLAN_NEST_POP);
}

/* Sites for one of the programs. */
static int collect(struct mt_attach *a, struct foreign *f, bool faults, struct batch *ret)
{
	bool sleeps = a->opts.foreign_multi_s || a->opts.foreign_single_s;
	const struct mt_usdt_found *d = f->found;
	int err = mt_attach_batch(d->nsites, ret);
	uint32_t i;

	if (err)
		return err;
	ret->failed = f->site_failed;
	ret->error = &f->error;
	ret->multi = faults ? a->opts.foreign_multi_s : a->opts.foreign_multi;
	ret->single = faults ? a->opts.foreign_single_s : a->opts.foreign_single;
	for (i = 0; i < d->nsites && !err; i++) {
		const struct mt_usdt_site *s = &d->sites[i];

		if (f->verdicts[s->callsite] != V_ARMED || f->site_failed[i] ||
		    (s->faults && sleeps) != faults)
			continue;
		err = number(a, f, i);
		if (err || f->site_failed[i])
			continue;
		ret->offsets[ret->n] = s->probe->offset;
		ret->sems[ret->n] = s->probe->sem_offset;
		ret->cookies[ret->n] = f->numbers[i] | (is_bare(&s->plan) ? MT_COOKIE_BARE(s->plan.kind) : 0);
		ret->index[ret->n++] = i;
	}
	if (err)
		mt_attach_batch_free(ret);
	return err;
}

static bool span_failed(const struct foreign *f)
{
	const struct mt_usdt_found *d = f->found;
	uint32_t i;

	for (i = 0; i < d->nsites; i++)
		if (f->site_failed[i] && f->verdicts[d->sites[i].callsite] == V_ARMED &&
		    is_span(&d->callsites[d->sites[i].callsite]))
			return true;
	return false;
}

int mt_attach_foreign_arm(struct mt_attach *a, struct attached *native)
{
	struct attached at = {.binary = native->binary, .pid = native->pid};
	struct foreign *f = native->binary->foreign;
	struct batch s;
	int err = 0, round, i;

	if (!f)
		return 0;
	for (round = 0; round < 3; round++) {
		if (!a->opts.foreign_multi && !a->opts.foreign_single) { /* a kernel that took neither */
			memset(f->site_failed, true, f->found->nsites * sizeof(*f->site_failed));
			f->error = -EOPNOTSUPP;
		}
		judge(a, f);
		f->armed_sites = 0;
		for (i = 0; i < 2 && !err; i++) {
			err = collect(a, f, i, &s);
			if (err)
				break;
			err = mt_attach_link(a, &at, &s);
			f->armed_sites += s.n;
			mt_attach_batch_free(&s);
		}
		if (err || !span_failed(f))
			break;
		mt_attach_unlink(&at);
	}
	for (i = 0; i < (int)at.n && !err; i++) {
		err = mt_room(&native->links, native->n, &native->cap, sizeof(*native->links));
		if (!err) {
			native->links[native->n++] = at.links[i];
			at.links[i] = NULL;
		}
	}
	mt_attach_unlink(&at);
	return err;
}

/* ---- Report --------------------------------------------------------------------------------------- */

static uint32_t on_nop5(const struct mt_attach *a, const struct foreign *f, uint32_t spec)
{
	uint32_t i, n = 0;

	for (i = 0; i < f->found->nsites; i++)
		n += a->opts.nop5_call && f->found->sites[i].probe->on_nop5 &&
		     (spec == MT_ATTACH_ALL_SPECS || f->found->sites[i].spec == spec);
	return n;
}

static uint32_t refused(const struct foreign *f, uint32_t spec)
{
	uint32_t i, n = 0;

	for (i = 0; i < f->found->nsites; i++)
		n += f->site_failed[i] && (spec == MT_ATTACH_ALL_SPECS || f->found->sites[i].spec == spec);
	return n;
}

void mt_attach_foreign_report(const struct mt_attach *a, const struct binary *b, struct mt_attach_file *r)
{
	const struct foreign *f = b->foreign;
	uint32_t i;

	(void)a;
	if (!f)
		return;
	r->foreign = f->found->ncallsites;
	r->callsites += f->found->ncallsites;
	for (i = 0; i < f->found->ncallsites; i++) {
		r->armed += f->verdicts[i] == V_ARMED;
		r->by_mode += f->verdicts[i] == V_MODE;
		r->by_directive += f->verdicts[i] == V_DIRECTIVE;
		r->failed += f->verdicts[i] == V_FAILED;
	}
	r->foreign_sites = f->armed_sites;
	for (i = 0; i < f->found->nsites; i++)
		r->guarded |= f->found->sites[i].probe->sem_offset &&
			      f->verdicts[f->found->sites[i].callsite] == V_ARMED;
	if (f->error)
		r->error = f->error;
}

void mt_attach_usdt(const struct mt_attach *a, uint32_t spec, struct mt_attach_usdt *ret)
{
	uint32_t i, k;

	memset(ret, 0, sizeof(*ret));
	ret->unusable = a->unusable;
	for (i = 0; i < a->nbinaries; i++) {
		const struct foreign *f = a->binaries[i]->foreign;

		if (!f || a->binaries[i]->stale)
			continue;
		ret->endless += f->found->endless;
		ret->on_nop5 += on_nop5(a, f, spec);
		ret->refused += refused(f, spec);
		ret->error = f->error ? f->error : ret->error;
		for (k = 0; k < f->found->ncallsites; k++)
			ret->callsites += spec == MT_ATTACH_ALL_SPECS || f->found->callsite_spec[k] == spec;
		for (k = 0; k < f->found->nsites; k++) {
			if (spec != MT_ATTACH_ALL_SPECS && f->found->sites[k].spec != spec)
				continue;
			ret->sites++;
			ret->armed_sites += f->numbers[k] && !f->site_failed[k] &&
					    f->verdicts[f->found->sites[k].callsite] == V_ARMED;
		}
	}
}
