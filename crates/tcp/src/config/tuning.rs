//! What programs may choose for a connection by socket options, before it begins and while it lives.

use farpace_units::ByteCount;

/// The choices of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Less than a full segment waits until it is full or this is taken back, but for 200 ms at most where
    /// nothing is outstanding (TCP_CORK).
    pub cork: bool,
    /// Repetitions of a SYN (TCP_SYNCNT); none: as long as RFC 9293 §3.8.3 has it.
    pub syn_retries: Option<u32>,
    /// Of a listener: a connection opens when data has come, or after so many repetitions of the SYN-ACK
    /// (TCP_DEFER_ACCEPT).
    pub defer_accept: u32,
    /// Bytes written and not sent for the first time that are taken at most (TCP_NOTSENT_LOWAT); none: as
    /// many as the send buffer holds.
    pub unsent_limit: Option<ByteCount>,
    /// The window that is announced is at most so large, in bytes (TCP_WINDOW_CLAMP).
    pub window_clamp: Option<u32>,
    /// DSCP of packets, in the upper six bits (IP_TOS, IPV6_TCLASS). Hosts set it on packets.
    pub dscp: u8,
    /// Time to live, or hop limit, of packets; none: that of the host. Hosts set it on packets.
    pub hops: Option<u8>,
    /// Packets with fewer hops left are dropped (IP_MINTTL). Hosts do it.
    pub min_hops: u8,
    /// MTU of the link, where the program has chosen a smaller MSS itself (TCP_MAXSEG).
    pub link_mtu: Option<u16>,
    /// The program hears of what the network reports as of an error (IP_RECVERR, IPV6_RECVERR). Sockets do
    /// it.
    pub reports_errors: bool,
    /// Packets may be cut on the way (IP_PMTUDISC_DONT). Hosts say so on packets.
    pub may_be_cut: bool,
}

impl Tuning {
    /// Nothing chosen.
    pub const UNSET: Tuning = Tuning {
        cork: false,
        syn_retries: None,
        defer_accept: 0,
        unsent_limit: None,
        window_clamp: None,
        dscp: 0,
        hops: None,
        min_hops: 0,
        link_mtu: None,
        reports_errors: false,
        may_be_cut: false,
    };
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning::UNSET
    }
}
