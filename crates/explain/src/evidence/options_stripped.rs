//! A box removes TCP options.

use super::{AttributedView, Cause, Finding, Info, Kind};

pub(super) const INFO: Info = Info {
    id: "options_stripped",
    title: "options stripped",
    what: "An option that both ends agreed on never appears, or one end never offers it: something on the \
           path removes it.",
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
    if client.sack
        && server.sack
        && counts.duplicate_acks > 10
        && counts.sack_acks == 0
        && transfer.view.losses().count() > 2
    {
        seen.push(format!(
            "SACK was agreed on, and none of {} duplicate ACKs has a block",
            counts.duplicate_acks
        ));
    }
    if client.sack != server.sack {
        let who = if client.sack { "the server's SYN-ACK" } else { "the client's SYN" };
        seen.push(format!("{who} does not permit SACK, the other does"));
    }
    let without = transfer.view.flow.without_timestamps.iter().max().copied().unwrap_or_default();
    if without > 10 {
        seen.push(format!("timestamps were agreed on, and {without} segments have none"));
    }
    if seen.is_empty() {
        return None;
    }
    let frames = transfer.view.flow.hello.iter().filter_map(|h| h.first).map(|(_, frame)| frame).collect();
    Some(transfer.finding(Cause::OptionsStripped, 0.75, seen.join("; "), frames))
}
