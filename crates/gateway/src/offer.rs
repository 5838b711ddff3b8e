//! What a SYN or SYN-ACK offers, and the configuration of the leg that repeats it.
//!
//! Each leg offers what the host behind the other leg has offered: the same window scale, no larger MSS,
//! SACK, timestamps and ECN only if the host has them. So both hosts have agreed on the same as without a
//! gateway, and can go on with each other when it is gone.

use crate::limits::{KEEP_ALIVE_IDLE, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_PROBES, MIN_MSS, SYN_RETRIES};
use farpace_tcp::config::{BufferSize, Config, EcnMode, KeepAlive};
use farpace_units::ByteCount;
use farpace_wire::tcp::{TCP_LEN, TcpFlags, TcpView, raw_options};

/// The MSS of a host that tells none (RFC 9293 §3.7.1), over IPv4 and IPv6.
const UNTOLD_MSS: [u16; 2] = [536, 1220];
/// Window scales above this count as this (RFC 7323 §2.3).
const MAX_SCALE: u8 = 14;

/// Kinds of TCP options that both ends of a connection need to see. Such connections pass: a TCP of another
/// make has agreed on something that a leg does not speak.
const END_TO_END: [u8; 4] = [
    19, // MD5 signature, RFC 2385
    29, // TCP-AO, RFC 5925
    30, // Multipath TCP, RFC 8684
    34, // Fast Open cookie, RFC 7413
];

/// The options and flags of a SYN or SYN-ACK that a leg repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    mss: Option<u16>,
    scale: Option<u8>,
    sack: bool,
    /// Value of the timestamps option.
    pub timestamp: Option<u32>,
    ecn: bool,
}

/// Largest IP packets of both sides, in bytes, and of a super-segment; and what a leg may keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LegLimits {
    /// The least MTU of both sides, and of the routes between the hosts.
    pub mtu: u16,
    pub is_ipv6: bool,
    pub super_segment: u32,
    pub buffer: ByteCount,
}

impl Offer {
    /// Reads a SYN or SYN-ACK. None: the connection cannot be split.
    pub fn read(tcp: &TcpView<'_>) -> Option<Offer> {
        if raw_options(tcp.options()).any(|option| match option {
            Ok((kind, _)) => END_TO_END.contains(&kind),
            Err(_) => true,
        }) {
            return None;
        }
        let header = tcp.header();
        let options = &header.options;
        // A SYN offers ECN by both flags, a SYN-ACK accepts by ECE alone (RFC 3168 §6.1.1). AccECN adds
        // others.
        let ecn = match header.flags.contains(TcpFlags::ACK) {
            false => header.flags.contains(TcpFlags::ECE.with(TcpFlags::CWR)),
            true => header.flags.contains(TcpFlags::ECE) && !header.flags.contains(TcpFlags::CWR),
        };
        let offer = Offer {
            mss: options.mss,
            scale: options.window_scale.map(|scale| scale.min(MAX_SCALE)),
            sack: options.sack_permitted,
            timestamp: options.timestamps.map(|stamps| stamps.value),
            ecn,
        };
        (options.mss.is_none_or(|mss| mss >= MIN_MSS)).then_some(offer)
    }

    /// `base` for a leg that repeats this offer to the other host.
    pub fn repeated(&self, base: &Config, limits: &LegLimits) -> Config {
        let ip_len = if limits.is_ipv6 { 40 } else { 20 };
        let fits = limits.mtu.saturating_sub(ip_len + TCP_LEN as u16);
        let mss = self.mss.unwrap_or(UNTOLD_MSS[usize::from(limits.is_ipv6)]);
        let buffer = limits.buffer;
        // The scale of a leg follows from its largest receive buffer.
        let window = ByteCount::new(u64::from(u16::MAX) << self.scale.unwrap_or(0));
        let clamp = buffer.min(window).get();
        let receive = match base.receive_buffer.is_fixed() {
            true => BufferSize::fixed(window),
            false => BufferSize::auto(base.receive_buffer.initial.min(window), window),
        };
        let mut config = base.clone();
        config.mss = mss.min(fits).max(MIN_MSS);
        config.sack &= self.sack;
        config.timestamps &= self.timestamp.is_some();
        config.window_scale = self.scale.is_some();
        config.receive_buffer = receive;
        config.send_buffer = base.send_buffer.limited_to(buffer);
        config.ecn = if self.ecn { EcnMode::On } else { EcnMode::Off };
        config.network_header = ip_len;
        config.super_segment = limits.super_segment;
        // The hosts have held back what they want to hold back.
        config.nagle = false;
        config.keep_alive = Some(KeepAlive {
            idle: KEEP_ALIVE_IDLE,
            interval: KEEP_ALIVE_INTERVAL,
            count: KEEP_ALIVE_PROBES,
        });
        config.tuning.syn_retries = Some(SYN_RETRIES);
        config.tuning.window_clamp = Some(u32::try_from(clamp).unwrap_or(u32::MAX));
        config
    }
}
