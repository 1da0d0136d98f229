#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks a .pftrace file from outside. Shares no code with the writer or with the reader in C.

    check_trace.py FILE [--allow-truncated] [--allow-open] [--expect KEY=N ...] [--args NAME ...] [--json]
    check_trace.py --self-test

It decodes the wire format itself, follows every packet as the importer of Perfetto would, and is
stricter: what the importer repairs silently is a violation here. In a trace of several hosts each packet
must have a machine id, and a sequence and a track belong to one machine. One line is printed for each
violation, then one line of counts as JSON:

    slices      begins
    spans       begins without the annotation `continued`
    instants    `events lost` not among them
    counters    counter values
    threads, processes   described tracks of that kind
    lost        sum of the annotation `count` of instants named `events lost`
    perf_lost   sum of PerfSample.kernel_records_lost
    names       slices by name
    lanes       tracks by name that are neither thread nor process nor counter, below a process, and hold slices
    machines    hosts, by machine id (0: packets have none)
    open        slices open at the end

--expect compares a count: slices=N, span:NAME=N, slice:NAME=N, instant:NAME=N, counter:NAME=N (values).
--args prints the annotations of each begin and instant of that name, one JSON object a line; NaN and
infinities as strings, pointers as "0x..."; --json prints nothing but the counts, violations as a list
in them. Exit status: 0 good, 1 violations, 2 usage.
"""

import argparse
import bisect
import json
import math
import struct
import sys
import zlib

MAX_DEPTH = 512
MAX_LINES = 1000
MAX_PACKET = 64 << 20
CACHE_MAX = 200000


class Bad(Exception):
    """The bytes are no valid protobuf."""


def varint(d, p, end):
    v = shift = 0
    while True:
        if p >= end or shift > 63:
            raise Bad("varint cut off or too long")
        b = d[p]
        p += 1
        v |= (b & 0x7F) << shift
        if b < 0x80:
            return v & 0xFFFFFFFFFFFFFFFF, p
        shift += 7


def fields(d, p, end):
    """Yields (tag, value) for all fields; bytes fields as (start, end). For the packets that are rare."""
    while p < end:
        tag, p = varint(d, p, end)
        wt = tag & 7
        if tag < 8:
            raise Bad("field number 0")
        if wt == 0:
            v, p = varint(d, p, end)
        elif wt == 2:
            n, p = varint(d, p, end)
            v = (p, p + n)
            p += n
        elif wt == 1:
            v = d[p:p + 8]
            p += 8
        elif wt == 5:
            v = d[p:p + 4]
            p += 4
        else:
            raise Bad("wire type %d" % wt)
        if p > end:
            raise Bad("field longer than what it is in")
        yield tag, v


def signed(v):
    return v - (1 << 64) if v >> 63 else v


def plain(f):
    if math.isnan(f):
        return "NaN"
    if math.isinf(f):
        return "Infinity" if f > 0 else "-Infinity"
    return f


class Seq:
    """State of one packet sequence."""

    __slots__ = ("valid", "seen", "cats", "names", "anns", "locs", "strs", "uuid", "clk", "clocks", "machine")

    def __init__(self, machine=0):
        self.machine = machine
        self.valid = self.seen = False
        self.clocks = {}
        self.clear()

    def clear(self):
        self.cats = {}
        self.names = {}
        self.anns = {}
        self.locs = {}
        self.strs = {}
        self.uuid = None
        self.clk = None


# InternedData field -> attribute of Seq
TABLES = {1: "cats", 2: "names", 3: "anns", 4: "locs", 29: "strs"}

NONE = object()


class Checker:
    def __init__(self, allow_truncated=False, allow_open=False, want_args=()):
        self.allow_truncated = allow_truncated
        self.allow_open = allow_open
        self.want = set(want_args)
        self.args_out = []
        self.violations = []
        self.nviolations = 0
        self.seqs = {}
        self.desc = {}  # uuid -> [identity, name, parent, kind]
        self.tracks = {}  # uuid -> [last ts, names of open slices, slices, counter values]
        self.snaps = []  # (boot, mono, real)
        self.first = True
        self.offset = 0
        self.slices = self.spans = self.instants = self.counters = 0
        self.lost = self.perf_lost = self.packets = self.max_depth = 0
        self.truncated = 0
        self.names = {}
        self.span_names = {}
        self.instant_names = {}
        self.ann_cache = {}
        self.machines = set()
        self.track_machine = {}  # uuid -> machine id, filled only if packets have one

    # ---- reporting ----

    def bad(self, text):
        self.nviolations += 1
        if self.nviolations <= MAX_LINES:
            self.violations.append("offset %d: %s" % (self.offset, text))

    def text(self, b, what):
        try:
            return str(b, "utf-8")
        except UnicodeDecodeError:
            self.bad("%s is not valid UTF-8: %r" % (what, bytes(b[:40])))
            return str(b, "utf-8", "replace")

    # ---- cold packets ----

    def snapshot(self, d, p, end, seq):
        primary = 0
        clocks = {}
        for tag, v in fields(d, p, end):
            if tag == 16:
                primary = v
            elif tag == 10:
                cid, ts, inc, unit = 0, 0, False, 1
                for t2, v2 in fields(d, *v):
                    if t2 == 8:
                        cid = v2
                    elif t2 == 16:
                        ts = v2
                    elif t2 == 24:
                        inc = v2 != 0
                    elif t2 == 32:
                        unit = v2
                if cid in clocks:
                    self.bad("clock %d twice in one snapshot" % cid)
                clocks[cid] = (ts, inc, unit)
        if self.first:
            if not {1, 3, 6} <= clocks.keys():
                self.bad("first clock snapshot lacks one of the clocks 1, 3, 6: %s" % sorted(clocks))
            if primary != 6:
                self.bad("first clock snapshot has primary clock %d, not 6" % primary)
        if 6 not in clocks:
            self.bad("clock snapshot without clock 6")
            return
        boot = clocks[6][0]
        if self.snaps and (1 in clocks or 3 in clocks):
            last = self.snaps[-1]
            if boot < last[0]:
                self.bad("clock snapshot: boot clock runs back from %d to %d" % (last[0], boot))
            if 3 in clocks and clocks[3][0] < last[1]:
                self.bad("clock snapshot: monotonic clock runs back from %d to %d" % (last[1], clocks[3][0]))
        if 3 in clocks and 1 in clocks:
            self.snaps.append((boot, clocks[3][0], clocks[1][0]))
        for cid, (ts, inc, unit) in clocks.items():
            if cid in (1, 3, 6):
                if inc:
                    self.bad("clock %d must not be incremental" % cid)
            elif not 64 <= cid <= 127:
                self.bad("clock %d in a snapshot is not supported" % cid)
            else:
                old = seq.clocks.get(cid)
                if old and (old[0] != inc or old[2] != unit):
                    self.bad("clock %d changes its kind" % cid)
                seq.clocks[cid] = [inc, ts, unit, ts, boot]

    def boot_time(self, seq, clk, ts):
        c = seq.clocks.get(clk)
        if c is not None:
            if c[0]:
                ts = c[1] = (c[1] + ts) & 0xFFFFFFFFFFFFFFFF
            return c[4] + signed((ts - c[3]) & 0xFFFFFFFFFFFFFFFF) * c[2]
        if clk in (1, 3) and self.snaps:
            col = 1 if clk == 3 else 2
            i = bisect.bisect_right([s[col] for s in self.snaps], ts) - 1 if clk == 3 else len(self.snaps) - 1
            s = self.snaps[max(i, 0)]
            return s[0] + ts - s[col]
        self.bad("clock %d is in no snapshot" % clk)
        return ts

    def interned(self, d, p, end, seq):
        for tag, v in fields(d, p, end):
            table = TABLES.get(tag >> 3)
            if table is None or tag & 7 != 2:
                continue
            iid, text, func, line = 0, "", "", 0
            for t2, v2 in fields(d, *v):
                if t2 == 8:
                    iid = v2
                elif t2 == 18:
                    text = self.text(d[v2[0]:v2[1]], "interned %s" % table)
                elif t2 == 26:
                    func = self.text(d[v2[0]:v2[1]], "interned function")
                elif t2 == 32:
                    line = v2
            if not iid:
                self.bad("interned %s without iid" % table)
                continue
            tab = getattr(seq, table)
            if iid in tab:
                self.bad("iid %d of %s defined again: %r, was %r" % (iid, table, text, tab[iid]))
                continue
            tab[iid] = (text, func, line) if table == "locs" else text

    def defaults(self, d, p, end, seq):
        for tag, v in fields(d, p, end):
            if tag == 58 << 3:
                seq.clk = v
            elif tag == 11 << 3 | 2:
                for t2, v2 in fields(d, *v):
                    if t2 == 11 << 3:
                        seq.uuid = v2

    def on_machine(self, uuid, machine):
        """A track is one machine's."""
        first = self.track_machine.setdefault(uuid, machine)
        if first != machine:
            self.bad("track %d is of machine %d, was of machine %d" % (uuid, machine, first))

    def descriptor(self, d, p, end, machine):
        uuid = parent = 0
        name = tname = pname = None
        process = thread = None
        counter = False
        for tag, v in fields(d, p, end):
            if tag == 8:
                uuid = v
            elif tag == 40:
                parent = v
            elif tag in (18, 82, 106):
                name = self.text(d[v[0]:v[1]], "track name")
            elif tag == 26:
                process = 0
                for t2, v2 in fields(d, *v):
                    if t2 == 8:
                        process = signed(v2)
                    elif t2 == 50:
                        pname = self.text(d[v2[0]:v2[1]], "process name")
                    elif t2 == 18:
                        self.text(d[v2[0]:v2[1]], "command line")
            elif tag == 34:
                pid = tid = None
                for t2, v2 in fields(d, *v):
                    if t2 == 8:
                        pid = signed(v2)
                    elif t2 == 16:
                        tid = signed(v2)
                    elif t2 == 42:
                        tname = self.text(d[v2[0]:v2[1]], "thread name")
                if pid is None or tid is None:
                    self.bad("thread descriptor without pid or tid")
                thread = (pid, tid)
            elif tag == 66:
                counter = True
        if not uuid:
            self.bad("track descriptor without uuid")
            return
        if machine:
            self.on_machine(uuid, machine)
            if parent:
                self.on_machine(parent, machine)
        identity = (parent, process, thread, counter)
        old = self.desc.get(uuid)
        kind = "thread" if thread else "process" if process is not None else "counter" if counter else "track"
        if old is None:
            self.desc[uuid] = [identity, tname or pname or name or "", parent, kind]
        elif old[0] != identity:
            self.bad("track %d described again as %r, was %r" % (uuid, identity, old[0]))
        else:
            old[1] = tname or pname or name or old[1]

    def other(self, d, tag, p, end):
        """Payloads that only count or only have texts."""
        if tag == 66 << 3 | 2:
            for t2, v2 in fields(d, p, end):
                if t2 == 17 << 3:
                    self.perf_lost += v2
        elif tag == 126 << 3 | 2:
            for t2, v2 in fields(d, p, end):
                if t2 == 10:
                    for t3, v3 in fields(d, *v2):
                        if t3 in (10, 26):
                            self.text(d[v3[0]:v3[1]], "trace attribute")
        elif tag == 2 << 3 | 2:
            for t2, v2 in fields(d, p, end):
                if t2 in (10, 18):
                    for t3, v3 in fields(d, *v2):
                        if t3 & 7 == 2 and (t2, t3) in ((10, 26), (18, 18)):
                            self.text(d[v3[0]:v3[1]], "process tree")

    # ---- annotations ----

    def parse_ann(self, b):
        """-> (iid of the name or 0, name, value, iid of the value or 0); nested ones unresolved in `value`."""
        iid = siid = 0
        name, value = None, NONE
        for tag, v in fields(b, 0, len(b)):
            if tag == 8:
                iid = v
            elif tag == 82:
                name = self.text(b[v[0]:v[1]], "annotation name")
            elif tag == 16:
                value = v != 0
            elif tag == 24:
                value = v
            elif tag == 32:
                value = signed(v)
            elif tag == 41:
                value = plain(struct.unpack("<d", v)[0])
            elif tag == 50 or tag == 74:
                value = self.text(b[v[0]:v[1]], "annotation value")
            elif tag == 56:
                value = "0x%x" % v
            elif tag == 17 << 3:
                siid = v
                value = None
            elif tag == 90 or tag == 98:
                if not isinstance(value, list):
                    value = ["dict" if tag == 90 else "array"]
                value.append(self.parse_ann(bytes(b[v[0]:v[1]])))
        if value is NONE:
            self.bad("annotation without value")
            value = None
        if iid == 0 and name is None:
            name = NONE
        return iid, name, value, siid

    def resolve(self, ann, seq, inner=False):
        """-> (name, value)"""
        iid, name, value, siid = ann
        if iid:
            name = seq.anns.get(iid)
            if name is None:
                self.bad("unknown iid %d of an annotation name" % iid)
                name = "?%d" % iid
        elif name is NONE:
            if not inner:
                self.bad("annotation without name")
            name = ""
        if siid:
            value = seq.strs.get(siid)
            if value is None:
                self.bad("unknown iid %d of an annotation value" % siid)
        elif type(value) is list:
            parts = [self.resolve(x, seq, value[0] == "array") for x in value[1:]]
            value = dict(parts) if value[0] == "dict" else [x[1] for x in parts]
        return name, value

    # ---- the hot path ----

    def event(self, d, p, end, seq, ts, machine):
        typ = uuid = name = file_line = None
        anns = None
        cache = self.ann_cache
        nflows = 0
        while p < end:
            tag = d[p]
            p += 1
            if tag > 127:
                tag, p = varint(d, p - 1, end)
            wt = tag & 7
            if wt == 0:
                v = d[p]
                p += 1
                if v > 127:
                    v, p = varint(d, p - 1, end)
                if tag == 72:
                    typ = v
                elif tag == 80:
                    name = seq.names.get(v)
                    if name is None:
                        self.bad("unknown iid %d of an event name" % v)
                        name = "?%d" % v
                elif tag == 24:
                    if v not in seq.cats:
                        self.bad("unknown iid %d of a category" % v)
                elif tag == 88:
                    uuid = v
                elif tag == 272:
                    file_line = seq.locs.get(v)
                    if file_line is None:
                        self.bad("unknown iid %d of a source location" % v)
            elif wt == 2:
                n = d[p]
                p += 1
                if n > 127:
                    n, p = varint(d, p - 1, end)
                q = p + n
                if q > end:
                    raise Bad("field longer than what it is in")
                if tag == 34:
                    raw = d[p:q]
                    ann = cache.get(raw)
                    if ann is None:
                        before = self.nviolations
                        ann = self.parse_ann(raw)
                        if before == self.nviolations:  # a bad one is told each time
                            if len(cache) > CACHE_MAX:
                                cache.clear()
                            cache[raw] = ann
                    if anns is None:
                        anns = [ann]
                    else:
                        anns.append(ann)
                elif tag == 186:
                    name = self.text(d[p:q], "event name")
                elif tag == 178:
                    self.text(d[p:q], "category")
                elif tag == 266:
                    for t2, v2 in fields(d, p, q):
                        if t2 in (18, 26):
                            self.text(d[v2[0]:v2[1]], "source location")
                p = q
            elif wt == 1:
                if tag == 377 or tag == 385:
                    nflows += 1
                    if d[p:p + 8] == b"\0\0\0\0\0\0\0\0":
                        self.bad("flow id 0")
                p += 8
            elif wt == 5:
                p += 4
            else:
                raise Bad("wire type %d" % wt)
        if p != end:
            raise Bad("field longer than what it is in")
        if uuid is None:
            uuid = seq.uuid
            if uuid is None:
                self.bad("event without track, and its sequence has no default")
                uuid = 0
        if machine:
            self.on_machine(uuid, machine)
        tr = self.tracks.get(uuid)
        if tr is None:
            tr = self.tracks[uuid] = [0, [], 0, 0]
        if ts is None:
            self.bad("event without time")
        elif ts < tr[0] and typ != 4:  # a counter is fed by all threads of a process; the importer sorts
            self.bad("time on track %d runs back from %d to %d" % (uuid, tr[0], ts))
        elif ts > tr[0]:
            tr[0] = ts
        args = None
        if anns is not None:
            # Names are looked up for all of them; an unknown iid is a violation wherever it is.
            args = {}
            resolve = self.resolve
            known = seq.anns
            for ann in anns:
                iid, aname, value, siid = ann
                if iid and not siid and type(value) is not list and iid in known:
                    aname = known[iid]
                else:
                    aname, value = resolve(ann, seq)
                args[aname] = value
        if typ == 1:
            self.begin(tr, uuid, name, args)
        elif typ == 2:
            self.end(tr, uuid, name)
        elif typ == 3:
            if not name:
                self.bad("instant without name")
            elif name == "events lost":
                count = (args or {}).get("count")
                if type(count) is int and count > 0:
                    self.lost += count
                else:
                    self.bad("`events lost` without a positive count: %r" % count)
            else:
                self.instants += 1
                self.instant_names[name] = self.instant_names.get(name, 0) + 1
            tr[2] += 1
            if name in self.want:
                self.args_out.append(args or {})
        elif typ == 4:
            self.counters += 1
            tr[3] += 1
        else:
            self.bad("track event of type %r" % typ)

    def begin(self, tr, uuid, name, args):
        if not name:
            self.bad("begin without name")
        stack = tr[1]
        stack.append(name)
        tr[2] += 1
        depth = len(stack)
        if depth > self.max_depth:
            self.max_depth = depth
            if depth > MAX_DEPTH:
                self.bad("more than %d slices open on track %d" % (MAX_DEPTH, uuid))
        if depth > 1 and self.is_lane(uuid):
            self.bad("two slices open on lane %d" % uuid)
        self.slices += 1
        names = self.names
        names[name] = names.get(name, 0) + 1
        if args is None or "continued" not in args:
            self.spans += 1
            names = self.span_names
            names[name] = names.get(name, 0) + 1
        if name in self.want:
            self.args_out.append(args or {})

    def is_lane(self, uuid):
        d = self.desc.get(uuid)
        return d is not None and d[3] == "track" and d[2] != 0

    def end(self, tr, uuid, name):
        stack = tr[1]
        if name is None:
            self.bad("end without name on track %d" % uuid)
        if not stack:
            self.bad("end of %r on track %d where no slice is open" % (name, uuid))
        elif name is not None and stack[-1] != name:
            self.bad("end of %r on track %d where %r is the innermost slice" % (name, uuid, stack[-1]))
            while stack and name in stack and stack.pop() != name:
                pass
        else:
            stack.pop()

    def packet(self, d, p, end):
        ts = clk = snap = ev = ev_end = desc = inter = dflt = comp = None
        seq_id = flags = dropped = machine = 0
        rest = None
        while p < end:
            tag = d[p]
            p += 1
            if tag > 127:
                tag, p = varint(d, p - 1, end)
            wt = tag & 7
            if wt == 0:
                v = d[p]
                p += 1
                if v > 127:
                    v, p = varint(d, p - 1, end)
                if tag == 64:
                    ts = v
                elif tag == 80:
                    seq_id = v
                elif tag == 104:
                    flags |= v
                elif tag == 464:
                    clk = v
                elif tag == 336:
                    dropped = v
                elif tag == 784:
                    machine = v
                elif tag == 328 and v:
                    flags |= 1
            elif wt == 2:
                n = d[p]
                p += 1
                if n > 127:
                    n, p = varint(d, p - 1, end)
                q = p + n
                if q > end:
                    raise Bad("field longer than what it is in")
                if tag == 90:
                    ev = p
                    ev_end = q
                elif tag == 98:
                    inter = (p, q)
                elif tag == 482:
                    desc = (p, q)
                elif tag == 50:
                    snap = (p, q)
                elif tag == 474:
                    dflt = (p, q)
                elif tag == 402:
                    comp = (p, q)
                else:
                    rest = (tag, p, q)
                p = q
            elif wt == 1:
                p += 8
            elif wt == 5:
                p += 4
            else:
                raise Bad("wire type %d" % wt)
        if p != end:
            raise Bad("field longer than what it is in")
        if comp is not None:
            return comp
        if self.first and snap is None:
            self.bad("the first packet is no clock snapshot")
        self.packets += 1
        if machine not in self.machines:
            self.machines.add(machine)
            if 0 in self.machines and len(self.machines) > 1:
                self.bad("some packets have a machine id, some have none")
        seq = self.seqs.get(seq_id)
        if seq is None:
            seq = self.seqs[seq_id] = Seq(machine)
        elif seq.machine != machine and seq_id:
            self.bad("sequence %d is of machine %d, was of machine %d" % (seq_id, machine, seq.machine))
        if flags & 1:
            seq.clear()
            seq.valid = True
        elif dropped and seq.seen:
            seq.valid = False
        seq.seen = True
        if seq_id == 0 and (ev is not None or inter or dflt or flags):
            self.bad("packet with sequence state but no sequence id")
        if dflt is not None:
            self.defaults(d, dflt[0], dflt[1], seq)
        if inter is not None:
            if not seq.valid:
                self.bad("interned data on sequence %d that was not cleared" % seq_id)
            self.interned(d, inter[0], inter[1], seq)
        if flags & 2 and not seq.valid:
            self.bad("sequence %d needs state that was never cleared or was dropped" % seq_id)
        if snap is not None:
            self.snapshot(d, snap[0], snap[1], seq)
        self.first = False
        if ts is not None:
            if clk is None:
                clk = seq.clk
            if clk is not None and clk != 6:
                ts = self.boot_time(seq, clk, ts)
            if ts < 0 or ts >> 63:
                self.bad("negative time %d" % ts)
        if ev is not None:
            if not seq.valid:
                self.bad("event on sequence %d that was not cleared" % seq_id)
            self.event(d, ev, ev_end, seq, ts, machine)
        elif desc is not None:
            self.descriptor(d, desc[0], desc[1], machine)
        elif rest is not None:
            self.other(d, *rest)
        return None

    def stream(self, d, nested=False):
        """Packets one after the other. Stops at the first thing that is none."""
        p, size = 0, len(d)
        packet = self.packet
        while p < size:
            if not nested:
                self.offset = p
            if d[p] != 10:
                self.bad("no packet begins here (byte 0x%02x)" % d[p])
                return
            try:
                n, q = varint(d, p + 1, size)
            except Bad:
                n, q = 0, size + 1
            if n > MAX_PACKET:
                self.bad("packet of %d bytes" % n)
                return
            if q + n > size:
                self.truncated = size - p
                if nested or not self.allow_truncated:
                    self.bad("torn packet: %d bytes of it are there" % (size - p))
                return
            try:
                comp = packet(d, q, q + n)
                if comp is not None:
                    if nested:
                        raise Bad("compressed packets inside compressed packets")
                    z = zlib.decompressobj()
                    inner = z.decompress(d[comp[0]:comp[1]], MAX_PACKET)
                    if not z.eof:
                        raise Bad("compressed packets cut off or too large")
                    self.stream(inner, True)
            except (Bad, IndexError, struct.error, zlib.error, RecursionError) as e:
                self.bad("packet cannot be decoded: %s" % e)
                return
            p = q + n

    def finish(self):
        self.offset = -1
        desc = self.desc
        for uuid, (identity, _, parent, _) in desc.items():
            if parent and parent not in desc:
                self.bad("parent %d of track %d is not described" % (parent, uuid))
        for uuid, tr in self.tracks.items():
            known = desc.get(uuid)
            if known is None:
                self.bad("track %d is not described" % uuid)
            elif tr[3] and known[3] != "counter":
                self.bad("counter values on track %d, which is a %s" % (uuid, known[3]))
            elif tr[2] and known[3] == "counter":
                self.bad("slices or instants on counter track %d" % uuid)
            if tr[1] and not self.allow_open:
                self.bad("track %d: %d slices left open: %r" % (uuid, len(tr[1]), tr[1][:5]))
        if self.nviolations > MAX_LINES:
            self.violations.append("... %d violations in all" % self.nviolations)

    def counts(self):
        kinds = [x[3] for x in self.desc.values()]
        lanes = {}
        for uuid, t in self.tracks.items():
            if t[2] and self.is_lane(uuid):
                lanes[self.desc[uuid][1]] = lanes.get(self.desc[uuid][1], 0) + 1
        return {
            "slices": self.slices,
            "spans": self.spans,
            "instants": self.instants,
            "counters": self.counters,
            "threads": kinds.count("thread"),
            "processes": kinds.count("process"),
            "lost": self.lost,
            "perf_lost": self.perf_lost,
            "open": sum(len(t[1]) for t in self.tracks.values()),
            "depth": self.max_depth,
            "packets": self.packets,
            "truncated": self.truncated,
            "machines": sum(1 for x in self.machines if x),
            "names": self.names,
            "lanes": lanes,
        }

    def value(self, key):
        kind, _, name = key.partition(":")
        if not name:
            return self.counts().get(kind)
        if kind == "span":
            return self.span_names.get(name, 0)
        if kind == "slice":
            return self.names.get(name, 0)
        if kind == "instant":
            return self.instant_names.get(name, 0)
        if kind == "counter":
            return sum(t[3] for u, t in self.tracks.items() if u in self.desc and self.desc[u][1] == name)
        return None


