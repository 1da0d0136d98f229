/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What /proc says about a process.
 *
 * Everything a process can set (names, arguments, environment, paths of its files) is hostile: sizes are
 * bounded, texts for people are made valid and free of control characters, paths for opening stay
 * as they are. Reads may fail at any time because the process is gone: -ESRCH. -EACCES: not ours
 * to look at. All functions return 0 or -errno.
 *
 * A process is named by a descriptor of its directory in /proc (mt_proc_pid): when it dies, that
 * descriptor says -ESRCH for ever, also if another process gets the number. `proc` and `dir` are
 * just directories, so tests can make up their own.
 *
 * A process whose first thread ended before the others (pthread_exit in main) lives on, but its directory knows
 * nothing of its memory any more: no files, no executable, no environment. Those are then asked of one of the other
 * threads, by all functions here.
 */
#ifndef MT_PROCINFO_H
#define MT_PROCINFO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define MT_PROC_NAME_MAX 256   /* bytes of a process's or thread's name, with NUL */
#define MT_PROC_FILES_MAX 8192 /* distinct mapped files looked at in a process */

/* root: NULL = "/proc". */
int mt_proc_open(const char *root, int *ret_proc);

/*
 * True if the numbers in this /proc are those of the initial pid namespace, and we are in it: the
 * numbers that the kernel's records have.
 */
int mt_proc_is_initial(int proc, bool *ret_initial);

/* All processes (thread group leaders), ascending. *ret_pids is the caller's to free. */
int mt_proc_pids(int proc, uint32_t **ret_pids, size_t *ret_n);
/* The process of a thread; a process's own number gives itself. */
int mt_proc_tgid(int proc, uint32_t tid, uint32_t *ret_tgid);

/* Opens the directory of a process (or of a thread by its number). -ESRCH if there is none. */
int mt_proc_pid(int proc, uint32_t pid, int *ret_dir);

/* True if the first thread of a process has ended and others run on. */
bool mt_proc_headless(int dir);
/* True if a process has ended, and at most its number is left until somebody has waited for it. */
bool mt_proc_ended(int dir);

struct mt_proc_stat {
	uint32_t pid;
	uint32_t ppid;
	uint32_t nthreads;
	char state;           /* 'Z' = dead already, not yet waited for */
	uint64_t start_ticks; /* since boot, of 1 / sysconf(_SC_CLK_TCK) s */
	char comm[MT_PROC_NAME_MAX];
};

int mt_proc_stat(int dir, struct mt_proc_stat *ret_stat);
/* The parser alone; -EBADMSG for what no kernel writes. */
int mt_proc_stat_parse(const char *buf, size_t len, struct mt_proc_stat *ret_stat);

struct mt_proc_status {
	uint32_t tgid;
	uint32_t uid;      /* real */
	uint32_t euid;     /* effective */
	uint32_t ns_pid;   /* its number in its own pid namespace; 0 = not known */
	uint32_t ns_depth; /* pid namespaces below the one of this /proc; 0 = the same */
};

int mt_proc_status(int dir, struct mt_proc_status *ret_status);
int mt_proc_status_parse(const char *buf, size_t len, struct mt_proc_status *ret_status);

/*
 * Start time. The kernel keeps boot-time ns (BPF reads them exactly: task->start_boottime), but
 * /proc has only whole ticks, usually of 10 ms, rounded down. mt_proc_start_ns turns ticks to ns: the
 * exact time is in [result, result + tick). So never compare it with ==; mt_proc_start_same says if
 * `exact` can be what was rounded to `rounded`; two rounded ones are the same if they are equal.
 * In a time namespace with an offset of its own /proc is shifted by that offset.
 */
uint64_t mt_proc_tick_ns(void);                              /* ns per tick */
uint64_t mt_proc_start_ns(uint64_t ticks, uint64_t tick_ns); /* saturates */
bool mt_proc_start_same(uint64_t exact, uint64_t rounded, uint64_t tick_ns);

/*
 * The path of the executable, as the kernel tells it, without the kernel's " (deleted)". -ENOENT for kernel
 * threads. For names only: open dir/"exe" instead.
 */
int mt_proc_exe(int dir, char ret_path[PATH_MAX], bool *ret_deleted);

/* The same file's device and inode, as stat(2) tells them. */
int mt_proc_exe_stat(int dir, struct stat *ret_stat);

/* Arguments joined by spaces, made safe; cut at cap. Empty for kernel threads and zombies. */
int mt_proc_cmdline(int dir, char *ret_text, size_t cap);

/*
 * The value of an environment variable at exec (what the program sets later does not show here, and the
 * program may have written over it). The first one counts, as with getenv. Raw bytes, NUL-terminated, cut at
 * cap. -ENODATA if it is not there.
 */
int mt_proc_environ(int dir, const char *name, char *ret_value, size_t cap);
int mt_proc_environ_find(const char *buf, size_t len, const char *name, char *ret_value, size_t cap);

/* The usual questions in one call. */
struct mt_proc_info {
	uint32_t pid;
	uint32_t ppid;
	uint32_t uid;
	uint32_t ns_pid;
	uint64_t start;              /* boot-time ns, rounded down to a tick */
	char comm[MT_PROC_NAME_MAX]; /* safe text */
	char name[MT_PROC_NAME_MAX]; /* of the executable, else comm; safe text */
	char cmdline[4096];          /* safe text */
};

/* dir must be a process. -ESRCH also for a zombie (one that has no threads left). */
int mt_proc_info(int dir, struct mt_proc_info *ret_info);

/* One line of /proc/PID/maps. */
struct mt_proc_map {
	uint64_t start, end, offset;
	uint32_t dev_major, dev_minor;
	uint64_t inode; /* 0: no file behind it */
	bool exec;
	bool writable;       /* or shared with others who may write */
	bool deleted;        /* the path ended in " (deleted)" (taken off) */
	char path[PATH_MAX]; /* raw; "" if there is none or it is longer */
};

/*
 * Takes the next line off a buffer: 1 = *ret_map is filled; 0 = no complete line left, *buf and *len are what
 * is left. Lines that are not of the known form are skipped.
 */
int mt_proc_maps_next(const char **buf, size_t *len, struct mt_proc_map *ret_map);

/* A file mapped executable; start, end, offset: of its first such mapping. */
struct mt_proc_file {
	uint64_t start, end, offset;
	uint32_t dev_major, dev_minor; /* as in maps; some file systems tell stat(2) another one */
	uint64_t inode;
	bool deleted;
	char *path;      /* raw, never NULL, may be "" */
	bool writable;   /* one of its executable mappings is: the kernel puts no probes there */
	uint32_t copies; /* how often the same part of it is mapped executable */
};

struct mt_proc_files {
	struct mt_proc_file *v;
	size_t n;
	bool more; /* there were more than MT_PROC_FILES_MAX */
};

/* Every distinct (device, inode) once, by address. */
int mt_proc_files(int dir, struct mt_proc_files *ret_files);
void mt_proc_files_free(struct mt_proc_files *f);

/*
 * Opens the mapped file itself, read-only: through map_files, which also works when the file is deleted or
 * in another mount namespace; else (no right to use that) by its path in the process's root, else by its path
 * in ours, and then only if device and inode are the mapping's. -ESTALE: something else is there now.
 * -EINVAL: not a regular file (it is not opened then: opening a device can do things).
 */
int mt_proc_open_file(int dir, const struct mt_proc_file *f, int *ret_fd);

#endif
