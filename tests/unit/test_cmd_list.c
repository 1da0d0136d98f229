/* SPDX-License-Identifier: BSD-3-Clause */
/* The exact text of `list`, for people and as JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_list.h"

static struct mt_callsite sites[] = {
	{.id = 1,
	 .class_ = MONTRACE_CLASS_SCOPE,
	 .level = MONTRACE_INFO,
	 .flags = MONTRACE_CSF_USER,
	 .line = 12,
	 .nfields = 2,
	 .name = "load",
	 .target = "app::db",
	 .file = "src/db.c",
	 .function = "",
	 .fields = {{"rows", MONTRACE_TYPE_U64}, {"q\"uery", MONTRACE_TYPE_STR}}},
	{.id = 2,
	 .class_ = MONTRACE_CLASS_EVENT,
	 .level = MONTRACE_WARN,
	 .line = 7,
	 .name = "h\xc3\xa9",
	 .target = "tokio",
	 .file = "",
	 .function = ""},
};

static struct mt_probe probes[] = {
	{.cs = &sites[0],
	 .kind = MONTRACE_KIND_SCOPE_BEGIN,
	 .thunk = true,
	 .offset = 64,
	 .nop5_offset = 65,
	 .sem_offset = 128,
	 .addr = 0x1040,
	 .provider = "montrace",
	 .name = "scope_begin",
	 .args = "8@%rdi 8@%rsi"},
	{.cs = &sites[0],
	 .kind = MONTRACE_KIND_SCOPE_END,
	 .offset = 80,
	 .sem_offset = 128,
	 .addr = 0x1050,
	 .provider = "montrace",
	 .name = "scope_end",
	 .args = ""},
	{.cs = &sites[1],
	 .kind = MONTRACE_KIND_EVENT,
	 .offset = 96,
	 .sem_offset = 136,
	 .addr = 0x1060,
	 .provider = "montrace",
	 .name = "event",
	 .args = ""},
	{.offset = 9, .addr = 0x9, .provider = "lib", .name = "stop", .args = ""},
	{.offset = 8, .addr = 0x8, .provider = "lib", .name = "start", .args = "-4@%eax 8f@%xmm0"},
	{.offset = 5, .addr = 0x5, .sem_offset = 4, .provider = "lib", .name = "start", .args = "8@%rbx"},
	{.offset = 6, .addr = 0x6, .sem_offset = 4, .provider = "a", .name = "z", .args = "4@$1"},
};

static struct mt_elfnotes notes = {.callsites = sites,
				   .ncallsites = 2,
				   .probes = probes,
				   .nprobes = 7,
				   .nnative = 3,
				   .machine = EM_X86_64,
				   .is64 = true,
				   .build_id = "abcd"};

/* noinline: gcc 12 at -O3 takes what open_memstream() stores for a pointer to `text` itself. */
static __attribute__((noinline)) char *listing(const struct mt_elfnotes *n, const char *path,
					       const struct mt_filter *filter, unsigned flags)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(mt_list_print(f, n, path, filter, flags), 0);
	fclose(f);
	return text;
}

static void check(const struct mt_elfnotes *n, const char *path, const struct mt_filter *filter,
		  unsigned flags, const char *want)
{
	char *got = listing(n, path, filter, flags);

	assert_string_equal(got, want);
	free(got);
}

static void tables(void **state)
{
	struct mt_filter_opts o = {.mode = MT_MODE_DEV};
	struct mt_filter *f;

	(void)state;
	assert_int_equal(mt_filter_new(&o, &f, NULL, NULL), 0);
	check(&notes, "bin/a", f, 0,
	      "KIND   LEVEL  TARGET   NAME  SOURCE       FIELDS               VERDICT\n"
	      "scope  info   app::db  load  src/db.c:12  rows:u64 q\"uery:str  armed\n"
	      "event  warn   tokio    h\xc3\xa9    ?:7          -                    directive tokio=off\n"
	      "\n"
	      "PROBE      SITES  SEMAPHORE  PAIR  PROFILE  ARGUMENTS\n"
	      "a:z        1      yes        -     -        arg0:u32\n"
	      "lib:start  2      some       -     -        arg0:u64|i32 arg1:f64(in a vector register (not "
	      "readable from outside) at 1 of 2)\n"
	      "lib:stop   1      no         -     -        -\n"
	      "\n"
	      "bin/a (x86-64): 2 callsites, 1 armed, 1 filtered; 3 probes; 3 foreign probes at 4 sites\n");
	mt_filter_free(f);
}