def check(data, **opts):
    c = Checker(**opts)
    if not data:
        c.bad("the file is empty")
    c.stream(data)
    c.finish()
    return c


# ---- self-test: damaged traces, each of which must be flagged for the right reason ----


def enc_varint(v):
    v &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    out.append(v)
    return bytes(out)


def enc(*pairs):
    """enc((number, value), ...): ints as varints, floats as doubles, bytes and str by length."""
    out = b""
    for num, v in pairs:
        if isinstance(v, float):
            out += enc_varint(num << 3 | 1) + struct.pack("<d", v)
        elif isinstance(v, int):
            out += enc_varint(num << 3) + enc_varint(v)
        else:
            v = v.encode() if isinstance(v, str) else v
            out += enc_varint(num << 3 | 2) + enc_varint(len(v)) + v
    return out


def enc_flow(num, v):
    return enc_varint(num << 3 | 1) + struct.pack("<Q", v)


def pkt(*pairs):
    return enc((1, enc(*pairs)))


def snap_fields(boot, mono=None, ids=(6, 3, 1), primary=6, extra=()):
    vals = {6: boot, 3: boot - 5 if mono is None else mono, 1: boot + 10**18}
    clocks = [(1, enc((1, i), (2, vals[i]))) for i in ids] + [(1, enc(*x)) for x in extra]
    return enc(*clocks, (2, primary))


