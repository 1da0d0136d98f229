#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The first process of the virtual machine (run.sh): sets up the system, runs the checks, powers off.
# The command line of the kernel says on which serial lines results and traces go, and what a breakpoint begins with
# (mt_results, mt_traces, mt_armed), and how many hits a thread makes (mt_hits).

/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t securityfs security /sys/kernel/security
stty -F $mt_results raw
stty -F $mt_traces raw
cd /tmp

now() {
	cut -d. -f1 /proc/uptime
}

result() {
	echo "$*" >$mt_results
}

# ---- Targets and the tracer -------------------------------------------------------------------------

# start NAME PROGRAM ARGS: a target whose input is a pipe; waits until it is ready. Sets PID.
start() {
	name=$1
	shift
	rm -f in.$name
	mkfifo in.$name
	"$@" <in.$name >out.$name &
	exec 3>in.$name
	wait_for out.$name '^ready '
	PID=$(sed -n 's/^ready //p' out.$name)
}

go() {
	echo g >&3
}

# wait_for FILE PATTERN: for a minute.
wait_for() {
	n=0
	until grep -q "$2" "$1" 2>/dev/null; do
		n=$((n + 1))
		[ $n -lt 600 ] || return 1
		usleep 100000
	done
}

# trace NAME ARGS: the tracer in the background, until it says that it has armed. Sets TRACER.
trace() {
	tname=$1
	shift
	montrace-bpf "$@" 2>err.$tname >/dev/null 3>&- &
	TRACER=$!
	wait_for err.$tname 'callsites* armed' || return 1
}

# The end of a tracer: its status in STATUS.
join() {
	wait $TRACER
	STATUS=$?
}

# number FILE WORDS: the number before these words.
number() {
	sed -nE "s/.*[^0-9]([0-9]+) $2.*/\1/p" "$1" | tail -n 1
}

said() {
	sed -n "s/^$2=//p" out.$1
}

send() {
	{
		echo "trace $1"
		gzip -c "$1.pftrace" | base64
		echo "truth $1 $(tr '\n' ' ' <out.$1)"
	} >$mt_traces
}

fail() {
	echo "$*"
	return 1
}

# ---- Code and semaphores ----------------------------------------------------------------------------

# bytes PID ADDRESS N
bytes() {
	dd if=/proc/$1/mem bs=1 skip=$(($2)) count=$3 2>/dev/null | od -An -v -tx1 | tr -d ' \n'
}

# For each probe of count: the byte of its code and its semaphore.
look() {
	while read -r code sem; do
		echo "$(bytes $1 $code 1) $(bytes $1 $sem 2)"
	done </probes
}

# ---- Checks: print why and return 1 if it is not so -------------------------------------------------

