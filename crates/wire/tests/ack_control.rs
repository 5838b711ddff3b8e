//! ACK control options: exact bytes, and which options are refused.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::ack_control;
use farpace_units::Span;
use farpace_wire::tcp::{AckControl, AckDelay, CdlCapability, Tarr, TcpOptions, raw_options};
use farpace_wire::{TcpFlags, TcpHeader, Timestamps, WireError};
use proptest::prelude::*;

const NONE: AckControl =
    AckControl { cdl_allow: false, capability: None, request: false, confirmation: None, tarr: None };
const ALL_CAPABILITIES: CdlCapability = CdlCapability::REQUESTS
    .with(CdlCapability::CONFIRMS)
    .with(CdlCapability::FLAG)
    .with(CdlCapability::REPORTS_DELAY);

fn parse(bytes: &[u8]) -> AckControl {
    let options = TcpOptions::parse(bytes);
    let ack_control = options.ack_control;
    assert_eq!(options, TcpOptions { ack_control, ..TcpOptions::default() }, "no other option changes");
    ack_control
}

/// Breaks: options have the documented bytes, so that other versions of farpace and other implementations of
/// TARR understand them.
#[test]
fn each_option_byte_by_byte() {
    let confirmation = |units| Some(AckDelay::from_wire(units));
    #[rustfmt::skip]
    let table: [(&[u8], AckControl); 11] = [
        (&[0xfe, 4, 0xcd, 0x1a], AckControl { cdl_allow: true, ..NONE }),
        (&[0xfe, 5, 0xcd, 0x1a, 0x1f, 1, 1, 1], AckControl { capability: Some(ALL_CAPABILITIES), ..NONE }),
        (&[0xfe, 5, 0xcd, 0x1a, 0x10, 1, 1, 1], AckControl { capability: Some(CdlCapability::default()), ..NONE }),
        (&[0xfe, 5, 0xcd, 0x1a, 0x12, 1, 1, 1], AckControl { capability: Some(CdlCapability::CONFIRMS), ..NONE }),
        (&[0xfe, 5, 0xcd, 0x1a, 0x01, 1, 1, 1], AckControl { request: true, ..NONE }),
        (&[0xfe, 7, 0xcd, 0x1a, 0x02, 0x12, 0x34, 1], AckControl { confirmation: confirmation(0x1234), ..NONE }),
        (&[0xfe, 7, 0xcd, 0x1a, 0x02, 0, 0, 1], AckControl { confirmation: Some(AckDelay::NONE), ..NONE }),
        (&[0xfe, 4, 0x00, 0xac], AckControl { tarr: Some(Tarr::Capable), ..NONE }),
        (&[0xfe, 5, 0x00, 0xac, 0x00, 1, 1, 1], AckControl { tarr: Some(Tarr::Rate(0)), ..NONE }),
        (&[0xfe, 5, 0x00, 0xac, 0x04, 1, 1, 1], AckControl { tarr: Some(Tarr::Rate(2)), ..NONE }),
        (&[0xfe, 5, 0x00, 0xac, 0xfe, 1, 1, 1], AckControl { tarr: Some(Tarr::Rate(127)), ..NONE }),
    ];
    for (bytes, control) in table {
        assert_eq!(control.to_wire().as_slice(), bytes, "{control:?}");
        // RFC 6994: both kinds have the same meaning.
        for kind in [254, 253] {
            let mut bytes = bytes.to_vec();
            bytes[0] = kind;
            assert_eq!(parse(&bytes), control, "{bytes:x?}");
            let data = &bytes[2..usize::from(bytes[1])];
            assert_eq!(AckControl::of_option(kind, data), Some(control), "{bytes:x?}");
            assert_eq!(AckControl::of_option(252, data), None);
        }
    }
    assert!(NONE.is_empty() && NONE.to_wire().is_empty());
}

