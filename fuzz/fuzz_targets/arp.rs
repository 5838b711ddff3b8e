//! Any frames at a machine that tells its neighbours of its cards: nothing panics, limits hold, a list that
//! is read is what would be written, and no card is two neighbours'.
//!
//! The input is a row of frames, each behind a byte that says what is to be done with it and one that says
//! how long it is.

#![no_main]

use crc::{CRC_32_ISCSI, Crc};
use farpace_link::multi_nic::arp::{ArpAnnouncer, ConflictDetection, MAX_NEIGHBOURS};
use farpace_units::{Instant, RandomStream, Span};
use farpace_wire::{Arp, Extension, ExtensionError, MacAddr, NicFlags, NicKind, Packet};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

const STACK: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const NICS: [(MacAddr, NicKind); 2] = [(STACK, NicKind(3)), (MacAddr([2, 0, 0, 0, 0, 2]), NicKind(2))];

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::ZERO;
    let mut announcer = ArpAnnouncer::new(STACK, &NICS, NicFlags::default(), 0xfffe);
    let mut detection =
        ConflictDetection::new(now, [10, 0, 0, 1].into(), STACK, RandomStream::new(1, "claim"));
    let mut rest = bytes;
    while let Some((&[what, len], after)) = rest.split_first_chunk() {
        let (frame, after) = after.split_at(usize::from(len).min(after.len()));
        rest = after;
        let mut frame = frame.to_vec();
        seal(&mut frame);
        now += Span::from_millis(1 << (what >> 3));
        if let Ok(Some(list)) = Extension::parse_arp(&frame) {
            let written = list.encode();
            assert_eq!(&frame[Extension::ARP_AT..][..written.len()], written);
        }
        match what & 7 {
            0 => announcer.set_nics(now, &NICS[usize::from(len) % 3..]),
            1 | 2 => {
                while let Some(at) = announcer.deadline().filter(|at| *at <= now) {
                    announcer.on_deadline(now);
                    assert!(announcer.deadline().is_none_or(|next| next > at));
                }
                detection.on_deadline(now);
            }
            way => {
                // A frame as it is, or what follows an Ethernet header of ARP.
                let header = [&[0xff; 6][..], &STACK.0, &[8, 6]].concat();
                let whole = if way < 5 { frame } else { [header, frame].concat() };
                let Ok(packet) = Packet::from_frame(&whole) else { continue };
                if let Ok(arp) = packet.arp() {
                    detection.on_arp(now, &arp, |mac| NICS.iter().any(|(nic, _)| *nic == mac));
                    let told = Arp::parse(announcer.incoming(now, packet.clone()).payload());
                    assert_eq!(told, Ok(arp), "the stack sees what it would see without us");
                }
                if way % 2 == 0 {
                    announcer.incoming(now, packet);
                } else {
                    announcer.outgoing(now, packet);
                }
            }
        }
        while announcer.poll().is_some() || detection.poll().is_some() {}
        check(&announcer);
    }
});

/// Puts the right CRC behind a list that is a good one but for it: nobody finds that by chance.
fn seal(frame: &mut [u8]) {
    if Extension::parse_arp(frame) == Err(ExtensionError::Checksum)
        && let list = &mut frame[Extension::ARP_AT..]
        && let crc_at = 7 * (usize::from(list[0]) + usize::from(list[1])) + 8
        && let Some((list, [c0, c1, c2, c3, ..])) = list.split_at_mut_checked(crc_at)
    {
        [*c0, *c1, *c2, *c3] = Crc::<u32>::new(&CRC_32_ISCSI).checksum(list).to_be_bytes();
    }
}

fn check(announcer: &ArpAnnouncer) {
    assert!(announcer.cache().neighbours().count() <= MAX_NEIGHBOURS);
    let mut owners = BTreeMap::new();
    for host in announcer.cache().neighbours().filter_map(|(.., host)| host) {
        for (mac, _) in &host.nics {
            assert!(!mac.is_multicast() && NICS.iter().all(|(ours, _)| ours != mac));
            assert_eq!(*owners.entry(*mac).or_insert(host), host, "a card of two neighbours");
        }
    }
}
