/* SPDX-License-Identifier: BSD-3-Clause */
/* Table of contents. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_control.h"
#include "cmd_files.h"
#include "cmd_record.h"
#include "log.h"
#include "options.h"

static const char *variable(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

int main(int argc, char **argv)
{
	struct mt_environment env = {
		.trace_mode = getenv("PERFETTO_TRACE_MODE"), /* empty is a bad value, as for the originals */
		.filter = variable("MONTRACE_FILTER"),
		.sudo_uid = variable("SUDO_UID"),
		.sudo_gid = variable("SUDO_GID"),
		.montrace_dir = variable("MONTRACE_TRACE_DIR"),
		.monarch_dir = variable("MONARCH_TRACE_DIR"),
		.runtime_dir = variable("XDG_RUNTIME_DIR"),
	};
	struct mt_options_err err;
	struct mt_options o;
	struct mt_log log;

	mt_log_init(&log, STDERR_FILENO, MT_LOG_NORMAL);
	if (mt_options_parse(argc, argv, &o, &err)) {
		mt_log_error(&log, "%s", err.text);
		return 2;
	}
	log.level = o.verbosity;
	switch (o.command) {
	case MT_CMD_HELP:
		return fputs(mt_options_help(), stdout) < 0 || fflush(stdout);
	case MT_CMD_VERSION:
		return printf("montrace-bpf %s\n", MT_VERSION) < 0 || fflush(stdout);
	case MT_CMD_RECORD:
		return mt_cmd_record(&o, &env, &log);
	case MT_CMD_LIST:
		return mt_cmd_list(&o, &env, &log);
	case MT_CMD_DUMP:
		return mt_cmd_dump(&o, &log);
	case MT_CMD_SUMMARY:
		return mt_cmd_summary(&o, &log);
	case MT_CMD_MERGE:
		return mt_cmd_merge(&o, &env, &log);
	case MT_CMD_TAIL:
		return mt_cmd_tail(&o, &env, &log);
	case MT_CMD_STACKS:
		return mt_cmd_stacks(&o, &env, &log);
	case MT_CMD_SNAPSHOT:
		return mt_cmd_snapshot(&o, &env, &log);
	case MT_CMD_STATUS:
		return mt_cmd_status(&o, &env, &log);
	}
	return 2;
}