/// Breaks: ACK control options fit into a SYN with all options of Linux, at their place.
#[test]
fn a_syn_with_everything() {
    let options = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 1, echo: 0 }),
        ack_control: AckControl {
            cdl_allow: true,
            capability: Some(ALL_CAPABILITIES),
            tarr: Some(Tarr::Capable),
            ..NONE
        },
        ..TcpOptions::default()
    };
    let mut out = [0; 60];
    let header = TcpHeader { flags: TcpFlags::SYN, options, ..TcpHeader::default() };
    let len = header.encode(&mut out);
    let ours = [0xfe, 4, 0xcd, 0x1a, 0xfe, 5, 0xcd, 0x1a, 0x1f, 0xfe, 4, 0x00, 0xac, 1, 1, 1];
    assert_eq!((len, &out[40..len]), (56, &ours[..]));
    assert_eq!(TcpHeader::parse(&out), Ok((header, len)));
}

/// Breaks: ACK control that does not fit is omitted as a whole.
#[test]
fn options_that_do_not_fit_are_omitted_as_a_whole() {
    let ack_control = AckControl {
        cdl_allow: true,
        capability: Some(ALL_CAPABILITIES),
        request: true,
        confirmation: Some(AckDelay::NONE),
        tarr: Some(Tarr::Rate(1)),
    };
    assert_eq!(ack_control.to_wire().len(), 28);
    let alone = TcpOptions { ack_control, ..TcpOptions::default() };
    let with_timestamps = TcpOptions { timestamps: Some(Timestamps::default()), ..alone.clone() };
    let too_much = TcpOptions { mss: Some(9), ..with_timestamps.clone() };
    let without = TcpOptions { ack_control: NONE, ..too_much.clone() };
    for (options, expected, bytes) in
        [(alone.clone(), alone, 28), (with_timestamps.clone(), with_timestamps, 40), (too_much, without, 16)]
    {
        let mut out = [0; 60];
        let len = TcpHeader { options, ..TcpHeader::default() }.encode(&mut out);
        let (read, _) = TcpHeader::parse(&out).unwrap();
        assert_eq!((len, read.options), (20 + bytes, expected));
    }
}

/// Breaks: other options of the experimental kinds, and malformed ones, are skipped, and the options after
/// them are read.
#[test]
fn options_of_others_are_skipped() {
    let mss = [2, 4, 5, 180];
    let others: [&[u8]; 16] = [
        &[0xfe, 2],
        &[0xfe, 3, 0xcd],
        &[0xfe, 4, 0xcd, 0x1b],
        &[0xfe, 4, 0x1a, 0xcd],
        &[0xfe, 4, 0xf9, 0x89],             // TCP Fast Open
        &[0xfe, 6, 0xe2, 0xd4, 0xc3, 0xd9], // SMC, 32 bits
        &[0xfe, 5, 0xcd, 0x1a, 0x00],
        &[0xfe, 5, 0xcd, 0x1a, 0x02], // a confirmation without a delay
        &[0xfe, 5, 0xcd, 0x1a, 0x2f], // version 2
        &[0xfe, 6, 0xcd, 0x1a, 0x01, 0x00],
        &[0xfe, 6, 0xcd, 0x1a, 0x02, 0x00],
        &[0xfe, 7, 0xcd, 0x1a, 0x03, 0x00, 0x00],
        &[0xfe, 8, 0xcd, 0x1a, 0x02, 0x00, 0x00, 0x00],
        &[0xfd, 6, 0x00, 0xac, 0x02, 0x00],
        &[0xfc, 5, 0xcd, 0x1a, 0x01],
        &[0x05, 4, 0xcd, 0x1a],
    ];
    for option in others {
        let bytes = [option, &mss].concat();
        assert_eq!(
            TcpOptions::parse(&bytes),
            TcpOptions { mss: Some(1460), ..Default::default() },
            "{option:x?}"
        );
        assert_eq!(AckControl::of_option(option[0], &option[2..]), None, "{option:x?}");
        // They remain readable as raw options.
        let raw: Vec<_> = raw_options(&bytes).collect();
        assert_eq!(raw, [Ok((option[0], &option[2..])), Ok((2, &mss[2..]))]);
    }
    // A length beyond the end: the options before it are valid.
    let cut = [0xfe, 5, 0xcd, 0x1a, 0x01, 0xfe, 7, 0xcd, 0x1a, 0x02, 0x00];
    assert_eq!(parse(&cut), AckControl { request: true, ..NONE });
    assert_eq!(raw_options(&cut).last(), Some(Err(WireError::Option { kind: 254 })));
}

