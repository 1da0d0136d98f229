# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What run.sh needs for arm64 on another machine: packages of arm64, a cross build, the libraries of a program.
# Sourced by run.sh.
#
# The packages are downloaded by an apt that has its own state in build-test/kernels/arm64, for the architecture
# arm64 and with the system's sources: the system itself gets no second architecture. The tool is built with
# Debian's cross compiler and its libc, and the libraries that are unpacked here.

ARM64_CC=aarch64-linux-gnu-gcc
ARM64_LIBC=/usr/aarch64-linux-gnu/lib
ARM64_PACKAGES=(libelf1 libelf-dev zlib1g zlib1g-dev libprotobuf-c1 libprotobuf-c-dev)

# An apt for arm64; all later calls of apt use it.
arm64_apt() {
	local d=$CACHE/apt

	mkdir -p "$d/lists/partial" "$d/cache/archives/partial" || return 1
	: >>"$d/status"
	cat >"$d/apt.conf" <<-END
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		APT::Sandbox::User "$(id -un)";
		Dir::State "$d";
		Dir::State::status "$d/status";
		Dir::Cache "$d/cache";
		Acquire::Languages "none";
	END
	export APT_CONFIG=$d/apt.conf
}

arm64_update() {
	apt-get -q update >"$WORK/update.log" 2>&1 || warn "apt-get update for arm64 failed; trying with what is there"
}

# Downloads and unpacks what the tool links to $SYSROOT, once. Links in it that are absolute would lead out of it.
arm64_sysroot() {
	local suite=() l tmp=$WORK/sysroot s

	[ ! -e "$SYSROOT/complete" ] || return 0
	arm64_update
	s=$(suite_with libbpf-dev $MT_LIBBPF_MIN) || return 1
	[ -z "$s" ] || suite=("libbpf-dev/$s" "libbpf1/$s")
	[ -n "$s" ] || suite=(libbpf-dev libbpf1)
	rm -rf "$tmp" "$SYSROOT" && mkdir -p "$tmp" "$SYSROOT" || return 1
	(cd "$tmp" && apt-get -q download "${ARM64_PACKAGES[@]}" "${suite[@]}") >"$tmp.log" 2>&1 || {
		tail -n 3 "$tmp.log"
		return 1
	}
	for l in "$tmp"/*.deb; do
		dpkg-deb -x "$l" "$SYSROOT" || return 1
	done
	find "$SYSROOT" -type l -lname '/*' | while read -r l; do
		ln -snf "$SYSROOT$(readlink "$l")" "$l"
	done
	touch "$SYSROOT/complete"
}

arm64_build() {
	cat >"$CACHE/toolchain.cmake" <<-END
		set(CMAKE_SYSTEM_NAME Linux)
		set(CMAKE_SYSTEM_PROCESSOR aarch64)
		set(CMAKE_C_COMPILER $ARM64_CC)
		set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
	END
	PKG_CONFIG_LIBDIR=$SYSROOT/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$SYSROOT \
		PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 MT_TARGETS=montrace-bpf \
		build_tree "$CACHE/build" -DCMAKE_TOOLCHAIN_FILE="$CACHE/toolchain.cmake" -DMT_TESTS=OFF \
		>"$WORK/build.log" 2>&1 || {
		tail -n 15 "$WORK/build.log"
		return 1
	}
	grep -q 'warning:' "$WORK/build.log" || return 0
	grep -A3 'warning:' "$WORK/build.log"
	failed "arm64 build: warnings"
}

# As copy_libraries: nothing of arm64 can be run here, so the ELF files are asked, and the libraries they want too.
arm64_copy_libraries() {
	local name d

	mkdir -p "$ROOT/lib"
	for name in $(readelf -dlW "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p; s/.*interpreter: .*\/([^]]*)\].*/\1/p'); do
		[ ! -e "$ROOT/lib/$name" ] || continue
		for d in "$SYSROOT/usr/lib/aarch64-linux-gnu" "$SYSROOT/lib/aarch64-linux-gnu" "$ARM64_LIBC"; do
			[ ! -e "$d/$name" ] || break
		done
		cp -L "$d/$name" "$ROOT/lib/" && arm64_copy_libraries "$ROOT/lib/$name" || return 1
	done
}

# Sets CACHE, TOOL and STRIP of the run; ends it if there is nothing to build with.
arm64_prepare() {
	CACHE=$KEPT/arm64
	SYSROOT=$CACHE/sysroot
	TOOL=$CACHE/build/montrace-bpf
	STRIP=aarch64-linux-gnu-strip
	command -v $ARM64_CC >/dev/null && command -v aarch64-linux-gnu-g++ >/dev/null ||
		skip_all "no cross compiler (packages gcc-aarch64-linux-gnu, g++-aarch64-linux-gnu)"
	[ -d $ARM64_LIBC ] || skip_all "no $ARM64_LIBC (package libc6-dev-arm64-cross)"
	arm64_apt && arm64_sysroot || skip_all "the libraries of arm64 cannot be downloaded"
	arm64_build || {
		failed "the tool could not be built for arm64"
		finish
	}
}