SNAP = pkt((10, 1), (13, 1), (6, snap_fields(1000)))
PROC = pkt((10, 1), (60, enc((1, 7), (3, enc((1, 100), (6, "prog"))))))
THREAD = pkt((10, 1), (60, enc((1, 8), (5, 7), (4, enc((1, 100), (2, 101), (5, "worker"))))))
COUNTER = pkt((10, 1), (60, enc((1, 9), (5, 7), (2, "queue"), (8, enc((3, 2))))))
INTERN = enc((2, enc((1, 1), (2, "a"))), (2, enc((1, 2), (2, "b"))), (2, enc((1, 3), (2, "events lost"))),
             (3, enc((1, 1), (2, "k"))), (3, enc((1, 2), (2, "count"))), (1, enc((1, 1), (2, "cat"))),
             (4, enc((1, 1), (2, "f.c"), (4, 12))), (29, enc((1, 1), (2, "val"))))
STATE = pkt((10, 2), (13, 3), (59, enc((11, enc((11, 8))))), (12, INTERN))
HEAD = SNAP + PROC + THREAD + COUNTER + STATE


def ev(ts, *pairs, raw=b"", seq=2, more=()):
    return pkt((8, ts), (10, seq), (13, 2), *more, (11, enc(*pairs) + raw))