/// Breaks: a receiver never reports more than its delay, so the RTT of the sender is not too low.
#[test]
fn delays_are_rounded_down_and_saturate() {
    let units = |nanos| AckDelay::of(Span::from_nanos(nanos)).to_wire();
    assert_eq!([units(0), units(7_999), units(8_000), units(15_999)], [0, 0, 1, 1]);
    // The maximum known delay is 65 534 units of 8 us.
    assert_eq!([units(524_272_000), units(524_279_999), units(524_280_000)], [65_534, 65_534, 65_535]);
    assert_eq!([units(1_000_000_000), units(u64::MAX)], [65_535; 2]);
    assert_eq!(AckDelay::NONE.span(), Some(Span::ZERO));
    assert_eq!(AckDelay::from_wire(150).span(), Some(Span::from_micros(1_200)));
    assert_eq!(AckDelay::from_wire(65_534).span(), Some(Span::from_micros(524_272)));
    assert_eq!((AckDelay::UNKNOWN.span(), AckDelay::from_wire(65_535)), (None, AckDelay::UNKNOWN));
}

/// Breaks: a rate beyond seven bits is limited to the maximum; 128 would become a request for an immediate
/// ACK.
#[test]
fn rates_beyond_seven_bits_are_limited() {
    let wire = |rate| AckControl { tarr: Some(Tarr::Rate(rate)), ..NONE }.to_wire()[4];
    assert_eq!([wire(127), wire(128), wire(255)], [254; 3]);
    // The lowest bit is reserved.
    assert_eq!(parse(&[254, 5, 0, 0xac, 0x05]), AckControl { tarr: Some(Tarr::Rate(2)), ..NONE });
}

/// Breaks: a peer reads the capabilities that an end offers.
#[test]
fn capabilities_are_four_bits() {
    assert_eq!(ALL_CAPABILITIES.bits(), 0x0f);
    assert_eq!(CdlCapability::from_bits(0xf2), CdlCapability::CONFIRMS);
    let requests = CdlCapability::REQUESTS;
    assert!(
        ALL_CAPABILITIES.contains(requests)
            && requests.contains(requests)
            && requests.contains(CdlCapability::default())
    );
    assert!(!requests.contains(ALL_CAPABILITIES) && !CdlCapability::FLAG.contains(requests));
}

/// Breaks: the configured flag bit is set on the wire (numbers of RFC 9293 §3.1, from the left).
#[test]
fn reserved_bits_have_the_numbers_of_the_rfc() {
    for (bit, bytes) in [(4, [0x58, 0]), (5, [0x54, 0]), (6, [0x52, 0])] {
        let flags = TcpFlags::reserved(bit).unwrap();
        let mut out = [0; 60];
        TcpHeader { flags, ..TcpHeader::default() }.encode(&mut out);
        assert_eq!(out[12..14], bytes);
        assert_eq!(u16::from_be_bytes(bytes) >> (15 - bit) & 1, 1);
    }
    // The data offset, AE and FIN are not reserved.
    assert_eq!([0, 3, 7, 15, 16, 255].map(TcpFlags::reserved), [None; 6]);
}

proptest! {
    /// Breaks: options of one mode do not change those of another.
    #[test]
    fn all_combinations_survive(control in ack_control()) {
        let bytes = control.to_wire();
        prop_assert_eq!(bytes.len() % 4, 0);
        prop_assert_eq!(parse(&bytes), control);
        prop_assert_eq!(bytes.is_empty(), control.is_empty());
    }
}
