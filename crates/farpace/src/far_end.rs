//! `farpace perf --stdio-control`: what ssh starts at the other end of `farpace forward` and `farpace perf`.
//! It goes with ssh.

use crate::carrier::StackArgs;
use crate::terminal;
use crate::transfer::greet;
use anyhow::{Result, bail};
use farpace_process::interrupt;
use farpace_tunnel::{Service, forward, hear_word, perf};
use std::io::Read;
use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;

/// Streams that are served at once; more are closed.
const MAX_STREAMS: usize = 256;

/// Serves the near end, at `port` (0: anywhere).
///
/// # Errors
/// The near end says nothing that makes sense.
pub fn run(port: u16, stack: &StackArgs) -> Result<ExitCode> {
    interrupt::install();
    let options = stack.options(None)?;
    let Some(gate) = greet(port, &[Service::Forward, Service::Perf], &options)? else {
        return Ok(ExitCode::from(terminal::FAILED));
    };
    match hear_word()?.as_str() {
        "ticket" => {}
        "" => return Ok(ExitCode::from(terminal::FAILED)),
        word => bail!("`{word}` is not understood: use the same version of farpace at both ends"),
    }
    // What is still open at the end has lost its other end; waiting for it would take as long as TCP believes
    // in it. So no thread is waited for, and the gate is not closed.
    let gate = ManuallyDrop::new(gate);
    let (over, streams) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let gone = over.clone();
    // The near end is gone when ssh is.
    Builder::new().spawn(move || {
        let _ = std::io::stdin().read(&mut [0; 16]);
        gone.store(true, Ordering::Relaxed);
    })?;
    let stop = || over.load(Ordering::Relaxed) || interrupt::asked();
    while let Some((service, stream)) = gate.accept(&stop)? {
        if streams.load(Ordering::Relaxed) >= MAX_STREAMS {
            continue;
        }
        streams.fetch_add(1, Ordering::Relaxed);
        let open = streams.clone();
        let serve = move || {
            // The near end tells its user what went wrong.
            let _ = match service {
                Service::Forward => forward::serve(stream),
                Service::Perf => perf::serve(stream),
                Service::Transfer | Service::Paths => Ok(()),
            };
            open.fetch_sub(1, Ordering::Relaxed);
        };
        if Builder::new().spawn(serve).is_err() {
            streams.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let code = if over.load(Ordering::Relaxed) { terminal::OK } else { terminal::INTERRUPTED };
    Ok(ExitCode::from(code))
}
