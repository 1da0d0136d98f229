/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of record share: cmd_record.c (what is done), record_tell.c (what the user is told). */
#ifndef MT_RECORD_INT_H
#define MT_RECORD_INT_H

#include <time.h>

#include "cmd_record.h"
#include "filter.h"
#include "record_usdt.h"
#include "session.h"
#include "tracedir.h"
#include "tracefiles.h"

struct record {
	const struct mt_options *o;
	const struct mt_environment *env;
	struct mt_log *log;
	enum mt_mode mode;
	bool mode_asked; /* by option or variable, not by default */
	bool attached;   /* the user was told what is armed */
	bool widened;    /* default mode, and no callsite is user-facing: all are traced */
	struct mt_filter *filter;
	struct mt_session *session;
	struct mt_sink *sink; /* tracefiles; NULL with -F */
	struct mt_sink *all;  /* what spans tells: sink and the recorder's; owns them */
	struct mt_recorder *recorder;
	struct mt_tracefiles_err files_err;
	struct mt_user user;
	char base[4096]; /* trace directory */
	unsigned char boot_id[16];
	char host[256];
	uint32_t child; /* -- COMMAND; 0 = none */
	enum mt_stop stop;
	uint64_t attach_ns; /* reading the notes, deciding, arming; up to the start of run */
	struct mt_record_usdt usdt;
	/* for the progress line */
	uint64_t last_events, last_time;
};

struct mt_clocks;
struct mt_recorder;

uint64_t mt_record_clock_ns(clockid_t id);
void mt_record_clocks(void *ctx, struct mt_clocks *c);
const char *mt_record_plural(uint64_t n); /* "" or "s" */

/* record_tell.c */
void mt_record_tell_widened(struct record *r);
void mt_record_tell_attached(struct record *r);
void mt_record_progress(void *ctx, const struct mt_session_stats *st);
void mt_record_tell_end(struct record *r, const struct mt_session_stats *st,
			const struct mt_tracefiles_stats *fs);

#endif
