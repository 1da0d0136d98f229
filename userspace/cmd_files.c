/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_dump.h"
#include "cmd_list.h"
#include "cmd_merge.h"
#include "cmd_summary.h"
#include "elfnotes.h"
#include "elfsyms.h"
#include "filter.h"
#include "procinfo.h"
#include "tracedir.h"
#include "usdt_profile.h"

/* ---- list ----------------------------------------------------------------------------------------- */

struct listing {
	const struct mt_filter *filter;
	const struct mt_options *o;
	struct mt_log *log;
	struct mt_usdt_profile **profiles;
	uint32_t nprofiles;
};

static int list_fd(const struct listing *l, int fd, const char *path, bool quiet)
{
	struct mt_list_more more = {
		.profiles = l->profiles, .nprofiles = l->nprofiles, .symbol = mt_elfsyms_find};
	struct mt_elfsyms *syms = NULL;
	struct mt_elfnotes *n;
	int err = mt_elfnotes_read(fd, MT_ELF_NATIVE | MT_ELF_FOREIGN, 1, &n);

	if (err == -ENOEXEC && quiet)
		return 0;
	if (err) {
		mt_log_error(l->log, "%s: %s", path,
			     err == -ENOEXEC ? "not an ELF file of a known kind" : strerror(-err));
		return err;
	}
	err = mt_elfsyms_new(fd, &syms);
	more.symbol_ctx = syms;
	if (!err && (!quiet || n->nprobes || n->stats.malformed || n->stats.semaphore || n->stats.compressed))
		err = mt_list_print_with(stdout, n, path, l->filter, &more, l->o->json ? MT_LIST_JSON : 0);
	if (err)
		mt_log_error(l->log, "list: %s", strerror(-err));
	mt_elfsyms_free(syms);
	mt_elfnotes_free(n);
	return err;
}

static int list_pid(const struct listing *l, uint32_t pid)
{
	struct mt_proc_files files = {0};
	int proc = -1, dir = -1, fd, err;
	size_t i;

	err = mt_proc_open(NULL, &proc);
	if (!err)
		err = mt_proc_pid(proc, pid, &dir);
	if (!err)
		err = mt_proc_ended(dir) ? -ESRCH : mt_proc_files(dir, &files);
	if (err) {
		mt_log_error(l->log, "process %u: %s", pid,
			     err == -ESRCH ? "does not exist" : strerror(-err));
		goto out;
	}
	for (i = 0; i < files.n; i++) {
		if (mt_proc_open_file(dir, &files.v[i], &fd))
			continue; /* gone, or not a regular file */
		err = list_fd(l, fd, files.v[i].path, true);
		close(fd);
		if (err)
			break;
	}
out:
	mt_proc_files_free(&files);
	if (dir >= 0)
		close(dir);
	if (proc >= 0)
		close(proc);
	return err;
}

/* All there are; without them the list says less, no more. */
static void find_profiles(struct listing *l)
{
	struct mt_profile_dirs *dirs = malloc(sizeof(*dirs));

	if (!dirs)
		return;
	mt_usdt_profile_dirs(dirs);
	mt_usdt_profiles_find(dirs->v, dirs->n, false, &l->profiles, &l->nprofiles, NULL);
	free(dirs);
}

