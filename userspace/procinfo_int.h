/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of procinfo; for nobody else. */
#ifndef MT_PROCINFO_INT_H
#define MT_PROCINFO_INT_H

#include "procinfo.h"

/* Reads at most cap bytes of dir/name. A process that is gone is -ESRCH, whatever the kernel says. */
int mt_proc_read(int dir, const char *name, char *buf, size_t cap, size_t *ret_len);
/* openat with the errors of this module. */
int mt_proc_openat(int dir, const char *name, int flags, int *ret_fd);

/*
 * The directory of a thread that has the process's memory, if the first one has ended (mt_proc_headless). -ESRCH: it
 * has not, or there is none.
 */
int mt_proc_other_thread(int dir, int *ret_dir);

/* A number at *p, not beyond end and not over max; *p moves behind it. */
bool mt_proc_number(const char **p, const char *end, unsigned int base, uint64_t max, uint64_t *ret_value);

#endif
