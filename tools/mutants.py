#!/usr/bin/env python3
"""Breaks recovery, asking for ACKs and pacing in one place at a time, and sees whether the tests of that crate notice.

Each mutant below is a change that compiles and that some RFC, or a promise of pacing, forbids. It is applied to a copy of the tree, never to the
tree itself. Exit code 1: fewer than 90 % were caught, or a mutant no longer applies.

    tools/mutants.py              all of them (about half a minute each)
    tools/mutants.py prr rack     those whose name contains one of the words
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SACK = "crates/tcp/src/recovery/sack/"
ASK = "crates/tcp/src/solicit/"
SOLICITING = "crates/tcp/src/connection/ack_requests.rs"
PACING = "crates/link/src/pacing/"
EDF = PACING + "edf/"
CALENDAR = EDF + "calendar.rs"
DEADLINES = EDF + "deadlines.rs"
BUCKET = PACING + "token_bucket.rs"

# The tests of each crate that has mutants.
TESTS = {
    "crates/tcp/": ["-p", "farpace-tcp", "--lib", "--test", "recovery", "--test", "scripts"],
    "crates/link/": ["-p", "farpace-link", "--lib"],
}

# name, file, text, what it becomes
MUTANTS = [
    ("scoreboard: blocks beyond SND.NXT count", SACK + "scoreboard.rs", "&& block.end.before_eq(ack.snd_nxt)", ""),
    ("scoreboard: half a segment counts as whole", SACK + "scoreboard.rs",
     "filter(|row| row.end().before_eq(end))", "filter(|row| row.seq.before(end))"),
    ("scoreboard: what arrived still flies", SACK + "scoreboard.rs", "segments.sack_for_good(index);", "segments.sack(index);"),
    ("scoreboard: a D-SACK inside the second block is overlooked", SACK + "scoreboard.rs",
     "(below || inside) && recent", "below && recent"),
    ("counting: `not less` instead of `more` bytes", SACK + "scoreboard.rs", "above > bytes", "above >= bytes"),
    ("counting: two runs are enough", SACK + "scoreboard.rs", "n + 1 >= count", "n + 2 >= count"),
    ("counting: duplicates of small segments do not count", SACK + "counting.rs",
     "self.dup_acks >= DUP_THRESH &&", "false &&"),
    ("counting: the rescue never ends", SACK + "counting.rs", "self.rescued = true;", ""),
    ("rack: no reordering window", SACK + "rack.rs", "(quarter * (1 + u64::from(self.reo_wnd_extra))).min(srtt)", "Span::ZERO"),
    ("rack: the window is not bounded by SRTT", SACK + "rack.rs",
     "(quarter * (1 + u64::from(self.reo_wnd_extra))).min(srtt)", "quarter * (1 + u64::from(self.reo_wnd_extra)) + srtt * 0"),
    ("rack: reordering is not learned", SACK + "rack.rs", "self.reordering_seen |= end != fack && !retransmitted;", ""),
    ("rack: the timer is not armed", SACK + "rack.rs", "self.deadline = waiting.then(|| due(latest.xmit_ts));", ""),
    ("rack: an answer to the original sets the clock", SACK + "rack.rs", "if before_copy ||", "if"),
    ("rack: lost copies are not found", SACK + "rack.rs", "segments.mark_retransmission_lost(index);", ""),
    ("rack: D-SACKs of one round count each", SACK + "rack.rs", "if dsack && self.dsack_round.is_none() {", "if dsack {"),
    ("rack: copies and originals of one instant are mixed up", SACK + "rack.rs",
     "if copy { row.rtx_nxt } else { row.end() }", "row.end()"),
    ("prr: rounds down", SACK + "prr.rs", ".div_ceil(u64::from(self.recover_fs))", " / u64::from(self.recover_fs)"),
    ("prr: what was sent is not counted", SACK + "prr.rs", "self.out = self.out.saturating_add(1);", ""),
    ("prr: always slow start", SACK + "prr.rs", "conserve + u32::from(safe)", "conserve + 1"),
    ("prr: no bound at the target", SACK + "prr.rs", "(target - flight).min(", "(u32::MAX).min("),
    ("prr: the window stays low at the end", SACK + "states.rs", "cx.reduce_to(cx.window.ssthresh()); // RFC 9937 §6.4", ""),
    ("tail loss probe: two at a time", SACK + "tail_loss_probe.rs", "if self.end_seq.is_some() || !self.measured {", "if false {"),
    ("tail loss probe: never new data", SACK + "tail_loss_probe.rs",
     "Some(if new_data { Probe::New } else { Probe::Last })", "Some(Probe::Last)"),
    ("tail loss probe: a repair costs nothing", SACK + "mod.rs", "if probe_repaired {", "if false {"),
    ("tail loss probe: a needless one costs the window", SACK + "tail_loss_probe.rs",
     "|| dsack.is_some_and(|block| block.end == end)", ""),
    ("tail loss probe: the retransmission timer goes on", SACK + "tail_loss_probe.rs",
     "Some(if new_data { Probe::New } else { Probe::Last });\n        true", "Some(if new_data { Probe::New } else { Probe::Last });\n        false"),
    ("f-rto: every timeout is spurious", SACK + "f_rto.rs", "*self = FRto::Off;\n                sign.original && !sign.beyond", "*self = FRto::Off;\n                true"),
    ("f-rto: new data is no proof of loss", SACK + "f_rto.rs", "*self = FRto::Off;\n                sign.original && !sign.beyond", "*self = FRto::Off;\n                sign.original || sign.beyond"),
    ("f-rto: retransmissions do not wait", SACK + "f_rto.rs", "matches!(self, FRto::Second { .. })", "false"),
    ("undo: an equal timestamp is older", SACK + "undo.rs", "(echo.wrapping_sub(first) as i32) < 0", "(echo.wrapping_sub(first) as i32) <= 0"),
    ("undo: the first D-SACK is enough", SACK + "undo.rs", "self.retransmitted && self.unanswered == 0", "self.retransmitted"),
    ("undo: the threshold stays low", SACK + "undo.rs", "cx.window.set_ssthresh(ssthresh.max(cx.window.ssthresh()));", ""),
    ("states: two cuts for one round trip", SACK + "states.rs", "if self.state != RecoveryState::Cwr {\n            self.cut", "{\n            self.cut"),
    ("states: a cut for every timeout", SACK + "states.rs", "        if fresh {\n", "        {\n"),
    ("states: reneging is overlooked", SACK + "mod.rs", "if cx.segments.tags(0).any(Tags::SACKED) {", "if false {"),
    ("states: recovery ends one byte early", SACK + "states.rs", "if !ack.snd_una.after_eq(self.high_seq) {", "if !ack.snd_una.after_eq(self.high_seq - 1000) {"),
    ("aen: any ACK is the answer", SACK + "aen.rs", "(literal || echoes || sacked)", "(true || literal || echoes || sacked)"),
    ("aen: the tail is never what was lost", SACK + "aen.rs", "let first = !literal && echoes && !duplicate;", "let first = false && !literal && echoes && !duplicate;"),
    ("aen: others are sent while it asks", SACK + "mod.rs", "self.f_rto.holds() || self.aen.holds()", "self.f_rto.holds()"),
    ("states: growth in recovery", SACK + "states.rs", "_ if news.acked > 0 && news.may_grow =>", "_ if news.acked > 0 =>"),
    ("asking: a peer that cannot confirm is asked", ASK + "agreement.rs", "ask: may(CdlCapability::CONFIRMS)", "ask: form"),
    ("asking: a peer that may not ask is answered", ASK + "agreement.rs", "answer: may(CdlCapability::REQUESTS)", "answer: form"),
    ("asking: answers without bound", ASK + "answers.rs", "let may = paid_at <= now + rtt;", "let may = paid_at <= now + rtt || true;"),
    ("asking: answers saved up for ever", ASK + "answers.rs", "self.paid_at.max(now) + price", "self.paid_at + price"),
    ("asking: silence is borne for ever", ASK + "guard.rs", "if self.unanswered < limit {", "if self.unanswered < limit || true {"),
    ("asking: an answer does not end the silence", ASK + "guard.rs", "(self.answered, self.unanswered, self.strikes) = (true, 0, 0);",
     "self.answered = true;"),
    ("asking: each of one loss is a strike", ASK + "guard.rs", "if self.struck_at.is_none_or(|at| sent_at >= at) {",
     "if sent_at >= Instant::ZERO {"),
    ("asking: the path is not tried first", ASK + "guard.rs", "self.literal || self.answered", "true || self.literal || self.answered"),
    ("asking: a cleared bit ends all", ASK + "guard.rs", "        if flag {\n", "        if flag && false {\n"),
    ("asking: bare while something is missing", ASK + "mod.rs", "(moment.calm && !moment.fin)", "(!moment.fin)"),
    ("asking: bare with FIN", ASK + "mod.rs", "(moment.calm && !moment.fin)", "(moment.calm)"),
    ("asking: probes more often than once a round trip", ASK + "mod.rs", "now.since(at) >= wait", "now.since(at) >= wait * 0"),
    ("asking: probes that nobody answers are not fewer", ASK + "mod.rs", "if self.probe.is_some() { srtt * 2 } else { srtt }", "srtt"),
    ("asking: a probe measures twice", ASK + "mod.rs", "let first = !std::mem::replace(&mut probe.measured, true);",
     "probe.measured = true;\n        let first = true;"),
    ("asking: any ACK answers a TARR request", ASK + "mod.rs", "newest.end == a.ack && a.echo", "a.echo"),
    ("asking: any echo answers a TARR request", ASK + "mod.rs", "&& a.echo.is_none_or(|echo| echo == newest.timestamp)", ""),
    ("asking: the hold time stays in the round trip", ASK + "mod.rs", "if held < rtt { rtt - held } else { rtt }", "rtt"),
    ("asking: held for longer than the round trip", ASK + "mod.rs", "if held < rtt { rtt - held } else { rtt }", "rtt - held"),
    ("asking: what is sent again is still answered", ASK + "mod.rs", "self.requests.forget(end)", "self.requests.get(end).copied()"),
    ("asking: a timeout forgets nothing", ASK + "mod.rs", "last.sent_at);\n        }\n        self.forget_all();", "last.sent_at);\n        }"),
    ("asking: a timeout is no strike", ASK + "mod.rs", "            self.guard.on_bare_lost(now, last.sent_at);\n        }\n        self.forget_all();",
     "            _ = (now, last);\n        }\n        self.forget_all();"),
    ("asking: the oldest request is measured", ASK + "requests.rs", "newest: Some(request), silent: None };",
     "newest: covered.newest.or(Some(request)), silent: None };"),
    ("asking: every SYN offers", SOLICITING, "self.counters.timeouts >= MAX_OFFERS", "self.counters.timeouts >= MAX_OFFERS * 1000"),
    ("asking: probes of the MTU ask", SOLICITING, "|| len == 0 || len > self.mss", "|| len == 0"),
    ("asking: the neighbours' loss is a strike", SOLICITING, "is_some_and(missing) && !missing(index + 1);",
     "is_some_and(missing) || !missing(index + 1);"),
    ("asking: an old ACK answers a probe", SOLICITING, "if !h.ack.after(probe.seq) {", "if !h.ack.after(probe.seq) && false {"),
    ("asking: recovery hears of a probe's D-SACK", SOLICITING, "told.sack = Some(h.options.sack.iter().skip(1).copied().collect());", ""),
    ("asking: the answer to a probe is a duplicate ACK", SOLICITING, "told.answers_probe &= !advanced;", "told.answers_probe = false;"),
    ("asking: bare segments without an agreement", SOLICITING, "data && self.solicitor.answers() == Form::Classic\n            &&", "data &&"),
    ("asking: ACKs without data ask", SOLICITING, "_ if !data => false,", ""),
    ("asking: data carries the answer away", SOLICITING, "        !carries\n", "        !carries && false\n"),
    ("asking: no answer rides on data", SOLICITING, "        !carries\n", "        !carries || true\n"),
    ("asking: an answer is owed for ever", SOLICITING, "        self.answering.owed = None;\n", ""),
    ("asking: a rate without an agreement", SOLICITING, "if self.solicitor.answers() == Form::Tarr\n            && !segment", "if !segment"),
    ("asking: anybody sets the rate", "crates/tcp/src/connection/arrival.rs", "        self.read_request(&segment);\n",
     "        self.read_request(&segment);\n        self.read_rate(&segment);\n"),
    ("pacing: the remainder of a division is dropped", PACING + "interval.rs", "*rest = n % self.rate;", "*rest = 0;"),
    ("pacing: a remainder is not added", PACING + "interval.rs", "and_then(|n| n.checked_add(*rest))", "map(|n| n + 0 * *rest)"),
    ("pacing: a wait is scaled the wrong way", PACING + "interval.rs", "u128::from(before.rate) / u128::from(self.rate)",
     "u128::from(self.rate) / u128::from(before.rate)"),
    ("pacing: the clock is set back", PACING + "link_clock.rs", "self.bytes = self.bytes.max(self.bytes_at(now));",
     "self.bytes = self.bytes_at(now);"),
    ("pacing: timers fire before the byte", PACING + "link_clock.rs", "(u128::from(bytes) * 8 * NS_PER_S).div_ceil(u128::from(self.link_rate.bits_per_sec().max(1)))",
     "(u128::from(bytes) * 8 * NS_PER_S) / u128::from(self.link_rate.bits_per_sec().max(1))"),
    ("pacing: preambles and gaps between frames take no link time", PACING + "admission.rs", "!self.bare && sum * wire", "!self.bare && sum * frame"),
    ("pacing: a removed class keeps its rate", PACING + "classes.rs", "self.admission.release(rate);", ""),
    ("pacing: a changed rate is counted twice", PACING + "classes.rs", "self.admission.replace(class.interval.rate(), rate)?;",
     "self.admission.replace(Rate::default(), rate)?;"),
    ("pacing: queues hold one packet more", PACING + "classes.rs", "class.queued >= class.max_packets", "class.queued > class.max_packets"),
    ("pacing: queues have no limit in bytes", PACING + "classes.rs",
     " || class.queued_bytes + bytes.get() > class.max_bytes", ""),
    ("pacing: packets may have any length", PACING + "classes.rs", "if bytes > self.admission.longest() {", "if false {"),
    ("pacing: a packet stores its own length instead of the next one's", PACING + "classes.rs",
     "(last.next, last.next_len) = (at, len);", "(last.next, last.next_len) = (at, len.max(class.first_len));"),
    ("pacing: rate hints apply to classes with a fixed rate", PACING + "classes.rs", "filter(|class| class.tag == Tag::Follows)?;",
     "filter(|class| class.tag != Tag::Normal)?;"),
    ("pacing: removing a class returns only one packet", PACING + "classes.rs", "std::iter::from_fn(|| self.pop(id)).collect()",
     "std::iter::from_fn(|| self.pop(id)).take(1).collect()"),
    ("edf: an idle class accumulates unused time", EDF + "mod.rs", "if class.state.start < now {", "if false {"),
    ("edf: an idle class may send at once", EDF + "mod.rs", "if class.state.start < now {", "if true {"),
    ("edf: the highest rate first", EDF + "deadlines.rs", "if self.earliest[this] < best {", "if false && self.earliest[this] < best {"),
    ("edf: lateness is not made up for", EDF + "mod.rs", "class.state.start = class.state.deadline;",
     "class.state.start = begin + (class.state.deadline - class.state.start);"),
    ("edf: a class makes up for any lateness", EDF + "mod.rs", "if class.state.start < bound {", "if false {"),
    ("edf: a late class never catches up", EDF + "mod.rs", "max_lateness: 2 * classes.full_frame().get()", "max_lateness: 0"),
    ("edf: a gap leaves a remainder shorter than the minimum", EDF + "mod.rs", "} else if missing < full + shortest {", "} else if false {"),
    ("edf: gaps are shorter than the minimum frame", EDF + "mod.rs", "missing.max(shortest)\n", "missing\n"),
    ("edf: normal classes first", EDF + "mod.rs", "            while let Some(entry) = self.deadlines.pop() {",
     "            while let Some(entry) = self.round_robin.pop_front() {\n                if let Some(next) = self.send(entry) {\n                    return next;\n                }\n            }\n            while let Some(entry) = self.deadlines.pop() {"),
    ("edf: following classes are served by deadline", EDF + "mod.rs", "false => deadlines.push(entry),\n                true => round_robin.push_back(entry),",
     "false | true => deadlines.push(entry),"),
    ("edf: the clock follows time while the link is busy", EDF + "mod.rs", "if self.idle {", "if true {"),
    ("edf: the clock stays stopped after a wait", EDF + "mod.rs", "            self.idle = true;\n            return Some(Next::Wait(until));",
     "            return Some(Next::Wait(until));"),
    ("edf: the clock stays stopped on an idle link", EDF + "mod.rs", "            self.idle = true;\n            return Next::Empty;",
     "            return Next::Empty;"),
    ("edf: timers ignore the jitter", EDF + "mod.rs", "then(|| start - self.jitter)", "then(|| start)"),
    ("edf: timers for slow classes wake fast ones", EDF + "mod.rs", "&& self.short_classes == 0 =>", "=>"),
    ("edf: gap frames for slow classes", EDF + "mod.rs", "interval > self.short_interval && self.short_classes == 0", "false"),
    ("edf: it waits for a time in the past", EDF + "mod.rs", "if until <= now {", "if false {"),
    ("edf: a new rate does not move a waiting frame", EDF + "mod.rs", "class.state.start = now.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX));", "_ = scaled;"),
    ("edf: a hint always moves the waiting frame", EDF + "mod.rs", "let waits = class.state.start.saturating_sub(now) > long;", "let waits = true;"),
    ("edf: a hint never moves the waiting frame", EDF + "mod.rs", "let waits = class.state.start.saturating_sub(now) > long;", "let waits = false;"),
    ("edf: an old interval is kept", EDF + "mod.rs", "if waits || class.state.deadline.saturating_sub(class.state.start) > long {", "if waits {"),
    ("edf: stale entries accumulate", EDF + "mod.rs", "<= 2 * self.active + MIN_STALE", "<= 2 * self.active + MIN_STALE * 1_000"),
    ("edf: a rebuild duplicates entries of the round robin", EDF + "mod.rs", "                && !in_round_robin.contains(&id)\n", "                && (true || !in_round_robin.contains(&id))\n"),
    ("edf: a removed class stays in the round robin", EDF + "mod.rs", "self.round_robin.retain(|entry| entry.class() != class);", ""),
    ("edf: a stale entry is used", EDF + "state.rs", "self.active && self.start == entry.start && self.deadline == entry.deadline", "self.active"),
    ("edf: rates count bytes in memory", EDF + "state.rs", "self.interval.after(layer_2(len)", "self.interval.after(len"),
    ("calendar: a start in the past is lost", CALENDAR, "let start = entry.start.max(self.at);", "let start = entry.start;"),
    ("calendar: too early by a slot", CALENDAR, "let waits = entry.start > to;", "let waits = entry.start > to | 63;"),
    ("calendar: the first of a slot is forgotten", CALENDAR, "slot.first = slot.first.min(entry.start);", "slot.first = entry.start;"),
    ("calendar: far entries are never fetched", CALENDAR, "self.next_event = self.next_event.min(self.end_of_range());", ""),
    ("calendar: higher wheels are not examined", CALENDAR, "self.next_event = self.next_event.min(start >> shift << shift);", ""),
    ("calendar: it does not terminate at the maximum time", CALENDAR, "(self.next_event, self.at) = (u64::MAX, self.at.max(to));\n                    return;", "u64::MAX"),
    ("deadlines: an entry before all others is put behind them", DEADLINES, "            ring.first = slot;\n            self.earliest[magnitude] = slot.saturating_mul(1 << shift);\n        } else {\n",
     "            slot = ring.first;\n        } else {\n"),
    ("deadlines: far deadlines wrap around", DEADLINES, "slot = slot.min(ring.first.saturating_add(SLOTS - 1));", "_ = slot;"),
    ("deadlines: past deadlines wrap around", DEADLINES, "slot = slot.max(ring.last() - (SLOTS - 1).min(ring.last()));", ""),
    ("deadlines: the last of a slot first", DEADLINES, "let entry = slot.pop_front();", "let entry = slot.pop_back();"),
    ("deadlines: half as precise", DEADLINES, "const PRECISION_BITS: u32 = 5;", "const PRECISION_BITS: u32 = 3;"),
    ("psp: a stop is not marked", PACING + "psp.rs", "            class.state.stopped = true;\n        }\n        ahead", "        }\n        ahead"),
    ("psp: small differences make gaps", PACING + "psp.rs", "if ahead >= MIN_FILLED_GAP {", "if ahead > 0 {"),
    ("psp: the lowest rate first", PACING + "psp.rs", "rate(*other) <= rate(id)", "rate(*other) >= rate(id)"),
    ("psp: lateness is forgotten", PACING + "psp.rs", "if std::mem::take(&mut clock.stopped) {", "if std::mem::take(&mut clock.stopped) || true {"),
    ("psp: removing a class shifts the round robin", PACING + "psp.rs", "self.next -= usize::from(self.next > index);", ""),
    ("psp: a hint does not move the waiting frame", PACING + "psp.rs", "if let Some(before) = self.classes.follow(class, hint) {\n            self.rescale(class, before);\n        }",
     "self.classes.follow(class, hint);"),
    ("token bucket: packets do not take tokens", BUCKET, "class.state.missing += u128::from(packet.len().get()) * BYTE;", ""),
    ("token bucket: it fills too fast", BUCKET, "self.missing = self.missing.saturating_sub(u128::from(ticks).saturating_mul(per_tick));",
     "self.missing = self.missing.saturating_sub(u128::from(ticks + 1).saturating_mul(per_tick));"),
    ("token bucket: a packet needs one tick more", BUCKET, "u128::from(self.filled) + ticks)", "u128::from(self.filled) + ticks + 1)"),
    ("token bucket: ticks round up", BUCKET, "self.now.as_nanos() / self.tick", "self.now.as_nanos().div_ceil(self.tick)"),
    ("token bucket: smaller than a frame", BUCKET, "Some(burst) => longest.max(u128::from(burst.get()) * BYTE)", "Some(burst) => u128::from(burst.get()) * BYTE"),
    ("token bucket: a new rate fills it", BUCKET, "(class.state.missing + holds).saturating_sub(held)", "(class.state.missing + holds + held) * 0"),
    ("token bucket: a new rate counts for the past", BUCKET, "                    class.state.fill(ticks, per_tick);\n                    (class", "                    _ = per_tick;\n                    (class"),
    ("token bucket: a new rate does not wake a waiting class", BUCKET, "if self.stop_waiting(id) {\n            self.list(id);\n        }\n        done", "done"),
    ("token bucket: normal classes first", BUCKET, "self.paced.pop_front().or_else(|| self.rest.pop_front())", "self.rest.pop_front().or_else(|| self.paced.pop_front())"),
    ("token bucket: a removed class is woken", BUCKET, "        self.stop_waiting(class);\n        let packets", "        let packets"),
    ("nic: an arriving packet does not end a wait", "crates/link/src/nic.rs", "        self.work(cx);\n        let waiting", "        if self.next_fetch == NextFetch::Idle {\n            self.work(cx);\n        }\n        let waiting"),
    ("nic: the rate hint stays on a sent packet", "crates/link/src/nic.rs", "packet.set_pacing_rate(None);", ""),
    ("flows: idle flows stay", PACING + "flows.rs", "now.since(flow.used) < IDLE_TIMEOUT ||", "now.since(flow.used) < IDLE_TIMEOUT * 9 ||"),
    ("flows: flows with packets end", PACING + "flows.rs", " || stats.backlog.packets > 0", ""),
    ("flows: their counters are lost", PACING + "flows.rs", "add(ended, &ClassStats { rate: Rate::default(), ..stats });", "_ = &ended;"),
    ("flows: their number is not limited", PACING + "flows.rs", "if self.flows.len() >= MAX_FLOWS {", "if false {"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="*", help="only mutants whose name contains one of these")
    words = parser.parse_args().word
    chosen = [m for m in MUTANTS if not words or any(w in m[0] for w in words)]
    if not chosen:
        sys.exit("mutants: no name contains " + " or ".join(words))

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory(prefix="farpace-mutants-") as tree:
        for name in ("Cargo.toml", "Cargo.lock", "clippy.toml", "crates", "bench", "scenarios"):
            source = os.path.join(root, name)
            if os.path.isdir(source):
                shutil.copytree(source, os.path.join(tree, name))
            elif os.path.exists(source):
                shutil.copy2(source, tree)
        sys.exit(run(chosen, tree))


def run(chosen, tree):
    patience = {}
    for crate in {test_of(path) for _, path, _, _ in chosen}:
        build(TESTS[crate], tree)
        built = time.monotonic()
        if not passes(TESTS[crate], tree, 600):
            print(f"mutants: the tests of {crate} fail without any mutant", file=sys.stderr)
            return 1
        patience[crate] = 30 + 10 * (time.monotonic() - built)
    caught, missed = 0, []
    for i, (name, path, old, new) in enumerate(chosen, 1):
        crate = test_of(path)
        path = os.path.join(tree, path)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if text.count(old) < 1:
            print(f"mutants: `{name}` does not apply: its text is not in {os.path.relpath(path, tree)}", file=sys.stderr)
            return 1
        write(path, text.replace(old, new, 1))
        start = time.monotonic()
        survived = passes(TESTS[crate], tree, patience[crate])
        write(path, text)
        if survived is None or survived:
            missed.append(name)
        else:
            caught += 1
        word = {True: "MISSED", False: "caught", None: "BROKEN"}[survived]
        print(f"{i:3}/{len(chosen)}  {word}  {time.monotonic() - start:5.1f} s  {name}", flush=True)
    share = 100 * caught / len(chosen)
    print(f"{caught} of {len(chosen)} mutants were caught: {share:.0f} %")
    return 0 if share >= 90 else 1


def test_of(path):
    return next(crate for crate in TESTS if path.startswith(crate))


def build(test, tree):
    """True if the tests compile."""
    run = cargo(test + ["--no-run"], tree, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = run.communicate()[1]
    if run.returncode != 0:
        print("mutants: does not compile:\n" + errors[-2000:], file=sys.stderr)
    return run.returncode == 0


def passes(test, tree, seconds):
    """True if the tests pass; None: a mutant that does not compile proves nothing. One that hangs is caught."""
    if not build(test, tree):
        return None
    run = cargo(test, tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return run.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        # With the tests that it has started.
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return False


def cargo(test, tree, **how):
    # A target folder of its own: in a shared one what a mutant has left would be taken for the real library.
    own = os.environ | {"CARGO_TARGET_DIR": os.path.join(tree, "target"), "CARGO_PROFILE_DEV_DEBUG": "0"}
    command = ["cargo", "test", "-q", "--locked"] + test
    return subprocess.Popen(command, cwd=tree, env=own, start_new_session=True, **how)


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
