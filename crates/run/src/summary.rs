//! What came of a run, in the form of `--json` and `summary.json` (docs/json.md).

use crate::classes::FlowClassSummary;
use crate::datagrams::DatagramSummary;
use crate::nics::NicsSummary;
use crate::pacing::PacingSummary;
use crate::watch::{RunTime, seconds};
use farpace_events::Cause;
use farpace_lab::Silence;
use farpace_units::{ByteCount, Instant, Span};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The form of the JSON; another number when a key changes its meaning or goes. New keys may come.
pub const FORMAT: &str = "farpace-run/1";

/// How the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All flows are complete and intact.
    Complete,
    /// A flow did not complete, or bytes differ.
    Failed,
    /// Stopped from outside.
    Interrupted,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// `farpace-run/1`.
    pub format: &'static str,
    /// Version of farpace.
    pub farpace: &'static str,
    /// What was run.
    pub scenario: ScenarioSummary,
    /// How it ended.
    pub status: Status,
    /// The same in words, for people; they may change.
    pub verdict: String,
    /// Virtual time at the end.
    #[serde(rename = "ended_s", serialize_with = "moment")]
    pub ended: Instant,
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowSummary>,
    /// Flows of workloads, by class; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<FlowClassSummary>,
    /// The flows of datagrams, in the order of the scenario.
    pub datagrams: Vec<DatagramSummary>,
    /// What came of pacing, one for each paced direction of a link.
    pub pacing: Vec<PacingSummary>,
    /// Hosts with several NICs.
    pub nics: Vec<NicsSummary>,
    /// Dropped packets by place and cause.
    pub drops: Vec<DropSummary>,
    /// With --explain: why each flow took its time, as `farpace explain --json` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<serde_json::Value>,
    /// Events processed.
    pub events: u64,
    /// Packets that did not fit into a capture, by its file.
    pub left_out_of_captures: BTreeMap<String, u32>,
    /// Files written, relative to the directory.
    pub files: Vec<String>,
    /// The directory; not in `summary.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// How long it took; not in `summary.json`, which is the same for the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall: Option<Wall>,
}

/// What was run.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioSummary {
    /// Its title.
    pub title: String,
    /// Its file, as given.
    pub file: String,
    /// The seed in use.
    pub seed: u64,
    /// `--set`, in order.
    pub set: Vec<String>,
}

/// Packets dropped at one place for one cause.
#[derive(Clone, Debug, Serialize)]
pub struct DropSummary {
    /// Name of the element.
    pub place: String,
    /// Why.
    pub cause: &'static str,
    /// How many.
    pub packets: u64,
}

/// How fast the lab was.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Wall {
    /// Wall time, from building the network to the end of the run; the report is not in it.
    pub seconds: f64,
    /// Full-size data packets delivered, per second of wall time.
    pub data_packets_per_s: f64,
    /// Virtual time over wall time.
    pub times_real_time: f64,
}

impl Wall {
    /// The speed of a run that took `elapsed`.
    pub fn new(elapsed: Duration, summary: &RunSummary) -> Wall {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let packets = |f: &FlowSummary| f.delivered.get().div_ceil(f.segment.get().max(1)) as f64;
        Wall {
            seconds,
            data_packets_per_s: summary.flows.iter().map(packets).sum::<f64>() / seconds,
            times_real_time: summary.ended.as_secs_f64() / seconds,
        }
    }
}