static void verdicts(void **state)
{
	static const struct {
		enum mt_mode mode;
		const char *want[2];
	} rows[] = {
		{MT_MODE_OFF, {"  mode off\n", "  mode off\n"}},
		{MT_MODE_USER, {"  armed\n", "  mode user\n"}},
		{MT_MODE_DEV, {"  armed\n", "  directive tokio=off\n"}},
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct mt_filter_opts o = {.mode = rows[i].mode};
		struct mt_filter *f;
		char *got, *line;

		assert_int_equal(mt_filter_new(&o, &f, NULL, NULL), 0);
		got = listing(&notes, "x", f, 0);
		line = got;
		for (int k = 0; k < 2; k++) {
			line = strchr(line, '\n') + 1;
			assert_memory_equal(strchr(line, '\n') - strlen(rows[i].want[k]) + 1, rows[i].want[k],
					    strlen(rows[i].want[k]));
		}
		free(got);
		mt_filter_free(f);
	}
}

static void nothing_and_troubles(void **state)
{
	struct mt_elfnotes n = {.machine = EM_AARCH64};

	(void)state;
	check(&n, "a\x1b]0;x\n\xff", NULL, 0,
	      "a\xef\xbf\xbd]0;x\xef\xbf\xbd\xef\xbf\xbd (arm64): 0 callsites, 0 armed, 0 filtered; 0 "
	      "probes\n");
	n.machine = EM_386;
	n.stats = (struct mt_elfnotes_stats){1, 2, 1, 4};
	check(&n, "x", NULL, 0,
	      "x (i386): 0 callsites, 0 armed, 0 filtered; 0 probes; 1 malformed note; "
	      "2 notes of discarded code; 1 duplicate; 4 beyond the limit\n");
}

/* A long text sticks out; the columns of the others stay. */
static void long_cells(void **state)
{
	static char name[200];
	struct mt_callsite two[2] = {sites[0], sites[1]};
	struct mt_elfnotes n = {.callsites = two, .ncallsites = 2, .machine = EM_X86_64};
	char *got, *second;

	(void)state;
	memset(name, 'x', 199);
	two[0].name = name;
	got = listing(&n, "x", NULL, 0);
	second = strstr(got, "event ");
	assert_non_null(second);
	assert_int_equal(strstr(second, "?:7") - strstr(second, "h\xc3\xa9"), 48 + 2 + 1);
	free(got);
}