def begin(ts, iid, *pairs, **kw):
    return ev(ts, (9, 1), (10, iid), *pairs, **kw)


def end(ts, iid, *pairs, **kw):
    return ev(ts, (9, 2), (10, iid), *pairs, **kw)


GOOD = (HEAD + begin(1000, 1, (3, 1), (34, 1), (4, enc((1, 1), (3, 2**64 - 1)))) + begin(1010, 2, (4, enc((1, 1), (17, 1))))
        + end(1020, 2) + ev(1030, (9, 3), (10, 1), (4, enc((1, 1), (5, float("nan")))), raw=enc_flow(47, 5))
        + ev(1030, (9, 3), (10, 3), (4, enc((1, 2), (3, 12)))) + end(1040, 1)
        + ev(1050, (9, 4), (11, 9), (30, -3)) + pkt((66, enc((1, 0), (17, 12)))))

DELTA = pkt((10, 3), (13, 1), (59, enc((58, 64), (11, enc((11, 8))))), (12, INTERN),
            (6, snap_fields(2000, ids=(6,), extra=([(1, 64), (2, 0), (3, 1), (4, 1000)],))))


def on(machine, data):
    """The same packets, on a machine."""
    out, p = b"", 0
    while p < len(data):
        n, q = varint(data, p + 1, len(data))
        out += enc((1, data[q:q + n] + enc((98, machine))))
        p = q + n
    return out


