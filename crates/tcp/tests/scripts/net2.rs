//! Profile net2: the clocks of 4.3BSD Net/2.

use crate::script::{Script, plain};
use farpace_tcp::config::{DelayedAck, MtuProbing, Profile, Rto, Settings};
use farpace_units::{Packets, Span};

fn net2() -> Settings {
    Settings { profile: Some(Profile::Net2), mss: Some(1000), ..Settings::default() }
}

/// Breaks: when BSD repeats a SYN: at the twelfth tick of 500 ms, then after 24 s, 48 s and 64 s; and that
/// the timer of the first data is still the SYN's, because nothing was measured.
#[test]
fn syn_timeouts() {
    let mut s = Script::connect(&net2());
    s.run(
        "0      > S 0 mss 1000                  # no window scale, no timestamps, no SACK
         6000   > S 0 mss 1000 why syn_retransmit
         30000  > S 0 mss 1000
         78000  > S 0 mss 1000
         142000 > S 0 mss 1000
         142100        < S. 0 ack 1 mss 1000
         142100 > . 1 ack 1
         142200 ! write 500
         142200 > . 1+500 ack 1
         142300        < . 1 ack 501
         142300 ! rto 1500                      # no tick in this round trip: counted as one
         142300 ! state Established",
    );
}

/// Breaks: round trips in ticks, of one segment at a time, and timeouts that come with a tick.
#[test]
fn timed_in_ticks() {
    let mut s = Script::connect(&net2());
    s.run(
        "0      > S 0 mss 1000
         400           < S. 0 ack 1 mss 1000
         400    > . 1 ack 1
         400    ! rto 1500                      # t_srtt 8, t_rttvar 2: 3 ticks
         450    ! write 4000
         450    > . 1+1000 ack 1                # a window of one segment, timed
         1100          < . 1 ack 1001           # two ticks: 8 + 1, 2 + 1 - 0
         1100   ! rto 2000                      # 9 >> 3, and 3
         1100   > . 1001+1000 ack 1             # timed
         1100   > . 2001+1000 ack 1
         1300          < . 1 ack 2001           # no tick: 9 - 1, 3 + 1 - 0
         1300   ! rto 2500                      # 8 >> 3, and 4
         1300   > . 3001+1000 ack 1             # timed
         2100          < . 1 ack 3001           # does not end it, but the timer starts anew
         2100   ! rto 2500
         4500   > . 3001+1000 ack 1 why timeout_retransmit
         4500   ! rto 5000
         4600          < . 1 ack 4001           # sent twice: not measured (Karn)
         4600   ! rto 5000",
    );
}

/// Breaks: with timestamps each ACK is measured, in ticks of the timestamp clock.
#[test]
fn timestamps_count_ticks() {
    let mut s = Script::connect(&Settings { timestamps: Some(true), ..net2() });
    s.run(
        "0      > S 0 mss 1000 ts 0/0
         400           < S. 0 ack 1 mss 1000 ts 70/0
         400    > . 1 ack 1 ts 0/70
         700    ! write 2964
         700    > . 1+988 ack 1 ts 1/70
         1600          < . 1 ack 989 ts 72/1    # two ticks
         1600   > . 989+988 ack 1 ts 3/72
         1600   > . 1977+988 ack 1 ts 3/72
         1700          < . 1 ack 1977 ts 72/3
         1700   ! rto 2500                      # 8, 2; 9, 3; 8, 4: 1 and 4 ticks",
    );
}

/// Breaks: the receiver's ticks of 200 ms: they run since the boot, not since the segment.
#[test]
fn fast_timer() {
    let mut s = Script::connect(&net2());
    s.run(
        "0      > S 0 mss 1000
         10            < S. 0 ack 1 mss 1000
         10     > . 1 ack 1
         190           < . 1+1000 ack 1
         200    > . 1 ack 1001 why ack_delayed
         201           < . 1001+1000 ack 1
         400    > . 1 ack 2001
         410           < . 2001+1000 ack 1
         590           < . 3001+1000 ack 1
         590    > . 1 ack 4001 why ack_now
         600    ! quiet
         601           < . 5001+1000 ack 1
         601    > . 1 ack 4001 why ack_out_of_order",
    );
}

