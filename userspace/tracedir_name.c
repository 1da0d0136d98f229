/* SPDX-License-Identifier: BSD-3-Clause */
/* Names: of the user, the base directory, files, executions. No file is touched here. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "strings.h"
#include "tracedir_int.h"

/* A decimal id; 2^32 - 1 is none: chown(2) takes it for "leave as it is". */
static bool parse_id(const char *s, uint32_t *ret_id)
{
	uint64_t v = 0;
	size_t n = 0;

	if (!s || !*s)
		return false;
	for (; s[n]; n++) {
		if (s[n] < '0' || s[n] > '9' || n >= 10)
			return false;
		v = v * 10 + (uint64_t)(s[n] - '0');
	}
	if (v >= UINT32_MAX)
		return false;
	*ret_id = (uint32_t)v;
	return true;
}

/* Name and group of a uid; false if the data base does not have it. */
static bool lookup_user(uint32_t uid, char ret_name[MT_TRACEDIR_NAME_MAX + 1], uint32_t *ret_gid)
{
	struct passwd pw, *found = NULL;
	char buf[4096];

	if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) != 0 || !found || !found->pw_name ||
	    !*found->pw_name)
		return false;
	mt_tracedir_sanitise(found->pw_name, strlen(found->pw_name), ret_name);
	*ret_gid = found->pw_gid;
	return true;
}

void mt_user_resolve(uint32_t uid, uint32_t gid, const struct mt_tracedir_env *env, struct mt_user *ret_user)
{
	struct mt_user u = {.uid = uid, .gid = gid};
	uint32_t sudo_uid, sudo_gid, pw_gid = 0;

	if (uid == 0 && parse_id(env->sudo_uid, &sudo_uid)) {
		bool known = lookup_user(sudo_uid, u.name, &pw_gid);
		bool has_gid = parse_id(env->sudo_gid, &sudo_gid);

		if (known || has_gid) {
			u.uid = sudo_uid;
			u.gid = has_gid ? sudo_gid : pw_gid;
		}
	}
	if (!lookup_user(u.uid, u.name, &pw_gid))
		snprintf(u.name, sizeof(u.name), "uid%" PRIu32, u.uid);
	*ret_user = u;
}

int mt_tracedir_base(const char *option, const struct mt_tracedir_env *env, const struct mt_user *user,
		     char *ret_base, size_t cap)
{
	const char *given[] = {option, env->montrace_trace_dir, env->monarch_trace_dir};
	char base[sizeof(user->name) + sizeof("/tmp//monarch_traces")];
	const char *pick = NULL;
	size_t i, len;

	for (i = 0; i < sizeof(given) / sizeof(given[0]) && !pick; i++) {
		if (given[i] && *given[i])
			pick = given[i];
	}
	if (!pick) {
		snprintf(base, sizeof(base), "/tmp/%s/monarch_traces", user->name);
		pick = base;
	}
	len = strlen(pick);
	if (len >= cap)
		return -ENAMETOOLONG;
	memcpy(ret_base, pick, len + 1);
	return 0;
}

static uint32_t hash32(const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return (uint32_t)(h ^ (h >> 32));
}

void mt_tracedir_sanitise(const char *name, size_t len, char ret_name[MT_TRACEDIR_NAME_MAX + 1])
{
	enum { HEAD = MT_TRACEDIR_NAME_MAX + 4, TAIL = 9 };
	char raw[HEAD], text[3 * HEAD + 1];
	size_t n = len < HEAD ? len : HEAD, i, cut;

	/*
	 * Making text valid never makes it shorter. So the first HEAD bytes decide everything, and a
	 * character torn at HEAD begins beyond the limit.
	 */
	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		raw[i] = c < 0x20 || c == 0x7f || c == '/' ? '_' : (char)c;
	}
	for (i = 0; i < n && (raw[i] == '.' || raw[i] == '-'); i++)
		raw[i] = '_'; /* "..", hidden files, and what `rm *` takes for an option */
	n = mt_text_safe(text, sizeof(text), raw, n);
	if (n == 0) {
		strcpy(ret_name, "process");
	} else if (n <= MT_TRACEDIR_NAME_MAX) {
		memcpy(ret_name, text, n);
		ret_name[n] = '\0';
	} else {
		cut = mt_utf8_prefix(text, n, MT_TRACEDIR_NAME_MAX - TAIL);
		memcpy(ret_name, text, cut);
		snprintf(ret_name + cut, TAIL + 1, "~%08" PRIx32, hash32(name, len));
	}
}

