/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle for everything that calls a sink: a sink that checks the invariants S1 to S6 of sink.h, counts,
 * keeps a log for tests if asked, and hands every call on to another sink if there is one.
 *
 * It remembers the first violation and goes on. It never touches sink_data, that is the other sink's.
 */
#ifndef MT_CHECK_SINK_H
#define MT_CHECK_SINK_H

#include "sink.h"

struct mt_check_counts {
	uint64_t processes, threads; /* calls, renames included */
	uint64_t begins, ends, instants, counters, losses, gones, flushes;
	uint64_t span_news, span_closes, marks;
	uint64_t lost; /* hits, sum over losses */
	uint64_t open; /* slices open now */
	uint64_t keyed_begins, keyed_ends;
	uint64_t ends_by[MT_END_FORGOTTEN + 1]; /* of both kinds */
};

/*
 * inner: NULL, or a sink that every call goes to; it becomes ours (free() frees it).
 * log: keep a text of all calls, one line each.
 * *ret_sink is freed by its free(), which returns -EBADMSG after a violation, else what inner's returned.
 */
int mt_check_new(struct mt_sink *inner, bool log, struct mt_sink **ret_sink);

/* What is wrong, as a sentence with the call's number; NULL: nothing so far. */
const char *mt_check_error(const struct mt_sink *sink);

/* The same at the end of a trace: also wrong if a slice is open, or a process or thread was not told gone. */
const char *mt_check_final(struct mt_sink *sink);

const struct mt_check_counts *mt_check_counts(const struct mt_sink *sink);

/*
 * The log. Lines ("F1" is the first flow id seen; what is empty or zero is left out):
 *   process 10 name=app ppid=1 uid=1000 cmdline=... exec=...
 *   thread 10/11 name=worker
 *   begin 10/11 @100 outer #1 span=1 parent=2 flow=F1 reentered,cut a=1 b="x" | span=1
 *   end 10/11 @200 outer #1 span=1 process status=9 | host="a"
 *   kbegin 10 @100 req #1 span=1 flow=F1 continued,cut a=1
 *   kend 10 @200 req #1 span=1 normal | begin_thread=11 end_thread=12
 *   instant 10/11 @150 hi parent=1 cut a=1 | parent=1
 *   counter 10/11 @150 depth=5
 *   lost 10/11 @300 n=7 cause
 *   new 10 @90 span=1 parent=2 a=1    close 10 @210 span=1
 *   mark @300 text
 *   gone 10/11    gone 10 process status=9
 * After | come extra fields. A cut text is followed by its full length: "abc"+20
 */
const char *mt_check_log(const struct mt_sink *sink);
void mt_check_log_clear(struct mt_sink *sink);

#endif
