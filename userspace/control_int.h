/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of `control`, shared by control*.c and nobody else. The essay is in control.c.
 *
 *   control.c         server: listening, the loop, time limits
 *   control_conn.c    one connection: request in, answer out
 *   control_req.c     a request as a line
 *   control_dir.c     directories, names of sockets, which tracers there are
 *   control_client.c  the asking side
 */
#ifndef MT_CONTROL_INT_H
#define MT_CONTROL_INT_H

#include "control.h"

#include <time.h>

#define CT_BUSY "error too many connections"
#define CT_REFUSED CT_BUSY "\n"

enum ct_state {
	CT_REQUEST, /* waiting for the line */
	CT_ANSWER,  /* the handler has it */
	CT_LAST,    /* sending what is left */
	CT_DEAD,    /* to be freed at the next dispatch */
};

struct mt_control_conn {
	struct mt_control *control;
	struct mt_control_conn *prev, *next;
	int fd;
	int file; /* that came along, -1 = none */
	enum ct_state state;
	bool half_closed; /* nothing more comes */
	bool asked;       /* the handler knows of it and is not done */
	uint32_t events;  /* in the epoll set */
	uint64_t moved;   /* when it last got or gave something; CT_REQUEST: when it came */
	size_t in_len;
	char in[MT_CONTROL_LINE_MAX];
	char *out; /* out[at..len) waits */
	size_t out_at, out_len, out_cap;
	size_t tried; /* bytes that waited when the socket was full */
};

struct mt_control {
	struct mt_control_opts opts;
	struct mt_control_stats stats;
	int epoll, listener, dirfd;
	bool deaf; /* out of descriptors: not listening until the next time limit check */
	uint64_t now;
	size_t held; /* bytes of all buffers */
	char *path, name[32];
	struct mt_control_conn *first;
};

/* control_conn.c */
int ct_conn_new(struct mt_control *c, int fd);
void ct_conn_free(struct mt_control_conn *c);
/* With a last line, as far as it fits; freed at the next dispatch. */
void ct_conn_turn_away(struct mt_control_conn *c, const char *line);
/* The fd is ready. */
void ct_conn_ready(struct mt_control_conn *c, uint32_t events);
void ct_conn_timeout(struct mt_control_conn *c, uint64_t idle_ns);

/* control_dir.c */
/* Opens the directory, made with `mode` if need be, and checks it: uid's, nobody else may write. */
int ct_dir_open(const char *dir, uid_t uid, bool make, struct mt_control_err *err, int *ret_fd);
/* Connects to name in dirfd. */
int ct_connect_at(int dirfd, const char *name, int *ret_fd);
/* Removes what killed tracers left: sockets of a tracer's name, some seconds old, on which nobody listens. */
void ct_dir_sweep(int dirfd, time_t now);
void ct_err(struct mt_control_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