/* Value of the sequence %c, or NULL if there is none such. num: room for a number. */
static const char *pattern_value(char c, const struct mt_name_vars *vars, char num[16])
{
	switch (c) {
	case 'p':
		snprintf(num, 16, "%" PRIu32, vars->pid);
		return num;
	case 'n':
		return vars->name ? vars->name : "";
	case 'h':
		return vars->hostname ? vars->hostname : "";
	case '%':
		return "%";
	default:
		return NULL;
	}
}

int mt_tracedir_expand(const char *pattern, const struct mt_name_vars *vars, char *ret_text, size_t cap,
		       size_t *ret_pos)
{
	size_t i, n = 0, len;
	const char *v;
	char num[16];
	int pass;

	/* First pass: is it right and does it fit; second: write. */
	for (pass = 0; pass < 2; pass++) {
		for (i = 0, n = 0; pattern[i]; i++, n += len) {
			v = &pattern[i];
			len = 1;
			if (pattern[i] == '%') {
				v = pattern_value(pattern[i + 1], vars, num);
				if (!v) {
					if (ret_pos)
						*ret_pos = i;
					return -EINVAL;
				}
				len = strlen(v);
				i++;
			}
			if (pass == 0 && len >= cap - n)
				return -ENAMETOOLONG;
			if (pass == 1)
				memcpy(ret_text + n, v, len);
		}
	}
	ret_text[n] = '\0';
	return 0;
}

int mt_execution_id_make(const struct mt_user *user, time_t now, unsigned int number,
			 char ret_id[MT_TRACEDIR_NAME_MAX + 1])
{
	static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	char id[sizeof(user->name) + 64];
	struct tm tm;
	int n;

	if (number >= 1000 || !localtime_r(&now, &tm) || tm.tm_mon < 0 || tm.tm_mon > 11)
		return -EINVAL;
	n = snprintf(id, sizeof(id), "%s_%s-%02d_%02d:%02d_%u", user->name, months[tm.tm_mon], tm.tm_mday,
		     tm.tm_hour, tm.tm_min, number);
	mt_tracedir_sanitise(id, (size_t)n, ret_id);
	return 0;
}

uint64_t mt_tracedir_random(void)
{
	struct timespec ts;
	uint64_t v;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) == (ssize_t)sizeof(v))
		return v;
	/* Early boot: uniqueness is what matters, O_EXCL guards the rest. */
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ((uint64_t)getpid() << 32) ^ ((uint64_t)ts.tv_sec << 30) ^ (uint64_t)ts.tv_nsec;
}

void mt_tracedir_tmp_name(char ret_name[MT_TMP_NAME_LEN])
{
	snprintf(ret_name, MT_TMP_NAME_LEN, ".montrace-%016" PRIx64, mt_tracedir_random());
}

int mt_tracedir_fail(struct mt_tracedir_err *err, int code, const char *path, const char *name,
		     const char *fmt, ...)
{
	const char *sep = name && *path && path[strlen(path) - 1] != '/' ? "/" : "";
	const size_t max = 330; /* the reason must stay visible behind a long path */
	char full[2 * PATH_MAX];
	size_t len;
	va_list ap;
	int n;

	if (!err)
		return code;
	n = snprintf(full, sizeof(full), "%s%s%s", path, sep, name ? name : "");
	len = (size_t)n < sizeof(full) ? (size_t)n : sizeof(full) - 1;
	n = snprintf(err->text, sizeof(err->text), "%s%s ", len > max ? "..." : "",
		     full + (len > max ? len - max : 0));
	va_start(ap, fmt);
	vsnprintf(err->text + n, sizeof(err->text) - (size_t)n, fmt, ap);
	va_end(ap);
	return code;
}
