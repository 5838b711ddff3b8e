//! The header before a packet on devices with offload (virtio 1.2 §5.1.6, `struct virtio_net_hdr`):
//! segmentation and checksum that are left to the receiver of the packet.

use farpace_wire::Packet;

/// Length of the header in bytes.
pub(crate) const VIRTIO_LEN: usize = 10;

/// The checksum is to be computed from `csum_start` on.
const NEEDS_CSUM: u8 = 1;
/// The checksum has been verified.
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// The first segment has CWR.
const GSO_ECN: u8 = 0x80;
const CWR: u8 = 0x80;

/// The header for `packet`, whose first `skip` bytes of headers the device omits. Afterwards the packet can
/// only be passed to the device.
pub(crate) fn encode(packet: &mut Packet, skip: usize) -> [u8; VIRTIO_LEN] {
    let mut header = [0; VIRTIO_LEN];
    let (size, is_v4) = (packet.segment_size(), packet.ipv4().is_some());
    let cwr = size.is_some() && packet.tcp().is_ok_and(|tcp| tcp.header().flags.bits() as u8 & CWR != 0);
    let headers = (packet.headers().len() - skip) as u16;
    if let Some(sum) = packet.partial_sum() {
        header[0] = NEEDS_CSUM;
        header[6..8].copy_from_slice(&(sum.start - skip as u16).to_ne_bytes());
        header[8..10].copy_from_slice(&sum.offset.to_ne_bytes());
    }
    if let Some(size) = size {
        let kind = match is_v4 {
            _ if packet.udp().is_ok() => GSO_UDP_L4,
            true => GSO_TCPV4,
            false => GSO_TCPV6,
        };
        header[1] = kind | if cwr { GSO_ECN } else { 0 };
        header[2..4].copy_from_slice(&headers.to_ne_bytes());
        header[4..6].copy_from_slice(&size.to_ne_bytes());
    }
    header
}

/// Applies a received header to `packet`. False: the header is invalid.
pub(crate) fn apply(header: &[u8; VIRTIO_LEN], packet: &mut Packet) -> bool {
    if header[0] & (NEEDS_CSUM | DATA_VALID) != 0 {
        packet.trust_checksum();
    }
    match header[1] & !GSO_ECN {
        GSO_NONE => true,
        GSO_TCPV4 | GSO_TCPV6 | GSO_UDP_L4 => {
            packet.set_segment_size(u16::from_ne_bytes([header[4], header[5]]));
            true
        }
        _ => false,
    }
}