/// What came of one flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Its class, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// The sender's profile.
    pub profile: &'static str,
    /// When the sender connected.
    #[serde(rename = "start_s", serialize_with = "moment")]
    pub start: Instant,
    /// Payload to be sent.
    #[serde(rename = "size_bytes", serialize_with = "bytes")]
    pub size: ByteCount,
    /// Payload that reached the receiving program.
    #[serde(rename = "delivered_bytes", serialize_with = "bytes")]
    pub delivered: ByteCount,
    /// Payload that was compared with what was sent and found right.
    #[serde(rename = "verified_bytes", serialize_with = "bytes")]
    pub verified: ByteCount,
    /// Everything was delivered, and right.
    pub intact: bool,
    /// Why not.
    pub problem: Option<String>,
    /// From connecting to the last byte; null if it did not come.
    #[serde(rename = "completion_s", serialize_with = "maybe_seconds")]
    pub completion: Option<Span>,
    /// From connecting to the last byte, or to the end of the run.
    #[serde(rename = "elapsed_s", serialize_with = "seconds")]
    pub elapsed: Span,
    /// Delivered payload per elapsed time.
    #[serde(rename = "goodput_bit_s")]
    pub goodput: u64,
    /// What carries the least on the path; null if nothing there has a rate.
    pub bottleneck: Option<BottleneckSummary>,
    /// Goodput over the bottleneck's rate.
    pub efficiency: Option<f64>,
    /// Payload of a full segment.
    #[serde(rename = "segment_bytes", serialize_with = "bytes")]
    pub segment: ByteCount,
    /// Round-trip time with empty queues.
    #[serde(rename = "base_rtt_s", serialize_with = "seconds")]
    pub base_rtt: Span,
    /// Segments sent, by cause.
    pub sent: BTreeMap<&'static str, u64>,
    /// Those of them that had been sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times that the transmit queue of the sending host had no room for a segment, which was kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub transmit_queue_full: u64,
    /// Window cuts, undone cuts and renegings, by cause.
    pub window_changes: BTreeMap<&'static str, u64>,
    /// The receiver's acknowledgments.
    pub acks: AckSummary,
    /// Stretches in which at most one packet arrived per round trip, although there was something to send.
    pub silence: SilenceSummary,
    /// Where the time went.
    pub spent: RunTime,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The narrowest place of a path.
#[derive(Clone, Debug, Serialize)]
pub struct BottleneckSummary {
    /// The link it belongs to.
    pub link: String,
    /// `policer` or `line`.
    pub kind: &'static str,
    /// Its rate.
    #[serde(rename = "rate_bit_s")]
    pub rate: u64,
    /// Payload it can carry at best, headers taken off.
    #[serde(rename = "best_goodput_bit_s")]
    pub best: u64,
}

/// Acknowledgments of a flow.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AckSummary {
    /// Pure ones that the receiver sent.
    pub sent: u64,
    /// Data segments that asked for one at once (`ack_control`).
    pub asked: u64,
    /// Those of them for which the sender was told that it came at once.
    pub confirmed: u64,
}

/// The silences of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct SilenceSummary {
    /// Shorter ones do not count.
    #[serde(rename = "at_least_s", serialize_with = "seconds")]
    pub at_least: Span,
    /// How many.
    pub count: u64,
    /// All together.
    #[serde(rename = "total_s", serialize_with = "seconds")]
    pub total: Span,
    /// The longest.
    pub longest: Option<StopEpisode>,
    /// All of them, for figures (up to a limit).
    #[serde(skip)]
    pub all: Vec<Silence>,
}

/// One silence.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StopEpisode {
    /// When it began.
    #[serde(rename = "start_s", serialize_with = "moment")]
    pub start: Instant,
    /// How long it lasted.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration: Span,
    /// Congestion state in which the sender spent most of it.
    pub state: &'static str,
}

impl RunSummary {
    /// The part that is the same whenever and wherever the run is repeated.
    pub fn repeatable(&self) -> RunSummary {
        RunSummary { directory: None, wall: None, ..self.clone() }
    }
}

impl FlowSummary {
    /// The causes of retransmissions that occurred, with their numbers, in the order of reports.
    pub fn sent_again(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        let again = Cause::ALL.iter().filter(|cause| cause.is_retransmission());
        again.filter_map(|cause| self.sent.get(cause.name()).map(|n| (*cause, *n)))
    }
}

fn moment<S: serde::Serializer>(at: &Instant, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(at.as_secs_f64())
}
fn maybe_seconds<S: serde::Serializer>(span: &Option<Span>, s: S) -> Result<S::Ok, S::Error> {
    span.map(|span| span.as_secs_f64()).serialize(s)
}
fn bytes<S: serde::Serializer>(count: &ByteCount, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(count.get())
}
