//! What limited a transfer: one sentence, and the numbers that it comes from.

use crate::speed;
use farpace_explain::cause::Cause;
use farpace_explain::input::Reading;
use farpace_live::KernelTcp;
use farpace_live::socket::{LimitedBy, Stream};
use farpace_process::stopwatch::Stopwatch;
use farpace_report::number;
use farpace_transfer::{LineProgress, SendReport};
use farpace_units::{Rate, Span};
use serde::Serialize;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A transfer that is shorter says nothing about limits.
const SHORT: Duration = Duration::from_millis(200);
/// Congestion controls that do not take a loss for congestion.
const IGNORES_LOSS: [&str; 4] = ["farpace", "bbr1", "bbr3", "star-robust"];
/// Less than this, and four round trips, is no silence.
const MIN_SILENCE: Duration = Duration::from_secs(1);

/// Where to look while a transfer runs.
pub enum TransferProbe {
    /// A socket of the kernel.
    Kernel(TcpStream),
    /// A socket of farpace's own stack.
    Farpace(Stream),
    /// Nothing is known of the path: it goes through another program.
    Through,
}

/// What was seen of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathFacts {
    /// Segments sent again, and all data segments.
    pub retransmitted: u64,
    /// Data segments sent, copies included.
    pub segments: u64,
    /// The smallest round trip.
    pub min_rtt: Duration,
    /// The last smoothed round trip.
    pub rtt: Duration,
    /// The last congestion window, in segments, and the size of a segment in bytes.
    pub cwnd: [u32; 2],
    /// Share of the sending time in which the receive window was the limit.
    pub receive_window: f64,
    /// The same of the send buffer, where it is known.
    pub send_buffer: Option<f64>,
    /// Bytes that the other side's TCP has acknowledged.
    pub acknowledged: u64,
    /// Time in which data was under way and nothing was acknowledged for longer than an answer takes.
    pub silent: Duration,
    /// The congestion control does not take a loss for congestion; false where it is not known.
    pub ignores_loss: bool,
    /// Looks at farpace's connection, and how many found the receive window to be the limit.
    looks: [u32; 2],
}

impl PathFacts {
    /// What the engine of reasons looks at.
    fn reading(&self, sent: &SendReport) -> Reading {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let busy = Span::from_nanos(u64::try_from(sent.elapsed.as_nanos()).unwrap_or(u64::MAX));
        let share = |share: f64| Span::from_nanos((busy.as_nanos() as f64 * share.clamp(0.0, 1.0)) as u64);
        Reading {
            busy,
            receive_window: share(self.receive_window),
            send_buffer: share(self.send_buffer.unwrap_or(0.0)),
            silent: Span::from_nanos(u64::try_from(self.silent.as_nanos()).unwrap_or(u64::MAX)),
            retransmitted: self.retransmitted as f64,
            sent: self.segments as f64,
            rtt_ms: ms(self.rtt),
            min_rtt_ms: ms(self.min_rtt),
            cwnd: f64::from(self.cwnd[0]),
            // Any loss has cut it.
            reduced: self.retransmitted > 0,
            ignores_loss: self.ignores_loss,
            acknowledged: sent.bytes as f64,
            ..Reading::default()
        }
    }
    /// In a few words.
    pub fn text(&self) -> String {
        let loss = self.retransmitted as f64 / self.segments.max(1) as f64 * 100.0;
        let window: u64 = self.cwnd.into_iter().map(u64::from).product();
        let rtt = number(self.rtt.as_secs_f64() * 1e3);
        format!("round trip {rtt} ms, window {}, {} % sent again", crate::size(window), number(loss))
    }
}

/// How long a connection has been without an answer.
#[derive(Default)]
struct AckSilence {
    acknowledged: u64,
    since: Duration,
    /// In the silences that have ended.
    before: Duration,
}

impl AckSilence {
    /// So many bytes have been acknowledged, and more `is_due`: the time without an answer.
    fn look(&mut self, acknowledged: u64, is_due: bool, rtt: Duration, now: Duration) -> Duration {
        let since = now.saturating_sub(self.since);
        // Delayed ACKs, timeouts and a busy host are none.
        let silent = if since > MIN_SILENCE + 4 * rtt { since } else { Duration::ZERO };
        if acknowledged == self.acknowledged && is_due {
            return self.before + silent;
        }
        let ended = if acknowledged == self.acknowledged { Duration::ZERO } else { silent };
        *self = AckSilence { acknowledged, since: now, before: self.before + ended };
        self.before
    }
}

