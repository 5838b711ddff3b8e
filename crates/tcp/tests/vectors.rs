//! The test vectors of the paper's figures: a sequence of ACKs, and after each the action of the sender and
//! its counters. Numbers are packets, as in the paper.

use farpace_events::{Cause, RecoveryState};
use farpace_tcp::cc::{Bic, CongestionControl};
use farpace_tcp::config::{
    self, Abc, DsackScope, Hint, Linux26, LostRtx, Profile, Recovery, Reduction, SackSort,
};
use farpace_tcp::recovery::{AckInput, Context, Expiry, Linux26Recovery, LossRecovery, SendView, SentKind};
use farpace_tcp::rto::{MinRtt, RtoEstimator, TcpClock};
use farpace_tcp::{Segments, Window};
use farpace_units::{Instant, Packets, Seq, Span};
use farpace_wire::tcp::{SackBlock, SackBlocks};

const MSS: u32 = 1000;

/// A sender reduced to its scoreboard: packet n covers the sequence numbers from n * MSS on.
struct Sender {
    recovery: Linux26Recovery,
    segments: Segments,
    window: Window,
    cc: Box<dyn CongestionControl>,
    causes: Vec<Cause>,
    rto: RtoEstimator,
    min_rtt: MinRtt,
    now: Instant,
    una: u32,
    next: u32,
    /// The figures hold the window at one packet above what is in flight.
    follow_in_flight: bool,
    /// SACK was agreed on.
    sack: bool,
}

/// What the sender did after an ACK.
#[derive(Debug, PartialEq, Eq)]
enum Did {
    Resent(Vec<u32>),
    SentNew(u32),
    Nothing,
}

fn sent(now: Instant, index: usize, snd_nxt: Seq) -> SentKind {
    SentKind {
        now,
        index,
        fresh: false,
        timestamp: 0,
        snd_nxt,
        srtt: Span::ZERO,
        rto_deadline: None,
        rto: Span::ZERO,
    }
}

fn packet(n: u32) -> Seq {
    Seq::new(n * MSS)
}

impl Sender {
    /// `outstanding` packets are sent, and the window is full.
    fn new(switches: Linux26, outstanding: u32) -> Self {
        let cwnd = Packets::new(outstanding);
        let mut s = Sender {
            recovery: Linux26Recovery::new(switches),
            segments: Segments::default(),
            window: Window::new(cwnd, None, Packets::MAX, switches.abc, MSS),
            cc: Box::new(Bic::default()),
            causes: Vec::new(),
            rto: RtoEstimator::new(config::Rto::Linux26, Span::from_millis(200), TcpClock::default()),
            min_rtt: MinRtt::default(),
            now: Instant::ZERO,
            una: 0,
            next: 0,
            follow_in_flight: true,
            sack: true,
        };
        (0..outstanding).for_each(|_| s.send_new());
        s
    }

    fn send_new(&mut self) {
        self.segments.push(packet(self.next), MSS, self.now);
        self.next += 1;
    }

    fn ack(&mut self, ack: u32, blocks: &[(u32, u32)]) -> Did {
        self.now += Span::from_millis(1);
        let sack: SackBlocks =
            blocks.iter().map(|&(a, b)| SackBlock { start: packet(a), end: packet(b) }).collect();
        let [before, una, next] = [self.una, ack.max(self.una), self.next].map(packet);
        let input = AckInput {
            ack: packet(ack),
            new_data_waiting: true,
            ..AckInput::of(self.now, before, una, next, &sack)
        };
        let (recovery, mut cx) = self.parts();
        recovery.on_ack(&input, &mut cx);
        self.una = ack.max(self.una);
        if self.follow_in_flight {
            let cwnd = self.segments.in_flight() + Packets::new(1);
            self.window.set_cwnd(cwnd);
        }
        self.transmit()
    }

    fn parts(&mut self) -> (&mut Linux26Recovery, Context<'_>) {
        let cx = Context {
            segments: &mut self.segments,
            window: &mut self.window,
            cc: self.cc.as_mut(),
            rto: &mut self.rto,
            min_rtt: &mut self.min_rtt,
            sack: self.sack,
            causes: &mut self.causes,
        };
        (&mut self.recovery, cx)
    }

    /// Retransmissions first, then one new packet if nothing was granted.
    fn transmit(&mut self) -> Did {
        let mut resent = Vec::new();
        loop {
            let view = SendView { segments: &self.segments, cwnd: self.window.cwnd(), can_send_new: true };
            let Some(grant) = self.recovery.next_segment(&view) else { break };
            resent.push(self.una + grant.index as u32);
            self.segments.mark_retransmitted(grant.index, self.now, packet(self.next));
            self.recovery.on_sent(&sent(self.now, grant.index, packet(self.next)), &self.segments);
        }
        self.segments.check().expect("counters equal a recount");
        if !resent.is_empty() {
            Did::Resent(resent)
        } else if self.segments.in_flight() < self.window.cwnd() {
            self.send_new();
            Did::SentNew(self.next - 1)
        } else {
            Did::Nothing
        }
    }

