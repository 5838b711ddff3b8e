//! Window scaling was not agreed on.

use super::{AttributedView, Cause, Finding, Info, Kind};

pub(super) const INFO: Info = Info {
    id: "window_scale",
    title: "window scaling missing",
    what: "One end did not offer window scaling, or a box removed it, so no window can exceed 64 KiB.",
    cure: "find the end or the box that does not pass the option: Linux `net.ipv4.tcp_window_scaling = \
           1`; firewalls that normalise options",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let [client, server] = &transfer.view.flow.hello;
    let missing = transfer.view.flow.saw_syn() && (client.scale.is_none() || server.scale.is_none());
    if !missing || !transfer.matters(Cause::WindowScale) {
        return None;
    }
    let who = match (client.scale, server.scale) {
        (None, None) => "neither end offered window scaling",
        (None, _) => "the client's SYN had no window scale option",
        _ => "the server's SYN-ACK had no window scale option",
    };
    let evidence = format!("{who}; the flight filled a window of {} B", transfer.view.half.largest_window);
    let frames = transfer.view.flow.hello.iter().filter_map(|h| h.first).map(|(_, frame)| frame).collect();
    Some(transfer.finding(Cause::WindowScale, 0.95, evidence, frames))
}