static void json(void **state)
{
	struct mt_filter_opts o = {.mode = MT_MODE_DEV};
	struct mt_filter *f;

	(void)state;
	assert_int_equal(mt_filter_new(&o, &f, NULL, NULL), 0);
	check(&notes, "b\\\n\xc2\x9b\xff\xe2\x80\xae", f, MT_LIST_JSON,
#define P "\"path\":\"b\\\\\\u000a\\u009b\xef\xbf\xbd\\u202e\""
	      "{\"type\":\"callsite\"," P
	      ",\"id\":1,\"class\":\"scope\",\"level\":\"info\",\"target\":\"app::db\","
	      "\"name\":\"load\",\"file\":\"src/db.c\",\"line\":12,\"user\":true,\"fields\":["
	      "{\"name\":\"rows\",\"type\":\"u64\"},{\"name\":\"q\\\"uery\",\"type\":\"str\"}],"
	      "\"armed\":true,\"reason\":\"\",\"probes\":["
	      "{\"kind\":\"scope_begin\",\"nop5\":true,\"addr\":\"0x1040\",\"offset\":64,\"semaphore\":128,"
	      "\"args\":\"8@%rdi 8@%rsi\"},"
	      "{\"kind\":\"scope_end\",\"nop5\":false,\"addr\":\"0x1050\",\"offset\":80,\"semaphore\":128,"
	      "\"args\":\"\"}]}\n"
	      "{\"type\":\"callsite\"," P
	      ",\"id\":2,\"class\":\"event\",\"level\":\"warn\",\"target\":\"tokio\","
	      "\"name\":\"h\xc3\xa9\",\"file\":\"\",\"line\":7,\"user\":false,\"fields\":[],"
	      "\"armed\":false,\"reason\":\"directive tokio=off\",\"probes\":["
	      "{\"kind\":\"event\",\"nop5\":false,\"addr\":\"0x1060\",\"offset\":96,\"semaphore\":136,"
	      "\"args\":\"\"}]}\n"
	      "{\"type\":\"probe\"," P ",\"provider\":\"a\",\"name\":\"z\",\"arguments\":[{\"name\":\"arg0\","
	      "\"type\":\"u32\"}],\"begin\":"
	      "\"\",\"profile\":\"\",\"sites\":["
	      "{\"addr\":\"0x6\",\"offset\":6,\"semaphore\":4,\"args\":\"4@$1\",\"nop5\":false}]}\n"
	      "{\"type\":\"probe\"," P
	      ",\"provider\":\"lib\",\"name\":\"start\",\"arguments\":[{\"name\":\"arg0\",\"type\":"
	      "\"u64|i32\"},{\"name\":\"arg1\",\"type\":\"f64\",\"missing\":\"in a vector register (not "
	      "readable from "
	      "outside)\",\"missing_at\":1}],"
	      "\"begin\":\"\",\"profile\":\"\",\"sites\":["
	      "{\"addr\":\"0x5\",\"offset\":5,\"semaphore\":4,\"args\":\"8@%rbx\",\"nop5\":false},"
	      "{\"addr\":\"0x8\",\"offset\":8,\"semaphore\":null,\"args\":\"-4@%eax "
	      "8f@%xmm0\",\"nop5\":false}]}\n"
	      "{\"type\":\"probe\"," P ",\"provider\":\"lib\",\"name\":\"stop\",\"arguments\":[],\"begin\":"
	      "\"\",\"profile\":\"\",\"sites\":["
	      "{\"addr\":\"0x9\",\"offset\":9,\"semaphore\":null,\"args\":\"\",\"nop5\":false}]}\n"
	      "{\"type\":\"file\"," P
	      ",\"machine\":\"x86-64\",\"build_id\":\"abcd\",\"callsites\":2,\"armed\":1,"
	      "\"filtered\":1,\"probes\":3,\"foreign\":3,\"foreign_sites\":4,\"malformed\":0,\"discarded\":0,"
	      "\"duplicate\":0,\"over_limit\":0,\"semaphore\":0,\"compressed\":0,"
	      "\"section_headers\":true,\"debug_link\":\"\"}\n");
	mt_filter_free(f);
}

/* Strings are escaped piece by piece: no character is lost or split where pieces meet. */
static void json_long_strings(void **state)
{
	struct mt_elfnotes n = {.machine = EM_X86_64};

	(void)state;
	for (size_t fill = 250; fill < 260; fill++) {
		char path[600], *got;

		memset(path, 'x', fill);
		memcpy(path + fill, "\xf0\x9f\x98\x80\xe2\x82\xac\xff\xc3\xa9", 11);
		got = listing(&n, path, NULL, MT_LIST_JSON);
		memcpy(path + fill, "\xf0\x9f\x98\x80\xe2\x82\xac\xef\xbf\xbd\xc3\xa9\",", 15);
		assert_non_null(strstr(got, path));
		free(got);
	}
}

static void full_disk(void **state)
{
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	if (!f)
		skip();
	assert_int_equal(mt_list_print(f, &notes, "x", NULL, 0), -EIO);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(nothing_and_troubles),
		cmocka_unit_test(long_cells),
		cmocka_unit_test(json),
		cmocka_unit_test(json_long_strings),
		cmocka_unit_test(full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
