//! Tables: arrivals of data, and what each form decides.

use super::{AckPolicy, DataArrival, Decision};
use crate::config::{BufferSize, DelayedAck, WindowGrowth};
use crate::receive::ReceiveWindow;
use farpace_events::Cause;
use farpace_units::{ByteCount, Instant, Packets, Seq, Span};

const MSS: u32 = 1448;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// A receiver whose acknowledgments leave as it decides.
struct Receiver {
    policy: AckPolicy,
    unacknowledged: u32,
    held: Option<Instant>,
    window: u32,
    /// What opens a window of Linux, all of which is read at once.
    opening: Option<ReceiveWindow>,
    srtt: Span,
}

impl Receiver {
    fn new(kind: DelayedAck) -> Self {
        Self::of(AckPolicy::new(kind, None, None))
    }

    fn of(policy: AckPolicy) -> Self {
        let window = MSS * 2500;
        Receiver { policy, unacknowledged: 0, held: None, window, opening: None, srtt: ms(10) }
    }

    /// `len` bytes in order `at` ms: "now", or how long the acknowledgment is held back.
    fn data(&mut self, at: u64, len: u32) -> String {
        let now = Instant::ZERO + ms(at);
        // The timer on the way.
        if self.held.is_some_and(|held| held <= now) {
            self.policy.on_timer(ms(210));
            self.sent();
        }
        self.unacknowledged += len;
        self.arrive(now, len, false, false)
    }

    fn arrive(&mut self, now: Instant, len: u32, disorder: bool, duplicate: bool) -> String {
        let (unacknowledged, window, srtt) = (self.unacknowledged, self.window, self.srtt);
        let rto = ms(210);
        let opening = self.opening.get_or_insert_with(|| {
            let size = BufferSize::fixed(ByteCount::new(u64::from(window)));
            ReceiveWindow::new(size, WindowGrowth::Linux, true, MSS)
        });
        opening.rtt().on_handshake(srtt);
        let opens = !duplicate && opening.on_data(now, len, MSS);
        opening.on_read(ByteCount::new(u64::from(len)));
        let decision = self.policy.on_data(&DataArrival {
            now,
            len,
            segment: len,
            most: 1460,
            all_options: 12,
            usual_options: 12,
            push: len < MSS,
            ends: len < MSS,
            disorder,
            duplicate,
            unacknowledged,
            window,
            steady: true,
            opens,
            mss: MSS,
            rto,
            srtt,
            receive_rtt: srtt,
            next: Seq::default(),
            holes: disorder,
            sack: true,
        });
        match decision {
            Decision::Now(cause) => {
                self.sent();
                if cause == Cause::AckNow { "now".into() } else { "order".into() }
            }
            Decision::Hold(until) => {
                self.held = Some(self.held.map_or(until, |held| held.min(until)));
                until.since(now).as_millis().to_string()
            }
        }
    }

    fn sent(&mut self) {
        self.policy.on_ack_sent(true);
        (self.unacknowledged, self.held) = (0, None);
    }

    /// The decisions about full segments at these times.
    fn full(&mut self, times: &[u64]) -> String {
        let all: Vec<_> = times.iter().map(|at| self.data(*at, MSS)).collect();
        all.join(" ")
    }
}

/// Breaks: fast retransmit: whatever the form, disorder and duplicates are acknowledged at once (RFC 5681
/// §4.2).
#[test]
fn disorder_is_never_held_back() {
    for kind in DelayedAck::ALL {
        let mut r = Receiver::new(kind);
        for at in 0..40 {
            let now = Instant::ZERO + ms(at);
            assert_eq!(r.arrive(now, MSS, true, false), "order", "{kind:?}");
            assert_eq!(r.arrive(now, MSS, false, true), "order", "{kind:?}");
        }
    }
}

/// Breaks: the RFC's limit: nothing is held back for 500 ms or longer, whatever arrives when.
#[test]
fn nothing_waits_for_half_a_second() {
    for kind in DelayedAck::ALL {
        for (gap, len, srtt) in
            [(1, 100, 600), (30, 100, 600), (39, 1448, 600), (150, 100, 0), (199, 1, 2_000)]
        {
            let mut r = Receiver { srtt: ms(srtt), ..Receiver::new(kind) };
            for i in 0..200 {
                let _ = r.data(i * gap, len);
                let waits = r.held.map_or(Span::ZERO, |held| held.since(Instant::ZERO + ms(i * gap)));
                assert!(waits < ms(500), "{kind:?} with a segment every {gap} ms: {waits}");
            }
        }
    }
}

