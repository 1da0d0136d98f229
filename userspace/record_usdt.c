/* SPDX-License-Identifier: BSD-3-Clause */
/* --usdt, --profile, and the profiles that are used without being asked for. */
#include "record_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_specs(struct record *r)
{
	const struct mt_options *o = r->o;
	struct mt_usdt_spec *spec;
	struct mt_usdt_err e;
	int err = 0;

	for (uint32_t i = 0; i < o->nusdt && !err; i++) {
		err = mt_usdt_spec_parse(o->usdt[i], NULL, &spec, &e);
		if (err == -EINVAL)
			mt_log_error(r->log, "--usdt: %s at `%.60s` (character %zu of `%s`)", e.why,
				     o->usdt[i] + e.pos, e.pos + 1, o->usdt[i]);
		else if (!err && (err = mt_usdt_set_add(&r->usdt.own, spec)))
			mt_usdt_spec_free(spec);
	}
	return err;
}

static int add_profiles(struct record *r, const struct mt_profile_dirs *dirs)
{
	const struct mt_options *o = r->o;
	struct mt_profile_err e = {""};
	int err = 0;

	r->usdt.profiles = calloc(o->nprofiles + 1ul, sizeof(*r->usdt.profiles));
	if (!r->usdt.profiles)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->nprofiles && !err; i++) {
		err = mt_usdt_profile_load(o->profiles[i], dirs->v, dirs->n, &r->usdt.profiles[i], &e);
		if (err)
			mt_log_error(r->log, "%s", e.text);
		else
			r->usdt.nprofiles++;
	}
	return err;
}

static int join(struct record_usdt *u)
{
	int err = 0;

	for (uint32_t i = 0; i < u->own.n && !err; i++)
		err = mt_usdt_set_add(&u->all, u->own.v[i]);
	for (uint32_t k = 0; k < u->nprofiles; k++)
		for (uint32_t i = 0; i < u->profiles[k]->specs.n && !err; i++)
			err = mt_usdt_set_add(&u->all, u->profiles[k]->specs.v[i]);
	return err;
}

int mt_record_usdt(struct record *r)
{
	struct record_usdt *u = &r->usdt;
	struct mt_profile_dirs *dirs = malloc(sizeof(*dirs));
	uint32_t bad = 0;
	int err;

	if (!dirs)
		return -ENOMEM;
	mt_usdt_profile_dirs(dirs);
	u->automatic = !r->o->nusdt && !r->o->nprofiles;
	if (u->automatic) {
		err = mt_usdt_profiles_find(dirs->v, dirs->n, true, &u->profiles, &u->nprofiles, &bad);
		if (bad)
			mt_log_warn(r->log,
				    "%u profile%s in %s cannot be used: name it with --profile to see why",
				    bad, mt_record_plural(bad), dirs->n ? dirs->v[0] : "");
	} else {
		err = add_specs(r);
		if (!err)
			err = add_profiles(r, dirs);
	}
	free(dirs);
	if (!err)
		err = join(u);
	if (!err && u->all.n)
		mt_attach_set_usdt(mt_session_attach(r->session), &u->all);
	if (err == -ENOMEM)
		mt_log_error(r->log, "out of memory");
	return err;
}

void mt_record_usdt_decide(struct record *r, struct mt_attach *a)
{
	struct mt_attach_file t;

	mt_attach_total(a, &t);
	if (r->usdt.automatic && t.callsites > t.foreign)
		mt_attach_set_usdt(a, NULL);
}

/* How many callsites of a profile were found (NULL: of specs given one by one). */
static uint32_t found(const struct record *r, const struct mt_attach *a, const struct mt_usdt_profile *p,
		      uint32_t *ret_sites)
{
	struct mt_attach_usdt u;
	uint32_t n = 0;

	*ret_sites = 0;
	for (uint32_t i = 0; i < r->usdt.all.n; i++) {
		if (r->usdt.all.v[i]->profile != p)
			continue;
		mt_attach_usdt(a, i, &u);
		n += u.callsites;
		*ret_sites += u.armed_sites;
	}
	return n;
}

void mt_record_usdt_tell(struct record *r)
{
	struct mt_attach *a = mt_session_attach(r->session);
	const struct record_usdt *u = &r->usdt;
	struct mt_attach_usdt all, one;
	uint32_t n, sites;

	for (uint32_t k = 0; k < u->nprofiles; k++) {
		n = found(r, a, u->profiles[k], &sites);
		if (n || !u->automatic)
			mt_log_info(
				r->log, "profile %s%s: %u USDT callsite%s at %u site%s", u->profiles[k]->name,
				u->automatic ? " (it knows this program; --usdt or --profile to choose)" : "",
				n, mt_record_plural(n), sites, mt_record_plural(sites));
	}
	for (uint32_t i = 0; i < u->own.n; i++) {
		mt_attach_usdt(a, i, &one);
		if (!one.callsites)
			mt_log_warn(r->log,
				    "--usdt %s: no such probe%s in the files seen so far; it is armed when "
				    "one comes",
				    r->o->usdt[i],
				    u->own.v[i]->kind == MT_USDT_SPAN ? ", or no end to it," : "");
		else
			mt_log_debug(r->log, "--usdt %s: %u callsite%s, %u of %u site%s armed", r->o->usdt[i],
				     one.callsites, mt_record_plural(one.callsites), one.armed_sites,
				     one.sites, mt_record_plural(one.sites));
	}
	mt_attach_usdt(a, MT_ATTACH_ALL_SPECS, &all);
	if (all.unusable)
		mt_log_warn(r->log, "%u USDT note%s cannot be used: montrace-bpf list says why", all.unusable,
			    mt_record_plural(all.unusable));
	if (all.on_nop5)
		mt_log_warn(r->log,
			    "%u USDT site%s on 5-byte nops not armed: this kernel would make calls of them, "
			    "which overwrite the program's data",
			    all.on_nop5, mt_record_plural(all.on_nop5));
	all.refused -= all.on_nop5;
	if (all.refused)
		mt_log_warn(r->log, "%u of %u USDT site%s could not be armed (%s)", all.refused, all.sites,
			    mt_record_plural(all.sites), strerror(-all.error));
}

void mt_record_usdt_free(struct record *r)
{
	struct record_usdt *u = &r->usdt;

	free(u->all.v);
	mt_usdt_set_free(&u->own);
	for (uint32_t i = 0; i < u->nprofiles; i++)
		mt_usdt_profile_free(u->profiles[i]);
	free(u->profiles);
}
