# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What the scripts share: packages, tools that are not in PATH, builds. Sourced by bash, not run.
#
# Packages are installed only where apt is, and only those that are missing; elsewhere the build says what it
# wants. Nothing is installed that is there already, whoever put it there.

MT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
MT_JOBS=${MT_JOBS:-$(nproc 2>/dev/null || echo 2)}
MT_LIBBPF_MIN=1.3
PATH=$PATH:/usr/sbin:/sbin

say() {
	printf '%s\n' "$*"
}

warn() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	warn "$@"
	exit 1
}

# ---- Packages ---------------------------------------------------------------------------------------

mt_apt_updated=

# Runs a command as root; fails if that cannot be.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		warn "needs root for: $*"
		return 1
	fi
}

# One apt-get call: quiet; what it says is shown if it fails.
apt_get() {
	local out

	out=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
		-o Dpkg::Use-Pty=0 "$@" 2>&1 </dev/null) && return 0
	printf '%s\n' "$out" | tail -n 30 >&2
	return 1
}

apt_update() {
	[ -n "$mt_apt_updated" ] && return 0
	apt_get update || warn "apt-get update failed; trying with the lists that are there"
	mt_apt_updated=1
}

# Of the packages given, those that are not installed.
packages_missing() {
	local p

	for p; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | sort -u)" = installed ] || printf '%s\n' "$p"
	done
}

# Can apt install it? (Not true for names that other packages only provide.)
package_available() {
	apt-cache madison "$1" 2>/dev/null | grep -q .
}

# need_packages PACKAGE...: installs what is missing. 1 if something is still missing.
need_packages() {
	local missing

	if ! command -v apt-get >/dev/null; then
		warn "no apt here: install with your package manager what Debian calls: $*"
		return 0
	fi
	mapfile -t missing < <(packages_missing "$@")
	[ ${#missing[@]} = 0 ] && return 0
	say "installing: ${missing[*]}"
	apt_update
	apt_get install --no-install-recommends "${missing[@]}"
}

# Debian puts an epoch before the versions of some packages (1:1.1.2): it is not part of the comparison.
version_ge() {
	dpkg --compare-versions "${1#*:}" ge "$2"
}

# The version of a package in a suite that is at least VERSION, as `apt-get -t` wants the suite: prints it,
# or nothing if the version that apt would take anyway will do. 1 if there is none.
suite_with() {
	local package=$1 min=$2 candidate version suite

	candidate=$(apt-cache policy "$package" | awk '$1 == "Candidate:" { print $2 }')
	if [ -n "$candidate" ] && [ "$candidate" != "(none)" ] && version_ge "$candidate" "$min"; then
		return 0
	fi
	while read -r version suite; do
		if version_ge "$version" "$min"; then
			printf '%s\n' "${suite%%/*}"
			return 0
		fi
	done < <(apt-cache madison "$package" | awk -F ' *[|] *' '/ Packages$/ { split($3, s, " "); print $2, s[2] }')
	return 1
}

# Where apt has the suite $2 with component main from: prints "URI" and, on a second line, what signs it. Reads
# the sources in directory $1 (/etc/apt), of both kinds.
apt_source_of() {
	local dir=$1 suite=$2 f

	for f in "$dir"/sources.list.d/*.sources; do
		[ -e "$f" ] || continue
		deb822_source "$suite" <"$f" && return 0
	done
	for f in "$dir"/sources.list "$dir"/sources.list.d/*.list; do
		[ -e "$f" ] || continue
		oneline_source "$suite" <"$f" && return 0
	done
	return 1
}

# The first stanza that is enabled and has the suite. A folded Signed-By (a key in the file) is kept folded.
deb822_source() {
	awk -v suite="$1" '
	function has(list, word,    n, i, w) {
		n = split(list, w, " ")
		for (i = 1; i <= n; i++)
			if (w[i] == word)
				return 1
		return 0
	}
	function stanza() {
		if (!done && has(f["types"], "deb") && has(f["suites"], suite) && has(f["components"], "main") &&
		    tolower(f["enabled"]) !~ /^(no|false|off|0)$/) {
			split(f["uris"], u, " ")
			print u[1]
			print f["signed-by"]
			done = 1
		}
		split("", f)
		key = ""
	}
	/^#/ { next }
	/^[ \t]*$/ { stanza(); next }
	/^[ \t]/ { f[key] = f[key] "\n" $0; next }
	{
		key = tolower(substr($0, 1, index($0, ":") - 1))
		value = substr($0, index($0, ":") + 1)
		gsub(/^[ \t]+|[ \t]+$/, "", value)
		f[key] = value
	}
	END { stanza(); exit !done }'
}

oneline_source() {
	awk -v suite="$1" '
	$1 == "deb" {
		line = $0
		signed = ""
		sub(/#.*/, "", line)
		if (match(line, /\[[^]]*\]/)) {
			n = split(substr(line, RSTART + 1, RLENGTH - 2), o, " ")
			for (i = 1; i <= n; i++)
				if (o[i] ~ /^signed-by=/)
					signed = substr(o[i], 11)
			line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
		}
		n = split(line, w, " ")
		if (w[3] != suite)
			next
		for (i = 4; i <= n; i++)
			if (w[i] == "main") {
				gsub(/,/, " ", signed)
				print w[2]
				print signed
				found = 1
				exit
			}
	}
	END { exit !found }'
}

