//! `farpace explain --live`: an interface instead of a file.

use crate::terminal;
use anyhow::{Context, Result};
use farpace_explain::input::{Compression, Follower};
use farpace_explain_report::{ExaminedFile, FileSource, FlowSelection, judge};
use farpace_live::device::{Device, PacketConfig, PacketSocket};
use farpace_process::interrupt;
use farpace_process::stopwatch::{Stopwatch, since_1970};
use farpace_units::{Instant, Span};
use std::path::PathBuf;

/// Packets that are read at once.
const BUDGET: usize = 256;
/// How long to sleep when nothing came, in nanoseconds.
const NAP: u64 = 200_000;

/// Listens on an interface, for a time or until Ctrl-C.
///
/// # Errors
/// An interface that is not there, or no right to listen on it.
pub(crate) fn listen(
    interface: &str,
    lasts: Option<Span>,
    selection: &FlowSelection,
) -> Result<ExaminedFile> {
    let config =
        PacketConfig { promiscuous: true, own: true, super_segments: true, ..PacketConfig::new(interface) };
    let mut socket =
        PacketSocket::open(&config).with_context(|| format!("cannot listen on `{interface}`"))?;
    match lasts {
        Some(span) => {
            terminal::note(&format!("Listening on {interface} for {span}; Ctrl-C ends it earlier."))
        }
        None => terminal::note(&format!("Listening on {interface} until Ctrl-C.")),
    }
    let begun = now();
    let mut follower = Follower::default();
    let mut packets = Vec::new();
    let mut frame = Vec::new();
    while !interrupt::asked() && lasts.is_none_or(|span| now().since(begun) < span) {
        socket.receive(BUDGET, &mut packets).with_context(|| format!("cannot read from `{interface}`"))?;
        if packets.is_empty() {
            Stopwatch::start().wait_until(NAP, interrupt::asked);
            continue;
        }
        let time = now();
        for packet in packets.drain(..) {
            frame.clear();
            packet.write_frame(&mut frame);
            follower.frame((1, 0), time, &frame, packet.len(), &mut |_| {});
        }
    }
    let dropped = socket.counters().overflowed;
    let mut capture = follower.finish();
    if dropped > 0 {
        capture.damaged = Some(format!("{dropped} packets were not read in time"));
    }
    let source = FileSource::Capture { capture, compression: Compression::None };
    Ok(judge(PathBuf::from(interface), source, selection))
}

fn now() -> Instant {
    Instant::ZERO + since_1970()
}