/// Breaks: RFC 5681 §4.2: every second full-size segment, and how long the other one waits.
#[test]
fn rfc5681_every_second() {
    let mut r = Receiver::new(DelayedAck::Rfc5681);
    assert_eq!(r.full(&[0, 0, 1, 30, 31, 100, 101]), "40 now 40 now 40 40 now");
    let mut r = Receiver::of(AckPolicy::new(DelayedAck::Rfc5681, Some(ms(500)), None));
    assert_eq!(r.full(&[0, 499]), "500 now");
}

/// Breaks: receivers that merge segments: every eighth, or as told, and 40 ms at the latest.
#[test]
fn stretch_every_nth() {
    let mut r = Receiver::new(DelayedAck::Stretch);
    assert_eq!(r.full(&[0; 9]), "40 40 40 40 40 40 40 now 40");
    let mut r = Receiver::of(AckPolicy::new(DelayedAck::Stretch, Some(ms(25)), Some(Packets::new(3))));
    assert_eq!(r.full(&[0, 1, 2, 3, 30]), "25 25 now 25 25");
}

/// Breaks: BSD's fast timer: it ticks for the machine, not for the segment, and windows move by two segments.
#[test]
fn bsd_ticks() {
    let mut r = Receiver::new(DelayedAck::Bsd);
    // 399: the tick comes at 400. 400: it has just been.
    assert_eq!(r.full(&[0, 1, 10, 399, 399, 400]), "200 now 190 1 now 200");
    let mut r = Receiver::new(DelayedAck::Bsd);
    let short: Vec<_> = (0..5).map(|at| r.data(at, 700)).collect();
    assert_eq!(short, ["200", "199", "198", "197", "now"], "2896 bytes, not two segments");
    // Half of a small buffer is told, too.
    let mut r = Receiver { window: 2 * MSS, ..Receiver::new(DelayedAck::Bsd) };
    assert_eq!(r.full(&[0, 1]), "now now");
    let mut r = Receiver::of(AckPolicy::new(DelayedAck::Bsd, Some(ms(50)), None));
    assert_eq!(r.full(&[120, 160]), "30 40");
}

/// Full segments that open the window of today's Linux before anything is tuned: (80896 - 45 * 1448) / 2896,
/// rounded up.
const OPENING: usize = 6;

/// Breaks: the ACK clock of the first round trips, on which slow start depends.
#[test]
fn sixteen_quick_acks_then_every_second() {
    for (kind, quick) in [(DelayedAck::Linux26, 16), (DelayedAck::Linux, 16 + OPENING)] {
        let mut r = Receiver::new(kind);
        assert_eq!(r.full(&vec![0; quick]), vec!["now"; quick].join(" "), "{kind:?}");
        assert_eq!(r.full(&[20, 20]), "40 now", "{kind:?}");
        assert_eq!(r.arrive(Instant::ZERO + ms(21), MSS, false, true), "order");
        assert_eq!(r.full(&[21]), "now", "{kind:?}: quick again after a duplicate");
        // Of a small window a quarter: half of its segments, each acknowledged.
        let mut r = Receiver { window: 6 * MSS, ..Receiver::new(kind) };
        assert_eq!(r.full(&[0, 0, 0, 0, 0]), "now now now 40 now", "{kind:?}");
        // A pause longer than the timeout: the sender begins anew.
        assert_eq!(r.full(&[300, 301, 302, 303]), "now now now 40", "{kind:?}");
    }
}

/// Breaks: Linux in a conversation: no quick ACKs, because the answer carries them; and the way back from
/// there.
#[test]
fn linux_conversation() {
    let mut r = Receiver::new(DelayedAck::Linux);
    assert_eq!(r.data(0, 100), "now");
    assert!(!r.policy.on_all_read(), "nothing waits");
    r.policy.on_data_sent(Instant::ZERO + ms(50));
    assert_eq!(r.data(60, 100), "now", "50 ms later it is no answer");
    r.policy.on_data_sent(Instant::ZERO + ms(65));
    assert_eq!(r.data(70, 100), "40");
    assert!(!r.policy.on_all_read(), "the answer is waited for");
    // It does not come: 111 ms is after the timer, which ends the conversation.
    assert_eq!(r.data(111, 100), "now");
    // A bulk sender's short end is acknowledged when it was read.
    let mut r = Receiver::new(DelayedAck::Linux);
    assert_eq!(r.full(&[0; 17 + OPENING]), format!("{} 40", ["now"; 16 + OPENING].join(" ")));
    assert!(!r.policy.on_all_read());
    r.sent();
    assert_eq!(r.data(1, 100), "40");
    assert!(r.policy.on_all_read());
}

