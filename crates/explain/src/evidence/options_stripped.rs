//! A box removes TCP options.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::flow::Side;
use crate::view::Vantage;
use crate::words::count;

pub(super) const INFO: Info = Info {
    id: "options_stripped",
    title: "options stripped",
    what: "An option that both ends agreed on never appears, or one end never offers it: that end has it \
           off, or something on the path removes it.",
    cure: "firewalls and normalisers that clear options (Cisco ASA `tcp-options`, pf `scrub`): allow \
           SACK, timestamps and window scaling",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let [client, server] = &transfer.view.flow.hello;
    if !transfer.view.flow.saw_syn()
        || client.cut
        || server.cut
        || client.first.is_none()
        || server.first.is_none()
    {
        return None;
    }
    let counts = &transfer.view.half.counts;
    let mut seen = Vec::new();
    let mut is_own = false;
    // Blocks make options long: the snap length cuts those that have them.
    let receiver = transfer.view.side.other();
    let cut = transfer.view.flow.cut_options[usize::from(receiver == Side::Server)];
    let duplicates = counts.duplicate_acks.saturating_sub(cut);
    if client.sack
        && server.sack
        && duplicates > 10
        && counts.sack_acks == 0
        && transfer.view.losses().count() > 2
    {
        seen.push(format!(
            "SACK was agreed on, and no block is in {}",
            count(duplicates, "duplicate ACK", "duplicate ACKs")
        ));
    }
    if client.sack != server.sack {
        let (who, end) = if client.sack {
            ("the server's SYN-ACK", Side::Server)
        } else {
            ("the client's SYN", Side::Client)
        };
        seen.push(format!("{who} does not permit SACK, the other does"));
        is_own = transfer.view.vantage
            == if end == transfer.view.side { Vantage::Sender } else { Vantage::Receiver };
        if is_own {
            seen.push(format!("the capture was taken at the {}, which has SACK off", end.name()));
        } else {
            seen.push(format!("the {} has it off, or something between removes it", end.name()));
        }
    }
    let without = transfer.view.flow.without_timestamps.iter().max().copied().unwrap_or_default();
    if without > 10 {
        seen.push(format!(
            "timestamps were agreed on, and {} none",
            count(without, "segment has", "segments have")
        ));
    }
    if seen.is_empty() {
        return None;
    }
    let frames = transfer.view.flow.hello.iter().filter_map(|h| h.first).map(|(_, frame)| frame).collect();
    let only_own = is_own && seen.len() == 2;
    let mut finding = transfer.finding(Cause::OptionsStripped, 0.75, seen.join("; "), frames);
    if only_own {
        finding.confidence = 0.95;
        finding.cure = "SACK on at that host (Linux: `net.ipv4.tcp_sack = 1`)".to_owned();
    }
    Some(finding)
}
