#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the PostgreSQL profile costs a server under pgbench, beside bpftrace on the same probes.
#
#   postgres.sh [-r ROUNDS] [-t SECONDS] [-c CLIENTS] [pgbench options, default -S]
#
# A server of its own; rounds in which the ways take turns, each for SECONDS with all clients. Prints the median of
# transactions per second, the median of the ratios to the bare run of the same round, and their spread; then, which a
# busy machine disturbs less, the processor time a transaction takes in the server and in the tool. Needs root,
# PostgreSQL with probes; bpftrace where it is installed. MT_BUILD: build directory. Defaults: about 3 minutes.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tool=${MT_TOOL:-${MT_BUILD:-$root/build}/montrace-bpf}
rounds=4 seconds=3 clients=8
while getopts r:t:c: o; do
	case $o in
	r) rounds=$OPTARG ;;
	t) seconds=$OPTARG ;;
	c) clients=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# != 0 ] || set -- -S

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
[ -x "$bin/postgres" ] || die "no PostgreSQL server (package postgresql)"
[ -x "$tool" ] || die "no $tool"
id postgres >/dev/null 2>&1 || die "no user postgres"
work=$(mktemp -d) || exit 1
chmod 711 "$work"
tracer=
mkdir "$work/pg" && chown postgres "$work/pg" || exit 1

as_postgres() {
	(cd "$work/pg" && exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@")
}

# Asks again: what a tool does not listen to yet it does not hear.
end_tracer() {
	local i

	for ((i = 0; i < 100; i++)); do
		kill -INT "$tracer" 2>/dev/null || break
		sleep 0.2
	done
	[ $i != 100 ] || kill -KILL "$tracer"
	wait "$tracer"
	tracer=
}

finish() {
	[ -z "$tracer" ] || end_tracer
	[ ! -e "$work/pg/data/postmaster.pid" ] || as_postgres "$bin/pg_ctl" -D "$work/pg/data" -m immediate -w stop >/dev/null
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

as_postgres "$bin/initdb" -D "$work/pg/data" -A trust -U postgres -N >/dev/null || die "initdb"
cat >>"$work/pg/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$work/pg'
port = 54872
autovacuum = off
fsync = off
shared_buffers = 256MB
END
as_postgres "$bin/pg_ctl" -D "$work/pg/data" -l "$work/pg/log" -w start >/dev/null || die "the server does not start"

pgbench() {
	as_postgres "$bin/pgbench" -h "$work/pg" -p 54872 -U postgres "$@" postgres
}
server=$(head -n 1 "$work/pg/data/postmaster.pid")
pgbench -i -q -s 10 >/dev/null 2>&1 || die "pgbench -i"

# The probes of the profile, as bpftrace wants them.
mapfile -t probes < <(grep -oE '^postgresql:[a-z_]+(\.\.[a-z_|]+)?' "$root/profiles/postgresql.profile" |
	sed -E 's/^postgresql://; s/\.\./\n/' | tr '|' '\n' | sort -u)
program() {
	local p what='@[probe] = count();'
	[ "$1" != print ] || what='printf("%llu %d %s\\n", nsecs, tid, probe); @[probe] = count();'
	printf 'interval:ms:100 { printf("armed\\n"); }\n' # it says so when all is attached, BEGIN before
	for p in "${probes[@]}"; do
		[ "$p" = statement__status ] && [ "$1" = text ] && continue
		printf 'usdt:%s/postgres:postgresql:%s { %s }\n' "$bin" "$p" "$what"
	done
	[ "$1" != text ] ||
		printf 'usdt:%s/postgres:postgresql:statement__status { @t = str(arg0); @[probe] = count(); }\n' "$bin"
}

# wait_for PATTERN FILE
wait_for() {
	local i

	for ((i = 0; i < 200; i++)); do
		grep -q "$1" "$2" 2>/dev/null && return
		kill -0 "$tracer" 2>/dev/null || break
		sleep 0.1
	done
	cat "$2" >&2
	die "$tracer did not arm"
}

start() {
	case $1 in
	bare) return ;;
	profile)
		rm -f "$work/trace"
		"$tool" -v --all "$bin/postgres" --profile "$root/profiles/postgresql.profile" -o "$work/trace" 2>"$work/said" &
		tracer=$!
		wait_for 'callsites armed' "$work/said"
		;;
	count | text | print)
		program "$1" >"$work/prog.bt"
		BPFTRACE_STRLEN=200 bpftrace -B line "$work/prog.bt" >"$work/said" 2>&1 &
		tracer=$!
		wait_for armed "$work/said"
		;;
	esac
	sleep 0.3
}

