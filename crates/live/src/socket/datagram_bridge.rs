//! The station's side of a UDP socket.

use super::datagram::Wire;
use farpace_host::DatagramProgram;
use farpace_units::Instant;
use nix::errno::Errno;
use std::sync::Arc;

/// Moves datagrams between the host's socket and the program's.
pub(super) struct DatagramBridge(pub Arc<Wire>);

impl DatagramProgram for DatagramBridge {
    fn run(&mut self, _: Instant, socket: &mut farpace_host::UdpSocket<'_>) {
        self.0.shared.with(|box_| {
            box_.kicked = false;
            while let Some((to, payload)) = box_.outgoing.pop_front() {
                // It says what the caller was told already, or that too many wait: UDP promises nothing.
                let _ = socket.send_to(to, payload);
            }
            while box_.has_room()
                && let Some(datagram) = socket.receive()
            {
                box_.push(datagram.from, datagram.payload);
            }
        });
    }
    fn deadline(&self) -> Option<Instant> {
        None
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
