# SPDX-License-Identifier: BSD-3-Clause
# montrace-bpf as the tracer of a set of USDT cases (tests/integration/test_cases.py). MT_TOOL: the program.
montrace_events() {
	"$MT_TOOL" dump --json "$T/trace.pftrace" 2>>"$T/tool.err" | python3 -c '
import json, sys

types = {l.split()[0]: l.split()[1].replace("-", "") for l in open(sys.argv[1])}
for line in sys.stdin:
    o = json.loads(line)
    name = "%s:%s" % (o.get("cat"), o.get("name"))
    if o["type"] != "instant" or name not in types:
        continue
    v = [o["args"]["v%d" % i] for i in range(len(types[name]))]
    v = [("%x" % x if t == "x" else str(x)) for x, t in zip(v, types[name])]
    sys.stdout.buffer.write(" ".join([name] + v).encode() + b"\n")
' "$T/args"
}

tracer_start() {
	local p ty i spec args=()

	while read -r p ty; do
		spec=$p
		[ "$ty" = - ] && ty='' && spec+=' -'
		for ((i = 0; i < ${#ty}; i++)); do
			case ${ty:i:1} in
			i) spec+=" v$i=arg$i:i64" ;;
			s) spec+=" v$i=arg$i:str" ;;
			*) spec+=" v$i=arg$i:u64" ;;
			esac
		done
		args+=(--usdt "$spec")
	done <"$T/args"
	for p in $LIBS; do args+=(--library "$C/$p"); done
	"$MT_TOOL" -v -p "$PID" "${args[@]}" -o "$T/trace.pftrace" >/dev/null 2>"$T/tool.err" 7>&- &
	TPID=$!
	for _ in $(seq 200); do
		grep -q 'callsites\? armed' "$T/tool.err" && return 0
		kill -0 $TPID 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}

tracer_stop() {
	kill -INT $TPID 2>/dev/null
	wait $TPID 2>/dev/null
	montrace_events >"$T/events"
}

# What it wrote must be there although it was killed.
tracer_kill9() {
	kill -9 $TPID 2>/dev/null
	wait $TPID 2>/dev/null
	montrace_events | sed 's/^/E /' >"$T/bt.out"
}
