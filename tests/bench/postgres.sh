#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the PostgreSQL profile costs a server under pgbench, beside bpftrace on the same probes.
#
#   postgres.sh [-r ROUNDS] [-t SECONDS] [-c CLIENTS] [pgbench options, default -S]
#
# A server of its own; rounds in which the ways take turns, each for SECONDS with all clients. Prints the median of
# transactions per second, the median of the ratios to the bare run of the same round, and their spread. Needs root,
# PostgreSQL with probes; bpftrace where it is installed. MT_BUILD: build directory. Defaults: about 3 minutes.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tool=${MT_TOOL:-${MT_BUILD:-$root/build}/montrace-bpf}
rounds=5 seconds=4 clients=8
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

finish() {
	[ -z "$tracer" ] || kill -INT "$tracer" 2>/dev/null
	wait
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
pgbench -i -q -s 10 >/dev/null 2>&1 || die "pgbench -i"

# The probes of the profile, as bpftrace wants them.
mapfile -t probes < <(grep -oE '^postgresql:[a-z_]+(\.\.[a-z_|]+)?' "$root/profiles/postgresql.profile" |
	sed -E 's/^postgresql://; s/\.\./\n/' | tr '|' '\n' | sort -u)
program() {
	local p
	printf 'BEGIN { printf("armed\\n"); }\n'
	for p in "${probes[@]}"; do
		[ "$p" = statement__status ] && [ "$1" = text ] && continue
		printf 'usdt:%s/postgres:postgresql:%s { @[probe] = count(); }\n' "$bin" "$p"
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
	count | text)
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
	kill -INT "$tracer"
	wait "$tracer"
	tracer=
	case $1 in
	profile) sed -nE 's/.*: ([0-9]+) hits delivered.*/\1/p' "$work/said" >>"$work/hits" &&
		sed -nE 's/.* ([0-9]+) lost,.*/\1/p' "$work/said" >>"$work/lost" ;;
	*) sed -nE 's/^@\[.*\]: ([0-9]+)$/\1/p' "$work/said" | paste -sd+ | bc >>"$work/hits.$1" ;;
	esac
}

ways="bare profile"
if command -v bpftrace >/dev/null; then ways="$ways count text"; else echo "no bpftrace here"; fi
for ((r = 0; r < rounds; r++)); do
	for way in $ways; do
		start "$way"
		pgbench -n -c "$clients" -j 2 -T "$seconds" "$@" >"$work/bench" 2>&1 || die "pgbench: $(cat "$work/bench")"
		stop "$way"
		sed -nE 's/^tps = ([0-9.]+).*/\1/p' "$work/bench" >>"$work/tps.$way"
		[ "$way" != profile ] || sed -nE 's/.*actually processed: ([0-9]+).*/\1/p' "$work/bench" >>"$work/done"
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
	esac
}

printf 'pgbench -c %s -j 2 -T %s %s, %s rounds, PostgreSQL %s, %s cores\n' "$clients" "$seconds" "$*" "$rounds" \
	"$("$bin/postgres" --version | sed 's/.* \([0-9.]*\) *.*/\1/; s/[^0-9.]//g')" "$(nproc)"
printf '%-48s %8s  %s\n' "" "tps" "of bare (least to most)"
for way in bare profile count text; do
	[ -e "$work/tps.$way" ] || continue
	paste "$work/tps.$way" "$work/tps.bare" | awk '{ print $1 / $2 }' | sort -g >"$work/ratios"
	printf '%-48s %8.0f  %.3f (%.3f to %.3f)\n' "$(name_of "$way")" "$(median <"$work/tps.$way")" \
		"$(median <"$work/ratios")" "$(head -n 1 "$work/ratios")" "$(tail -n 1 "$work/ratios")"
done
printf 'montrace-bpf: %s hits a transaction, %s lost\n' \
	"$(paste "$work/hits" "$work/done" | awk '{ print $1 / $2 }' | median | awk '{ printf "%.1f", $1 }')" \
	"$(paste -sd+ "$work/lost" | sed 's/^$/0/' | bc)"
