//! What is heard of hosts and their NICs in a capture.

use super::Args;
use crate::terminal;
use anyhow::{Context, Result};
use farpace_inspect::frame;
use farpace_inspect::nics_heard::{to_json, to_text};
use farpace_link::multi_nic::arp::ArpObserver;
use farpace_trace::{CaptureReader, CapturedPacket};
use std::fs::File;
use std::io::{self, BufReader, Read};

/// Reads and prints.
pub fn show(args: &Args) -> Result<()> {
    let reading = || format!("cannot read capture `{}`", args.file.display());
    let input: Box<dyn Read> = match args.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(&args.file).with_context(reading)?),
    };
    let mut reader = CaptureReader::new(BufReader::new(input)).with_context(reading)?;
    let (mut observer, mut first, mut bytes) = (ArpObserver::default(), None, Vec::new());
    loop {
        let Some(CapturedPacket { interface, time, original_len, data, .. }) =
            reader.next_packet().with_context(reading)?
        else {
            break;
        };
        bytes.clear();
        bytes.extend_from_slice(data);
        first.get_or_insert(time);
        let link_type = reader.interface(interface).map_or(0, |i| i.link_type);
        if let Ok(packet) = frame::read(link_type, &mut bytes, original_len) {
            observer.on_packet(time, &packet);
        }
    }
    let first = first.unwrap_or_default();
    if args.json {
        terminal::print_json(&to_json(&observer))
    } else {
        terminal::print(&to_text(&observer, first, terminal::width()))
    }
}