has_multi() {
	major=${KERNEL%%.*}
	rest=${KERNEL#*.}
	[ $major -gt 6 ] || [ $major = 6 -a ${rest%%.*} -ge 6 ]
}

# 4 threads, $mt_hits hits each: every one is delivered or counted as lost. Before, while and after: the target's memory.
check_count() {
	start count count 4 $mt_hits
	look $PID >before
	begin=$(now)
	trace count -v -p $PID -o count.pftrace || { fail "$(cat err.count)"; return; }
	result "note attached after $(($(now) - begin)) s"
	look $PID >armed
	cat /proc/$TRACER/fdinfo/* >links 2>/dev/null
	go
	wait_for out.count '^done' || { fail "the target hangs"; return; }
	echo >&3
	exec 3>&-
	join
	[ $STATUS = 0 ] || { fail "exit status $STATUS: $(tail -n 1 err.count)"; return; }
	delivered=$(number err.count 'hits delivered')
	lost=$(number err.count 'lost,')
	[ "$((${delivered:-0} + ${lost:-0}))" = "$(said count hits)" ] && [ "${delivered:-0}" -gt 0 ] ||
		{ fail "delivered ${delivered:-?} + lost ${lost:-?}, target: $(said count hits)"; return; }
	result "note $delivered hits delivered, $lost lost"
	send count
}

# A ring that is too small: what is lost is counted, and the trace says the same number (verify.py).
check_small_ring() {
	start small count 4 $mt_hits
	trace small -v --ring 4K -p $PID -o small.pftrace || { fail "$(cat err.small)"; return; }
	go
	wait_for out.small '^done' || { fail "the target hangs"; return; }
	echo >&3
	exec 3>&-
	join
	[ $STATUS = 0 ] || { fail "exit status $STATUS: $(tail -n 1 err.small)"; return; }
	delivered=$(number err.small 'hits delivered')
	lost=$(number err.small 'lost,')
	[ "$((${delivered:-0} + ${lost:-0}))" = "$(said small hits)" ] && [ "${delivered:-0}" -gt 0 ] && [ "${lost:-0}" -gt 0 ] ||
		{ fail "delivered ${delivered:-?} + lost ${lost:-?}, target: $(said small hits)"; return; }
	echo "lost=$lost" >>out.small
	result "note small ring: $delivered hits delivered, $lost lost"
	send small
}

# Which kind of link: chosen by the tracer alone.
check_links() {
	multi=$(grep -c '^link_type:.*uprobe_multi' links)
	perf=$(grep -c '^link_type:.*perf' links)
	probes=$(wc -l </probes)
	if has_multi; then
		[ "$multi" = 1 -a "$perf" = 0 ] || fail "$multi uprobe_multi links, $perf perf links"
	else
		[ "$multi" = 0 -a "$perf" = $probes ] || fail "$multi uprobe_multi links, $perf perf links, $probes probes"
	fi
}

check_armed_memory() {
	grep -q ' 0000$' armed && { fail "semaphores: $(tr '\n' ';' <armed)"; return; }
	grep -qv "^$mt_armed " armed && { fail "code: $(tr '\n' ';' <armed)"; return; }
	cmp -s before armed && fail "nothing was armed"
	return 0
}

check_detach() {
	start spin count 2 1000 spin
	look $PID >spin.before
	go
	trace spin -v -m dev -p $PID -o spin.pftrace || { fail "$(cat err.spin)"; return; }
	look $PID >spin.armed
	sleep 1
	kill -INT $TRACER
	join
	look $PID >spin.after
	echo >&3
	exec 3>&-
	[ $STATUS = 0 ] || { fail "exit status $STATUS: $(tail -n 1 err.spin)"; return; }
	cmp -s spin.before spin.armed && { fail "nothing was armed"; return; }
	cmp -s spin.before spin.after || { fail "before: $(tr '\n' ';' <spin.before) after: $(tr '\n' ';' <spin.after)"; return; }
	grep -qv ' 0000$' spin.after && fail "semaphores: $(tr '\n' ';' <spin.after)"
	[ "$(number err.spin 'hits delivered')" -gt 0 ] || fail "nothing delivered"
}

check_die() {
	start die die kill
	trace die -v -p $PID -o die.pftrace || { fail "$(cat err.die)"; return; }
	go
	exec 3>&-
	join
	[ $STATUS = 0 ] || { fail "exit status $STATUS: $(tail -n 1 err.die)"; return; }
	montrace-bpf summary die.pftrace >summary.die 2>&1 || { fail "summary: $(tail -n 1 summary.die)"; return; }
	grep -q 'outer' summary.die && grep -q 'inner' summary.die || { fail "summary: $(tr '\n' ';' <summary.die)"; return; }
	send die
}

check_foreign() {
	start operands operands
	trace operands -v -p $PID -o operands.pftrace --usdt 'op:*' --usdt 'op:length name="texts" arg0:str(arg1)' \
		--usdt 'op:job__start..job__done key=arg0 id=arg0 end.done=arg1' \
		--usdt 'op:pred name="brackets" arg0 if (arg0 >= 490 || arg0 < -497.5) && (arg1 == "ten" || arg0 == -499)' \
		--usdt 'op:floats name="real" arg0 if arg0 > 2.25 && arg1 < -0.5' --usdt 'op:floats name="no" arg0 if arg0 > 2.5' ||
		{ fail "$(cat err.operands)"; return; }
	go
	wait_for out.operands '^done' || { fail "the target hangs"; return; }
	exec 3>&-
	join
	[ $STATUS = 0 ] || { fail "exit status $STATUS: $(tail -n 1 err.operands)"; return; }
	send operands
}

# Memory that a userfaultfd would have to bring, and never does: nobody waits for it.
check_pages() {
	start pages pointers uffd
	trace pages -v -p $PID -o pages.pftrace --usdt 'bad:ptr s=arg1:str arg2 arg0' || { fail "$(cat err.pages)"; return; }
	go
	wait_for out.pages '^done' || { kill -9 $PID; fail "the target hangs"; return; }
	exec 3>&-
	join
	[ $STATUS = 0 ] || { fail "exit status $STATUS: $(tail -n 1 err.pages)"; return; }
	send pages
}

check_command() {
	echo go | montrace-bpf -v -o command.pftrace -- count 2 500 2>err.command >out.command ||
		{ fail "exit status $?: $(tail -n 1 err.command)"; return; }
	[ "$(number err.command 'hits delivered')" = "$(said command hits)" ] ||
		{ fail "$(number err.command 'hits delivered') delivered, target: $(said command hits)"; return; }
	send command
}

# Thunks in pages that are guarded by branch target identification (arm64).
check_bti() {
	montrace-bpf -v -o bti.pftrace -- bti 2>err.bti >out.bti || { fail "exit status $?: $(tail -n 1 err.bti)"; return; }
	[ "$(number err.bti 'hits delivered')" = 200 ] && [ "$(said bti hits)" = 200 ] ||
		fail "$(number err.bti 'hits delivered') delivered, target: $(said bti hits)"
}

# Children of the command are followed, and what they exec.
check_follow() {
	montrace-bpf -v -o follow.pftrace -- sh -c 'echo go | count 1 300; echo go | count 2 50; true' 2>err.follow >out.follow ||
		{ fail "exit status $?: $(tail -n 1 err.follow)"; return; }
	[ "$(number err.follow 'hits delivered')" = 400 ] ||
		fail "$(number err.follow 'hits delivered') delivered, not 400: $(cat err.follow)"
}

check_list() {
	montrace-bpf list /bin/count >list.out 2>&1 || { fail "exit status $?: $(tail -n 1 list.out)"; return; }
	grep -q 'event' list.out && grep -q 'scope' list.out || fail "$(tr '\n' ';' <list.out)"
}

# refused WORDS COMMAND: it ends with 1 and one line that has these words.
refused() {
	words=$1
	shift
	"$@" >/dev/null 2>err.refused
	status=$?
	[ $status = 1 ] && [ "$(wc -l <err.refused)" = 1 ] && grep -q "$words" err.refused ||
		fail "exit status $status: $(tr '\n' ';' <err.refused)"
}

check_no_btf() {
	mount -t tmpfs none /sys/kernel/btf || { fail "cannot hide /sys/kernel/btf"; return; }
	refused 'no BTF' montrace-bpf -p $PID -o x.pftrace
	r=$?
	umount /sys/kernel/btf
	return $r
}

# A user without rights of its own.
check_unprivileged() {
	chmod 777 /tmp
	refused 'CAP_BPF' su nobody -s /bin/sh -c "montrace-bpf -p $PID -o x.pftrace"
}

# The last one: there is no way back.
check_lockdown() {
	echo confidentiality >/sys/kernel/security/lockdown || { fail "no lockdown here"; return; }
	refused 'kernel lockdown' montrace-bpf -p $PID -o x.pftrace
}

# ---- The run ----------------------------------------------------------------------------------------

KERNEL=$(uname -r)
result "note kernel $KERNEL, up after $(now) s"
for c in count links armed_memory small_ring detach die foreign pages command $([ -e /bin/bti ] && echo bti) follow list unprivileged no_btf lockdown; do
	case $c in
	unprivileged) start idle count 1 1 ;;
	esac
	begin=$(now)
	if check_$c >why 2>&1; then
		result "ok $c ($(($(now) - begin)) s)"
	else
		result "FAIL $c ($(($(now) - begin)) s) $(tr '\n' ' ' <why)"
	fi
done
dmesg | grep -E 'WARNING:|BUG:|Oops|RCU stall|rcu_preempt detected' | while read -r line; do
	result "FAIL kernel-log $line"
done
result end
sync
poweroff -f
