//! The twelve TCP flag bits.

use std::fmt;
use std::ops::BitOr;

/// The twelve bits between data offset and window: four reserved or experimental ones (with AE, RFC 9768) and
/// the eight of RFC 9293 and RFC 3168. All are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpFlags(u16);

impl TcpFlags {
    /// The sender has finished.
    pub const FIN: TcpFlags = TcpFlags(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: TcpFlags = TcpFlags(0x002);
    /// Reset the connection.
    pub const RST: TcpFlags = TcpFlags(0x004);
    /// Push.
    pub const PSH: TcpFlags = TcpFlags(0x008);
    /// The acknowledgment field is valid.
    pub const ACK: TcpFlags = TcpFlags(0x010);
    /// The urgent pointer is valid.
    pub const URG: TcpFlags = TcpFlags(0x020);
    /// ECN echo (RFC 3168).
    pub const ECE: TcpFlags = TcpFlags(0x040);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: TcpFlags = TcpFlags(0x080);
    /// Accurate ECN (RFC 9768), once NS.
    pub const AE: TcpFlags = TcpFlags(0x100);
    /// Bit 4 of the 13th and 14th byte, counted from the most significant bit: reserved.
    pub const RESERVED_4: TcpFlags = TcpFlags(0x800);
    /// Bit 5, reserved.
    pub const RESERVED_5: TcpFlags = TcpFlags(0x400);
    /// Bit 6, reserved.
    pub const RESERVED_6: TcpFlags = TcpFlags(0x200);
    /// No flag.
    pub const NONE: TcpFlags = TcpFlags(0);

    /// The low twelve bits of `bits`.
    pub const fn from_bits(bits: u16) -> Self {
        TcpFlags(bits & 0x0fff)
    }
    /// The reserved bit with this number, 4 to 6, counted from the left as in RFC 9293 §3.1.
    pub const fn reserved(bit: u8) -> Option<TcpFlags> {
        match bit {
            4 => Some(TcpFlags::RESERVED_4),
            5 => Some(TcpFlags::RESERVED_5),
            6 => Some(TcpFlags::RESERVED_6),
            _ => None,
        }
    }
    /// All twelve bits.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// True if every flag of `other` is set.
    pub const fn contains(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }
    /// True if any flag of `other` is set.
    pub const fn intersects(self, other: TcpFlags) -> bool {
        self.0 & other.0 != 0
    }
    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
    /// `self` without the flags of `other`.
    #[must_use]
    pub const fn without(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 & !other.0)
    }
    /// True if no bit is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for TcpFlags {
    type Output = TcpFlags;
    fn bitor(self, rhs: TcpFlags) -> TcpFlags {
        self.with(rhs)
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TcpFlags {
    /// Names from the lowest bit up, such as `SYN|ACK`; a bit without a name as its value, `0x200`; `-` for
    /// none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
        if self.is_empty() {
            return f.write_str("-");
        }
        let mut between = "";
        for bit in (0..12).filter(|bit| self.0 >> bit & 1 == 1) {
            f.write_str(between)?;
            between = "|";
            match NAMES.get(bit) {
                Some(name) => f.write_str(name)?,
                None => write!(f, "{:#x}", 1 << bit)?,
            }
        }
        Ok(())
    }
}
