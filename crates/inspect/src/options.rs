//! The names that TCP options have in text and JSON.

use farpace_units::Seq;
use farpace_wire::tcp::{AckControl, CdlCapability, Tarr};
use farpace_wire::{TcpOptions, TcpView};
use serde::Serialize;
use std::fmt;

/// One option of a header. Sequence numbers are counted from `first` of [`options`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum TcpOption {
    Nop,
    Mss {
        value: u16,
    },
    Wscale {
        shift: u8,
    },
    #[serde(rename = "sackOK")]
    SackOk,
    Timestamp {
        value: u32,
        echo: u32,
    },
    Sack {
        blocks: Vec<[u32; 2]>,
    },
    CdlAllow,
    CdlCapable {
        can: Vec<&'static str>,
    },
    CdlRequest,
    /// How long the ACK was held back; none if unknown.
    CdlConfirm {
        delay_us: Option<u64>,
    },
    Tarr,
    /// Segments per ACK; 0: an ACK at once.
    TarrRequest {
        rate: u8,
    },
    /// An option that is not known here, or not of this length.
    Unknown {
        kind: u8,
        data: String,
    },
    /// An option whose length is impossible: here the list ends.
    Malformed {
        kind: u8,
    },
}

const CAPABILITIES: [(CdlCapability, &str); 4] = [
    (CdlCapability::REQUESTS, "asks"),
    (CdlCapability::CONFIRMS, "confirms"),
    (CdlCapability::FLAG, "flag"),
    (CdlCapability::REPORTS_DELAY, "delay"),
];

/// All options in their order. `first`: from where the numbers in SACK blocks count.
pub fn options(tcp: &TcpView<'_>, first: Option<Seq>) -> Vec<TcpOption> {
    let one = |(kind, data): (u8, &[u8])| known(kind, data, first).unwrap_or_else(|| unknown(kind, data));
    tcp.raw_options().map(|raw| raw.map_or_else(|why| malformed(&why), one)).collect()
}

fn malformed(why: &farpace_wire::WireError) -> TcpOption {
    let kind = if let farpace_wire::WireError::Option { kind } = why { *kind } else { 0 };
    TcpOption::Malformed { kind }
}

fn unknown(kind: u8, data: &[u8]) -> TcpOption {
    TcpOption::Unknown { kind, data: data.iter().map(|byte| format!("{byte:02x}")).collect() }
}

/// `seq` counted from `first`, or as it is.
pub fn relative(seq: Seq, first: Option<Seq>) -> u32 {
    first.map_or(seq.get(), |first| seq.bytes_since(first))
}

/// None if the kind is not known, or not of this length.
fn known(kind: u8, data: &[u8], first: Option<Seq>) -> Option<TcpOption> {
    if kind == 1 {
        return Some(TcpOption::Nop);
    }
    // What stands alone tells what it is.
    let alone = [&[kind, u8::try_from(data.len() + 2).ok()?], data].concat();
    let TcpOptions { mss, window_scale, sack_permitted, timestamps, ack_control, sack } =
        TcpOptions::parse(&alone);
    let relative = |seq: Seq| relative(seq, first);
    None.or(mss.map(|value| TcpOption::Mss { value }))
        .or(window_scale.map(|shift| TcpOption::Wscale { shift }))
        .or(sack_permitted.then_some(TcpOption::SackOk))
        .or(timestamps.map(|t| TcpOption::Timestamp { value: t.value, echo: t.echo }))
        .or_else(|| {
            let blocks = sack.iter().map(|block| [relative(block.start), relative(block.end)]).collect();
            (!sack.is_empty()).then_some(TcpOption::Sack { blocks })
        })
        .or_else(|| control(&ack_control))
}

fn control(control: &AckControl) -> Option<TcpOption> {
    let AckControl { cdl_allow, capability, request, confirmation, tarr } = *control;
    let able = |c: CdlCapability| CAPABILITIES.into_iter().filter(move |(one, _)| c.contains(*one));
    None.or(cdl_allow.then_some(TcpOption::CdlAllow))
        .or(capability.map(|c| TcpOption::CdlCapable { can: able(c).map(|(_, name)| name).collect() }))
        .or(request.then_some(TcpOption::CdlRequest))
        .or(confirmation.map(|d| TcpOption::CdlConfirm { delay_us: d.span().map(|span| span.as_micros()) }))
        .or(tarr.map(|tarr| match tarr {
            Tarr::Capable => TcpOption::Tarr,
            Tarr::Rate(rate) => TcpOption::TarrRequest { rate },
        }))
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Nop => f.write_str("nop"),
            TcpOption::Mss { value } => write!(f, "mss {value}"),
            TcpOption::Wscale { shift } => write!(f, "wscale {shift}"),
            TcpOption::SackOk => f.write_str("sackOK"),
            TcpOption::Timestamp { value, echo } => write!(f, "timestamp {value} {echo}"),
            TcpOption::Sack { blocks } => {
                f.write_str("sack ")?;
                blocks.iter().try_for_each(|[start, end]| write!(f, "{{{start}:{end}}}"))
            }
            TcpOption::CdlAllow => f.write_str("cdl-allow"),
            TcpOption::CdlCapable { can } if can.is_empty() => f.write_str("cdl-capable of nothing"),
            TcpOption::CdlCapable { can } => write!(f, "cdl-capable {}", can.join("+")),
            TcpOption::CdlRequest => f.write_str("cdl-request"),
            TcpOption::CdlConfirm { delay_us: None } => f.write_str("cdl-confirm unknown"),
            TcpOption::CdlConfirm { delay_us: Some(us) } => {
                let fraction = format!(".{:03}", us % 1000);
                write!(
                    f,
                    "cdl-confirm {}{}ms",
                    us / 1000,
                    fraction.trim_end_matches('0').trim_end_matches('.')
                )
            }
            TcpOption::Tarr => f.write_str("tarr"),
            TcpOption::TarrRequest { rate } => write!(f, "tarr-request {rate}"),
            TcpOption::Unknown { kind, data } if data.is_empty() => write!(f, "unknown-{kind}"),
            TcpOption::Unknown { kind, data } => write!(f, "unknown-{kind} 0x{data}"),
            TcpOption::Malformed { kind } => write!(f, "malformed-{kind}"),
        }
    }
}
