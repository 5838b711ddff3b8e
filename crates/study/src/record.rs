//! What came of one run: a status, and a row for each flow.

use crate::keys::short_digest;
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// All flows are complete, and every received byte is the one that was sent.
    Complete,
    /// The run reached the end of its time with flows under way. What they had received was right.
    Incomplete,
    /// Received bytes differ from those sent.
    Damaged,
    /// The values of the point are impossible together.
    Refused,
    /// The lab reported an error.
    Failed,
    /// The run panicked: a defect of farpace.
    Crashed,
    /// The run took longer than the limit.
    Overdue,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [RunStatus; 7] = [
        RunStatus::Complete,
        RunStatus::Incomplete,
        RunStatus::Damaged,
        RunStatus::Refused,
        RunStatus::Failed,
        RunStatus::Crashed,
        RunStatus::Overdue,
    ];

    /// The word in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            RunStatus::Complete => "complete",
            RunStatus::Incomplete => "incomplete",
            RunStatus::Damaged => "damaged",
            RunStatus::Refused => "refused",
            RunStatus::Failed => "failed",
            RunStatus::Crashed => "crashed",
            RunStatus::Overdue => "overdue",
        }
    }

    /// The status of this name.
    pub fn named(name: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|status| status.name() == name)
    }

    /// The run has measured something.
    pub const fn is_measured(self) -> bool {
        matches!(self, RunStatus::Complete | RunStatus::Incomplete | RunStatus::Damaged)
    }

    /// Nobody could expect this of a sound program and scenario.
    pub const fn is_bad(self) -> bool {
        !matches!(self, RunStatus::Complete | RunStatus::Incomplete)
    }
}

/// What came of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Its name.
    pub flow: String,
    /// Its class: that of its workload, or its name.
    pub class: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// The sender's profile.
    pub profile: String,
    /// The sender's congestion control.
    pub congestion: String,
    /// When the sender connected, in seconds.
    pub start_s: f64,
    /// Payload to be sent.
    pub size_bytes: u64,
    /// Payload that reached the receiving program.
    pub delivered_bytes: u64,
    /// Everything was delivered, and right.
    pub intact: bool,
    /// Received bytes differ from those sent.
    pub damaged: bool,
    /// From connecting to the last byte, in seconds; none: it did not arrive.
    pub completion_s: Option<f64>,
    /// From connecting to the last byte or the end of the run, in seconds.
    pub elapsed_s: f64,
    /// Delivered payload per elapsed time.
    pub goodput_bit_s: u64,
    /// Goodput over the lowest rate on the path; none on a path without any rate.
    pub efficiency: Option<f64>,
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Of these, those that had been sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Time in queues on the path of data, in seconds: mean of a reading at the end of each bin while the
    /// flow lasts; none: it had none.
    pub queue_delay_s: Option<f64>,
    /// The stretches in which at most one packet arrived per round trip, together, in seconds.
    pub silence_s: f64,
    /// Round-trip time with empty queues, in seconds.
    pub base_rtt_s: f64,
}

/// What a run has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Virtual time at the end, in seconds.
    pub ended_s: f64,
    /// Events processed.
    pub events: u64,
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowRecord>,
}

/// One run of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Identifies its content: version, scenario, values, seed.
    pub run: String,
    /// The seed.
    pub seed: u64,
    /// The varied paths and their values.
    pub values: Vec<(String, String)>,
    /// How it ended.
    pub status: RunStatus,
    /// Why it has not measured anything, or which bytes differ.
    pub reason: Option<String>,
    /// What it has measured; empty if it has not.
    pub measured: Measurement,
}

impl RunRecord {
    /// Identifies what came of the run, whatever the study it is part of.
    pub(crate) fn digest(&self) -> String {
        let text = serde_json::to_string(&(&self.run, self.seed, self.status, &self.reason, &self.measured));
        short_digest(text.unwrap_or_default().as_bytes())
    }
}
