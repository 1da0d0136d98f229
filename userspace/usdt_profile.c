/* SPDX-License-Identifier: BSD-3-Clause */
#include "usdt_profile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".profile"
#define MAX_FILE (4u << 20)
#define MAX_LINE 8192
#define MAX_SPECS 65536

struct reader {
	struct mt_usdt_profile *p;
	struct mt_profile_err *err;
	struct mt_usdt_whens *whens; /* that hold now; NULL = none */
	bool fresh;                  /* the last line was `when`: another one joins it */
	unsigned line;
};

static int say(struct mt_profile_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int say(struct mt_profile_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

static char *trim(char *s)
{
	size_t n;

	while (*s == ' ' || *s == '\t' || *s == '\r')
		s++;
	n = strlen(s);
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
		s[--n] = 0;
	return s;
}

static int new_whens(struct reader *r)
{
	struct mt_usdt_profile *p = r->p;
	struct mt_usdt_whens **v = realloc(p->whens, (p->nwhens + 1ul) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	p->whens = v;
	r->whens = calloc(1, sizeof(*r->whens));
	if (!r->whens)
		return -ENOMEM;
	v[p->nwhens++] = r->whens;
	return 0;
}

static int when(struct reader *r, const char *text)
{
	const char *colon = strchr(text, ':');
	struct mt_usdt_whens *w;

	if (!colon || colon == text || !colon[1] || strpbrk(text, " \t"))
		return say(r->err, -EINVAL, "%s:%u: `when` needs PROVIDER:NAME", r->p->path, r->line);
	if (!r->fresh && new_whens(r))
		return -ENOMEM;
	r->fresh = true;
	w = r->whens;
	if (w->n == MT_USDT_WHENS)
		return say(r->err, -EINVAL, "%s:%u: more than %d `when` in a row", r->p->path, r->line,
			   MT_USDT_WHENS);
	w->v[w->n].provider = strndup(text, (size_t)(colon - text));
	w->v[w->n].name = strdup(colon + 1);
	w->n++;
	return w->v[w->n - 1].provider && w->v[w->n - 1].name ? 0 : -ENOMEM;
}

static int take(struct reader *r, char *text)
{
	struct mt_usdt_err e = {0, ""};
	struct mt_usdt_spec *spec;
	char where[300];
	int err;

	text = trim(text);
	if (!*text || *text == '#')
		return 0;
	if (!strncmp(text, "when ", 5) || !strncmp(text, "when\t", 5))
		return when(r, trim(text + 5));
	r->fresh = false;
	snprintf(where, sizeof(where), "profile %.200s, line %u", r->p->name, r->line);
	err = mt_usdt_spec_parse(text, where, &spec, &e);
	if (err == -EINVAL)
		return say(r->err, err, "%s:%u: %s at `%.40s`", r->p->path, r->line, e.why, text + e.pos);
	if (err)
		return err;
	spec->profile = r->p;
	spec->whens = r->whens;
	r->p->automatic &= r->whens != NULL;
	err = r->p->specs.n == MAX_SPECS ? say(r->err, -EINVAL, "%s: too many specs", r->p->path)
					 : mt_usdt_set_add(&r->p->specs, spec);
	if (err)
		mt_usdt_spec_free(spec);
	return err;
}

/* Lines, those joined that end in a backslash. */
static int lines(struct reader *r, const char *text, size_t len)
{
	const char *end = text + len, *nl;
	char line[MAX_LINE];
	size_t at = 0, n;
	unsigned number = 0;
	int err = 0;

	while (text < end && !err) {
		nl = memchr(text, '\n', (size_t)(end - text));
		n = (size_t)((nl ? nl : end) - text);
		number++;
		if (!at)
			r->line = number;
		if (memchr(text, 0, n))
			return say(r->err, -EINVAL, "%s:%u: not a text", r->p->path, number);
		if (at + n >= sizeof(line))
			return say(r->err, -EINVAL, "%s:%u: line too long", r->p->path, number);
		memcpy(line + at, text, n);
		at += n;
		text += n + 1;
		if (at && line[at - 1] == '\\' && text < end) {
			line[at - 1] = ' ';
			continue;
		}
		line[at] = 0;
		at = 0;
		err = take(r, line);
	}
	return err;
}

static int set_names(struct mt_usdt_profile *p, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name), s = strlen(SUFFIX);

	if (n > s && !strcmp(name + n - s, SUFFIX))
		n -= s;
	p->path = strdup(path);
	p->name = strndup(name, n);
	return p->path && p->name ? 0 : -ENOMEM;
}

int mt_usdt_profile_parse(const char *text, size_t len, const char *path,
			  struct mt_usdt_profile **ret_profile, struct mt_profile_err *err)
{
	struct reader r = {.p = calloc(1, sizeof(*r.p)), .err = err};
	int code = -ENOMEM;

	err->text[0] = 0;
	if (r.p) {
		r.p->automatic = true;
		code = set_names(r.p, path);
	}
	if (!code)
		code = lines(&r, text, len);
	if (!code && !r.p->specs.n)
		code = say(err, -EINVAL, "%s: no spec in it", path);
	if (code) {
		mt_usdt_profile_free(r.p);
		return code == -ENOMEM ? say(err, code, "out of memory") : code;
	}
	*ret_profile = r.p;
	return 0;
}

void mt_usdt_profile_free(struct mt_usdt_profile *p)
{
	if (!p)
		return;
	mt_usdt_set_free(&p->specs);
	for (uint32_t i = 0; i < p->nwhens; i++) {
		for (unsigned k = 0; k < p->whens[i]->n; k++) {
			free(p->whens[i]->v[k].provider);
			free(p->whens[i]->v[k].name);
		}
		free(p->whens[i]);
	}
	free(p->whens);
	free(p->name);
	free(p->path);
	free(p);
}

/* ---- Files ---------------------------------------------------------------------------------------- */

static int read_file(const char *path, struct mt_usdt_profile **ret, struct mt_profile_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code;
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0)
		return say(err, -errno, "profile %s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE) {
		close(fd);
		return say(err, -EINVAL, "profile %s: not a file of at most 4 MiB", path);
	}
	text = malloc((size_t)st.st_size + 1);
	n = text ? read(fd, text, (size_t)st.st_size) : -1;
	code = n < 0 ? say(err, text ? -errno : -ENOMEM, "profile %s: cannot be read", path)
		     : mt_usdt_profile_parse(text, (size_t)n, path, ret, err);
	free(text);
	close(fd);
	return code;
}

static bool has_suffix(const char *name)
{
	size_t n = strlen(name), s = strlen(SUFFIX);

	return n > s && !strcmp(name + n - s, SUFFIX);
}

int mt_usdt_profile_load(const char *what, const char *const *dirs, unsigned ndirs,
			 struct mt_usdt_profile **ret_profile, struct mt_profile_err *err)
{
	char path[4600];

	err->text[0] = 0;
	if (strchr(what, '/') || has_suffix(what))
		return read_file(what, ret_profile, err);
	for (unsigned i = 0; i < ndirs; i++) {
		snprintf(path, sizeof(path), "%s/%s" SUFFIX, dirs[i], what);
		if (!access(path, F_OK))
			return read_file(path, ret_profile, err);
	}
	return say(err, -ENOENT, "no profile `%s` in %s%s", what, ndirs ? dirs[0] : "any directory",
		   ndirs > 1 ? " (and others)" : "");
}

static void add_dir(struct mt_profile_dirs *d, const char *base, const char *rest)
{
	struct stat st;
	char *to = d->path[d->n];

	if (d->n == MT_PROFILE_DIRS ||
	    snprintf(to, sizeof(d->path[0]), "%s%s", base, rest) >= (int)sizeof(d->path[0]) ||
	    stat(to, &st) || !S_ISDIR(st.st_mode))
		return;
	d->v[d->n++] = to;
}

void mt_usdt_profile_dirs(struct mt_profile_dirs *d)
{
	const char *own = getenv("MONTRACE_PROFILES");
	char exe[4096], *slash;
	ssize_t n;

	d->n = 0;
	if (own && *own)
		add_dir(d, own, "");
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n > 0) {
		exe[n] = 0;
		slash = strrchr(exe, '/');
		*slash = 0; /* the directory it is in */
		add_dir(d, exe, "/../share/montrace/profiles");
#ifdef MT_SOURCE_PROFILES
		if (!strcmp(exe, MT_BUILD_DIR)) /* from there only: elsewhere that path may be anybody's */
			add_dir(d, MT_SOURCE_PROFILES, "");
#endif
	}
}