# Adds the backports of this release, from the mirror that the release itself comes from.
add_backports() {
	local ID='' VERSION_CODENAME='' found uri signed file=/etc/apt/sources.list.d/montrace-backports.sources

	# shellcheck disable=SC1091
	. /etc/os-release
	[ "$ID" = debian ] && [ -n "$VERSION_CODENAME" ] || return 1
	found=$(apt_source_of /etc/apt "$VERSION_CODENAME") || return 1
	uri=${found%%$'\n'*}
	signed=
	[ "$uri" = "$found" ] || signed=${found#*$'\n'}
	say "adding $VERSION_CODENAME-backports to apt's sources ($file)"
	{
		printf '# For libbpf %s or newer and bpftool; written by the scripts of montrace-bpf.\n' "$MT_LIBBPF_MIN"
		printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\n' "$uri" "$VERSION_CODENAME"
		[ -z "$signed" ] || printf 'Signed-By: %s\n' "$signed"
	} | as_root tee "$file" >/dev/null || return 1
	mt_apt_updated=
	apt_update
}

have_libbpf() {
	command -v pkg-config >/dev/null && pkg-config --atleast-version=$MT_LIBBPF_MIN libbpf
}

need_libbpf() {
	local suite

	have_libbpf && return 0
	command -v apt-get >/dev/null || return 0
	apt_update
	if ! suite=$(suite_with libbpf-dev $MT_LIBBPF_MIN); then
		add_backports && suite=$(suite_with libbpf-dev $MT_LIBBPF_MIN) || {
			warn "no package of libbpf $MT_LIBBPF_MIN or newer for this system"
			return 1
		}
	fi
	say "installing: libbpf-dev${suite:+ from $suite}"
	apt_get install --no-install-recommends ${suite:+-t "$suite"} libbpf-dev
}

# Prints a bpftool that runs. Any version makes skeletons. On Ubuntu the one in PATH may be a script that
# wants the tools of the running kernel, while those of another kernel are there.
find_bpftool() {
	local t

	for t in "$(command -v bpftool)" /usr/lib/linux-tools/*/bpftool /usr/lib/linux-tools-*/bpftool; do
		if [ -x "$t" ] && "$t" version >/dev/null 2>&1; then
			printf '%s\n' "$t"
			return 0
		fi
	done
	return 1
}

need_bpftool() {
	local suite=

	find_bpftool >/dev/null && return 0
	command -v apt-get >/dev/null || return 0
	apt_update
	if package_available bpftool; then
		suite=$(suite_with bpftool 7.2 || true)
		say "installing: bpftool${suite:+ from $suite}"
		apt_get install --no-install-recommends ${suite:+-t "$suite"} bpftool || return 1
	else
		need_packages linux-tools-common linux-tools-generic || return 1
	fi
	find_bpftool >/dev/null || {
		warn "bpftool is installed but does not run"
		return 1
	}
}

# What the tool is built with.
need_build_packages() {
	need_packages gcc g++ libc6-dev make cmake pkg-config clang libelf-dev zlib1g-dev libprotobuf-c-dev \
		protobuf-c-compiler || return 1
	need_libbpf && need_bpftool
}

# A PostgreSQL server, for tests that run their own. Its package would make a cluster and start that: not here,
# unless there is one already.
need_postgresql() {
	local conf=/etc/postgresql-common/createcluster.conf status

	if ! command -v apt-get >/dev/null || [ -z "$(packages_missing postgresql)" ]; then
		need_packages postgresql
		return
	fi
	need_packages postgresql-common || return 1
	as_root cp -p $conf $conf.montrace &&
		as_root sed -i -e '/^#* *create_main_cluster *=/d' -e '$a create_main_cluster = false' $conf || return 1
	need_packages postgresql
	status=$?
	as_root mv $conf.montrace $conf
	return $status
}

# The sanitizer and fuzzer runtime of clang is a package of its own; its name has a version on some systems.
need_clang_runtime() {
	local version

	command -v apt-get >/dev/null || return 0
	[ -n "$(clang_fuzzer_runtime)" ] && return 0
	apt_update
	if package_available libclang-rt-dev; then
		need_packages libclang-rt-dev && [ -n "$(clang_fuzzer_runtime)" ] && return 0
	fi
	version=$(clang -dumpversion) || return 1
	need_packages "libclang-rt-${version%%.*}-dev"
}

clang_fuzzer_runtime() {
	local dir

	dir=$(clang -print-resource-dir 2>/dev/null) || return 0
	find "$dir/" -name 'libclang_rt.fuzzer*.a' 2>/dev/null | head -n 1
}

# ---- Builds -----------------------------------------------------------------------------------------

# build_tree DIR [CMAKE OPTION...]: configures; MT_TARGETS="a b" builds only these.
build_tree() {
	local dir=$1 bpftool targets=()
	shift

	bpftool=$(find_bpftool) || bpftool=
	cmake -S "$MT_ROOT" -B "$dir" ${bpftool:+-DBPFTOOL="$bpftool"} "$@" || return 1
	# shellcheck disable=SC2206
	[ -z "${MT_TARGETS:-}" ] || targets=(--target $MT_TARGETS)
	cmake --build "$dir" --parallel "$MT_JOBS" "${targets[@]}"
}

# Under sudo, what was built belongs to the caller afterwards, who can then remove it and build on.
give_back() {
	local d

	[ "$(id -u)" = 0 ] && [ -n "${SUDO_UID:-}" ] && [ "$SUDO_UID" != 0 ] || return 0
	for d; do
		[ ! -e "$d" ] || chown -hR "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$d"
	done
}

# Why tracing is not possible here; empty if it should be.
why_no_tracing() {
	local release major minor

	release=$(uname -r)
	major=${release%%.*}
	minor=${release#*.}
	minor=${minor%%[!0-9]*}
	if [ "$(id -u)" != 0 ]; then
		echo "not root"
	elif [ "$major" -lt 5 ] || { [ "$major" = 5 ] && [ "${minor:-0}" -lt 15 ]; }; then
		echo "kernel $release is too old: 5.15 or newer is needed"
	elif [ ! -r /sys/kernel/btf/vmlinux ]; then
		echo "this kernel has no BTF (no /sys/kernel/btf/vmlinux; CONFIG_DEBUG_INFO_BTF)"
	fi
}