/// Takes readings of a path.
pub struct Watcher {
    probe: TransferProbe,
    path: Mutex<Option<PathFacts>>,
    begun: Stopwatch,
    silence: Mutex<AckSilence>,
}

impl Watcher {
    /// Nothing is seen yet.
    pub fn new(probe: TransferProbe) -> Self {
        Watcher { probe, path: Mutex::new(None), begun: Stopwatch::start(), silence: Mutex::default() }
    }
    /// Looks, in the course of a transfer.
    pub fn look(&self, _: &LineProgress) {
        self.read_now();
    }
    /// From now on farpace's connection sends at this rate at most.
    pub fn cap(&self, rate: Rate) {
        if let TransferProbe::Farpace(stream) = &self.probe {
            // It has ended: then nothing is sent.
            let _ = stream.tune(move |connection| connection.set_rate_cap(Some(rate)));
        }
    }
    /// The receiver has said that it has everything.
    pub fn delivered(&self) {
        if let TransferProbe::Farpace(stream) = &self.probe {
            stream.set_delivered();
        }
    }
    /// Looks.
    pub fn read_now(&self) {
        let mut path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = self.begun.elapsed();
        match &self.probe {
            TransferProbe::Kernel(stream) => {
                let Some(seen) = KernelTcp::of(stream) else { return };
                let share = |time: Duration| time.as_secs_f64() / seen.busy.as_secs_f64().max(1e-9);
                *path = Some(PathFacts {
                    retransmitted: seen.retransmitted,
                    segments: seen.sent,
                    min_rtt: seen.min_rtt,
                    rtt: seen.rtt,
                    cwnd: [seen.cwnd, seen.mss],
                    receive_window: share(seen.receive_window),
                    send_buffer: Some(share(seen.send_buffer)),
                    acknowledged: seen.acknowledged,
                    silent: silence.look(seen.acknowledged, seen.unacknowledged > 0, seen.min_rtt, elapsed),
                    ignores_loss: false,
                    looks: [0; 2],
                });
            }
            TransferProbe::Farpace(stream) => {
                let Ok(seen) = stream.inspect() else { return };
                let now = path.get_or_insert_default();
                let [looks, window] = &mut now.looks;
                *looks += 1;
                *window += u32::from(seen.limit == LimitedBy::ReceiveWindow);
                now.receive_window = f64::from(*window) / f64::from(*looks);
                now.retransmitted = seen.retransmitted;
                now.segments = seen.counters.sent.iter().sum();
                now.rtt = Duration::from_nanos(seen.inspection.srtt.as_nanos());
                now.cwnd = [seen.inspection.cwnd.get(), seen.inspection.mss];
                let rtt =
                    Duration::from_nanos(seen.inspection.min_rtt.unwrap_or(seen.inspection.srtt).as_nanos());
                let is_less = now.min_rtt.is_zero() || rtt < now.min_rtt;
                now.min_rtt = if is_less && !rtt.is_zero() { rtt } else { now.min_rtt };
                now.acknowledged = seen.inspection.acknowledged.get();
                let is_due = !seen.memory.send_bytes.is_zero();
                now.silent = silence.look(now.acknowledged, is_due, now.min_rtt, elapsed);
                now.ignores_loss = IGNORES_LOSS.contains(&seen.congestion.name());
            }
            TransferProbe::Through => {}
        }
    }
    /// Bytes that the other side's TCP has acknowledged, when it was last looked at.
    pub fn acknowledged(&self) -> u64 {
        self.path().map_or(0, |path| path.acknowledged)
    }
    /// What was seen last.
    pub fn path(&self) -> Option<PathFacts> {
        *self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What limited a transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// `cap`, `sender disk`, `sender cpu`, `receiver disk`, `receiver cpu`, `receive window`, `send buffer`,
    /// `path` or `nothing`.
    pub limit: &'static str,
    /// The cause as `farpace explain` names it, if it is in the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// What would help against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
    /// The sentence.
    pub sentence: String,
    /// What it comes from.
    pub evidence: Evidence,
}

/// What was measured. Parts of a side work at the same time, so that their shares may exceed 1 together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// From the first hello to the last acknowledgement, in seconds.
    pub elapsed_s: f64,
    /// Shares of the time at the sender: in these, and the network waited for disk or hashing.
    pub sender: SenderShares,
    /// Shares of the time at the receiver.
    pub receiver: ReceiverShares,
    /// Of the connection; none if it leads through another program.
    pub path: Option<PathEvidence>,
}

