//! Ethernet frames in a tunnel, for several tunnels that are paths of one host: the layer that spreads frames
//! over them ([`MultiNic`](farpace_link::multi_nic::MultiNic)) tells its paths by MAC addresses, and its own
//! messages are not IP.
//!
//! A tunnel carries IP alone. So IP packets go without their Ethernet header, which the other end knows, and
//! all else goes in datagrams of UDP inside the tunnel, from and to port [`PORT`]: the length of the frame (2
//! bytes), then the frame. Of a frame that is too long for the path the end is left out, and zeros come out
//! in its place: such frames are probes that end in zeros.

use bytes::Bytes;
use farpace_wire::{AddressPair, Below, MacAddr, Packet, UdpHeader};

/// The port inside that frames go to.
const PORT: u16 = 7_076;
/// IPv4, UDP, and the length.
const OVERHEAD: usize = 20 + 8 + 2;
/// Longest frame.
const MAX_FRAME: usize = 9_018;

/// The two ends of a tunnel that carries frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireguardFraming {
    /// This end.
    pub own: MacAddr,
    /// The other one: no frame has another source.
    pub peer: MacAddr,
}

/// What has come.
pub(super) enum Framed {
    /// A frame that is not IP.
    Frame(Packet),
    /// An IP packet.
    Ip,
    /// A frame that nobody may send, or that is none.
    Bad,
}

impl WireguardFraming {
    /// A frame that is not IP, as a packet that fits into `mtu` bytes, without Ethernet header.
    pub(super) fn wrap(frame: &Packet, addresses: AddressPair, mtu: u16, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        frame.write_frame(&mut bytes);
        let len = bytes.len().min(MAX_FRAME) as u16;
        bytes.truncate(usize::from(mtu).saturating_sub(OVERHEAD));
        let payload = [&len.to_be_bytes(), bytes.as_slice()].concat();
        let below = Below::new(MacAddr::default(), MacAddr::default(), addresses, 1);
        let header = UdpHeader { src_port: PORT, dst_port: PORT };
        out.clear();
        if let Ok(packet) = below.udp(0, header, Bytes::from(payload)) {
            let from = packet.headers().len() - packet.headers_from_ip().len();
            let mut whole = Vec::new();
            packet.write_frame(&mut whole);
            out.extend_from_slice(whole.get(from..).unwrap_or_default());
        }
    }

    /// What an IP packet from the tunnel is.
    pub(super) fn unwrap(self, packet: &[u8]) -> Framed {
        // IPv4 without options, UDP, to the port.
        let is_frame = packet.first() == Some(&0x45)
            && packet.get(9) == Some(&17)
            && packet.get(22..24) == Some(&PORT.to_be_bytes()[..]);
        if !is_frame {
            return Framed::Ip;
        }
        let Some((len, frame)) = packet.get(28..).and_then(|payload| payload.split_first_chunk()) else {
            return Framed::Bad;
        };
        let len = usize::from(u16::from_be_bytes(*len));
        if len > MAX_FRAME || frame.len() > len {
            return Framed::Bad;
        }
        let mut whole = frame.to_vec();
        whole.resize(len, 0);
        match Packet::from_shared_frame(Bytes::from(whole)) {
            Ok(packet) if packet.macs().0 == self.peer && !packet.has_ip() => Framed::Frame(packet),
            _ => Framed::Bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_wire::EtherType;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    /// Breaks: what the paths of a host tell each other does not arrive, or a long probe does not fit.
    #[test]
    fn frames_come_out_as_they_went_in() {
        let addresses = AddressPair::V4([100, 64, 0, 1].into(), [100, 64, 0, 2].into());
        let here = WireguardFraming { own: A, peer: B };
        let mut data = vec![7; 40];
        data.resize(1_500, 0);
        let mut out = Vec::new();
        for (len, mtu) in [(40, 1_440), (1_500, 1_440), (1_500, 1_140), (1_500, 9_000)] {
            let frame =
                Packet::from_link(B, A, EtherType::EXPERIMENTAL, Bytes::copy_from_slice(&data[..len]));
            WireguardFraming::wrap(&frame, addresses, mtu, &mut out);
            assert!(out.len() <= usize::from(mtu), "{} B", out.len());
            let Framed::Frame(back) = here.unwrap(&out) else { panic!("{len} in {mtu}") };
            assert_eq!((back.macs(), back.payload()), (frame.macs(), frame.payload()));
        }
        // Somebody else's, and cut ones.
        let stolen = Packet::from_link(A, B, EtherType::EXPERIMENTAL, Bytes::from_static(b"x"));
        WireguardFraming::wrap(&stolen, addresses, 1_440, &mut out);
        assert!(matches!(here.unwrap(&out), Framed::Bad));
        for len in 0..out.len() {
            assert!(!matches!(here.unwrap(&out[..len]), Framed::Frame(_)));
        }
    }
}
