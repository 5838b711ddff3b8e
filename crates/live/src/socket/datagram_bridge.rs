//! The driver's side of a UDP socket.

use super::datagram_wire::{DatagramWire, OutgoingDatagram};
use farpace_host::DatagramProgram;
use farpace_host::ip::icmp::SoftError;
use farpace_units::Instant;
use farpace_wire::Unreachable;
use nix::errno::Errno;
use std::sync::Arc;

/// Moves datagrams between the sockets of the host and the program.
pub(super) struct DatagramBridge(pub Arc<DatagramWire>);

impl DatagramProgram for DatagramBridge {
    fn run(&mut self, _: Instant, socket: &mut farpace_host::UdpSocket<'_>) {
        self.0.shared.with(|box_| {
            box_.kicked = false;
            while let Some(OutgoingDatagram { to, from, ip, payload }) = box_.outgoing.pop_front() {
                // The error was reported to the caller already, or the queue is full: UDP guarantees nothing.
                let _ = socket.send_with(to, from, ip, payload);
            }
            if let Some(soft_error) = socket.take_soft_error() {
                box_.soft_error = errno(soft_error).or(box_.soft_error);
            }
            while box_.has_room()
                && let Some(datagram) = socket.receive()
            {
                box_.push(datagram);
            }
        });
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// The error that a connected socket reports (as in Linux, for definite errors of the network).
fn errno(soft_error: SoftError) -> Option<Errno> {
    match soft_error {
        SoftError::Unreachable { why: Unreachable::Port, .. } => Some(Errno::ECONNREFUSED),
        SoftError::Unreachable { why: Unreachable::Protocol, .. } => Some(Errno::ENOPROTOOPT),
        SoftError::Unreachable { hard: true, .. } => Some(Errno::EHOSTUNREACH),
        SoftError::ParameterProblem => Some(Errno::EPROTO),
        SoftError::TooBig { .. } | SoftError::Unreachable { .. } | SoftError::TimeExceeded => None,
    }
}

impl Drop for DatagramBridge {
    fn drop(&mut self) {
        self.0.shared.with(|box_| {
            box_.closed = true;
            box_.error = Some(Errno::ENETDOWN);
        });
    }
}