/// Shares of the time at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SenderShares {
    /// In reads of files.
    pub reading: f64,
    /// In hashing.
    pub hashing: f64,
    /// The connection had nothing to send, because reading or hashing was slower.
    pub nothing_to_send: f64,
    /// In writes to the connection.
    pub writing_to_network: f64,
    /// In keeping to the cap.
    pub cap: f64,
}

/// Shares of the time at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReceiverShares {
    /// In writes of files.
    pub writing: f64,
    /// In hashing.
    pub hashing: f64,
    /// In waiting for the connection.
    pub waiting_for_network: f64,
}

/// What the connection told of itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PathEvidence {
    /// The smallest round trip.
    pub min_rtt_ms: f64,
    /// The last smoothed round trip.
    pub rtt_ms: f64,
    /// Data segments sent, copies included.
    pub segments: u64,
    /// Of them, sent again.
    pub retransmitted: u64,
    /// The last congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Time in which data was under way and nothing was acknowledged, in seconds.
    pub silent_s: f64,
    /// Share of the time with data to send in which the receiver's window was full.
    pub receive_window: f64,
    /// The same of the send buffer, if it is known.
    pub send_buffer: Option<f64>,
}

impl Evidence {
    fn of(sent: &SendReport, path: Option<PathFacts>) -> Evidence {
        let all = sent.elapsed.as_secs_f64().max(1e-9);
        let share = |time: Duration| (time.as_secs_f64() / all).min(1.0);
        let (times, receiver) = (sent.times, sent.receiver);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let path = path.map(|path| PathEvidence {
            min_rtt_ms: ms(path.min_rtt),
            rtt_ms: ms(path.rtt),
            segments: path.segments,
            retransmitted: path.retransmitted,
            cwnd_bytes: path.cwnd.into_iter().map(u64::from).product(),
            silent_s: path.silent.as_secs_f64(),
            receive_window: path.receive_window.min(1.0),
            send_buffer: path.send_buffer.map(|share| share.min(1.0)),
        });
        Evidence {
            elapsed_s: all,
            sender: SenderShares {
                reading: share(times.disk),
                hashing: share(times.hash),
                nothing_to_send: share(times.starved),
                writing_to_network: share(times.network),
                cap: share(times.cap),
            },
            receiver: ReceiverShares {
                writing: share(receiver.disk),
                hashing: share(receiver.hash),
                waiting_for_network: share(receiver.network),
            },
            path,
        }
    }

    /// In words, a line for each place.
    pub fn lines(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let Evidence { sender, receiver, .. } = self;
        let mut text = format!(
            "  this side  reading {}, hashing {}, nothing to send {}, writing to the network {}, cap {}\n",
            percent(sender.reading),
            percent(sender.hashing),
            percent(sender.nothing_to_send),
            percent(sender.writing_to_network),
            percent(sender.cap),
        );
        text += &format!(
            "  receiver   writing {}, hashing {}, waiting for the network {}\n",
            percent(receiver.writing),
            percent(receiver.hashing),
            percent(receiver.waiting_for_network),
        );
        if let Some(path) = &self.path {
            let buffer = path
                .send_buffer
                .map_or(String::new(), |share| format!(", send buffer full {}", percent(share)));
            text += &format!(
                "  path       round trip {} ms at last, window {} B, receive window full {}{buffer}\n",
                number(path.rtt_ms),
                path.cwnd_bytes,
                percent(path.receive_window),
            );
        }
        text
    }
}

