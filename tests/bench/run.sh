#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What tracing costs here; options as run.py's. Needs root, BPF, a build (MT_BUILD, default build/).
cd "$(dirname "$0")" || exit 1
exec python3 -B run.py "$@"
