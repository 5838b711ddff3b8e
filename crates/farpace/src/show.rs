//! `farpace show`: a capture as text, in the style of the old tcpdump, or as JSON.
//!
//! It reads packet by packet and remembers nothing but the first numbers of 65,536 connections.

use anyhow::{Context, Result};
use farpace_inspect::{PacketLine, ShownConnections, ShownSegment, What, frame};
use farpace_trace::{CaptureReader, CapturedPacket};
use farpace_units::ByteCount;
use farpace_wire::TcpFlags;
use serde_json::Map;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
A line is `time source.port > destination.port: FLAGS seq:end(length) ack N win W <options>`. FLAGS are \
those of tcpdump (S F R P W E, e for AE, `.` for none), D for a segment that requests an immediate ACK \
(CDL, TARR), and C for an ACK that confirms a request. Numbers are relative to each end's SYN, or to its \
first segment without one.

Examples:
  farpace run scenarios/gallery/lossy.toml --out lossy && farpace show lossy/a.pcapng
  farpace show lossy/drops.pcapng --count 20
  farpace show a.pcapng --json | jq 'select(.asks) | .seq'
  tcpdump -w - tcp | farpace show -

Exit codes: 0, or 2 if the capture cannot be read to its end.";

/// The arguments of `farpace show`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// A capture, pcapng or pcap; - for standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Print one JSON object per line and packet
    #[arg(long)]
    json: bool,
    /// Stop after this many packets
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Which bit of the header's 13th byte is CDL's, from the left: 4, 5 or 6
    #[arg(long, value_name = "BIT", default_value = "4", value_parser = clap::value_parser!(u8).range(4..=6))]
    cdl_bit: u8,
}

/// `farpace show`.
///
/// # Errors
/// A capture that cannot be read, or output that cannot be written. What came before is printed.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    let shown = show(args, &mut out);
    let flushed = out.flush().context(CANNOT_WRITE);
    match shown.and(flushed) {
        // A reader who has gone away (`| head`).
        Err(error) if error.downcast_ref().is_some_and(|e: &io::Error| e.kind() == ErrorKind::BrokenPipe) => {
        }
        result => result?,
    }
    Ok(ExitCode::SUCCESS)
}

const CANNOT_WRITE: &str = "cannot write to standard output";

fn show(args: &Args, out: &mut impl Write) -> Result<()> {
    let reading = || format!("cannot read capture `{}`", args.capture.display());
    let from_pipe = args.capture.as_os_str() == "-";
    let input: Box<dyn Read> = match from_pipe {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(&args.capture).with_context(reading)?),
    };
    let mut reader = CaptureReader::new(BufReader::new(input)).with_context(reading)?;
    let bit = TcpFlags::reserved(args.cdl_bit).unwrap_or(TcpFlags::RESERVED_4);
    let mut connections = ShownConnections::default();
    let mut bytes = Vec::new();
    for number in 1..=args.count.unwrap_or(u64::MAX) {
        let Some(captured) = reader.next_packet().with_context(reading)? else { break };
        bytes.clear();
        bytes.extend_from_slice(captured.data);
        let CapturedPacket { interface, time, original_len, comment, .. } = captured;
        let interface = reader.interface(interface);
        let captured = ByteCount::of_len(bytes.len());
        let link_type = interface.map_or(0, |i| i.link_type);
        let what = match frame::read(link_type, &mut bytes, original_len) {
            Ok(packet) => match ShownSegment::of(&packet, &mut connections, bit) {
                Some(segment) => What::Segment(segment),
                None => What::other(&packet),
            },
            Err(text) => What::Other { text, said: Map::new() },
        };
        let interface = interface.and_then(|i| i.name.as_deref());
        let line = PacketLine { number, time, interface, original_len, captured, what, comment };
        if args.json {
            serde_json::to_writer(&mut *out, &line).map_err(io::Error::from).context(CANNOT_WRITE)?;
            writeln!(out).context(CANNOT_WRITE)?;
        } else {
            writeln!(out, "{line}").context(CANNOT_WRITE)?;
        }
        if from_pipe {
            out.flush().context(CANNOT_WRITE)?;
        }
    }
    Ok(())
}
