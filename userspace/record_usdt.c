/* SPDX-License-Identifier: BSD-3-Clause */
/* --usdt, --profile, and the profiles that are used without being asked for. */
#include "record_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add_specs(struct mt_record_usdt *u)
{
	const struct mt_options *o = u->o;
	struct mt_usdt_spec *spec;
	struct mt_usdt_err e;
	int err = 0;

	for (uint32_t i = 0; i < o->nusdt && !err; i++) {
		err = mt_usdt_spec_parse(o->usdt[i], NULL, &spec, &e);
		if (err == -EINVAL)
			mt_log_error(u->log, "--usdt: %s at `%.60s` (character %zu of `%s`)", e.why,
				     o->usdt[i] + e.pos, e.pos + 1, o->usdt[i]);
		else if (!err && (err = mt_usdt_set_add(&u->own, spec)))
			mt_usdt_spec_free(spec);
	}
	return err;
}

static int add_profiles(struct mt_record_usdt *u, const struct mt_profile_dirs *dirs)
{
	const struct mt_options *o = u->o;
	struct mt_profile_err e = {""};
	int err = 0;

	u->profiles = calloc(o->nprofiles + 1ul, sizeof(*u->profiles));
	if (!u->profiles)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->nprofiles && !err; i++) {
		err = mt_usdt_profile_load(o->profiles[i], dirs->v, dirs->n, &u->profiles[i], &e);
		if (err)
			mt_log_error(u->log, "%s", e.text);
		else
			u->nprofiles++;
	}
	return err;
}

static int join(struct mt_record_usdt *u)
{
	int err = 0;

	for (uint32_t i = 0; i < u->own.n && !err; i++)
		err = mt_usdt_set_add(&u->all, u->own.v[i]);
	for (uint32_t k = 0; k < u->nprofiles; k++)
		for (uint32_t i = 0; i < u->profiles[k]->specs.n && !err; i++)
			err = mt_usdt_set_add(&u->all, u->profiles[k]->specs.v[i]);
	return err;
}

int mt_record_usdt_open(struct mt_record_usdt *u, const struct mt_options *o, struct mt_log *log,
			struct mt_attach *a)
{
	struct mt_profile_dirs *dirs = malloc(sizeof(*dirs));
	uint32_t bad = 0;
	int err;

	if (!dirs)
		return -ENOMEM;
	u->o = o;
	u->log = log;
	mt_usdt_profile_dirs(dirs);
	u->automatic = !o->nusdt && !o->nprofiles;
	if (u->automatic) {
		err = mt_usdt_profiles_find(dirs->v, dirs->n, true, &u->profiles, &u->nprofiles, &bad);
		if (bad)
			mt_log_warn(u->log,
				    "%u profile%s in %s cannot be used: name it with --profile to see why",
				    bad, mt_record_plural(bad), dirs->n ? dirs->v[0] : "");
	} else {
		err = add_specs(u);
		if (!err)
			err = add_profiles(u, dirs);
	}
	free(dirs);
	if (!err)
		err = join(u);
	if (!err && u->all.n)
		mt_attach_set_usdt(a, &u->all);
	if (err == -ENOMEM)
		mt_log_error(u->log, "out of memory");
	return err;
}

void mt_record_usdt_decide(const struct mt_record_usdt *u, struct mt_attach *a)
{
	struct mt_attach_file t;

	mt_attach_total(a, &t);
	if (u->automatic && t.callsites > t.foreign)
		mt_attach_set_usdt(a, NULL);
}

/* How many callsites of a profile were found (NULL: of specs given one by one). */
static uint32_t found(const struct mt_record_usdt *u, const struct mt_attach *a,
		      const struct mt_usdt_profile *p, uint32_t *ret_sites)
{
	struct mt_attach_usdt one;
	uint32_t n = 0;

	*ret_sites = 0;
	for (uint32_t i = 0; i < u->all.n; i++) {
		if (u->all.v[i]->profile != p)
			continue;
		mt_attach_usdt(a, i, &one);
		n += one.callsites;
		*ret_sites += one.armed_sites;
	}
	return n;
}

void mt_record_usdt_tell(const struct mt_record_usdt *u, const struct mt_attach *a)
{
	struct mt_attach_usdt all, one;
	uint32_t n, sites;

	for (uint32_t k = 0; k < u->nprofiles; k++) {
		n = found(u, a, u->profiles[k], &sites);
		if (n || !u->automatic)
			mt_log_info(
				u->log, "profile %s%s: %u USDT callsite%s at %u site%s", u->profiles[k]->name,
				u->automatic ? " (it knows this program; --usdt or --profile to choose)" : "",
				n, mt_record_plural(n), sites, mt_record_plural(sites));
	}
	for (uint32_t i = 0; i < u->own.n; i++) {
		mt_attach_usdt(a, i, &one);
		if (!one.callsites)
			mt_log_warn(u->log,
				    "--usdt %s: no such probe%s in the files seen so far; it is armed when "
				    "one comes",
				    u->o->usdt[i],
				    u->own.v[i]->kind == MT_USDT_SPAN ? ", or no end to it," : "");
		else
			mt_log_debug(u->log, "--usdt %s: %u callsite%s, %u of %u site%s armed", u->o->usdt[i],
				     one.callsites, mt_record_plural(one.callsites), one.armed_sites,
				     one.sites, mt_record_plural(one.sites));
	}
	mt_attach_usdt(a, MT_ATTACH_ALL_SPECS, &all);
	if (all.unusable)
		mt_log_warn(u->log, "%u USDT note%s cannot be used: montrace-bpf list says why", all.unusable,
			    mt_record_plural(all.unusable));
	if (all.on_nop5)
		mt_log_warn(u->log,
			    "%u USDT site%s on 5-byte nops not armed: this kernel would make calls of them, "
			    "which overwrite the program's data",
			    all.on_nop5, mt_record_plural(all.on_nop5));
	all.refused -= all.on_nop5;
	if (all.refused)
		mt_log_warn(u->log, "%u of %u USDT site%s could not be armed (%s)", all.refused, all.sites,
			    mt_record_plural(all.sites), strerror(-all.error));
}

void mt_record_usdt_free(struct mt_record_usdt *u)
{
	free(u->all.v);
	mt_usdt_set_free(&u->own);
	for (uint32_t i = 0; i < u->nprofiles; i++)
		mt_usdt_profile_free(u->profiles[i]);
	free(u->profiles);
}