HEAD2 = (pkt((10, 11), (13, 1), (6, snap_fields(1000))) + pkt((10, 11), (60, enc((1, 27), (3, enc((1, 100), (6, "prog"))))))
         + pkt((10, 11), (60, enc((1, 28), (5, 27), (4, enc((1, 100), (2, 101), (5, "worker"))))))
         + pkt((10, 11), (60, enc((1, 29), (5, 27), (2, "queue"), (8, enc((3, 2))))))
         + pkt((10, 12), (13, 3), (59, enc((11, enc((11, 28))))), (12, INTERN)))
OTHER = HEAD2 + begin(1000, 1, seq=12) + end(1010, 1, seq=12)


def deep(n):
    return b"".join(begin(1000, 1) for _ in range(n)) + b"".join(end(2000, 1) for _ in range(n))


def cases():
    """(what, bytes, expected part of a violation or None, options)"""
    ab = begin(1000, 1) + begin(1010, 2)
    yield "good", GOOD, None, {}
    yield "good, compressed", pkt((50, zlib.compress(GOOD))), None, {}
    yield "good, delta clock", HEAD + DELTA + begin(3, 1, seq=3) + end(4, 1, seq=3), None, {}
    yield "good, two machines", on(1, GOOD) + on(2, OTHER), None, {}
    yield "machine of some packets", on(1, GOOD) + OTHER, "some have none", {}
    yield "sequence of two machines", on(1, GOOD) + on(2, SNAP), "sequence 1 is of machine 2", {}
    yield "track of two machines", on(1, GOOD) + on(2, pkt((60, enc((1, 7), (3, enc((1, 100), (6, "p"))))))), "track 7 is of", {}
    yield ("event on another machine's track", on(1, GOOD) + on(2, OTHER + ev(2000, (9, 3), (10, 1), (11, 8), seq=12)),
           "track 8 is of machine 2", {})
    yield ("parent of another machine", on(1, GOOD) + on(2, pkt((60, enc((1, 30), (5, 7), (2, "x"))))), "track 7 is of", {})
    yield "torn packet allowed", GOOD + SNAP[:-3], None, {"allow_truncated": True}
    yield "open allowed", HEAD + ab, None, {"allow_open": True}
    yield "depth 512", HEAD + deep(512), None, {}
    yield "empty", b"", "empty", {}
    yield "torn packet", GOOD + SNAP[:-3], "torn packet", {}
    yield "torn in the middle", GOOD + SNAP[:-3] + GOOD, "", {"allow_truncated": True}
    yield "garbage", GOOD + b"\x42\x00", "no packet begins here", {}
    yield "zeros", GOOD + b"\0" * 16, "no packet begins here", {}
    yield "huge packet", GOOD + b"\x0a\xff\xff\xff\xff\x0f", "packet of", {}
    yield "bad field", GOOD + enc((1, b"\x5a\x09\x48")), "cannot be decoded", {}
    yield "bad inner field", GOOD + pkt((10, 2), (11, b"\x22\x09\x08")), "cannot be decoded", {}
    yield "bad zlib", pkt((50, zlib.compress(GOOD)[:-9])), "cannot be decoded", {}
    yield "torn inside compressed", pkt((50, zlib.compress(GOOD[:-2]))), "torn packet", {"allow_truncated": True}
    yield "missing end", HEAD + ab + end(1020, 2), "left open", {}
    yield "wrong nesting", HEAD + ab + end(1020, 1) + end(1030, 2), "innermost", {}
    yield "end without begin", HEAD + end(1000, 1), "no slice is open", {}
    yield "end without name", HEAD + begin(1000, 1) + ev(1010, (9, 2)), "end without name", {}
    yield "begin without name", HEAD + ev(1000, (9, 1)) + end(1010, 1), "begin without name", {}
    yield "unknown name", HEAD + begin(1000, 9) + end(1010, 9), "unknown iid 9 of an event name", {}
    yield "unknown category", HEAD + begin(1000, 1, (3, 9)) + end(1010, 1), "of a category", {}
    yield "unknown location", HEAD + begin(1000, 1, (34, 9)) + end(1010, 1), "of a source location", {}
    yield "unknown annotation", HEAD + begin(1000, 1, (4, enc((1, 9), (2, 1)))) + end(1010, 1), "annotation name", {}
    yield "unknown string", HEAD + begin(1000, 1, (4, enc((1, 1), (17, 9)))) + end(1010, 1), "annotation value", {}
    yield ("unknown inside a dict", HEAD + begin(1000, 1, (4, enc((1, 1), (11, enc((1, 9), (2, 1)))))) + end(1010, 1),
           "annotation name", {})
    yield "state of before the clear", HEAD + pkt((10, 2), (13, 1)) + ev(1, (9, 3), (10, 1), (11, 8)), "unknown iid 1", {}
    yield "time backwards", HEAD + begin(1000, 1) + end(999, 1), "runs back from 1000 to 999", {}
    yield "counter time backwards", HEAD + ev(1000, (9, 4), (30, 1)) + ev(999, (9, 4), (30, 2)) + begin(998, 1) + \
        end(999, 1), "runs back from 1000 to 998", {}
    yield "no time", HEAD + pkt((10, 2), (11, enc((9, 3), (10, 1)))), "without time", {}
    yield "no snapshot", PROC + SNAP, "first packet is no clock snapshot", {}
    yield "snapshot lacks a clock", pkt((10, 1), (13, 1), (6, snap_fields(1, 1, ids=(6, 1)))), "lacks one", {}
    yield "snapshot primary", pkt((10, 1), (13, 1), (6, snap_fields(9, primary=3))), "primary clock 3", {}
    yield "boot clock back", SNAP + pkt((10, 1), (6, snap_fields(999, 2000))), "boot clock runs back", {}
    yield "monotonic clock back", SNAP + pkt((10, 1), (6, snap_fields(1001, 3))), "monotonic clock runs back", {}
    yield "clock twice", SNAP + pkt((10, 1), (6, snap_fields(1001, extra=([(1, 6), (2, 1001)],)))), "twice in one snapshot", {}
    yield "no boot clock", SNAP + pkt((10, 1), (6, snap_fields(1001, ids=(3, 1)))), "without clock 6", {}
    yield "incremental boot clock", SNAP + pkt((6, enc((1, enc((1, 6), (2, 1001), (3, 1)))))), "must not be incremental", {}
    yield "odd clock", SNAP + pkt((10, 1), (6, snap_fields(1001, extra=([(1, 9), (2, 1)],)))), "clock 9", {}
    yield ("clock changes", HEAD + DELTA + pkt((10, 3), (6, snap_fields(2001, extra=([(1, 64), (2, 0), (3, 1), (4, 1)],)))),
           "changes its kind", {})
    lane = HEAD + pkt((10, 1), (60, enc((1, 20), (5, 7), (2, "req"))))
    yield "lane", lane + begin(1, 1, (11, 20)) + end(2, 1, (11, 20)) + begin(2, 2, (11, 20)) + end(3, 2, (11, 20)), None, {}
    yield "two on a lane", lane + begin(1, 1, (11, 20)) + begin(2, 2, (11, 20)) + end(3, 2, (11, 20)) + \
        end(4, 1, (11, 20)), "two slices open on lane 20", {}
    yield "negative time", HEAD + ev(2**63, (9, 3), (10, 1)), "negative time", {}
    yield "unknown clock", HEAD + begin(1, 1, more=((58, 70),)) + end(1010, 1), "clock 70", {}
    yield "never cleared", HEAD + ev(1000, (9, 3), (23, "x"), (11, 8), seq=5), "never cleared", {}
    yield "dropped", HEAD + pkt((10, 2), (42, 1)) + ev(1000, (9, 3), (10, 1)), "was dropped", {}
    yield "iid defined again", HEAD + pkt((10, 2), (13, 2), (12, INTERN)), "defined again", {}
    yield "iid 0", HEAD + pkt((10, 2), (13, 2), (12, enc((2, enc((2, "x")))))), "without iid", {}
    yield "no sequence id", HEAD + pkt((8, 1000), (11, enc((9, 3), (23, "x"), (11, 8)))), "no sequence id", {}
    yield "track not described", HEAD + ev(1, (9, 3), (10, 1), (11, 77)), "track 77 is not described", {}
    yield "parent not described", SNAP + THREAD, "parent 7 of track 8", {}
    yield "no track", HEAD + pkt((10, 4), (13, 1)) + pkt((8, 1), (10, 4), (11, enc((9, 3), (23, "x")))), "without track", {}
    yield ("two identities", HEAD + pkt((10, 1), (60, enc((1, 8), (5, 7), (4, enc((1, 100), (2, 102))))))
           , "described again", {})
    yield "track without uuid", SNAP + pkt((10, 1), (60, enc((2, "x")))), "without uuid", {}
    yield "annotation without value", HEAD + ev(1, (9, 3), (10, 1), (4, enc((1, 1)))), "annotation without value", {}
    yield "annotation without name", HEAD + ev(1, (9, 3), (10, 1), (4, enc((2, 1)))), "annotation without name", {}
    yield "instant without name", HEAD + ev(1, (9, 3)), "instant without name", {}
    yield "interned, not cleared", HEAD + pkt((10, 5), (12, INTERN)), "interned data on sequence 5", {}
    yield ("event, not cleared", HEAD + pkt((8, 1), (10, 5), (11, enc((9, 3), (23, "x"), (11, 8)))),
           "event on sequence 5", {})
    yield "thread without tid", SNAP + PROC + pkt((60, enc((1, 8), (5, 7), (4, enc((1, 1)))))), "without pid or tid", {}
    yield "too deep", HEAD + deep(513), "more than 512", {}
    yield "flow 0", HEAD + ev(1, (9, 3), (10, 1), raw=enc_flow(47, 0)), "flow id 0", {}
    yield "name not UTF-8", HEAD + pkt((10, 2), (13, 2), (12, enc((2, enc((1, 9), (2, b"\xff")))))), "UTF-8", {}
    yield "value not UTF-8", HEAD + ev(1, (9, 3), (10, 1), (4, enc((1, 1), (6, b"a\x80")))), "UTF-8", {}
    yield "thread name not UTF-8", SNAP + PROC + pkt((60, enc((1, 8), (4, enc((1, 1), (2, 2), (5, b"\xc0")))))), "UTF-8", {}
    yield "no count", HEAD + ev(1, (9, 3), (10, 3)), "without a positive count", {}
    yield "counter on a thread", HEAD + ev(1, (9, 4), (30, 1)), "counter values on track 8", {}
    yield "slice on a counter", HEAD + ev(1, (9, 3), (10, 1), (11, 9)), "on counter track", {}
    yield "unknown type", HEAD + ev(1, (9, 9)), "of type 9", {}


