//! Connections that begin in another way than with a SYN: cookies, and TIME-WAIT used again.

use crate::full;
use crate::script::{Script, plain, segment};
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, ConnectionState, Ports, ResumedConnection};
use farpace_units::{Instant, Seq, Span};

const ISS: Seq = Seq::new(u32::MAX - 2_000);
const IRS: Seq = Seq::new(700_000);

fn resume(settings: &Settings, resumed: &ResumedConnection, ack: &str) -> Connection {
    let config = settings.resolve().expect("settings");
    let now = Instant::ZERO + Span::from_secs(5);
    Connection::resume(now, &config, Ports { local: 1, remote: 2 }, resumed, &segment(ack))
}

/// Breaks: SYN cookies (RFC 4987 §3.6): the third segment of the handshake makes a connection, with the
/// options that the cookie held, and its data counts.
#[test]
fn a_cookie_comes_back() {
    let resumed = ResumedConnection {
        iss: ISS,
        irs: IRS,
        mss: 1400,
        window_scale: Some(3),
        sack: true,
        timestamps: Some(77),
    };
    // Our SYN-ACK had the timestamp 9000.
    let settings = Settings { rto: Some(farpace_tcp::config::Rto::Rfc6298), ..full() };
    let mut c = resume(&settings, &resumed, ". 1+10 ack 1 win 500 ts 80/9000");
    let i = c.inspect();
    assert_eq!((i.state, i.mss, i.rwnd.get()), (ConnectionState::Established, 1000 - 12, 4000));
    assert_eq!(i.rto, Span::from_secs(1), "nothing was measured, and nothing was lost");
    assert_eq!(c.read(drop).get(), 10);
    let mut data = bytes::Bytes::from_static(b"answer");
    c.write(&mut data);
    let now = Instant::ZERO + Span::from_secs(6);
    let out = crate::common::drain(&mut c, now, 9);
    let h = &out[0].segment.header;
    assert_eq!((h.seq, h.ack), (ISS + 1, IRS + 11));
    let clock = h.options.timestamps.expect("timestamps");
    assert_eq!(
        (clock.value.wrapping_sub(ISS.get()), clock.echo),
        (10_000, 80),
        "a second later, as the peer saw it"
    );
}

/// Breaks: a peer without options, and a segment that does not fit: then the connection is no further than
/// SYN-RECEIVED.
#[test]
fn a_cookie_without_options() {
    let bare =
        ResumedConnection { iss: ISS, irs: IRS, mss: 536, window_scale: None, sack: false, timestamps: None };
    let mut c = resume(&full(), &bare, ". 1 ack 1 win 500");
    assert_eq!(
        (c.state(), c.inspect().mss, c.inspect().rwnd.get()),
        (ConnectionState::Established, 536, 500)
    );
    assert!(crate::common::drain(&mut c, Instant::ZERO + Span::from_secs(5), 9).is_empty());
    let c = resume(&full(), &bare, ". 1 ack 900 win 500");
    assert_eq!(c.state(), ConnectionState::SynReceived);
    assert!(c.deadline().is_some(), "it ends some day");
}

/// A connection in TIME-WAIT whose peer has sent up to 1 and, with timestamps, its clock up to 500.
fn waiting(timestamps: bool) -> Script {
    let mut s = Script::connect(&Settings { timestamps: Some(timestamps), ..plain() });
    let ts = |v: u32| if timestamps { format!("ts {v}/0") } else { String::new() };
    s.run(&format!(
        "0   > S 0 {}
         10         < S. 0 ack 1 mss 1000 {}
         10  > . 1 ack 1
         20  ! close
         20  > F. 1 ack 1
         30         < F. 1 ack 2 {}
         30  > . 2 ack 2
         30  ! state TimeWait",
        if timestamps { "ts 0/0" } else { "" },
        ts(400),
        ts(500),
    ));
    s
}

/// Breaks: RFC 6191 §2, every case: a SYN may take the place of a connection in TIME-WAIT only if nothing of
/// the old one can be mistaken for the new one.
#[test]
fn time_wait_and_a_new_syn() {
    let cases = [
        (true, "S 900 ts 501/0", true),
        (true, "S -900 ts 501/0", true),
        (true, "S 900 ts 500/0", true),
        (true, "S 2 ts 500/0", false),
        (true, "S 900 ts 499/0", false),
        (true, "S 900", true),
        (true, "S -900", false),
        (false, "S -900 ts 1/0", true),
        (false, "S 3", true),
        (false, "S 2", false),
        (true, "S. 900 ts 501/0", false),
        (true, "SR 900 ts 501/0", false),
        (true, "SF 900 ts 501/0", false),
        (true, ". 900 ts 501/0", false),
    ];
    for (timestamps, syn, expected) in cases {
        let s = waiting(timestamps);
        assert_eq!(
            s.connection.may_be_reused_by(&segment(syn)),
            expected,
            "{syn} on timestamps: {timestamps}"
        );
        assert!(s.connection.next_iss_floor().after(ISS + 2 + 65_535 - 1), "beyond what was sent");
    }
    let s = Script::established(&plain(), 9000);
    assert!(!s.connection.may_be_reused_by(&segment("S 90000")), "only in TIME-WAIT");
}

/// Breaks: only the peer's FIN prolongs TIME-WAIT; anything else would let a stranger hold it for ever.
#[test]
fn time_wait_is_not_prolonged_by_strangers() {
    let mut s = waiting(false);
    s.run(
        "30000        < . 5000000+10 ack 2
         30000 > . 2 ack 2
         30100        < . -50 ack 2
         30100 > . 2 ack 2
         60029 ! state TimeWait
         60030 ! state Closed",
    );
}
