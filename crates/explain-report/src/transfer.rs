//! One direction of a connection, and why it took its time.

use crate::cure::Cured;
use crate::packets::PathShares;
use farpace_explain::flow::{Flow, Side};
use farpace_explain::{Diagnosis, diagnose};
use farpace_report::TimeSequence;
use std::net::SocketAddr;

/// A transfer: one direction of a connection, and why it took its time.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The connection, as index into the capture's; none in a log.
    pub flow: Option<usize>,
    /// Who sent.
    pub from: SocketAddr,
    /// Who received.
    pub to: SocketAddr,
    /// The verdict.
    pub diagnosis: Diagnosis,
    /// What a cure would bring.
    pub cured: Option<Cured>,
    /// It was asked for a cure.
    pub cure_asked: bool,
    /// Its packets, for the page; none without one, and of logs and traces.
    pub packets: Option<TimeSequence>,
    /// What each interface of the capture has of it; none without the packets.
    pub paths: Option<PathShares>,
}

impl Transfer {
    /// What `side` sent of the connection with index `at`.
    pub(crate) fn of(flow: &Flow, at: usize, side: Side) -> Self {
        Transfer {
            flow: Some(at),
            from: flow.address(side),
            to: flow.address(side.other()),
            diagnosis: diagnose(flow, side),
            cured: None,
            cure_asked: false,
            packets: None,
            paths: None,
        }
    }
}
