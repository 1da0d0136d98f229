/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of the vocabulary: which probes a class has, and what things are called. */
#include "model.h"

static const uint8_t scope_kinds[] = {MONTRACE_KIND_SCOPE_BEGIN, MONTRACE_KIND_SCOPE_END};
static const uint8_t span_kinds[] = {MONTRACE_KIND_SPAN_NEW, MONTRACE_KIND_SPAN_ENTER,
				     MONTRACE_KIND_SPAN_EXIT, MONTRACE_KIND_SPAN_CLOSE};
static const uint8_t event_kinds[] = {MONTRACE_KIND_EVENT};
static const uint8_t counter_kinds[] = {MONTRACE_KIND_COUNTER};
static const uint8_t record_kinds[] = {MONTRACE_KIND_SPAN_RECORD};
static const uint8_t thread_name_kinds[] = {MONTRACE_KIND_THREAD_NAME};
static const uint8_t process_name_kinds[] = {MONTRACE_KIND_PROCESS_NAME};
static const uint8_t execution_id_kinds[] = {MONTRACE_KIND_EXECUTION_ID};

#define CLASS(c, text, k) [MONTRACE_CLASS_##c] = {text, k, sizeof(k)}

static const struct {
	const char *name;
	const uint8_t *kinds;
	unsigned n;
} classes[] = {
	CLASS(SCOPE, "scope", scope_kinds),
	CLASS(SPAN, "span", span_kinds),
	CLASS(EVENT, "event", event_kinds),
	CLASS(COUNTER, "counter", counter_kinds),
	CLASS(RECORD, "record", record_kinds),
	CLASS(RECORDING, "recording", span_kinds),
	CLASS(THREAD_NAME, "thread_name", thread_name_kinds),
	CLASS(PROCESS_NAME, "process_name", process_name_kinds),
	CLASS(EXECUTION_ID, "execution_id", execution_id_kinds),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *pick(const char *const *names, unsigned n, unsigned i)
{
	return i < n && names[i] ? names[i] : "?";
}

const uint8_t *mt_class_kinds(unsigned class_, unsigned *ret_n)
{
	if (class_ >= COUNT(classes)) {
		*ret_n = 0;
		return NULL;
	}
	*ret_n = classes[class_].n;
	return classes[class_].kinds;
}

const char *mt_class_name(unsigned class_)
{
	return class_ < COUNT(classes) && classes[class_].name ? classes[class_].name : "?";
}

const char *mt_kind_name(unsigned kind)
{
	static const char *const names[] = {
		[MONTRACE_KIND_SCOPE_BEGIN] = "scope_begin",   [MONTRACE_KIND_SCOPE_END] = "scope_end",
		[MONTRACE_KIND_SPAN_NEW] = "span_new",         [MONTRACE_KIND_SPAN_ENTER] = "span_enter",
		[MONTRACE_KIND_SPAN_EXIT] = "span_exit",       [MONTRACE_KIND_SPAN_CLOSE] = "span_close",
		[MONTRACE_KIND_SPAN_RECORD] = "span_record",   [MONTRACE_KIND_EVENT] = "event",
		[MONTRACE_KIND_COUNTER] = "counter",           [MONTRACE_KIND_THREAD_NAME] = "thread_name",
		[MONTRACE_KIND_PROCESS_NAME] = "process_name", [MONTRACE_KIND_EXECUTION_ID] = "execution_id",
		[MONTRACE_KIND_CALLSITE] = "callsite",
	};
	return pick(names, COUNT(names), kind);
}

const char *mt_level_name(unsigned level)
{
	static const char *const names[] = {
		[MONTRACE_TRACE] = "trace", [MONTRACE_DEBUG] = "debug", [MONTRACE_INFO] = "info",
		[MONTRACE_WARN] = "warn",   [MONTRACE_ERROR] = "error",
	};
	return pick(names, COUNT(names), level);
}

const char *mt_type_name(unsigned type)
{
	static const char *const names[] = {
		[MONTRACE_TYPE_I64] = "i64",   [MONTRACE_TYPE_U64] = "u64", [MONTRACE_TYPE_F64] = "f64",
		[MONTRACE_TYPE_BOOL] = "bool", [MONTRACE_TYPE_STR] = "str", [MONTRACE_TYPE_DEBUG] = "debug",
	};
	return pick(names, COUNT(names), type);
}