/// Breaks: Linux's timer: it grows with the sender's pace and with each time that it fires, up to 200 ms or a
/// round trip, and one that is about to fire is not waited for.
#[test]
fn linux_timer() {
    let quiet = |srtt| {
        let mut r = Receiver { srtt: ms(srtt), ..Receiver::new(DelayedAck::Linux) };
        let _ = r.full(&[0; 16 + OPENING]);
        r
    };
    // A segment every 44 ms: the timer fires for the first and doubles (then half of it and the 44 ms count);
    // so the third is in time.
    assert_eq!(quiet(600).full(&[44, 88, 132]), "40 84 now");
    assert_eq!(quiet(60).full(&[44, 88]), "40 60", "at most a round trip");
    // Times count in ticks of 4 ms: what comes 39 ms later comes as late as the timer, and says nothing.
    assert_eq!(quiet(600).full(&[44, 83, 127]), "40 now 40");
    // Short segments: one that comes when less than a quarter of the ato is left goes with it.
    let mut r = quiet(600);
    let short: Vec<_> = [100, 128, 200].map(|at| r.data(at, 100)).into();
    assert_eq!(short, ["40", "now", "48"]);
}

/// Breaks: the window that opens: a sender that doubles its rate is acknowledged segment by segment.
#[test]
fn linux_window_opens() {
    let mut r = Receiver { srtt: ms(50), ..Receiver::new(DelayedAck::Linux) };
    let mut singly = Vec::new();
    for (round, n) in [10, 20, 40, 80].into_iter().enumerate() {
        let all = r.full(&vec![50 * round as u64; n]);
        singly.push(all.split(' ').filter(|a| *a == "now").count());
    }
    // The twenty segments of the second round trip move the limit in the third.
    assert_eq!(singly, [10, 16, 32, 73]);
    // A steady sender has the window it needs.
    let steady: Vec<_> = (0..40).map(|round| r.full(&vec![200 + 50 * round; 80])).collect();
    let singly = steady.last().unwrap().split(' ').filter(|a| *a == "now").count();
    assert_eq!(singly, 40);
}

/// In order, at 30 ms.
fn arrival(len: u32, push: bool) -> DataArrival {
    DataArrival {
        now: Instant::ZERO + ms(30),
        len,
        segment: len,
        most: 1460,
        all_options: 12,
        usual_options: 12,
        push,
        ends: push,
        disorder: false,
        duplicate: false,
        unacknowledged: len,
        window: 2500 * MSS,
        steady: true,
        opens: false,
        mss: MSS,
        rto: ms(210),
        srtt: ms(10),
        ..DataArrival::default()
    }
}

/// Breaks: PSH: a full segment with it is the end of something; two short ones without it are full ones of a
/// small size.
#[test]
fn linux_push() {
    let quiet = || {
        let mut r = Receiver::new(DelayedAck::Linux);
        let _ = r.full(&[0; 16 + OPENING]);
        r
    };
    for (len, push, end) in [(MSS, false, false), (MSS, true, true), (100, true, true), (100, false, true)] {
        let mut r = quiet();
        let decision = r.policy.on_data(&arrival(len, push));
        assert!(matches!(decision, Decision::Hold(_)), "{decision:?}");
        assert_eq!(r.policy.on_all_read(), end, "{len} {push}");
    }
    let mut r = quiet();
    let _ = r.policy.on_data(&arrival(100, false));
    let second = DataArrival { unacknowledged: 200, ..arrival(100, false) };
    assert_eq!(r.policy.on_data(&second), Decision::Now(Cause::AckNow));
}

/// Breaks: the ACK of a FIN: of Linux it waits for the program to close, of all others it does not; without
/// data before it Linux waits for its next timer alone.
#[test]
fn only_linux_holds_the_ack_of_a_fin() {
    for kind in DelayedAck::ALL {
        let mut r = Receiver::new(kind);
        let first = DataArrival { unacknowledged: 1, ..arrival(0, false) };
        let soon = match kind {
            DelayedAck::Linux | DelayedAck::Linux417 => Decision::Hold(first.now + Span::from_nanos(1)),
            _ => Decision::Now(Cause::AckNow),
        };
        assert_eq!(r.policy.on_fin(&first), soon, "{kind:?}");
        let _ = r.policy.on_data(&DataArrival { now: Instant::ZERO, ..arrival(MSS, false) });
        r.policy.on_ack_sent(true);
        let fin = DataArrival { unacknowledged: 1, ..arrival(0, false) };
        let held = r.policy.on_fin(&fin) == Decision::Hold(Instant::ZERO + ms(70));
        assert_eq!(held, kind.is_modern_linux(), "{kind:?}");
    }
}