/// Breaks: the slow start of the time: one segment first, one more for each ACK, whatever it acknowledges.
#[test]
fn windows() {
    let config = net2().resolve().expect("settings");
    assert_eq!((config.cwnd_clamp.get(), config.initial_ssthresh.map(|p| p.get())), (65, Some(65)));
    assert_eq!((config.sack, config.mtu_probing), (false, MtuProbing::Off));
    let mut s = Script::connect(&net2());
    s.run(
        "0      > S 0 mss 1000
         10            < S. 0 ack 1 mss 1000
         10     > . 1 ack 1
         10     ! write 4000
         10     > . 1+1000 ack 1
         20            < . 1 ack 1001
         20     > . 1001+1000 ack 1
         20     > . 2001+1000 ack 1
         30            < . 1 ack 3001
         30     ! cwnd 3
         30     > . 3001+1000 ack 1
         30     ! rto 1500",
    );
}

/// Breaks: settings that mean nothing, or that no RFC allows, are taken in silence.
#[test]
fn settings_of_receivers_and_clocks() {
    let (ms, us) = (Span::from_millis, Span::from_micros);
    let with = |delayed_ack, ack_delay, every: Option<u32>| {
        let ack_every = every.map(Packets::new);
        Settings { delayed_ack, ack_delay, ack_every, ..Settings::default() }
    };
    let clock = |clock| Settings { clock: Some(clock), ..Settings::default() };
    let wrong = [
        (with(None, Some(us(999)), None), "ack_delay"),
        (with(Some(DelayedAck::Bsd), Some(ms(501)), None), "ack_delay"),
        (with(Some(DelayedAck::None), Some(ms(40)), None), "ack_delay"),
        (with(Some(DelayedAck::Linux), Some(ms(40)), None), "ack_delay"),
        (with(None, None, Some(8)), "ack_every"),
        (with(Some(DelayedAck::Stretch), None, Some(0)), "ack_every"),
        (clock(Span::from_nanos(999)), "clock"),
        (clock(ms(1_001)), "clock"),
    ];
    for (settings, key) in wrong {
        let error = settings.resolve().expect_err(key);
        assert!(error.to_string().starts_with(&format!("`{key}`")), "{error}");
    }
    let right = [
        with(Some(DelayedAck::Stretch), Some(ms(500)), Some(1)),
        with(Some(DelayedAck::Bsd), Some(ms(1)), None),
        clock(us(1)),
        clock(ms(1_000)),
    ];
    right.iter().for_each(|settings| assert!(settings.resolve().is_ok(), "{settings:?}"));
    let ticks = Settings { rto: Some(Rto::Net2), ..Settings::default() };
    assert_eq!(ticks.resolve().expect("settings").clock, Some(ms(500)), "it counts ticks");
}

/// Breaks: a clock for any profile: timestamps of a microsecond, or a timer that waits for its tick.
#[test]
fn clocks_of_other_profiles() {
    let clock = |us| Settings { clock: Some(Span::from_micros(us)), ..plain() };
    let min_rto = Some(Span::from_millis(1));
    let mut s = Script::connect(&Settings { timestamps: Some(true), min_rto, ..clock(1) });
    s.run(
        "0      > S 0 mss 1000 ts 0/0
         10            < S. 0 ack 1 mss 1000 ts 5/0
         10     > . 1 ack 1 ts 10000/5
         20     ! write 100
         20     > . 1+100 ack 1 ts 20000/5
         30.5          < . 1 ack 101 ts 6/20000
         30.5   ! rto 25.5625                   # SRTT 10.0625, RTTVAR 3.875 ms
         30.5   ! quiet",
    );
    let mut s = Script::connect(&clock(70_000));
    s.run(
        "0      > S 0 mss 1000
         1050   > S 0 mss 1000",
    );
}

/// Breaks: receivers that answer every n-th segment, and Linux's, which answers a short segment once it is
/// read.
#[test]
fn other_receivers() {
    let with = |delayed_ack| Settings { delayed_ack: Some(delayed_ack), ..plain() };
    let mut s = Script::established(&with(DelayedAck::Stretch), 60_000);
    for i in 0..7 {
        s.run(&format!("20 < . {}+1000 ack 1", 1 + i * 1000));
    }
    s.run("20 < . 7001+1000 ack 1\n 20 > . 1 ack 8001 why ack_now");
    s.run("30 < . 8001+1000 ack 1\n 70 > . 1 ack 9001 why ack_delayed");
    let mut s = Script::established(&with(DelayedAck::Linux), 60_000);
    s.run(
        "20            < . 1+100 ack 1
         20     > . 1 ack 101 why ack_now       # a quick one
         25     ! write 10
         25     > . 1+10 ack 101                # an answer: from now on answers carry the ACKs
         30            < . 101+100 ack 11
         30     ! read 200
         70     > . 11 ack 201 why ack_delayed  # there was none: no conversation any more
         71            < . 201+100 ack 11
         71     > . 11 ack 301 why ack_now",
    );
}
