#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that --help, the man page and README.md name the same options and variables.

    check.py BINARY [--man FILE] [--readme FILE] [--source DIR]
    check.py --self-test

The options of `BINARY --help` count. An option missing in the man page, or unknown there, is an error;
so is one with another argument, and a command that is missing. README.md is checked if it has a table of
options (rows `| `-p`, `--pid PID` | ... |`): that one must be complete. Elsewhere in README.md, and in
the examples of the man page, an option of montrace-bpf must at least exist. The variables that the tool
reads, its own and those of a traced program, must be in ENVIRONMENT of the man page, and no others.

The last line is `N passed, N failed`. Exit status: 0 all agree, 1 they do not, 2 usage.
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTION = re.compile(r"(?<![\w-])(--?[a-zA-Z][\w-]*)")


def help_options(text):
    """{option: (short form or None, takes an argument)}; an option without long form by its short one"""
    found = {}
    for line in text.splitlines():
        m = re.match(r"\s{2,8}(?:(-\w), )?(--[\w-]+)(\[=\S+\]|(?: \S+)?)(?:\s\s|$)", line)
        if m:
            found[m[2]] = (m[1], bool(m[3].strip()))
            continue
        m = re.match(r"  (-\w)((?: \S+)?)\s\s", line)
        if m:
            found[m[1]] = (None, bool(m[2].strip()))
    return found


def help_commands(text):
    usage = text.split("\n\n")[0]
    return set(re.findall(r"montrace-bpf \[?(\w+)", usage))


def roff_text(line):
    """A line of roff as text: font escapes, \\- and quotes of macro arguments removed."""
    line = re.sub(r"\\f[BIRP]", "", line).replace("\\-", "-").replace("\\&", "")
    return line


def man_sections(roff):
    """{section: [lines]}; comments dropped"""
    sections, now = {}, ""
    for line in roff.splitlines():
        if line.startswith('.\\"'):
            continue
        m = re.match(r"\.SH (.*)", line)
        if m:
            now = m[1].strip('"')
            sections[now] = []
        else:
            sections.setdefault(now, []).append(line)
    return sections


def man_options(sections):
    """As help_options, from the tagged paragraphs of OPTIONS."""
    found = {}
    lines = sections.get("OPTIONS", [])
    for before, line in zip(lines, lines[1:]):
        text = roff_text(line)
        if before != ".TP" or not text.startswith("-"):
            continue
        m = re.match(r"(?:(-\w), )?(--[\w-]+)(.*)", text)
        if m:
            found[m[2]] = (m[1], bool(m[3].strip()))
        else:
            found[text.split()[0]] = (None, " " in text)
    return found


def man_variables(sections):
    found = set()
    lines = sections.get("ENVIRONMENT", [])
    for before, line in zip(lines, lines[1:]):
        if before == ".TP":
            found |= set(re.findall(r"\b[A-Z][A-Z0-9_]{3,}\b", line))
    return found


def source_variables(source):
    """Variables read with getenv, and names of those that targets are asked for."""
    found = set()
    for name in sorted(os.listdir(source)):
        if name.endswith(".c"):
            with open(os.path.join(source, name), encoding="utf-8") as f:
                text = f.read()
            found |= set(re.findall(r'\b(?:getenv|variable)\("(\w+)"\)', text))
            found |= set(re.findall(r'"((?:HYPERACTOR|MONTRACE|MONARCH)_[A-Z_]+)"', text))
    return found


def command_lines(text):
    """Options of the command lines that run montrace-bpf in a text."""
    found = set()
    for line in text.replace("\\\n", " ").splitlines():
        for m in re.finditer(r"(?:^|[\s`/])montrace-bpf (.*)", line):
            line_options = re.split(r"[`|;#]|&&|(?<!\S)--(?=\s)", m[1])[0]
            line_options = re.sub(r"'[^']*'|\"[^\"]*\"", "", line_options)
            found |= {o if o.startswith("--") else o[:2] for o in OPTION.findall(line_options)}  # -F10s is -F
    return found


