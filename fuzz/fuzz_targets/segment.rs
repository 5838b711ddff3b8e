//! Any bytes as a frame, as each header alone, and as a segment for a connection: nothing panics, and what is
//! read is what is written again.

#![no_main]

#[path = "../../crates/tcp/tests/any_bytes/driver.rs"]
mod driver;

use bytes::Bytes;
use driver::{Driver, Start};
use farpace_wire::tcp::{TcpView, raw_options};
use farpace_wire::{
    Arp, EthernetHeader, Icmp, IpVersion, Ipv4View, Ipv6View, MacAddr, Packet, Quoted, TcpHeader, TcpOptions,
    fragment,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ =
        (EthernetHeader::parse(bytes), Ipv4View::parse(bytes), Ipv6View::parse(bytes), TcpView::parse(bytes));
    let _ = (TcpOptions::parse(bytes), Arp::parse(bytes), Quoted::parse(bytes));
    for version in [IpVersion::V4, IpVersion::V6] {
        let _ = Icmp::parse(version, bytes).map(|message| message.quoted());
    }
    assert!(raw_options(bytes).count() <= bytes.len());

    if let Ok((header, len)) = TcpHeader::parse(bytes) {
        assert!(len <= bytes.len());
        let mut out = [0; 60];
        let len = header.encode(&mut out);
        let again = TcpHeader::parse(&out[..len]).expect("we read what we write").0;
        // What does not fit is left out, if a peer packed its options more tightly.
        assert!(header.options.sack.starts_with(&again.options.sack));
        let mut header = header;
        header.options.sack = again.options.sack.clone();
        if again.options.ack_control.is_empty() {
            header.options.ack_control = again.options.ack_control;
        }
        assert_eq!(again, header);
    }

    // The last byte chooses who gets it.
    let choice = bytes.last().copied().unwrap_or(0);
    for active in [false, true] {
        let start = Start { profile: choice, switches: choice, buffers: choice, active, iss: u32::MAX };
        let mut driver = Driver::new(start);
        driver.act(&driver::Op::Raw(bytes.to_vec()));
        driver.act(&driver::Op::Deadline);
    }

    let shared = Packet::from_shared_frame(Bytes::copy_from_slice(bytes));
    assert_eq!(shared.as_ref().err(), Packet::from_frame(bytes).as_ref().err());
    let (here, there) = (MacAddr([2; 6]), MacAddr([4; 6]));
    for mut packet in
        [shared, Packet::from_shared_ip(there, here, Bytes::copy_from_slice(bytes))].into_iter().flatten()
    {
        packet.trust_checksum();
        packet.set_segment_size(u16::from(choice));
        let _ = packet.clone().partial_sum();
        packet.split_segments(|part| read_all(&part));
    }
    if let Ok(mut packet) = Packet::from_frame(bytes) {
        let mut frame = Vec::new();
        packet.write_frame(&mut frame);
        assert_eq!(frame, bytes[..frame.len()]);
        read_all(&packet);
        // The first bytes choose a bit to damage.
        packet.flip_bit(bytes.iter().take(4).fold(0, |bit, byte| bit << 8 | u64::from(*byte)));
        read_all(&packet);
        packet.complete_checksum();
        frame.clear();
        packet.write_frame(&mut frame);
        if let Ok(again) = Packet::from_frame(&frame) {
            read_all(&again);
        }
    }
});

fn read_all(packet: &Packet) {
    let _ = (packet.ethernet(), packet.verify_checksums(), format!("{packet:?}"));
    if let Some(ip) = packet.ipv4() {
        assert_eq!(u64::from(ip.total_len()), packet.network_len().get());
    }
    if let Some(ip) = packet.ipv6() {
        assert_eq!(u64::from(ip.payload_len()) + 40, packet.network_len().get());
    }
    let _ = (packet.udp().is_ok(), packet.icmp().is_ok(), packet.arp().is_ok());
    if let Ok(parts) = fragment(packet.clone(), 68, 1) {
        assert!(parts.iter().all(|part| part.network_len().get() <= 68 || parts.len() == 1));
    }
    if let Ok(tcp) = packet.tcp() {
        let _ = (tcp.header(), tcp.raw_options().count());
    }
}