static int by_name(const void *a, const void *b)
{
	const struct mt_usdt_profile *x = *(struct mt_usdt_profile *const *)a,
				     *y = *(struct mt_usdt_profile *const *)b;

	return strcmp(x->name, y->name);
}

static bool known(struct mt_usdt_profile *const *v, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(v[i]->name, name))
			return true;
	return false;
}

static int scan_dir(const char *dir, bool automatic, struct mt_usdt_profile ***v, uint32_t *n, uint32_t *bad)
{
	struct mt_usdt_profile *p, **moved;
	struct mt_profile_err err;
	struct dirent *e;
	char path[4600];
	DIR *d = opendir(dir);
	int code = 0;

	if (!d)
		return 0;
	while (!code && (e = readdir(d))) {
		if (e->d_name[0] == '.' || !has_suffix(e->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		code = read_file(path, &p, &err);
		if (code) {
			*bad += code != -ENOMEM;
			code = code == -ENOMEM ? code : 0;
			continue;
		}
		moved = (p->automatic || !automatic) && !known(*v, *n, p->name)
				? realloc(*v, (*n + 1ul) * sizeof(*moved))
				: NULL;
		if (!moved) {
			mt_usdt_profile_free(p);
			continue;
		}
		*v = moved;
		moved[(*n)++] = p;
	}
	closedir(d);
	return code;
}

int mt_usdt_profiles_find(const char *const *dirs, unsigned ndirs, bool automatic,
			  struct mt_usdt_profile ***ret_v, uint32_t *ret_n, uint32_t *ret_bad)
{
	struct mt_usdt_profile **v = NULL;
	uint32_t n = 0, bad = 0;
	int err = 0;

	for (unsigned i = 0; i < ndirs && !err; i++)
		err = scan_dir(dirs[i], automatic, &v, &n, &bad);
	if (err) {
		while (n)
			mt_usdt_profile_free(v[--n]);
		free(v);
		return err;
	}
	if (n)
		qsort(v, n, sizeof(*v), by_name);
	*ret_v = v;
	*ret_n = n;
	if (ret_bad)
		*ret_bad = bad;
	return 0;
}
