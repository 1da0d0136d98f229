#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Tests of scripts/lib.sh: where apt's sources are read, versions, kernels. Needs no root and installs nothing.
set -u
cd "$(dirname "$0")/../.." || exit 1
. scripts/lib.sh
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# is WHAT GOT WANT
is() {
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL %s\n     got  %q\n     want %q\n' "$1" "$2" "$3"
	fi
}

# source_is WHAT WANT: what apt_source_of finds for suite `stable` in $work/apt
source_is() {
	is "$1" "$(apt_source_of "$work/apt" stable || echo none)" "$2"
}

fresh() {
	rm -rf "$work/apt"
	mkdir -p "$work/apt/sources.list.d"
}

NL=$'\n'

# ---- apt's sources ----
fresh
source_is "nothing there" none

cat >"$work/apt/sources.list" <<'END'
# deb http://comment.example/debian stable main
deb-src http://source.example/debian stable main
deb http://other.example/debian unstable main
deb http://contrib.example/debian stable contrib
deb [arch=amd64 signed-by=/k/a.gpg,/k/b.gpg] http://one.example/debian stable contrib main # why
deb http://two.example/debian stable main
END
source_is "one-line form" "http://one.example/debian${NL}/k/a.gpg /k/b.gpg"

fresh
echo 'deb http://plain.example/debian stable main' >"$work/apt/sources.list.d/x.list"
source_is "a .list file, no options" "http://plain.example/debian"

fresh
cat >"$work/apt/sources.list.d/debian.sources" <<'END'
Types: deb
URIs: http://off.example/debian
Suites: stable
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: stable
Components: main

Types: deb
URIs: http://contrib.example/debian
Suites: stable
Components: contrib

# a comment
Types: deb deb-src
# another, inside
URIs: http://new.example/debian/ http://second.example/debian
Suites: stable stable-updates
Components: contrib main
Signed-By: /usr/share/keyrings/k.gpg

Types: deb
URIs: http://last.example/debian
Suites: stable
Components: main
END
echo 'deb http://plain.example/debian stable main' >"$work/apt/sources.list"
source_is "deb822 form goes first" "http://new.example/debian/${NL}/usr/share/keyrings/k.gpg"

fresh
cat >"$work/apt/sources.list.d/debian.sources" <<'END'
Types: deb
URIs: mirror+file:/etc/apt/mirrors/debian.list
Suites: stable-updates
 stable
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----
END
source_is "folded lines, key in the file, no empty line at the end" "mirror+file:/etc/apt/mirrors/debian.list

 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----"

# ---- versions ----
if command -v dpkg >/dev/null; then
	is "epoch does not count" "$(version_ge 1:1.1.2-0+deb12u1 1.3 && echo yes || echo no)" no
	is "backport" "$(version_ge 1:1.4.6-1~bpo12+1 1.3 && echo yes || echo no)" yes
	is "equal" "$(version_ge 1.3 1.3 && echo yes || echo no)" yes
	is "longer" "$(version_ge 1:1.3.0-2build2 1.3 && echo yes || echo no)" yes
	is "no epoch" "$(version_ge 1.10 1.3 && echo yes || echo no)" yes
fi

# ---- suites ----
apt-cache() {
	case "$1 $test_candidate" in
	policy*) printf 'p:\n  Installed: (none)\n  Candidate: %s\n' "$test_candidate" ;;
	madison*)
		echo 'p | 1:9.9-1 | http://m.example/debian backports/main Sources'
		echo 'p | 1:1.4.6-1~bpo12+1 | http://m.example/debian stable-backports/main amd64 Packages'
		echo 'p | 1:1.1.2-0+deb12u1 | http://m.example/debian stable/main amd64 Packages'
		;;
	esac
}
test_candidate=1:1.1.2-0+deb12u1
is "newer in another suite" "$(suite_with p 1.3 || echo none)" stable-backports
is "nowhere new enough" "$(suite_with p 5.0 || echo none)" none
test_candidate=1:1.4.6-1
is "candidate will do" "$(suite_with p 1.3 || echo none)" ""
unset -f apt-cache

# ---- kernels ----
test_release=
uname() {
	echo "$test_release"
}
id() {
	echo 0
}
for test_release in 4.19.0 5.10.0-8-amd64 5.9; do
	is "kernel $test_release" "$(why_no_tracing)" "kernel $test_release is too old: 5.15 or newer is needed"
done
for test_release in 5.15.0 5.15.0-generic 6.1.0-18-amd64 10.0-rc1; do
	case $(why_no_tracing) in *old*) is "kernel $test_release" old new ;; *) is "kernel $test_release" new new ;; esac
done
unset -f uname id

echo "$passed passed, $failed failed"
[ $failed = 0 ]
