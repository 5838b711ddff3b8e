//! A connection that begins with the third segment of the handshake (SYN cookies, RFC 4987 §3.6).

use super::{Connection, ConnectionState};
use crate::config::Config;
use crate::ports::Ports;
use crate::segment::Segment;
use farpace_units::{Instant, Seq};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};

/// What is known of a handshake of which nothing was kept: the host has found it in the cookie, in the
/// timestamp that came back, and in the segment itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumedConnection {
    /// Our initial sequence number: the cookie.
    pub iss: Seq,
    /// The peer's initial sequence number.
    pub irs: Seq,
    /// The peer's MSS option, as far as the cookie could hold it.
    pub mss: u16,
    /// The peer's window scale; none: scaling was not agreed on.
    pub window_scale: Option<u8>,
    /// SACK was agreed on.
    pub sack: bool,
    /// The peer's latest timestamp, if timestamps were agreed on.
    pub timestamps: Option<u32>,
}

impl Connection {
    /// Opens a connection passively with the segment that acknowledges our SYN-ACK, where the SYN-ACK was
    /// sent without keeping anything. It is ESTABLISHED at once if `ack` fits `resumed`; then `ack` has been
    /// processed, its data included. Our timestamps go on from the one that `ack` echoes.
    pub fn resume(
        now: Instant,
        config: &Config,
        ports: Ports,
        resumed: &ResumedConnection,
        ack: &Segment,
    ) -> Self {
        let ResumedConnection { iss, irs, mss, window_scale, sack, timestamps } = *resumed;
        let mut c = Self::new(now, config, ports, iss, ConnectionState::SynReceived);
        let options = TcpOptions {
            mss: Some(mss),
            window_scale,
            sack_permitted: sack,
            timestamps: timestamps.map(|value| Timestamps { value, echo: 0 }),
            ..TcpOptions::default()
        };
        let header = TcpHeader { seq: irs, flags: TcpFlags::SYN, options, ..TcpHeader::default() };
        c.learn_from_syn(now, &Segment { header, ..Segment::default() });
        if let Some(t) = ack.header.options.timestamps.filter(|_| c.ts.enabled) {
            // The peer drops what is older than what it has seen (PAWS).
            c.ts.offset = t.echo.wrapping_sub(c.flight.rto.clock().timestamp(now));
        }
        c.snd.nxt = iss + 1;
        // If `ack` does not fit after all, the SYN-ACK goes out again in time.
        c.flight.rto_deadline = Some(c.flight.rto.deadline(now));
        c.on_segment(now, ack.clone());
        c
    }
}
