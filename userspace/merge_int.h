/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of merge: cmd_merge.c in order, merge_files.c names and descriptors, _scan.c first reading,
 * _plan.c hosts, times and uuids, _head.c what is written for all, _copy.c second reading,
 * _packet.c one packet rewritten, _out.c bytes.
 */
#ifndef MT_MERGE_INT_H
#define MT_MERGE_INT_H

#include <zlib.h>

#include "cmd_merge.h"
#include "ptread_int.h"
#include "strings.h"

#define MG_MAX_TRACKS 2000000u   /* of all files together */
#define MG_MAX_SNAPS 2048u       /* kept of a file */
#define MG_MAX_HEAD_SNAPS 65536u /* written */
#define MG_MAX_ATTRS 256u
#define MG_MAX_TEXT 1024u /* of an attribute */
#define MG_MAX_HOST 64u   /* of a host's name */
#define MG_MAX_STATS (256u << 10)
#define MG_GATHER (256u << 10)
#define MG_NONE UINT32_MAX

/* Bytes that grow. After an error nothing is added any more; look at error once, at the end. */
struct mg_buf {
	unsigned char *p;
	size_t len, cap;
	int error;  /* 0, -ENOMEM, -EFBIG */
	bool fixed; /* p is not from malloc: no more than cap (-EFBIG) */
};

/* A track of a file. */
struct mg_track {
	uint64_t uuid, to; /* to: in the merged trace */
	uint64_t parent;
	uint64_t what;        /* hash of kind, pid, tid, name */
	uint64_t first, last; /* times of its events, as in the file; first > last: it has none */
	uint32_t open;        /* slices open at the end */
	bool described, resolved, busy;
};

struct mg_file {
	struct mt_merge_input *in;
	uint64_t dev, ino, size;
	/* from its head */
	unsigned char uuid[40];
	uint32_t uuid_len;
	unsigned char *system; /* SystemInfo */
	size_t system_len;
	char boot_id[64];
	char host_name[MG_MAX_HOST + 1];
	bool merged;   /* is the result of a merge */
	bool machines; /* has machine ids */
	/* from the first reading */
	struct mg_track *tracks;
	uint32_t ntracks, renamed;
	struct pt_map by_uuid;
	struct pt_snapshot *snaps;
	uint32_t nsnaps;
	bool has_real;
	uint64_t first; /* earliest time, UINT64_MAX = none */
	uint32_t host;
};

struct mg_host {
	char boot_id[64];
	char name[MG_MAX_HOST + 1];
	bool has_real;
	struct pt_snapshot at;  /* its earliest snapshot */
	uint64_t shift;         /* added to its boot times, modulo 2^64 */
	uint64_t flow;          /* flow ids are mixed with this; 0 = kept */
	struct mg_file *system; /* who has its SystemInfo */
};

struct mg_attr {
	char key[128];
	bool is_long;
	int64_t i;
	char text[MG_MAX_TEXT + 1];
};

/* A uuid of the merged trace. */
struct mg_uuid {
	uint64_t uuid;
	uint64_t identity;
	uint64_t last; /* time of the last event on it so far */
	uint32_t host, open;
	uint32_t
		next; /* index + 1 of another uuid that stands for the same number in other files; 0 = none */
};

struct merge {
	const struct mt_merge_opts *opts;
	struct mt_merge_err *err;
	struct mt_merge_report rep;
	uint64_t seed;
	struct mg_file *files; /* as the inputs */
	uint32_t *order;       /* of those that are taken, by time */
	uint32_t norder;
	uint32_t ntracks;
	struct mg_host *hosts;
	uint32_t nhosts, ref;
	struct mg_attr *attrs;
	uint32_t nattrs;
	struct pt_map uuids;
	struct mg_uuid *known;
	uint32_t nknown, cap_known;
	uint32_t next_seq;

	struct mg_buf pkt;  /* the packet at hand */
	struct mg_buf pend; /* framed packets */
	struct mg_buf zbuf;
	z_stream z;
	bool z_ready, compressing;
	struct mg_buf stats; /* buffer_stats and writer_stats */
	uint32_t nbuffers;
};

/* cmd_merge.c */
__attribute__((format(printf, 3, 4))) int mg_fail(struct merge *m, int err, const char *fmt, ...);

/* merge_out.c */
bool mg_room(struct mg_buf *b, size_t n); /* false: b->error is set */
void mg_raw(struct mg_buf *b, const void *data, size_t len);
void mg_varint(struct mg_buf *b, uint64_t v);
void mg_u64(struct mg_buf *b, uint32_t field, uint64_t v);
void mg_fixed64(struct mg_buf *b, uint32_t field, uint64_t v);
void mg_bytes(struct mg_buf *b, uint32_t field, const void *data, size_t len);
void mg_text(struct mg_buf *b, uint32_t field, const char *s);
size_t mg_open(struct mg_buf *b, uint32_t field); /* a message inside; mg_close() takes what this returns */
void mg_close(struct mg_buf *b, size_t at);
void mg_free(struct mg_buf *b);
int mg_put(struct merge *m);   /* writes m->pkt as a packet, empties it; 1: too large, not written */
int mg_flush(struct merge *m); /* hands all that is gathered to out */
int mg_compress_start(struct merge *m);

/* merge_scan.c */
int mg_peek_all(struct merge *m);
int mg_scan(struct merge *m, struct mg_file *f);

/* merge_plan.c */
int mg_plan(struct merge *m);
uint64_t mg_mix(uint64_t h, uint64_t v);

/* merge_head.c */
int mg_attr_add(struct merge *m, const struct mt_pt_event *ev);
int mg_head(struct merge *m);
int mg_tail(struct merge *m);

/* One file being copied. */
struct mg_copy {
	struct merge *m;
	struct mg_file *f;
	const struct mg_host *host;
	bool several;            /* hosts */
	struct mt_ptread *state; /* sequences' defaults and clocks */
	struct pt_map seqs;      /* number in the file -> in the merged trace */
	struct mg_buf inflated;
	struct mg_buf stats; /* of its last TraceStats */
	uint32_t nbuffers;
	uint64_t outcome; /* of the same */
};

/* merge_copy.c */
int mg_copy_file(struct merge *m, struct mg_file *f);
int mg_seq(struct mg_copy *c, uint32_t id, uint32_t *ret_id);

/* merge_packet.c: appends to m->pkt; 1: write it, 0: there is nothing to write, -EBADMSG: skip it */
int mg_packet(struct mg_copy *c, struct pt_wire w, const struct pt_packet *p, struct pt_seq *s);
/* In place of a packet that is skipped: its stamp, if that counts for later ones. 1, 0 or an error. */
int mg_stub(struct mg_copy *c, const struct pt_packet *p, const struct pt_seq *s);

static inline int mg_next(struct pt_wire *w, struct pt_field *f, const unsigned char **ret_from)
{
	*ret_from = w->p;
	return pt_next(w, f);
}

#endif