int mt_cmd_list(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log)
{
	struct mt_filter_opts fo = {
		.mode = o->mode_given ? o->mode : MT_MODE_DEV,
		.user_prefixes = o->user_prefixes,
		.n_user_prefixes = o->n_user_prefixes,
		.directives = o->filter ? o->filter : env->filter,
		.compat_prefix = o->compat_prefix,
	};
	struct listing l = {.o = o, .log = log};
	struct mt_filter *filter;
	const char *why = "";
	size_t pos = 0;
	int err, i, fd, failed = 0;

	err = mt_filter_new(&fo, &filter, &pos, &why);
	if (err) {
		mt_log_error(log, "filter: %s at `%s`", why, fo.directives ? fo.directives + pos : "");
		return 1;
	}
	l.filter = filter;
	find_profiles(&l);
	for (i = 0; i < o->nfiles; i++) {
		fd = open(o->files[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0) {
			mt_log_error(log, "%s: %s", o->files[i], strerror(errno));
			failed = 1;
			continue;
		}
		failed |= !!list_fd(&l, fd, o->files[i], false);
		close(fd);
	}
	for (i = 0; i < (int)o->npids; i++)
		failed |= !!list_pid(&l, o->pids[i]);
	for (uint32_t k = 0; k < l.nprofiles; k++)
		mt_usdt_profile_free(l.profiles[k]);
	free(l.profiles);
	mt_filter_free(filter);
	return failed;
}

/* ---- dump, summary -------------------------------------------------------------------------------- */

typedef int (*reader)(FILE *out, int fd, const char *name, unsigned flags);

static int read_trace(const struct mt_options *o, struct mt_log *log, reader fn, unsigned flags)
{
	const char *path = o->files[0];
	bool std = !strcmp(path, "-");
	int fd = std ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0) {
		mt_log_error(log, "%s: %s", path, strerror(errno));
		return 1;
	}
	err = fn(stdout, fd, std ? "standard input" : path, flags);
	if (!std)
		close(fd);
	if (err == -EPIPE)
		return 1; /* who reads our output has had enough */
	if (err)
		mt_log_error(log, "%s: %s", path,
			     err == -EBADMSG
				     ? "not a Perfetto trace, or damaged: see above for what could be read"
				     : strerror(-err));
	return err ? 1 : 0;
}

int mt_cmd_dump(const struct mt_options *o, struct mt_log *log)
{
	return read_trace(o, log, mt_dump, o->json ? MT_DUMP_JSON : 0);
}

int mt_cmd_summary(const struct mt_options *o, struct mt_log *log)
{
	return read_trace(o, log, mt_summary,
			  (o->json ? MT_SUMMARY_JSON : 0) | (o->all_rows ? MT_SUMMARY_ALL : 0));
}

/* ---- merge ---------------------------------------------------------------------------------------- */

/* A word that is no path may be an execution (or `latest`) in the trace directory. The caller frees. */
static char *execution_path(const char *word, const struct mt_options *o, const struct mt_tracedir_env *te,
			    const struct mt_user *user)
{
	char base[4096], path[8192];

	if (!strchr(word, '/') && access(word, F_OK)) {
		if (!mt_tracedir_base(o->directory, te, user, base, sizeof(base)) &&
		    snprintf(path, sizeof(path), "%s/executions/%s", base, word) < (int)sizeof(path) &&
		    !access(path, F_OK))
			return strdup(path);
	}
	return strdup(word);
}

int mt_cmd_merge(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log)
{
	struct mt_tracedir_env te = {
		.sudo_uid = env->sudo_uid,
		.sudo_gid = env->sudo_gid,
		.montrace_trace_dir = env->montrace_dir,
		.monarch_trace_dir = env->monarch_dir,
	};
	struct mt_merge_files files = {0};
	struct mt_merge_report report;
	struct mt_merge_err err = {""};
	struct mt_user user;
	char **paths;
	int i, code = 0;

	mt_user_resolve(geteuid(), getegid(), &te, &user);
	paths = calloc((size_t)o->nfiles, sizeof(*paths));
	for (i = 0; paths && i < o->nfiles; i++) {
		paths[i] = execution_path(o->files[i], o, &te, &user);
		if (!paths[i])
			code = -ENOMEM;
	}
	if (!paths)
		code = -ENOMEM;
	if (!code)
		code = mt_merge_paths((const char *const *)paths, (uint32_t)o->nfiles, o->output, &user,
				      o->compress, &files, &report, &err);
	if (code)
		mt_log_error(log, "merge: %s", err.text[0] ? err.text : strerror(-code));
	else if (log->level > MT_LOG_QUIET)
		code = mt_merge_print(stderr, &files, &report, o->output, log->level == MT_LOG_VERBOSE);
	mt_merge_files_free(&files);
	for (i = 0; paths && i < o->nfiles; i++)
		free(paths[i]);
	free(paths);
	return code ? 1 : 0;
}
