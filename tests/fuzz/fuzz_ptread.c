/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a trace: read, put in order, dumped and summed up. Checks what must hold for all of them. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd_dump.h"
#include "cmd_summary.h"
#include "timeline.h"

static void check(int ok)
{
	if (!ok)
		abort();
}

static void check_timeline(const struct mt_timeline *tl, size_t size)
{
	const struct mt_ptread_info *in = mt_ptread_info(tl->reader);

	check(tl->error == 0 || *in->why);
	check(in->bytes + in->truncated + in->padding <= size);
	if (!tl->error)
		check(in->bytes + in->truncated + in->padding == size);
	for (uint32_t i = 0; i < tl->ntracks; i++) {
		const struct mt_tl_track *t = &tl->tracks[i];

		check(t->group < tl->ngroups);
		for (uint32_t k = 0; k < t->n; k++) {
			const struct mt_tl_event *e = &tl->events[tl->order[t->first + k]];
			uint64_t ns;

			check(e->track == i);
			check(!k || tl->events[tl->order[t->first + k - 1]].ts <= e->ts);
			check(e->depth <= MT_TL_MAX_DEPTH);
			if (e->kind == MT_PT_BEGIN && mt_tl_duration(tl, e, &ns))
				check(tl->events[e->end].kind == MT_PT_END && e->children <= ns);
		}
	}
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", 0);

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mt_timeline *tl;
	FILE *out = fopen("/dev/null", "w");
	int fd = file_of(data, size);

	if (!mt_timeline_read_mem(data, size, &tl)) {
		check_timeline(tl, size);
		mt_timeline_free(tl);
	}
	for (unsigned json = 0; json < 2; json++) {
		lseek(fd, 0, SEEK_SET);
		mt_dump(out, fd, "x", json);
		lseek(fd, 0, SEEK_SET);
		mt_summary(out, fd, "x", json);
	}
	fclose(out);
	close(fd);
	return 0;
}
