#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh BUILD PREFIX: installs BUILD into an empty PREFIX and uses what is there as a stranger would: the tool
# from its place, the header through pkg-config and through find_package, and both again after the prefix has
# been moved.
set -u
build=$1
prefix=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

test_case() {
	local what=$1
	shift

	if "$@" >"$work/out" 2>&1; then
		printf 'ok   %s\n' "$what"
		passed=$((passed + 1))
	else
		printf 'FAIL %s\n' "$what"
		sed 's/^/     /' "$work/out"
		failed=$((failed + 1))
	fi
}

hello() {
	if [ -e "$root/examples/hello.c" ]; then
		cp "$root/examples/hello.c" "$1"
	else
		printf '#include <montrace.h>\nint main(void)\n{\n\tMONTRACE_SCOPE("hello");\n\treturn 0;\n}\n' >"$1"
	fi
}

# In a directory of its own: a compiler must find the header through the prefix, not through this tree.
pkg_config() {
	local dir=$work/pc flags

	rm -rf "$dir" && mkdir "$dir" && hello "$dir/hello.c" || return 1
	flags=$(PKG_CONFIG_PATH=$1/share/pkgconfig pkg-config --cflags --libs montrace) || return 1
	echo "flags: $flags"
	# shellcheck disable=SC2086
	(cd "$dir" && cc -Wall -Werror -o hello hello.c $flags) || return 1
	has_probes "$dir/hello"
}

find_package() {
	local dir=$work/fp

	rm -rf "$dir" && mkdir "$dir" && hello "$dir/hello.c" || return 1
	cat >"$dir/CMakeLists.txt" <<-END
	cmake_minimum_required(VERSION 3.25)
	project(stranger LANGUAGES C CXX)
	find_package(montrace 0.1 REQUIRED)
	add_executable(hello hello.c)
	target_link_libraries(hello PRIVATE montrace::montrace)
	add_executable(scope scope.cc)
	target_link_libraries(scope PRIVATE montrace::montrace)
	END
	printf '#include <montrace.h>\nint main()\n{\n\tMONTRACE_SCOPE("hello");\n}\n' >"$dir/scope.cc"
	cmake -S "$dir" -B "$dir/build" -DCMAKE_PREFIX_PATH="$1" && cmake --build "$dir/build" || return 1
	has_probes "$dir/build/hello" && has_probes "$dir/build/scope"
}

has_probes() {
	readelf -nW "$1" | grep -q 'Provider: montrace'
}

too_new() {
	local dir=$work/new

	mkdir "$dir"
	printf 'cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES C)\nfind_package(montrace 99.0 REQUIRED)\n' \
		>"$dir/CMakeLists.txt"
	! cmake -S "$dir" -B "$dir/build" -DCMAKE_PREFIX_PATH="$1"
}

tool_runs() {
	"$1/bin/montrace-bpf" --version | grep -Eq '^montrace-bpf [0-9]+\.[0-9]+\.[0-9]+$' &&
		"$1/bin/montrace-bpf" list "$work/fp/build/hello"
}

installed() {
	local f status=0

	for f; do
		[ -s "$prefix/$f" ] || {
			echo "not installed: $f"
			status=1
		}
	done
	return $status
}

# Every profile with its page; and the tool looks in the prefix it is in.
profiles() {
	local p name

	for p in "$root"/profiles/*.profile; do
		name=$(basename "$p" .profile)
		cmp "$p" "$1/share/montrace/profiles/$name.profile" || return 1
		[ ! -e "$root/profiles/${name%%-*}.profile" ] || name=${name%%-*} # a variant is on the same page
		[ -s "$1/share/doc/montrace-bpf/profiles/$name.md" ] || {
			echo "no page of $name"
			return 1
		}
	done
	[ ! -e "$1/bin/montrace-bpf" ] || finds "$1"
}

# `list` names the profile of a probe: here one that is only in that prefix.
finds() {
	local own=$1/share/montrace/profiles/only-here.profile status

	cat >"$work/note.c" <<-'END'
	int main(void)
	{
		__asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"
			".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n"
			".8byte 0\n.8byte 0\n.asciz \"own\"\n.asciz \"probe\"\n.asciz \"\"\n994: .balign 4\n.popsection");
		return 0;
	}
	END
	cc -o "$work/note" "$work/note.c" || return 1
	printf 'when own:probe\nown:probe\n' >"$own"
	"$1/bin/montrace-bpf" list "$work/note" >"$work/list"
	status=$?
	rm -f "$own"
	cat "$work/list"
	[ $status = 0 ] && grep -Eq '^own:probe +1 +no +- +only-here ' "$work/list"
}

# Nothing in a package may name the place where it was built.
no_build_paths() {
	! grep -rIlF -e "$root" -e "$prefix" "$prefix/share/pkgconfig" "$prefix/share/cmake"
}

rm -rf "$prefix"
test_case "cmake --install" cmake --install "$build" --prefix "$prefix"
test_case "files are in place" installed include/montrace.h share/man/man1/montrace-bpf.1 share/pkgconfig/montrace.pc \
	share/cmake/montrace/montraceConfig.cmake share/doc/montrace-bpf/LICENSE
test_case "packages name no build paths" no_build_paths
test_case "pkg-config" pkg_config "$prefix"
test_case "find_package, C and C++" find_package "$prefix"
test_case "find_package of a version that is too new fails" too_new "$prefix"
if [ -e "$build/montrace-bpf" ]; then
	test_case "the installed tool runs" tool_runs "$prefix"
fi
test_case "profiles, and their pages" profiles "$prefix"
rm -rf "$prefix.moved"
cp -a "$prefix" "$prefix.moved"
mv "$prefix" "$prefix.away"
test_case "pkg-config, moved" pkg_config "$prefix.moved"
test_case "find_package, moved" find_package "$prefix.moved"
test_case "profiles, moved" profiles "$prefix.moved"
rm -rf "$prefix.moved"
mv "$prefix.away" "$prefix"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
