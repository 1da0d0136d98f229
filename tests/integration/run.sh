#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Integration tests; options as run.py's. Needs root, BPF, a build (MT_BUILD, default build/).
exec python3 -B "$(dirname "$0")/run.py" "$@"
