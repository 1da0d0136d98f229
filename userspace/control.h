/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions to a running tracer over a unix socket: server side for one epoll loop, and the client.
 * The protocol is described in control.c.
 */
#ifndef MT_CONTROL_H
#define MT_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MT_CONTROL_LINE_MAX 4096 /* bytes of a request with its newline */
#define MT_CONTROL_TEXT_MAX 1024 /* bytes of a subject */
#define MT_CONTROL_PATIENCE_S 10 /* for a tracer that is stopped, or has no time */
#define MT_CONTROL_CONNS 32
#define MT_CONTROL_FOLLOWERS 24 /* of these; the others are for those who leave again */
#define MT_CONTROL_TAIL_DEFAULT 64
#define MT_CONTROL_TAIL_MAX 65536

enum mt_control_verb { MT_CONTROL_TAIL = 1, MT_CONTROL_STACKS, MT_CONTROL_SNAPSHOT, MT_CONTROL_STATUS };

struct mt_control_req {
	enum mt_control_verb verb;
	bool json;
	bool follow;                           /* tail: go on until the client leaves */
	uint32_t n;                            /* tail: lines; 0 = only new ones (with follow) */
	uint32_t pid;                          /* stacks: of this process; 0 = all */
	char subject[MT_CONTROL_TEXT_MAX + 1]; /* tail, stacks: glob; "" = all */
};

/* -EINVAL: *ret_why is a static text. line: without newline, any bytes. */
int mt_control_parse(const char *line, size_t len, struct mt_control_req *ret_req, const char **ret_why);
/* Writes the line with newline, NUL-terminated. -ENAMETOOLONG if it does not fit (subject of odd bytes). */
int mt_control_format(const struct mt_control_req *req, char line[MT_CONTROL_LINE_MAX + 1]);

/* ---- server ---- */

struct mt_control;
struct mt_control_conn;

struct mt_control_ops {
	/*
	 * A request came. Answer with mt_control_line and, now or later, mt_control_done or mt_control_fail.
	 * After a refusal (negative return) the client is told strerror of it.
	 */
	int (*request)(void *ctx, struct mt_control_conn *c, const struct mt_control_req *req);
	/* The client of a request that is not done is gone: c is no more. NULL if nobody cares. */
	void (*gone)(void *ctx, struct mt_control_conn *c);
};

struct mt_control_opts {
	const struct mt_control_ops *ops;
	void *ctx;
	uid_t owner; /* who may ask, besides root */
	gid_t owner_gid;
	size_t max_buffer; /* bytes of an answer that wait for the client; 0 = 4 MiB; beyond: dropped */
	size_t max_total; /* the same for all clients; 0 = 16 MiB; beyond: who stands still the longest is dropped */
	uint32_t idle_ms; /* for the request to come and for the answer to move on; 0 = 10,000 */
};

/* Why opening the socket failed: one line; may hold bytes of file names, print it through log.h. */
struct mt_control_err {
	char text[512];
};

/*
 * Makes the directory if need be and listens on <dir>/<pid>.sock. dir NULL: mt_control_dir of the effective
 * user. pid: the tracer's own. Sockets that killed tracers left there are removed. -EPERM if the directory is not ours alone to write, -EADDRINUSE if somebody
 * listens there.
 */
int mt_control_new(const struct mt_control_opts *opts, const char *dir, uint32_t pid,
		   struct mt_control_err *err, struct mt_control **ret_control);
/* Without a socket of its own: for tests; connections come by mt_control_adopt. */
int mt_control_new_bare(const struct mt_control_opts *opts, struct mt_control **ret_control);
/* Takes over a connected, non-blocking stream socket whose peer was checked. */
int mt_control_adopt(struct mt_control *c, int fd);

/* For the caller's epoll set: readable when mt_control_dispatch has something to do. */
int mt_control_fd(const struct mt_control *c);
const char *mt_control_path(const struct mt_control *c);

/*
 * Does what can be done without waiting. now: any clock that does not run back, ns; call it when the fd is
 * readable, and about once a second for the time limits. Returns 0 or -errno of the epoll set.
 */
int mt_control_dispatch(struct mt_control *c, uint64_t now);

/*
 * Before mt_control_free, the only call that waits: until answers that are complete have gone out, at most ms in
 * all and a tenth of it for one who does not read.
 */
void mt_control_linger(struct mt_control *c, unsigned ms);
/* Closes all connections (gone() is told), removes the socket. NULL is fine. */
void mt_control_free(struct mt_control *c);

struct mt_control_stats {
	uint64_t accepted, refused, denied, bad, slow;
	uint32_t conns;
};
void mt_control_stats(const struct mt_control *c, struct mt_control_stats *ret_stats);

/*
 * A line of the answer (newlines in it become spaces). -EPIPE: the client was dropped because it does not
 * read; gone() is told at the next dispatch, c stays valid until then.
 */
int mt_control_line(struct mt_control_conn *c, const char *text, size_t len);
/* Bytes of the answer that wait for the client. */
size_t mt_control_waiting(const struct mt_control_conn *c);
/* The answer is complete; c is not to be used any more. fail: with an error for the client. */
void mt_control_done(struct mt_control_conn *c);
void mt_control_fail(struct mt_control_conn *c, const char *why);
/*
 * The file that came with a snapshot request, opened by the client with his own rights: writable, regular.
 * The caller's from here on. -1: there is none.
 */
int mt_control_take_fd(struct mt_control_conn *c);

/* ---- where sockets are ---- */

/*
 * root: /run/montrace-bpf. Others: $XDG_RUNTIME_DIR/montrace-bpf if runtime_dir is an absolute path, else
 * /tmp/montrace-bpf-<uid>. -ENAMETOOLONG.
 */
int mt_control_dir(uid_t uid, const char *runtime_dir, char *ret_dir, size_t cap);

struct mt_control_found {
	uint32_t pid;
	bool denied; /* it is somebody else's */
	char path[256];
};

/*
 * The tracers that listen, in dirs[0], dirs[1], ...: those that answer first. Directories that are missing,
 * or that others may write to, count as empty. *ret_v is the caller's to free.
 */
int mt_control_list(const char *const *dirs, unsigned ndirs, struct mt_control_found **ret_v,
		    unsigned *ret_n);

/* ---- client ---- */

/*
 * Connects. what: a path (has a '/'), a tracer's pid, or NULL: the only one there is. runtime_dir as above.
 * -ENOENT none, -EMLINK several (err lists them), -EACCES not ours, -ECONNREFUSED it is gone, -ETIMEDOUT it takes no
 * connection for MT_CONTROL_PATIENCE_S.
 */
int mt_control_connect(const char *what, uid_t uid, const char *runtime_dir, struct mt_control_err *err,
		       int *ret_fd);
/*
 * Sends the request; file >= 0 goes along (snapshot). The answer to all but a snapshot and a following tail, which may
 * be long in coming, is waited for MT_CONTROL_PATIENCE_S from one part of it to the next.
 */
int mt_control_send(int fd, const struct mt_control_req *req, int file);
/*
 * Copies the answer's lines to out until it ends. 0; -EREMOTEIO: the tracer refused, err says why; -EUSERS: it
 * has no place now, and nothing was copied; -EPIPE: it ended before its answer did; -ETIMEDOUT: it says
 * nothing more; other -errno of reading or
 * writing. After a send that failed with -EPIPE this tells why.
 */
int mt_control_stream(int fd, int out, struct mt_control_err *err);

#endif