/// Explains a transfer.
pub fn explain(sent: &SendReport, cap: Option<Rate>, path: Option<PathFacts>) -> Explanation {
    let all = sent.elapsed.as_secs_f64().max(1e-9);
    let percent = |time: Duration| format!("{:.0} %", (time.as_secs_f64() / all * 100.0).min(100.0));
    let share = |time: Duration| time.as_secs_f64() / all;
    let (times, receiver) = (sent.times, sent.receiver);
    let rate = speed(sent.bytes, sent.elapsed);
    let reason = path.map(|path| path.reading(sent).diagnosis());
    let (limit, why) = match () {
        () if sent.bytes == 0 => ("nothing", "nothing: no bytes of files had to be sent".to_owned()),
        () if sent.elapsed < SHORT => {
            ("nothing", format!("nothing in particular, it took {} ms", number(all * 1e3)))
        }
        () if share(times.cap) > 0.5 => {
            let cap = cap.map_or(String::new(), |cap| format!(" of {cap}"));
            ("cap", format!("the cap{cap}: it held the transfer back for {} of the time", percent(times.cap)))
        }
        () if share(times.starved) > 0.5 && times.disk > times.hash => {
            let text = format!(
                "reads took {}, and the network waited {}",
                percent(times.disk),
                percent(times.starved)
            );
            ("sender disk", format!("this side's disk: {text} of the time"))
        }
        () if share(times.starved) > 0.5 => {
            let text = format!(
                "hashing took {}, and the network waited {}",
                percent(times.hash),
                percent(times.starved)
            );
            ("sender cpu", format!("this side's processor: {text} of the time"))
        }
        () if share(receiver.disk) > 0.6 => (
            "receiver disk",
            format!("the receiver's disk: it wrote for {} of the time", percent(receiver.disk)),
        ),
        () if share(receiver.hash) > 0.6 => (
            "receiver cpu",
            format!("the receiver's processor: it hashed for {} of the time", percent(receiver.hash)),
        ),
        () => match path {
            Some(path) if reason.as_ref().is_some_and(|d| d.dominant == Cause::ReceiveWindow) => {
                let percent = format!("{:.0} %", path.receive_window.min(1.0) * 100.0);
                (
                    "receive window",
                    format!("the receive window: it was full for {percent} of the time it was sending"),
                )
            }
            _ if reason.as_ref().is_some_and(|d| d.dominant == Cause::SendBuffer) => {
                ("send buffer", "the send buffer: it is smaller than what the path could hold".to_owned())
            }
            _ => match &reason {
                Some(d) => ("path", format!("the path: {}", d.dominant.info().title)),
                None => ("path", "the path".to_owned()),
            },
        },
    };
    let seen =
        path.map_or("nothing is known of the path, which leads through another program".to_owned(), |path| {
            let loss = path.retransmitted as f64 / path.segments.max(1) as f64 * 100.0;
            let silent = match path.silent.as_secs_f64() {
                0.0 => String::new(),
                s => format!(", nothing was acknowledged for {} s", number(s)),
            };
            format!(
                "round trip {} ms, {} of {} segments sent again ({} %){silent}",
                number(path.min_rtt.as_secs_f64() * 1e3),
                path.retransmitted,
                path.segments,
                number(loss)
            )
        });
    // The engine of reasons knows the network only.
    let reason = reason.filter(|_| matches!(limit, "receive window" | "send buffer" | "path"));
    let help = reason.as_ref().and_then(|d| d.findings.first()).map(|finding| finding.cure.clone());
    let mut sentence = format!("Limited by {why}; {rate}, {seen}.");
    if let Some(help) = &help {
        sentence.push_str(&format!(" What helps: {help}."));
    }
    Explanation {
        limit,
        cause: reason.map(|d| d.dominant.id()),
        cure: help,
        sentence,
        evidence: Evidence::of(sent, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_transfer::LineTimes;

    fn sent(times: LineTimes, receiver: LineTimes) -> SendReport {
        SendReport {
            bytes: 125_000_000,
            elapsed: Duration::from_secs(10),
            times,
            receiver,
            ..SendReport::default()
        }
    }

    /// Breaks: an outage is not seen, or a transfer that has nothing to send is taken for one.
    #[test]
    fn silence_is_time_without_an_answer_that_is_due() {
        let (s, rtt) = (Duration::from_secs, Duration::from_millis(100));
        let mut silence = AckSilence::default();
        let mut look = |at, acknowledged, is_due| silence.look(acknowledged, is_due, rtt, s(at));
        assert_eq!(look(1, 1, true), s(0));
        assert_eq!(look(2, 1, true), s(0));
        assert_eq!(look(6, 1, true), s(5));
        assert_eq!(look(7, 2, true), s(6));
        // It has nothing to send for a while.
        assert_eq!(look(7, 2, false), s(6));
        assert_eq!(look(16, 2, false), s(6));
        assert_eq!(look(17, 3, true), s(6));
    }

    /// Breaks: people mend the wrong thing.
    #[test]
    fn each_limit_is_named() {
        let s = Duration::from_secs;
        let none = LineTimes::default();
        let path = PathFacts {
            retransmitted: 3,
            segments: 1_000,
            min_rtt: Duration::from_millis(20),
            rtt: Duration::from_millis(35),
            cwnd: [100, 1_448],
            receive_window: 0.1,
            send_buffer: Some(0.25),
            acknowledged: 0,
            silent: Duration::ZERO,
            ignores_loss: false,
            looks: [0; 2],
        };
        for (times, receiver, path, limit) in [
            (LineTimes { cap: s(9), ..none }, none, path, "cap"),
            (LineTimes { starved: s(8), disk: s(8), hash: s(1), ..none }, none, path, "sender disk"),
            (LineTimes { starved: s(8), disk: s(1), hash: s(8), ..none }, none, path, "sender cpu"),
            (LineTimes { network: s(9), ..none }, LineTimes { disk: s(9), ..none }, path, "receiver disk"),
            (LineTimes { network: s(9), ..none }, LineTimes { hash: s(9), ..none }, path, "receiver cpu"),
            (
                LineTimes { network: s(9), ..none },
                none,
                PathFacts { receive_window: 0.9, ..path },
                "receive window",
            ),
            (LineTimes { network: s(9), ..none }, none, path, "path"),
        ] {
            assert_eq!(explain(&sent(times, receiver), None, Some(path)).limit, limit);
        }
        let told = explain(&sent(LineTimes { network: s(9), disk: s(1), ..none }, none), None, Some(path));
        assert_eq!(
            told.evidence.lines(),
            "  this side  reading 10 %, hashing 0 %, nothing to send 0 %, writing to the network 90 %, cap 0 \
             %\n\
             \x20 receiver   writing 0 %, hashing 0 %, waiting for the network 0 %\n\
             \x20 path       round trip 35 ms at last, window 144800 B, receive window full 10 %, send \
             buffer full 25 %\n"
        );
        let expected = "Limited by the path: path full (congestion); 100 Mbit/s, round trip 20 ms, 3 of 1000 \
        segments sent again (0.300 %). What helps: ";
        assert!(told.sentence.starts_with(expected), "{}", told.sentence);
        assert_eq!(told.cause, Some("congestion"));
        assert!(told.sentence.contains(told.cure.as_deref().unwrap()));
        let capped = sent(LineTimes { cap: s(9), ..none }, none);
        assert_eq!(explain(&capped, None, Some(path)).cause, None);
        // An outage is told, and named where it took most of the time.
        let slow = sent(LineTimes { network: s(9), ..none }, none);
        let cut = |silent| explain(&slow, None, Some(PathFacts { silent, ..path }));
        assert!(cut(s(3)).sentence.contains("(0.300 %), nothing was acknowledged for 3 s."));
        assert_eq!(cut(s(3)).cause, Some("congestion"));
        assert_eq!(cut(s(7)).cause, Some("outage"));
        // Whoever uses the control that helps is not told to use it.
        let lossy = PathFacts { retransmitted: 10, rtt: path.min_rtt, ..path };
        assert_eq!(explain(&slow, None, Some(lossy)).cause, Some("random_loss"));
        let ignores = PathFacts { ignores_loss: true, ..lossy };
        assert_eq!(explain(&slow, None, Some(ignores)).cause, Some("congestion"));
    }
}
