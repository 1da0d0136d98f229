/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Numbers that the BPF program and `session` share. Records: wire.h. */
#ifndef MT_SHARED_H
#define MT_SHARED_H

/* Why a hit or a life record was not delivered. */
enum mt_lost_cause {
	MT_LOST_RING = 0,  /* ring full */
	MT_LOST_READ = 1,  /* the record's memory could not be read */
	MT_LOST_SIZE = 2,  /* the length passed to the probe is none of a record */
	MT_LOST_STATE = 3, /* no memory for the thread's state: the hit has no number either */
	MT_LOST_LIFE = 4,  /* life record (fork, exec, exit, rename), not a hit */
	MT_LOST_CAUSES = 8,
};

/* Flags of a traced process. */
enum {
	MT_TARGET_ON = 1,
	MT_TARGET_FOLLOW = 2, /* its children too */
	MT_TARGET_HELD = 4,   /* in an exec record only: it is stopped until its executable is armed */
};

#define MT_MAX_TARGETS 65536
#define MT_MAX_EXES 1024

/* An executable file as the kernel knows it; both numbers as /proc/PID/maps shows them. */
struct mt_exe_key {
	unsigned long long inode;
	unsigned int dev; /* major << 20 | minor */
	unsigned int zero;
};

#endif