def readme_table(text):
    """Options in the first cells of table rows that begin with one; None without such a table."""
    found = {}
    for line in text.splitlines():
        m = re.match(r"\|\s*(`-[^|]*)\|", line)
        cell = m[1] if m else ""
        names = re.findall(r"`(--?[\w-]+)[^`]*`", cell)
        for name in names:
            found[name] = cell
    return found or None


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def that(self, what, problems):
        """One check: fails with these problems, if any."""
        if problems:
            self.failed += 1
            print(f"FAIL {what}")
            for p in problems:
                print(f"     {p}")
        else:
            self.passed += 1
            print(f"ok   {what}")


def differences(ours, theirs, ours_name, theirs_name):
    out = [f"{o}: in {ours_name}, not in {theirs_name}" for o in sorted(set(ours) - set(theirs))]
    out += [f"{o}: in {theirs_name}, not in {ours_name}" for o in sorted(set(theirs) - set(ours))]
    return out


def check(help_text, roff, readme, variables):
    c = Checks()
    options = help_options(help_text)
    shorts = {s for s, _ in options.values() if s}
    known = set(options) | shorts
    sections = man_sections(roff)
    in_man = man_options(sections)

    c.that("--help lists options", [] if len(options) > 5 else ["no options found: has its form changed?"])
    c.that("man page has the options of --help", differences(options, in_man, "--help", "the man page"))
    c.that("man page has the same short options and arguments",
           [f"{o}: --help {options[o]}, man page {in_man[o]}"
            for o in sorted(set(options) & set(in_man)) if options[o] != in_man[o]])
    commands = {line.split()[-1] for line in sections.get("DESCRIPTION", []) if line.startswith(".B ")}
    c.that("man page has the commands of --help",
           [f"{x}: not described" for x in sorted(help_commands(help_text) - commands)])
    examples = roff_text("\n".join(sections.get("EXAMPLES", [])))
    c.that("examples of the man page use options that exist",
           [f"{o}: unknown" for o in sorted(command_lines(examples) - known)])
    c.that("man page has the variables that are read",
           differences(variables, man_variables(sections), "the source", "the man page"))
    c.that("man page has all its sections",
           [f"no section {s}" for s in ("NAME", "SYNOPSIS", "EXIT STATUS", "FILES", "SECURITY",
                                        "KERNEL REQUIREMENTS") if s not in sections])
    if readme is not None:
        c.that("command lines in README.md use options that exist",
               [f"{o}: unknown" for o in sorted(command_lines(readme) - known)])
        table = readme_table(readme)
        if table:
            missing = [f"{o}: not in the table" for o in sorted(options) if o not in table]
            unknown = [f"{o}: unknown" for o in sorted(table) if o not in known]
            c.that("README.md's table has the options of --help", missing + unknown)
    return c