stop() {
	[ -n "$tracer" ] || return
	end_tracer
	case $1 in
	profile) sed -nE 's/.*: ([0-9]+) hits delivered.*/\1/p' "$work/said" >>"$work/hits.profile" &&
		sed -nE 's/.* ([0-9]+) lost,.*/\1/p' "$work/said" >>"$work/lost" ;;
	*) sed -nE 's/^@\[.*\]: ([0-9]+)$/\1/p' "$work/said" | paste -sd+ | bc >>"$work/hits.$1" ;;
	esac
}

# Microseconds of processor time so far: of the server's children that have ended, or of a process.
ticks=$(getconf CLK_TCK)
spent() {
	awk -v t="$ticks" -v children="$2" '{ sub(/.*\) /, ""); print (children ? $14 + $15 : $12 + $13) * 1000000 / t }' "/proc/$1/stat"
}

ways="bare profile"
if command -v bpftrace >/dev/null; then ways="$ways count text print"; else echo "no bpftrace here"; fi
for ((r = 0; r < rounds; r++)); do
	for way in $ways; do
		start "$way"
		server0=$(spent "$server" 1) tool0=0 tool1=0
		[ -z "$tracer" ] || tool0=$(spent "$tracer" 0)
		pgbench -n -c "$clients" -j 2 -T "$seconds" "$@" >"$work/bench" 2>&1 || die "pgbench: $(cat "$work/bench")"
		sleep 0.2 # the backends end, the tool reads on
		[ -z "$tracer" ] || tool1=$(spent "$tracer" 0)
		stop "$way"
		n=$(sed -nE 's/.*actually processed: ([0-9]+).*/\1/p' "$work/bench")
		awk -v a="$server0" -v b="$(spent "$server" 1)" -v n="$n" 'BEGIN { print (b - a) / n }' >>"$work/server.$way"
		awk -v a="$tool0" -v b="$tool1" -v n="$n" 'BEGIN { print (b - a) / n }' >>"$work/tool.$way"
		echo "$n" >>"$work/done.$way"
		sed -nE 's/^tps = ([0-9.]+).*/\1/p' "$work/bench" >>"$work/tps.$way"
	done
	[ "$r" != 0 ] || ways=${ways/bare profile/profile bare} # the first of a round is not always the same
done

median() {
	sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

name_of() {
	case $1 in
	bare) echo "nothing armed" ;;
	profile) echo "montrace-bpf, the profile, everything recorded" ;;
	count) echo "bpftrace, the same probes, count()" ;;
	text) echo "bpftrace, count() and str() of the query" ;;
	print) echo "bpftrace, count() and a line for each hit" ;;
	esac
}

printf 'pgbench -c %s -j 2 -T %s %s, %s rounds, PostgreSQL %s, %s cores\n' "$clients" "$seconds" "$*" "$rounds" \
	"$("$bin/postgres" --version | sed 's/.* \([0-9.]*\) *.*/\1/; s/[^0-9.]//g')" "$(nproc)"
printf '%-48s %8s  %-24s %9s %6s %6s\n' "" "" "" "us server" "tool" "hits"
printf '%-48s %8s  %-24s %9s %6s %6s\n' "" "tps" "of bare (least to most)" "a trans." "" ""
for way in bare profile count text print; do
	[ -e "$work/tps.$way" ] || continue
	paste "$work/tps.$way" "$work/tps.bare" | awk '{ print $1 / $2 }' | sort -g >"$work/ratios"
	hits=0
	[ ! -e "$work/hits.$way" ] || hits=$(paste "$work/hits.$way" "$work/done.$way" | awk '{ print $1 / $2 }' | median)
	printf '%-48s %8.0f  %-24s %9.1f %6.1f %6.1f\n' "$(name_of "$way")" "$(median <"$work/tps.$way")" \
		"$(printf '%.3f (%.3f to %.3f)' "$(median <"$work/ratios")" "$(head -n 1 "$work/ratios")" \
			"$(tail -n 1 "$work/ratios")")" \
		"$(median <"$work/server.$way")" "$(median <"$work/tool.$way")" "$hits"
done
printf 'montrace-bpf: %s hits lost\n' "$(paste -sd+ "$work/lost" | bc)"
