#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What tracing costs here; options as run.py's, or `--postgres` and options of postgres.sh. Needs root, BPF, a build
# (MT_BUILD, default build/).
cd "$(dirname "$0")" || exit 1
if [ "${1:-}" = --postgres ]; then
	shift
	exec bash postgres.sh "$@"
fi
exec python3 -B run.py "$@"
