/* SPDX-License-Identifier: BSD-3-Clause */
/* `montrace-bpf record`: options -> session -> trace file, and what the user is told about it. */
#ifndef MT_CMD_RECORD_H
#define MT_CMD_RECORD_H

#include "log.h"
#include "options.h"

/* Environment variables that record looks at; NULL or "" = not set. Read by main only. */
struct mt_environment {
	const char *trace_mode; /* PERFETTO_TRACE_MODE */
	const char *filter;     /* MONTRACE_FILTER */
	const char *sudo_uid;   /* SUDO_UID, SUDO_GID */
	const char *sudo_gid;
	const char *montrace_dir; /* MONTRACE_TRACE_DIR */
	const char *monarch_dir;  /* MONARCH_TRACE_DIR */
	const char *runtime_dir;  /* XDG_RUNTIME_DIR */
};

/* Runs a recording; all messages go to log. Returns the exit status. */
int mt_cmd_record(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log);

#endif
