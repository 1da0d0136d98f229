# SPDX-License-Identifier: BSD-3-Clause
"""A set of USDT cases from outside of this repository, if it is there: MT_SHARED, or ../shared beside the repository."""

import os
import re
import shutil
import subprocess

import lib
from lib import Skipped, need


def cases_dir():
    shared = os.environ.get("MT_SHARED", os.path.join(os.path.dirname(lib.ROOT), "shared"))
    return os.path.join(shared, "cases")


def needs_mounts(case):
    scenario = os.path.join(case, "scenario.sh")
    return os.path.exists(scenario) and "unshare -m" in open(scenario).read()


def test_cases(c):
    src = cases_dir()
    if not os.path.exists(os.path.join(src, "run.sh")):
        raise Skipped("no cases in " + src)
    if subprocess.run(["cc", "-E", "-x", "c", "-"], input=b"#include <sys/sdt.h>\n", stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode:
        raise Skipped("no sys/sdt.h (systemtap-sdt-dev)")
    work = os.path.join(c.dir, "cases")
    shutil.copytree(src, work)
    shutil.copy(os.path.join(lib.HERE, "cases", "tracer-montrace.sh"), work)
    env = dict(os.environ, MT_TOOL=lib.TOOL)
    failed, passed, left_out = [], 0, []
    mounts = subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0
    for name in sorted(n for n in os.listdir(work) if re.match(r"\d", n)):
        if not mounts and needs_mounts(os.path.join(work, name)):
            left_out.append(name)
            continue
        p = subprocess.run(["bash", "run.sh", name, "montrace"], cwd=work, env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=180)
        out = p.stdout.decode(errors="replace")
        passed += out.count(": PASS ")
        if p.returncode:
            failed.append(out[-800:])
    need(not failed, "\n".join(failed))
    need(passed, "no case at all")
    return "%d cases" % passed + ("".join("; no mount namespaces, so not " + n for n in left_out))
