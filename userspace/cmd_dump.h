/* SPDX-License-Identifier: BSD-3-Clause */
/* `montrace-bpf dump FILE [--json]`: a trace as text. */
#ifndef MT_CMD_DUMP_H
#define MT_CMD_DUMP_H

#include <stdio.h>

enum { MT_DUMP_JSON = 1 };

/*
 * Writes the trace in fd to out. As text: process by process, thread by thread, an indented tree. With
 * MT_DUMP_JSON: one object a line for each slice, instant, counter value and loss, by time.
 *
 * Text, one line each; times are from the trace's first event:
 *      time ms   duration ms
 *        0.000        12.345  name k=v ... file:line [end k=v ...]
 *        1.500             *    instant k=v ...
 *        2.000             =  counter value
 *        3.000          LOST  events lost count=12
 * JSON: {"type":"slice","ts":ns,"dur":ns|null,"name":,"pid":,"tid":,"thread":,"process":,"track":,
 * "depth":,"cat":,"file":,"line":,"args":{},"flows":[]}; "cut":true if an outer end ended it. Instants
 * have no dur; counters have "value"; losses "source" (instant, kernel, packets, writers) and "count".
 * A file that is not whole ends in {"type":"truncated","bytes":} or {"type":"error",...}.
 * NaN and infinities are strings; dicts and arrays are text.
 *
 * name is what to call the file. 0 also for a file that ends in a torn packet; -EBADMSG after what
 * was good has been written; -EPIPE or -EIO if out fails; other -errno without output.
 */
int mt_dump(FILE *out, int fd, const char *name, unsigned flags);

#endif
