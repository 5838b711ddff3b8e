//! The far end of what ssh starts: it says on standard output with which ticket it can be reached, and serves
//! one transfer.

use super::options::timeouts;
use super::outcome;
use crate::terminal;
use anyhow::Result;
use farpace_live::socket::SocketOptions;
use farpace_tunnel::server::{ServeTransfer, TransferEnd};
use farpace_tunnel::{Gate, Service, greeting, open_gate, serve_near_end};
use std::process::ExitCode;

/// Opens the ways for one near end at `port` (0: anywhere), and tells it the ticket.
///
/// # Errors
/// Standard output cannot be written.
pub fn greet(port: u16, services: &[Service], options: &SocketOptions) -> Result<Option<Gate>> {
    let gate = open_gate(port, services, options).map_err(|error| terminal::complain(&error)).ok();
    terminal::print(&greeting(gate.as_ref()))?;
    Ok(gate)
}

/// Serves one transfer.
///
/// # Errors
/// The near end says nothing that makes sense, or nobody comes.
pub fn serve(
    timeout: u64,
    port: u16,
    options: &SocketOptions,
    transfer: &ServeTransfer<'_>,
) -> Result<ExitCode> {
    let gate = greet(port, &[Service::Transfer], options)?;
    let end = serve_near_end(gate, timeouts(timeout), &terminal::note, transfer)?;
    Ok(outcome::code(end.unwrap_or(TransferEnd::Failed)))
}
