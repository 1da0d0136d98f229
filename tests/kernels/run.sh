#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Boots Debian's kernels in qemu and runs the built tool (MT_BUILD) on real targets there.
#
#   tests/kernels/run.sh [--arch amd64|arm64] [NAME]...     NAME: 6.1, 6.12; all without
#
# MT_KEEP=1 keeps what the machines said. With --arch arm64 the tool and the targets are built by the cross compiler
# first (arm64.sh); the tool of MT_BUILD then only reads the traces. Three to five minutes, and on request only.
#
# The kernels come from Debian's packages, downloaded with apt and unpacked, never installed; they are kept in
# build-test/kernels. A virtual machine has an initial file system and nothing else: busybox, the tool with its
# libraries, three targets, and the guest's script (guest.sh). It talks on three serial lines: the console, the
# results (`ok NAME`, `FAIL NAME why`, `skip NAME why`), and the traces in base64, which verify.py checks outside.
# All machines run at the same time.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/../../scripts/lib.sh"

ARCH=amd64
if [ "${1:-}" = --arch ]; then
	ARCH=${2:-}
	shift 2 || exit 1
fi
case $ARCH in
amd64 | arm64) ;;
*) die "--arch is amd64 or arm64" ;;
esac

BUILD=$(cd "${MT_BUILD:-$MT_ROOT/build}" && pwd) || exit 1
KEPT=$MT_ROOT/build-test/kernels
CACHE=$KEPT
WORK=$(mktemp -d) || exit 1
# Of a machine from power on to power off.
BOOT_SECONDS=${MT_KERNEL_SECONDS:-$([ $ARCH = arm64 ] && echo 600 || echo 210)}
QEMU_PIDS=()
PASSED=0 FAILED=0 SKIPPED=0

clean() {
	local p

	for p in "${QEMU_PIDS[@]}"; do
		kill "$p" 2>/dev/null
	done
	if [ -n "${MT_KEEP:-}" ]; then
		say "kept: $WORK"
	else
		rm -rf "$WORK"
	fi
	give_back "$KEPT"
}
trap clean EXIT
trap 'exit 1' INT TERM

passed() {
	PASSED=$((PASSED + 1))
	say "ok   $*"
}

failed() {
	FAILED=$((FAILED + 1))
	say "FAIL $*"
}

skipped() {
	SKIPPED=$((SKIPPED + 1))
	say "skip $*"
}

finish() {
	say "$PASSED passed, $FAILED failed, $SKIPPED skipped"
	[ $FAILED = 0 ]
	exit $?
}

# ---- Packages ---------------------------------------------------------------------------------------

# The package of what is kept under NAME; of a kernel series the newest that apt knows. Unsigned ones hold the same
# image.
package_of() {
	case $1 in
	busybox) echo busybox-static ;;
	*) apt-cache pkgnames "linux-image-$1." | grep -E -- "-cloud-$ARCH-unsigned\$" | sort -V | tail -n 1 ;;
	esac
}

