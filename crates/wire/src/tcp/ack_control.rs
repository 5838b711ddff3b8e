//! TCP options that control the ACKs of the peer: CDL and TARR, both with the experimental kinds (RFC 6994).
//!
//! | bytes | meaning |
//! |---|---|
//! | `fe 04 cd 1a` | CDL-Allow: classic CDL, with SYN |
//! | `fe 05 cd 1a 1f` | safe CDL, with SYN: version 1, and the [`CdlCapability`] of the sender |
//! | `fe 05 cd 1a 01` | safe CDL: this segment requests an immediate ACK |
//! | `fe 07 cd 1a 02 dd dd` | safe CDL: this ACK answers a request, after this [`AckDelay`] |
//! | `fe 04 00 ac` | TARR (draft-ietf-tcpm-ack-rate-request), with SYN |
//! | `fe 05 00 ac xx` | TARR: one ACK for `xx >> 1` segments from now on; 0: an immediate ACK |
//!
//! The identifier `cd1a` is not registered.

use arrayvec::ArrayVec;
use farpace_units::Span;

/// Maximum length of all of them in one header, padded.
const MAX_LEN: usize = 28;
const NOP: u8 = 1;
/// Kinds for experiments (RFC 6994).
pub(super) const EXPERIMENT: [u8; 2] = [254, 253];
const CDL: [u8; 2] = [0xcd, 0x1a];
const TARR: [u8; 2] = [0x00, 0xac];
const REQUEST: u8 = 1;
const CONFIRMATION: u8 = 2;
/// Version 1 in the high half of the capability byte.
const VERSION: u8 = 0x10;

/// The ACK control options of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckControl {
    /// CDL-Allow.
    pub cdl_allow: bool,
    /// The capabilities of the sender of a SYN for safe CDL.
    pub capability: Option<CdlCapability>,
    /// The segment requests an immediate ACK.
    pub request: bool,
    /// The ACK answers such a request.
    pub confirmation: Option<AckDelay>,
    /// TARR.
    pub tarr: Option<Tarr>,
}

/// Capabilities of an end for safe CDL: the low four bits of the capability byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CdlCapability(u8);

impl CdlCapability {
    /// It may send requests.
    pub const REQUESTS: CdlCapability = CdlCapability(1);
    /// It answers requests, and confirms them with an option.
    pub const CONFIRMS: CdlCapability = CdlCapability(2);
    /// A flag bit may replace the option.
    pub const FLAG: CdlCapability = CdlCapability(4);
    /// Its answers contain their delay.
    pub const REPORTS_DELAY: CdlCapability = CdlCapability(8);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: CdlCapability) -> CdlCapability {
        CdlCapability(self.0 | other.0)
    }
    /// True if every bit of `other` is set.
    pub const fn contains(self, other: CdlCapability) -> bool {
        self.0 & other.0 == other.0
    }
    /// The low four bits of `bits`.
    pub const fn from_bits(bits: u8) -> CdlCapability {
        CdlCapability(bits & 0x0f)
    }
    /// The four bits.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// How long an ACK was delayed, in units of 8 us. The maximum stands for "longer, or unknown".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AckDelay(u16);

impl AckDelay {
    /// No delay.
    pub const NONE: AckDelay = AckDelay(0);
    /// Longer than the option can contain (524 ms), or unknown.
    pub const UNKNOWN: AckDelay = AckDelay(u16::MAX);
    const UNIT: u64 = 8;

    /// From the value in the option.
    pub const fn from_wire(units: u16) -> AckDelay {
        AckDelay(units)
    }
    /// The value in the option.
    pub const fn to_wire(self) -> u16 {
        self.0
    }
    /// Rounded down to 8 us.
    pub fn of(held: Span) -> AckDelay {
        AckDelay(u16::try_from(held.as_nanos() / 1000 / Self::UNIT).unwrap_or(u16::MAX))
    }
    /// None if unknown.
    pub fn span(self) -> Option<Span> {
        (self != Self::UNKNOWN).then(|| Span::from_micros(u64::from(self.0) * Self::UNIT))
    }
}

/// The TCP ACK rate request option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tarr {
    /// With SYN: the option is understood.
    Capable,
    /// One ACK for this many segments from now on (1 to 127); 0: this segment requests an immediate ACK.
    Rate(u8),
}

impl AckControl {
    /// True if there are no options.
    pub fn is_empty(&self) -> bool {
        *self == AckControl::default()
    }

    /// Parses a single option; none if it is none of the above. `data` is what follows its length.
    pub fn of_option(kind: u8, data: &[u8]) -> Option<AckControl> {
        let mut control = AckControl::default();
        (EXPERIMENT.contains(&kind) && control.take(data)).then_some(control)
    }

    /// Adds an option of an experimental kind. False: it is unknown or malformed.
    pub(super) fn take(&mut self, data: &[u8]) -> bool {
        let Some((&id, data)) = data.split_first_chunk::<2>() else { return false };
        match (id, data) {
            (CDL, []) => self.cdl_allow = true,
            (CDL, &[REQUEST]) => self.request = true,
            (CDL, &[byte]) if byte & 0xf0 == VERSION => {
                self.capability = Some(CdlCapability::from_bits(byte));
            }
            (CDL, &[CONFIRMATION, a, b]) => {
                self.confirmation = Some(AckDelay(u16::from_be_bytes([a, b])));
            }
            (TARR, []) => self.tarr = Some(Tarr::Capable),
            (TARR, &[rate]) => self.tarr = Some(Tarr::Rate(rate >> 1)),
            _ => return false,
        }
        true
    }

    /// The encoded options, padded to whole words.
    pub fn to_wire(&self) -> ArrayVec<u8, MAX_LEN> {
        let ([kind, _], [c, d], [t, r]) = (EXPERIMENT, CDL, TARR);
        let mut out = ArrayVec::new();
        if self.cdl_allow {
            out.extend([kind, 4, c, d]);
        }
        if let Some(capability) = self.capability {
            out.extend([kind, 5, c, d, VERSION | capability.bits()]);
        }
        if self.request {
            out.extend([kind, 5, c, d, REQUEST]);
        }
        if let Some(delay) = self.confirmation {
            let [a, b] = delay.to_wire().to_be_bytes();
            out.extend([kind, 7, c, d, CONFIRMATION, a, b]);
        }
        match self.tarr {
            Some(Tarr::Capable) => out.extend([kind, 4, t, r]),
            Some(Tarr::Rate(rate)) => out.extend([kind, 5, t, r, rate.min(127) << 1]),
            None => {}
        }
        let padding = out.len().next_multiple_of(4) - out.len();
        out.extend(std::iter::repeat_n(NOP, padding));
        out
    }
}
