//! `mtu`: the longest IP packet that passes, and when it changes.

use super::super::check::Checker;
use super::super::document::{DocumentStep, below};
use super::super::spec::{Direction, ResolvedDirection};
use super::{ElementRefusal, Impairment, ImpairmentInfo, ImpairmentText, in_direction};
use farpace_path::{Element, MtuChange, MtuDirection};
use farpace_units::{ByteCount, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(in super::super) const INFO: ImpairmentInfo =
    ImpairmentInfo { description: "The longest IP packet that passes; omitted: any.", element: "mtu" };

/// An MTU. A longer packet is dropped, or fragmented where IPv4 allows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MtuSpec {
    /// Length of the longest IP packet that passes, header included, from 68 B.
    pub limit: ByteCount,
    /// The sender of a dropped packet gets no ICMP message: a black hole.
    #[serde(default)]
    pub silent: bool,
    /// Later limits, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<MtuChangeSpec>,
}

/// Another MTU from a time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MtuChangeSpec {
    /// When it begins to hold.
    pub at: Span,
    /// Length of the longest IP packet that passes then.
    pub limit: ByteCount,
}

impl Impairment for MtuSpec {
    fn is_active(&self) -> bool {
        true
    }
    fn check(&self, at: &[DocumentStep], checker: &mut Checker<'_>) {
        let MtuSpec { limit, silent: _, changes } = self;
        let check_limit = |checker: &mut Checker<'_>, path, limit: ByteCount| {
            if limit < MtuDirection::MIN {
                let min = MtuDirection::MIN;
                checker.value(
                    path,
                    format!("an MTU of {limit} is below the {min} that every IPv4 hop must carry"),
                );
            }
        };
        check_limit(checker, below(at, &["limit"]), *limit);
        if checker.is_too_long(&below(at, &["changes"]), changes.len(), "changes") {
            return;
        }
        let mut last = None;
        for (n, change) in changes.iter().enumerate() {
            let change_at = |key: &str| [&below(at, &["changes"])[..], &[n.into(), key.into()]].concat();
            check_limit(checker, change_at("limit"), change.limit);
            if last.is_some_and(|last| last >= change.at) {
                checker
                    .value(change_at("at"), "this change is not later than the one before it")
                    .hint("write changes in order of time");
            }
            last = Some(change.at);
        }
    }
    fn explain(&self, _: &ResolvedDirection<'_>) -> ImpairmentText {
        let dropped = if self.silent { "dropped without ICMP" } else { "dropped with ICMP to their senders" };
        let changes = match self.changes.len() {
            0 => String::new(),
            1 => " (1 change later)".to_owned(),
            n => format!(" ({n} changes later)"),
        };
        ImpairmentText::Clause(format!("packets of more than {}{changes} {dropped}", self.limit))
    }
    fn element(&self, direction: Direction) -> Result<Box<dyn Element>, ElementRefusal> {
        let changes = self.changes.iter().map(|c| MtuChange { at: Instant::ZERO + c.at, mtu: c.limit });
        let mtu = MtuDirection::new(self.limit, changes.collect())?;
        Ok(in_direction(if self.silent { mtu.silent() } else { mtu }, direction))
    }
}