# Unpacks what NAME is of to build-test/kernels/NAME, unless that is there already.
fetch() {
	local dir=$CACHE/$1 package tmp=$WORK/deb.$1

	package=$(package_of "$1")
	[ -n "$package" ] || return 1
	[ "$(cat "$dir/package" 2>/dev/null)" = "$package" ] && return 0
	rm -rf "$tmp" && mkdir -p "$tmp" || return 1
	(cd "$tmp" && apt-get -q download "$package" && dpkg-deb -x ./*.deb root) >"$tmp.log" 2>&1 || return 1
	rm -rf "$dir" && mkdir -p "$dir" || return 1
	case $1 in
	busybox) cp "$tmp/root/bin/busybox" "$dir/" ;;
	*) cp "$tmp"/root/boot/vmlinuz-* "$dir/vmlinuz" ;;
	esac || return 1
	rm -rf "$tmp"
	printf '%s\n' "$package" >"$dir/package"
}

renew_lists() {
	if [ $ARCH = arm64 ]; then
		arm64_update
	else
		apt_update
	fi
}

# As fetch; if apt's lists are missing or old, with new ones, and with backports; else what is there from before.
get() {
	fetch "$1" && return 0
	(renew_lists) && fetch "$1" && return 0
	[ "$1" != 6.12 ] || [ -n "$(package_of "$1")" ] || { add_backports && fetch "$1" && return 0; }
	[ ! -e "$WORK/deb.$1.log" ] || tail -n 3 "$WORK/deb.$1.log"
	[ -e "$CACHE/$1/package" ]
}

# ---- The initial file system ------------------------------------------------------------------------

# The libraries that a program wants, at their places.
copy_libraries() {
	local lib

	if [ $ARCH = arm64 ]; then
		arm64_copy_libraries "$1"
		return
	fi
	ldd "$1" | grep -oE '/[^ ]+' | while read -r lib; do
		mkdir -p "$ROOT$(dirname "$lib")" && cp -L "$lib" "$ROOT$lib"
	done
}

# count: static, at fixed addresses (the guest looks at its code by address); the others as programs usually are.
build_targets() {
	local src=$MT_ROOT/tests/integration/targets cc="${CC:-cc} -O2 -g -pthread -I$MT_ROOT/include"

	[ $ARCH != arm64 ] || cc="$ARM64_CC -O2 -g -pthread -I$MT_ROOT/include"
	$cc -static -no-pie "$src/count.c" -o "$ROOT/bin/count" &&
		$cc "$src/die.c" -o "$ROOT/bin/die" &&
		$cc "$src/operands.c" -o "$ROOT/bin/operands" &&
		$cc "$src/pointers.c" -o "$ROOT/bin/pointers" || return 1
	[ $ARCH != arm64 ] || $cc -mbranch-protection=standard "$HERE/bti.c" -o "$ROOT/bin/bti" || return 1
	copy_libraries "$ROOT/bin/die"
}

# Addresses of code and semaphore of each probe of count, for the guest.
list_probes() {
	readelf -nW "$ROOT/bin/count" |
		sed -nE 's/.*Location: (0x[0-9a-f]+), Base: 0x[0-9a-f]+, Semaphore: (0x[0-9a-f]+).*/\1 \2/p' >"$ROOT/probes"
	[ -s "$ROOT/probes" ]
}

make_root() {
	ROOT=$WORK/root
	mkdir -p "$ROOT"/{bin,etc,proc,run,sys,dev,tmp} || return 1
	printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$ROOT/etc/passwd"
	cp "$CACHE/busybox/busybox" "$ROOT/bin/" && cp "$HERE/guest.sh" "$ROOT/init" && chmod 755 "$ROOT/init" &&
		cp "$TOOL" "$ROOT/bin/" || return 1
	$STRIP -g "$ROOT/bin/montrace-bpf" 2>/dev/null
	copy_libraries "$TOOL" && build_targets && list_probes || return 1
	(cd "$ROOT" && find . | "$KEPT/busybox/busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$WORK/initrd"
}

# ---- Machines ---------------------------------------------------------------------------------------

# The three serial lines. The guest is told their names, what the first byte of a breakpoint is, and how many hits a
# thread makes: the lines of arm64 take minutes for a trace of more, and whole seconds during which nothing else runs.
lines() {
	local out=$1

	if [ $ARCH = arm64 ]; then
		LINES_ARGS=(-serial "file:$out/console" -chardev "file,id=results,path=$out/results"
			-chardev "file,id=traces,path=$out/traces" -device pci-serial,chardev=results
			-device pci-serial,chardev=traces)
		APPEND="console=ttyAMA0 mt_results=/dev/ttyS0 mt_traces=/dev/ttyS1 mt_armed=a0 mt_hits=5000 nosoftlockup"
	else
		LINES_ARGS=(-serial "file:$out/console" -serial "file:$out/results" -serial "file:$out/traces")
		APPEND="console=ttyS0 mt_results=/dev/ttyS1 mt_traces=/dev/ttyS2 mt_armed=cc mt_hits=20000"
	fi
}

boot() {
	local name=$1 out=$WORK/$1

	mkdir -p "$out"
	lines "$out"
	timeout -k 5 "$BOOT_SECONDS" "${QEMU[@]}" -accel tcg,thread=multi -smp 2 -m 768 \
		-nodefaults -no-user-config -display none -no-reboot "${LINES_ARGS[@]}" \
		-kernel "$CACHE/$name/vmlinuz" -initrd "$WORK/initrd" \
		-append "$APPEND quiet panic=-1 nokaslr mitigations=off" >"$out/qemu" 2>&1 </dev/null &
	QEMU_PIDS+=($!)
}

# What a machine said: its results, then what its traces say.
collect() {
	local name=$1 out=$WORK/$1 verdict what rest line

	tr -d '\r' <"$out/results" >"$out/lines"
	while read -r line; do
		read -r verdict what rest <<<"$line"
		case $verdict in
		ok) passed "$name $what $rest" ;;
		FAIL) failed "$name $what $rest" ;;
		skip) skipped "$name $what $rest" ;;
		note) say "     $name $what $rest" ;;
		esac
	done <"$out/lines"
	if ! grep -qx 'end' "$out/lines"; then
		failed "$name did not come to the end of its checks; its console ends with:"
		tail -n 15 "$out/console" | tr -d '\r'
		tail -n 3 "$out/qemu"
	fi
	while read -r line; do
		read -r verdict what rest <<<"$line"
		case $verdict in
		ok) passed "$name $what $rest" ;;
		*) failed "$name ${line#FAIL }" ;;
		esac
	done < <(python3 -B "$HERE/verify.py" "$BUILD/montrace-bpf" "$out/traces" "$WORK/t.$name" 2>&1)
}

# ---- The run ----------------------------------------------------------------------------------------

skip_all() {
	skipped "$*"
	finish
}

names=("$@")
[ ${#names[@]} != 0 ] || names=(6.1 6.12)
[ "$(uname -m)" = x86_64 ] || skip_all "the kernels are for x86-64"
QEMU=(qemu-system-x86_64 -cpu max)
[ $ARCH != arm64 ] || QEMU=(qemu-system-aarch64 -M virt -cpu max,pauth-impdef=on,sve=off)
command -v "${QEMU[0]}" >/dev/null ||
	skip_all "no ${QEMU[0]} (package qemu-system-$([ $ARCH = arm64 ] && echo arm || echo x86))"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip_all "no apt here: the kernels are Debian's packages"
command -v python3 >/dev/null || skip_all "no python3"
[ -x "$BUILD/montrace-bpf" ] || {
	failed "no $BUILD/montrace-bpf"
	finish
}
mkdir -p "$CACHE"
(ARCH=amd64 && get busybox) || skip_all "busybox-static cannot be downloaded"
TOOL=$BUILD/montrace-bpf
STRIP=strip
if [ $ARCH = arm64 ]; then
	. "$HERE/arm64.sh"
	arm64_prepare
	get busybox || skip_all "busybox-static of arm64 cannot be downloaded"
fi
make_root || {
	failed "the initial file system could not be made"
	finish
}
booted=()
for name in "${names[@]}"; do
	if get "$name"; then
		boot "$name"
		booted+=("$name")
	else
		skipped "$name: no such kernel to be had from apt's sources"
	fi
done
wait "${QEMU_PIDS[@]}"
QEMU_PIDS=()
for name in "${booted[@]}"; do
	collect "$name"
done
finish