def self_test():
    failed = n = 0
    for what, data, expected, opts in cases():
        n += 1
        c = check(data, **opts)
        if expected is None:
            ok = not c.violations
        else:
            ok = any(expected in v for v in c.violations)
        if not ok:
            failed += 1
            print("self-test %s: expected %r, got %r" % (what, expected, c.violations))
    c = check(GOOD, want_args=("a", "b", "events lost"))
    got = c.counts()
    want = {"slices": 2, "spans": 2, "instants": 1, "counters": 1, "threads": 1, "processes": 1, "lost": 12,
            "perf_lost": 12, "names": {"a": 1, "b": 1}, "open": 0, "depth": 2, "lanes": {}}
    for k, v in want.items():
        n += 1
        if got[k] != v:
            failed += 1
            print("self-test counts: %s is %r, not %r" % (k, got[k], v))
    n += 2
    if c.args_out != [{"k": 2**64 - 1}, {"k": "val"}, {"k": "NaN"}, {"count": 12}]:
        failed += 1
        print("self-test args: %r" % c.args_out)
    if [c.value(k) for k in ("span:a", "instant:a", "counter:queue", "slices", "span:none")] != [1, 1, 1, 2, 0]:
        failed += 1
        print("self-test values")
    print("self-test: %d checks, %d failed" % (n, failed))
    return 1 if failed else 0