def self_test():
    """Each kind of mistake is found, and a good set passes."""
    opts = [("-p", "--pid", "PID"), ("-o", "--output", "FILE"), (None, "--ring", "SIZE"),
            (None, "--json", ""), ("-q", "--quiet", ""), ("-h", "--help", "")]
    # An option with an optional value, and one that is short only.
    more_help = "  -F, --flight[=SPEC]   text\n  -f                    text\n"
    more_man = ".TP\n\\fB\\-F\\fP, \\fB\\-\\-flight\\fP[=\\fISPEC\\fP]\nText.\n.TP\n\\fB\\-f\\fP\nText.\n"
    more_readme = "| `-F`, `--flight[=SPEC]` | text |\n| `-f` | text |\n"
    help_text = "Usage: montrace-bpf [record] -p PID\n       montrace-bpf dump FILE\n\n" + "".join(
        f"  {s + ', ' if s else '    '}{n + (' ' + a if a else ''):<20}text\n" for s, n, a in opts) + more_help
    roff = ".SH NAME\n.SH SYNOPSIS\n.SH DESCRIPTION\n.B record\n.B dump\n.SH OPTIONS\n" + "".join(
        ".TP\n" + (f"\\fB\\{s}\\fP, " if s else "") + "\\fB" + n.replace("-", "\\-") + "\\fP"
        + (f" \\fI{a}\\fP" if a else "") + "\nText.\n" for s, n, a in opts)
    roff += more_man + (".SH EXIT STATUS\n.SH ENVIRONMENT\n.TP\n.B MT_DIR\nText.\n.SH FILES\n.SH SECURITY\n"
             ".SH KERNEL REQUIREMENTS\n.SH EXAMPLES\nsudo montrace-bpf \\-p 1 | head \\-n 3\n")
    readme = "`montrace-bpf -q -p 1`\n\n| Option | |\n|---|---|\n" + "".join(
        f"| {'`' + s + '`, ' if s else ''}`{n} {a}` | text |\n" for s, n, a in opts) + more_readme
    good = (help_text, roff, readme, {"MT_DIR"})
    cases = [
        ("good", good, 0),
        ("option missing in the man page", (help_text, roff.replace("\\-\\-ring", "\\-\\-rung"), readme, {"MT_DIR"}), 1),
        ("option unknown to --help", (help_text.replace("--json", "--jsom"), roff, readme, {"MT_DIR"}), 2),
        ("no argument in the man page", (help_text, roff.replace(" \\fISIZE\\fP", ""), readme, {"MT_DIR"}), 1),
        ("other short option", (help_text, roff.replace("\\fB\\-q", "\\fB\\-Q"), readme, {"MT_DIR"}), 1),
        ("optional value missing in the man page",
         (help_text, roff.replace("\\-\\-flight\\fP[=", "\\-\\-flight\\fP\n["), readme, {"MT_DIR"}), 1),
        ("short option missing in the man page",
         (help_text, roff.replace("\\fB\\-f\\fP", "\\fB\\-g\\fP"), readme, {"MT_DIR"}), 1),
        ("command missing", (help_text, roff.replace(".B dump\n", ""), readme, {"MT_DIR"}), 1),
        ("options of a command are its own",
         (help_text, roff + "sudo montrace-bpf \\-\\- ./x \\-\\-port 1\n", readme, {"MT_DIR"}), 0),
        ("bad example", (help_text, roff.replace("\\-p 1", "\\-z 1"), readme, {"MT_DIR"}), 1),
        ("variable missing", (help_text, roff, readme, {"MT_DIR", "MT_X"}), 1),
        ("variable unknown", (help_text, roff, readme, set()), 1),
        ("section missing", (help_text, roff.replace(".SH FILES\n", ""), readme, {"MT_DIR"}), 1),
        ("README command line", (help_text, roff, readme.replace("-q -p", "--nope -p"), {"MT_DIR"}), 1),
        ("README table incomplete", (help_text, roff, readme.replace("`--json `", "json"), {"MT_DIR"}), 1),
        ("README with another table",
         (help_text, roff, "| `montrace-bpf -p 1`, `--pid 2` | text |\n", {"MT_DIR"}), 0),
        ("no README", (help_text, roff, None, {"MT_DIR"}), 0),
    ]
    bad = 0
    for name, case, want in cases:
        stdout, sys.stdout = sys.stdout, open(os.devnull, "w", encoding="utf-8")
        try:
            failed = check(*case).failed
        finally:
            sys.stdout.close()
            sys.stdout = stdout
        if failed != want:
            bad += 1
            print(f"FAIL self-test: {name}: {failed} checks failed, not {want}")
    print(f"{len(cases) - bad} passed, {bad} failed")
    return 1 if bad else 0


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("binary", nargs="?")
    p.add_argument("--man", default=os.path.join(ROOT, "docs", "montrace-bpf.1"))
    p.add_argument("--readme", default=os.path.join(ROOT, "README.md"))
    p.add_argument("--source", default=os.path.join(ROOT, "userspace"))
    p.add_argument("--self-test", action="store_true")
    a = p.parse_args()
    if a.self_test:
        return self_test()
    if not a.binary:
        p.error("give the binary")
    out = subprocess.run([a.binary, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    with open(a.man, encoding="utf-8") as f:
        roff = f.read()
    readme = None
    if os.path.exists(a.readme):
        with open(a.readme, encoding="utf-8") as f:
            readme = f.read()
    c = check(out, roff, readme, source_variables(a.source))
    print(f"{c.passed} passed, {c.failed} failed")
    return 1 if c.failed else 0


if __name__ == "__main__":
    sys.exit(main())
