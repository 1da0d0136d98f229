/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts that assemblers and preprocessors could trip over; targets. Looked at in the file only. */
#include <inttypes.h>
#include "montrace.h"

#define NAME      \
	"a macro" \
	" of"     \
	" three"

/* clang-format off */
void texts(int x)
{
	struct montrace_span s;

	/* @event info "100% {a|b|c} %0 %% %c %=" - k%{|}:i64 */
	MONTRACE_EVENT(MONTRACE_INFO, "100% {a|b|c} %0 %% %c %=", MT_I64("k%{|}", x));
	/* @event info "\"quotes\" and 'more' \\ back\\slash \\n" - "q":i64 */
	MONTRACE_EVENT(MONTRACE_INFO, "\"quotes\" and 'more' \\ back\\slash \\n", MT_I64("\"q\"", x));
	/* @event info "line\nfeed\ttab\rreturn" - a\nb:i64 */
	MONTRACE_EVENT(MONTRACE_INFO, "line\nfeed\ttab\rreturn", MT_I64("a\\nb", x));
	/* @event info "h\u00e9 \u4e2d\u6587 \U0001f600" - féld:i64 */
	MONTRACE_EVENT(MONTRACE_INFO, "hé 中文 😀", MT_I64("f\303\251ld", x));
	/* @event info "$x $$ # ; // @ ` ~ , (a, b) [c] <d> ! & ^" - n:i64 */
	MONTRACE_EVENT(MONTRACE_INFO, "$x $$ # ; // @ ` ~ , (a, b) [c] <d> ! & ^", MT_I64("n", x));
	/* @event info "A1 joined" - ab:i64 */
	MONTRACE_EVENT(MONTRACE_INFO, "\x41" "1 " "joined", MT_I64("a" "b", x));
	/* @event info "a macro of three" - x+(x,1):i64 */
	MONTRACE_EVENT(MONTRACE_INFO, NAME, MT_AS("x+(x,1)", ((void)x, 1)));
	/* @event-message info "v=%ld %s" - message:str */
	MONTRACE_LOG(MONTRACE_INFO, "v=%" PRId64 " %s", (int64_t)x, "s");
	/* @event-message info "%s[%d]" - message:str */
	MONTRACE_LOG(MONTRACE_INFO, "%s" "[%d]", "s", x);
	/* @event info "" - n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "");
	/* @event info "quoted argument" - "s"[0]:i64 */
	MONTRACE_EVENT(MONTRACE_INFO, "quoted argument", MT("s"[0]));
	if (x)
		/* @event info "no braces" - */
		MONTRACE_EVENT(MONTRACE_INFO, "no braces");
	else
		/* @event info "else" - */
		MONTRACE_EVENT(MONTRACE_INFO, "else");
	/* @span info "nested \" quotes" - x:i64 */
	MONTRACE_SPAN(&s, MONTRACE_INFO, "nested \" quotes", MT(x));
	montrace_close(&s);
	switch (x) {
	case 1: {
		/* @scope info "in a case" - */
		MONTRACE_SCOPE("in a case");
		break;
	}
	}
}
/* clang-format on */

#undef MONTRACE_TARGET
#define MONTRACE_TARGET "app::first"
void first(void)
{
	/* @event info "e" app::first */
	MONTRACE_EVENT(MONTRACE_INFO, "e");
}
#undef MONTRACE_TARGET
/* clang-format off */
#define MONTRACE_TARGET "app" "::" "second"
/* clang-format on */
void second(void)
{
	/* @scope info "e" app::second */
	MONTRACE_SCOPE("e");
}
#undef MONTRACE_TARGET
#define MONTRACE_TARGET ""
void third(void)
{
	/* @event info "e" - */
	MONTRACE_EVENT(MONTRACE_INFO, "e");
	montrace_thread_name("t");
}

int main(int argc, char **argv)
{
	(void)argv;
	texts(argc);
	first();
	second();
	third();
	return 0;
}