    /// lost / sacked / retrans / in flight
    fn counters(&self) -> [u32; 4] {
        let s = &self.segments;
        [s.lost_out(), s.sacked_out(), s.retrans_out(), s.in_flight()].map(Packets::get)
    }

    fn timeout(&mut self) -> Did {
        let (now, una, next) = (self.now, packet(self.una), packet(self.next));
        let (recovery, mut cx) = self.parts();
        let expiry = Expiry {
            window_shut: false,
            now,
            snd_una: una,
            snd_nxt: next,
            new_data_waiting: true,
            unsent_in_window: false,
            tail_inside: false,
        };
        recovery.on_timeout(&expiry, &mut cx);
        self.transmit()
    }
}

fn resent(n: u32) -> Did {
    Did::Resent(vec![n])
}

fn kernel(profile: Profile, reordering: u32) -> Linux26 {
    let Recovery::Linux26(switches) = profile.config().recovery else { unreachable!("historical") };
    Linux26 { reordering: Packets::new(reordering), ..switches }
}

type Step = (&'static [(u32, u32)], Did, [u32; 4]);

fn play(sender: &mut Sender, steps: impl IntoIterator<Item = Step>) {
    for (blocks, action, counters) in steps {
        let did = sender.ack(0, blocks);
        assert_eq!((did, sender.counters()), (action, counters), "after SACK {blocks:?}");
    }
}

/// The paper's figure 2 up to the last ACK: every packet but 3, 4, 5, 6, 8 and 9 of the first ten is lost,
/// and so is the retransmission of packet 0.
fn figure_2() -> [Step; 8] {
    [
        (&[(3, 4)], resent(0), [3, 1, 1, 7]),
        (&[(3, 5)], resent(1), [3, 2, 2, 7]),
        (&[(3, 6)], resent(2), [3, 3, 3, 7]),
        (&[(3, 7)], Did::SentNew(10), [3, 4, 3, 7]),
        (&[(8, 9)], resent(7), [4, 5, 4, 6]),
        (&[(8, 10)], Did::SentNew(11), [4, 6, 4, 6]),
        (&[(1, 2)], Did::SentNew(12), [3, 7, 3, 6]),
        (&[(1, 3)], Did::SentNew(13), [2, 8, 2, 6]),
    ]
}

/// Breaks: the counters of the paper's figure 2, the reference of everything else about the scoreboard (V1).
#[test]
fn v1_figure_2_without_reordering() {
    let mut sender = Sender::new(kernel(Profile::Linux2617, 0), 10);
    play(&mut sender, figure_2());
    play(&mut sender, [(&[(8, 11)][..], resent(0), [2, 9, 2, 5])]);
    assert_eq!(sender.recovery.state(), RecoveryState::Recovery);
}

/// Breaks: the degree of reordering of real kernels, which marks packets lost one by one (V1).
#[test]
fn v1_with_the_kernels_reordering() {
    let mut sender = Sender::new(kernel(Profile::Linux2617, 3), 10);
    play(
        &mut sender,
        [
            (&[(3, 4)][..], resent(0), [1, 1, 1, 9]),
            (&[(3, 5)], resent(1), [2, 2, 2, 8]),
            (&[(3, 6)], resent(2), [3, 3, 3, 7]),
            (&[(3, 7)], Did::SentNew(10), [3, 4, 3, 7]),
            (&[(8, 9)], Did::SentNew(11), [3, 5, 3, 7]),
            (&[(8, 10)], Did::SentNew(12), [3, 6, 3, 7]),
            (&[(1, 2)], Did::SentNew(13), [2, 7, 2, 7]),
            (&[(1, 3)], Did::SentNew(14), [1, 8, 1, 7]),
        ],
    );
    // Packet 0 goes again; packet 7 becomes lost only here, and both are sent one after the other.
    let did = sender.ack(0, &[(8, 11)]);
    assert_eq!((did, sender.counters()), (resent(0), [2, 9, 1, 5]));
}

/// Breaks: the third defect and each of its remedies (V2): only the comparison with every block's end sees
/// that the retransmission of packet 0 is lost.
#[test]
fn v2_the_older_block_hides_the_newer_end() {
    let table = [
        (LostRtx::PerBlock, Did::SentNew(14), [2, 9, 2, 6]),
        (LostRtx::MaxEnd, resent(0), [2, 9, 2, 5]),
        (LostRtx::NewBlocks, resent(0), [2, 9, 2, 5]),
        (LostRtx::NewlySacked, resent(0), [2, 9, 2, 5]),
    ];
    for (lost_rtx, action, counters) in table {
        for hint in [Hint::EveryBlock, Hint::FirstBlock, Hint::None] {
            if hint == Hint::None && lost_rtx == LostRtx::PerBlock {
                continue; // without carry-over from block to block there is no defect
            }
            let base = kernel(Profile::Linux2622, 0);
            let mut sender = Sender::new(Linux26 { lost_rtx, hint, ..base }, 10);
            play(&mut sender, figure_2());
            let did = sender.ack(0, &[(8, 11), (1, 3)]);
            assert_eq!((&did, sender.counters()), (&action, counters), "{lost_rtx:?}, hint {hint:?}");
        }
    }
}

/// Breaks: the named profiles: which of them find the lost retransmission of V2.
#[test]
fn v2_by_profile() {
    let table = [
        (Profile::Linux2617, false),
        (Profile::Linux2617Ab, false),
        (Profile::Linux2622, false),
        (Profile::AistFix, true),
        (Profile::AistFixMaxEnd, true),
        (Profile::Linux2624, true),
    ];
    for (profile, found) in table {
        let mut sender = Sender::new(kernel(profile, 0), 10);
        play(&mut sender, figure_2());
        let did = sender.ack(0, &[(8, 11), (1, 3)]);
        assert_eq!(did == resent(0), found, "{}: {did:?}", profile.name());
    }
}

/// Congestion windows after each of `acks` cumulative ACKs that follow a timeout with 20 packets out.
fn windows_after_timeout(abc: Abc, acks: u32) -> Vec<u32> {
    let base = kernel(Profile::Linux2617, 3);
    let mut sender = Sender::new(
        Linux26 { abc, sack_sort: SackSort::Ok, dsack_scope: DsackScope::FirstBlock, ..base },
        20,
    );
    sender.follow_in_flight = false;
    assert_eq!(sender.timeout(), resent(0));
    let mut windows = vec![sender.window.cwnd().get()];
    for ack in 1..=acks {
        sender.ack(ack, &[]);
        windows.push(sender.window.cwnd().get());
    }
    windows
}

/// Breaks: the first defect (V4): byte counting that is not fed in Loss freezes the window at one packet
/// until everything that was out at the timeout is acknowledged.
#[test]
fn v4_window_after_a_timeout() {
    assert_eq!(windows_after_timeout(Abc::Buggy, 19), [1; 20], "one packet per round trip");
    let growing: Vec<u32> = (1..=10).collect();
    assert_eq!(windows_after_timeout(Abc::Off, 9), growing);
    assert_eq!(windows_after_timeout(Abc::Fixed, 9), growing);
    // L = 2 wants two full segments acknowledged at once, which single ACKs do not give.
    assert_eq!(windows_after_timeout(Abc::Two, 9), growing);
}

/// Breaks: the frozen window must thaw: with the last ACK Loss ends (to Disorder, because an undo is still
/// possible) and byte counting runs again.
#[test]
fn v4_growth_returns_when_loss_ends() {
    let mut sender = Sender::new(kernel(Profile::Linux2617, 3), 5);
    sender.follow_in_flight = false;
    sender.timeout();
    for ack in 1..=5 {
        sender.ack(ack, &[]);
    }
    assert_eq!((sender.recovery.state(), sender.window.cwnd().get()), (RecoveryState::Disorder, 1));
    sender.ack(6, &[]);
    assert_eq!((sender.recovery.state(), sender.window.cwnd().get()), (RecoveryState::Open, 2));
}

/// Breaks: since 2.6.23 only ACKs with news bring the window down; a D-SACK is news, a bare repetition is
/// none. `(reduction, second ACK, rate halving has counted it)`.
#[test]
fn rate_halving_counts_progress() {
    let repetition: &[(u32, u32)] = &[(3, 4)];
    let dsack: &[(u32, u32)] = &[(3, 4), (3, 4)];
    let table = [
        (Reduction::RateHalving, repetition, true),
        (Reduction::RateHalving, dsack, true),
        (Reduction::RateHalvingProgress, repetition, false),
        (Reduction::RateHalvingProgress, dsack, true),
        (Reduction::RateHalvingProgress, &[(3, 5)], true),
    ];
    for (reduction, second, counted) in table {
        let mut sender = Sender::new(Linux26 { reduction, ..kernel(Profile::Linux2624, 3) }, 10);
        sender.ack(0, &[(3, 4)]);
        assert_eq!((sender.recovery.state(), sender.window.cwnd_cnt), (RecoveryState::Recovery, 1));
        sender.ack(0, second);
        assert_eq!(sender.window.cwnd_cnt == 0, counted, "{reduction:?} {second:?}");
    }
}

/// Breaks: blocks from a peer that did not agree on SACK mean nothing, in old ACKs neither.
#[test]
fn blocks_without_sack_are_ignored() {
    let mut sender = Sender::new(kernel(Profile::Linux2617, 3), 10);
    sender.sack = false;
    sender.ack(2, &[(5, 9)]);
    sender.ack(1, &[(5, 9)]);
    assert_eq!(sender.segments.fackets_out(), Packets::ZERO);
}
