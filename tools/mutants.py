#!/usr/bin/env python3
"""Breaks recovery and asking for ACKs in one place at a time, and sees whether the tests of crates/tcp notice.

Each mutant below is a change that compiles and that some RFC forbids. It is applied to a copy of the tree, never to the
tree itself. Exit code 1: fewer than 90 % were caught, or a mutant no longer applies.

    tools/mutants.py              all of them (about half a minute each)
    tools/mutants.py prr rack     those whose name contains one of the words
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

SACK = "crates/tcp/src/recovery/sack/"
ASK = "crates/tcp/src/solicit/"
SOLICITING = "crates/tcp/src/connection/soliciting.rs"

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
    ("asking: a peer that may not ask is answered", ASK + "agreement.rs", "answer: may(CdlCapability::ASKS)", "answer: form"),
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
    test = ["cargo", "test", "-q", "--locked", "-p", "farpace-tcp", "--lib", "--test", "recovery", "--test", "scripts"]
    if not passes(test, tree):
        print("mutants: the tests fail without any mutant", file=sys.stderr)
        return 1
    caught, missed = 0, []
    for i, (name, path, old, new) in enumerate(chosen, 1):
        path = os.path.join(tree, path)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if text.count(old) < 1:
            print(f"mutants: `{name}` does not apply: its text is not in {os.path.relpath(path, tree)}", file=sys.stderr)
            return 1
        write(path, text.replace(old, new, 1))
        start = time.monotonic()
        survived = passes(test, tree)
        write(path, text)
        if survived:
            missed.append(name)
        else:
            caught += 1
        print(f"{i:3}/{len(chosen)}  {'MISSED' if survived else 'caught'}  {time.monotonic() - start:5.1f} s  {name}", flush=True)
    share = 100 * caught / len(chosen)
    print(f"{caught} of {len(chosen)} mutants were caught: {share:.0f} %")
    return 0 if share >= 90 else 1


def passes(test, tree):
    """True if the tests pass. A mutant that does not compile proves nothing; one that hangs is caught."""
    # A target folder of its own: in a shared one what a mutant has left would be taken for the real library.
    own = os.environ | {"CARGO_TARGET_DIR": os.path.join(tree, "target")}
    build = subprocess.run(test + ["--no-run"], cwd=tree, env=own, capture_output=True, text=True)
    if build.returncode != 0:
        sys.exit("mutants: does not compile:\n" + build.stderr)
    try:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.run(test, cwd=tree, env=own, timeout=300, **quiet).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
