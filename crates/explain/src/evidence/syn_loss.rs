//! SYNs, or the answers to them, were lost.

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::attribution::syn_was_answered;
use crate::words::{count, seconds};

pub(super) const INFO: Info = Info {
    id: "syn_loss",
    title: "SYN loss",
    what: "The SYN or the answer to it was lost, and a timer had to fire.",
    cure: "find what drops SYNs: a firewall, a full backlog (`nstat -az TcpExtListenOverflows`), rate \
           limits; Linux: `net.ipv4.tcp_syn_retries`, `net.core.somaxconn`",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let [client, server] = &transfer.view.flow.hello;
    let again = client.count.saturating_sub(1).max(server.count.saturating_sub(1));
    if again == 0 || syn_was_answered(&transfer.view) || transfer.time.of(Cause::SynLoss).is_zero() {
        return None;
    }
    let who = if client.count > 1 { "SYN" } else { "SYN-ACK" };
    let silent = client.count > 1 && server.count <= 1;
    let side = if client.count > 0 && server.count == 0 {
        "no answer was seen"
    } else if silent && transfer.view.half.trips.hello.is_some() {
        "the first ones got no answer"
    } else {
        "answers were lost"
    };
    let evidence = format!(
        "the {who} was sent {} within {}; {side}",
        count(again + 1, "time", "times"),
        seconds(transfer.time.of(Cause::SynLoss))
    );
    let hello = if client.count > 1 { client } else { server };
    let frames = hello.first.iter().chain(&hello.last).map(|(_, frame)| *frame).collect();
    Some(transfer.finding(Cause::SynLoss, 0.95, evidence, frames))
}
