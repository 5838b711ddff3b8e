//! A token bucket that drops what exceeds its rate (Flach et al., SIGCOMM 2016).

use super::{AttributedView, Cause, Finding, Info, Kind};
use crate::losses::Thinned;
use crate::words::count;
use farpace_units::Rate;

pub(super) const INFO: Info = Info {
    id: "policer",
    title: "policer",
    what: "A token bucket on the path drops whatever exceeds its rate, without a queue that would slow \
           the sender down.",
    cure: "pace below the policed rate: `farpace pacing up`, `pacing` in a scenario, or `tc qdisc add dev \
           IFACE root fq maxrate RATE`; congestion control bbr or farpace reacts less to such losses",
    kind: Kind::Fault,
};

/// The cure where the bucket's rate is used.
const USED_UP: &str = "the transfer has the policer's rate in spite of the losses: only a higher rate, or \
                       another path, would make it faster";

pub(super) fn find(transfer: &AttributedView<'_>) -> Option<Finding> {
    let Some(policing) = transfer.time.policing.as_ref() else { return unseen(transfer) };
    let wire = f64::from(transfer.view.mss + 52) / f64::from(transfer.view.mss);
    let ip_rate = Rate::from_bytes_per_sec_f64(policing.rate.as_bytes_per_sec_f64() * wire);
    let losses: Vec<_> = transfer.view.losses().collect();
    let shared = match policing.connections {
        1 => String::new(),
        n => format!(
            ", which {n} connections share (this one had {:.0} % of what got through)",
            policing.share * 100.0
        ),
    };
    let evidence = format!(
        "{} losses fit a token bucket of {:.2} Mbit/s (IP) that held {} kB at the first loss{shared}; no \
         queue grew before them",
        losses.len() as u64 * transfer.view.half.losses.stride(),
        ip_rate.as_mbit_f64(),
        policing.burst / 1_000,
    );
    let frames = losses.iter().take(20).map(|l| l.frame).collect();
    let mut finding = transfer.finding(Cause::Policer, policing.confidence, evidence, frames);
    finding.first = Some(policing.since);
    let all = if policing.connections > 1 { " all together" } else { "" };
    if policing.is_used_up(&transfer.view) {
        finding.cure = USED_UP.to_owned();
        return Some(finding);
    }
    finding.cure =
        format!("pace{all} at {:.2} Mbit/s of IP packets: {}", ip_rate.as_mbit_f64() * 0.98, INFO.cure);
    Some(finding)
}

/// How sure a bucket is whose rate cannot be told.
const UNSEEN: f64 = 0.6;

/// A bucket that others fill who are not in the capture.
fn unseen(transfer: &AttributedView<'_>) -> Option<Finding> {
    transfer.episodes_of(Cause::Policer).next()?;
    let losses: u32 = transfer.episodes_of(Cause::Policer).map(|e| e.losses).sum();
    let places = transfer.episodes_of(Cause::Policer).count();
    let why = match transfer.time.pattern.thinned {
        Some(Thinned { lost, runs, of }) => format!(
            "In one round trip {lost} of {of} segments were lost, in {}, and the others were not delayed: \
             something let data pass at its own rate and kept no queue, as a token bucket does. What this \
             connection sent does not explain all losses, so other connections may use the same bucket. \
             Its rate is not known",
            count(u64::from(runs), "place", "places"),
        ),
        None => "Later segments of bursts were lost more often than others, as a token bucket does it. \
                 Segments that were sent alone were lost as well, so other connections use the same bucket. \
                 These are not in this capture, so the rate of the bucket is not known"
            .to_owned(),
    };
    let evidence = format!(
        "{} lost in {} while no queue stood. {why}",
        count(losses, "segment was", "segments were"),
        count(places as u64, "place", "places"),
    );
    Some(transfer.finding(Cause::Policer, UNSEEN, evidence, transfer.loss_frames(Cause::Policer)))
}
