//! A box clears ECN.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::flow::Side;
use crate::view::Vantage;
use crate::words::count;

pub(super) const INFO: Info = Info {
    id: "ecn_bleaching",
    title: "ECN bleaching",
    what: "Both ends agreed on ECN, and the data arrives without its bits: something on the path clears \
           them.",
    cure: "find the box that clears the two ECN bits (often one that rewrites DSCP by the whole byte); \
           until then ECN can be off without loss",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let [client, server] = &transfer.view.flow.hello;
    if !client.ecn || !server.ecn || transfer.view.vantage == Vantage::Sender {
        return None;
    }
    let counts = &transfer.view.half.counts;
    let bare = transfer.view.flow.not_capable[usize::from(transfer.view.side == Side::Server)];
    // Retransmissions and probes are never ECN-capable.
    if counts.ecn_capable > 0 || bare < 10 {
        return None;
    }
    let evidence = format!(
        "the handshake agreed on ECN, and {} arrived without ECN bits, none with them",
        count(bare, "data segment", "data segments")
    );
    let frames = transfer.view.flow.hello.iter().filter_map(|h| h.first).map(|(_, frame)| frame).collect();
    Some(transfer.finding(Cause::EcnBleaching, 0.8, evidence, frames))
}
