//! Hostile peers, and programs that exit: their resources end in bounded time.

use crate::virtual_time::{OURS, Virtual};
use bytes::Bytes;
use farpace_live::socket::SocketOptions;
use farpace_path::{Cx, Element, Inspection, Port};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

const THEIRS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 3, 0, 2));

/// A server that receives and acknowledges `window` bytes in all, and then keeps a zero window.
struct Shut {
    window: u16,
    /// It answers every segment.
    answers: bool,
}

impl Element for Shut {
    fn on_packet(&mut self, _: Port, packet: Packet, cx: &mut Cx<'_>) {
        let header = packet.tcp().unwrap().header();
        let len = packet.payload().len() as u32;
        cx.consume(packet);
        let syn = header.flags.contains(TcpFlags::SYN);
        if header.flags.contains(TcpFlags::RST) || !(syn || self.answers || len > 0) {
            return;
        }
        let taken = len.min(self.window.into());
        self.window -= taken as u16;
        let answer = TcpHeader {
            src_port: header.dst_port,
            dst_port: header.src_port,
            seq: if syn { Seq::new(9) } else { header.ack },
            ack: header.seq + taken + u32::from(syn),
            flags: if syn { TcpFlags::SYN | TcpFlags::ACK } else { TcpFlags::ACK },
            window: self.window,
            ..TcpHeader::default()
        };
        let pair = AddressPair::new(THEIRS, OURS).unwrap();
        cx.made();
        cx.emit(Port(0), Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, 9).tcp(1, &answer, Bytes::new()));
    }
    fn on_wake(&mut self, _: &mut Cx<'_>) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        Vec::new()
    }
}

/// Breaks: sockstress against a program that exits with more data than the send buffer holds: the data
/// between program and engine must not keep the connection from the limits of orphans.
#[test]
fn a_full_pipe_does_not_outlive_its_program() {
    for answers in [true, false] {
        let v = Virtual::opposite(move || Shut { window: 2_000, answers });
        let options = SocketOptions::default().buffers(ByteCount::new(100_000), ByteCount::new(10_000));
        let stream = v.stack.begin_connect((THEIRS, 80), &options).unwrap();
        v.pass(Span::from_millis(1));
        stream.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(n) = (&stream).write(&[7; 4_000]) {
            written += n;
            v.pass(Span::from_millis(1));
        }
        assert!(written > 20_000, "{written} bytes: more than the engine takes");
        drop(stream);
        v.pass(Span::from_millis(1));
        let (open, orphans) = v.host(|host| (host.open_connections(), host.orphans()));
        assert_eq!((open, orphans), (1, 1), "limits for orphans count it");
        v.pass(Span::from_secs(99));
        assert_eq!(v.host(|host| host.open_connections()), 1);
        // 100 s without progress.
        v.pass(Span::from_secs(2));
        assert_eq!(v.host(|host| host.open_connections()), 0, "answers: {answers}");
        assert_eq!(v.stack.sockets(), 0);
    }
}
