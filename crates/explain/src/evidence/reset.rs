//! The connection was reset.

use super::{AttributedView, Cause, Finding, Info, Kind};

pub(super) const INFO: Info = Info {
    id: "reset",
    title: "reset",
    what: "The connection was ended by a reset before both ends had closed it.",
    cure: "if the sender of the reset is a box: its idle timers and its state table (keep-alives help); \
           if it is the host: the program that closed while data came",
    kind: Kind::Fault,
};

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let reset = transfer.view.flow.resets.iter().find(|r| r.in_use || r.refused)?;
    let from = reset.from.name();
    let is_box = reset.is_nearer || reset.ttl_differs > 1;
    let evidence = if reset.refused {
        format!("frame {}: the {from} refused the connection", reset.frame)
    } else if is_box {
        format!(
            "frame {}: a reset that says it comes from the {from}, with a time to live {} by {} than that of \
             the {from}'s other segments: something between has sent it",
            reset.frame,
            if reset.is_nearer { "larger" } else { "smaller" },
            reset.ttl_differs
        )
    } else {
        format!("frame {}: the {from} reset the connection while it was in use", reset.frame)
    };
    let sure = if is_box { 0.8 } else { 0.9 };
    let mut finding = transfer.finding(Cause::Reset, sure, evidence, vec![reset.frame]);
    finding.first = Some(reset.time);
    if !reset.refused {
        finding.cure = if is_box {
            "the box that sent it: its idle timers and its state table (keep-alives help), or a rule of it"
                .to_owned()
        } else {
            format!("the program at the {from}: it closed while data came or was unread, or it ended")
        };
    }
    if reset.refused {
        finding.cure = "start the program that listens on the port, or correct the address; if it runs: the \
                        rule of a firewall that rejects"
            .to_owned();
    }
    Some(finding)
}