def main():
    ap = argparse.ArgumentParser(description="Checks a .pftrace file.")
    ap.add_argument("file", nargs="?")
    ap.add_argument("--allow-truncated", action="store_true", help="a torn last packet is fine")
    ap.add_argument("--allow-open", action="store_true", help="slices may be open at the end")
    ap.add_argument("--expect", nargs="+", action="extend", default=[], metavar="KEY=N")
    ap.add_argument("--args", nargs="+", action="extend", default=[], metavar="NAME")
    ap.add_argument("--json", action="store_true", help="counts and violations as one JSON object, nothing else")
    ap.add_argument("--self-test", action="store_true")
    o = ap.parse_args()
    if o.self_test:
        return self_test()
    if not o.file:
        ap.error("no file")
    with open(o.file, "rb") as f:
        data = f.read()
    c = check(data, allow_truncated=o.allow_truncated, allow_open=o.allow_open, want_args=o.args)
    for e in o.expect:
        key, eq, n = e.rpartition("=")
        if not eq or not n.lstrip("-").isdigit() or c.value(key) is None or key == "names":
            ap.error("--expect %s: no such count" % e)
        if c.value(key) != int(n):
            c.violations.append("expected %s=%s, is %d" % (key, n, c.value(key)))
    counts = c.counts()
    if o.json:
        counts["violations"] = c.violations
    else:
        for v in c.violations:
            print(v)
        for a in c.args_out:
            print(json.dumps(a))
    print(json.dumps(counts))
    return 1 if c.violations else 0


if __name__ == "__main__":
    sys.exit(main())
