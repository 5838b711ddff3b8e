//! Changes of a TCP header by middleboxes: some of its bytes change, and the checksum accordingly.

use farpace_wire::Packet;
use farpace_wire::tcp::MAX_TCP_LEN;

const CHECKSUM_AT: usize = 16;

/// The packet with a TCP header that `change` has edited; none if nothing changed, or if it is not a whole
/// segment. `change` must not touch the length of the header and the checksum. A checksum that was right
/// stays right, and a wrong one wrong (RFC 1624 eq. 3).
pub(crate) fn edited(packet: &Packet, change: impl FnOnce(&mut [u8])) -> Option<Packet> {
    let len = packet.tcp().ok()?.header_len();
    let start = packet.headers().len().checked_sub(len)?;
    let was = packet.headers().get(start..)?;
    let mut room = [0; MAX_TCP_LEN];
    let new = room.get_mut(..len)?;
    new.copy_from_slice(was);
    change(new);
    if new == was {
        return None;
    }
    // The difference first: the checksum may be computed only when the frame is written.
    let mut sum = 0;
    for (old, new) in was.as_chunks::<2>().0.iter().zip(new.as_chunks::<2>().0) {
        sum += u32::from(!u16::from_be_bytes(*old)) + u32::from(u16::from_be_bytes(*new));
    }
    let mut frame = Vec::with_capacity(packet.len().as_len());
    packet.write_frame(&mut frame);
    let header = frame.get_mut(start..start + len)?;
    let checksum: [u8; 2] = *header.get(CHECKSUM_AT..)?.first_chunk()?;
    sum += u32::from(!u16::from_be_bytes(checksum));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    header.copy_from_slice(new);
    header.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2)?.copy_from_slice(&(!(sum as u16)).to_be_bytes());
    Packet::from_frame(&frame).ok()
}
