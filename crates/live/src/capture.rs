//! Captures of the packets of a device, for other programs.

use crate::driver::Driver;
use farpace_path::world::{Observer, WireId, WorldError};
use farpace_trace::{InterfaceId, PcapngWriter};
use farpace_units::Instant;
use farpace_wire::Packet;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use thiserror::Error;

/// Why a capture is missing or incomplete.
#[derive(Debug, Error)]
pub enum LiveCaptureError {
    /// The file cannot be written.
    #[error("cannot write `{path}`: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// There is nothing to capture.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// A capture (pcapng) of the packets between the devices of a driver and its world.
///
/// It contains packets as on a link: super-segments are split, and checksums that were left to a device are
/// complete. So a capture contains no packet longer than the MTU and no incomplete checksum.
#[derive(Clone)]
pub struct LiveCapture(Rc<RefCell<Open>>);

struct Open {
    writer: Option<PcapngWriter<BufWriter<File>>>,
    interface: InterfaceId,
    wires: Vec<WireId>,
    path: PathBuf,
    failed: Option<io::Error>,
}

impl LiveCapture {
    /// Captures the packets of the devices that `driver` has now to `path`, with `program` as the writing
    /// application. The capture becomes the observer of the driver.
    ///
    /// # Errors
    /// See [`LiveCaptureError`].
    pub fn begin(path: &Path, program: &str, driver: &mut Driver) -> Result<Self, LiveCaptureError> {
        let failed = |error| LiveCaptureError::File { path: path.to_owned(), error };
        let file = BufWriter::new(File::create(path).map_err(failed)?);
        let mut writer = PcapngWriter::new(file, program).map_err(failed)?.with_epoch(driver.epoch());
        let interface =
            writer.add_interface("device", "between the host and its device", None).map_err(failed)?;
        let wire_ends = driver.wire_ends();
        let world = driver.world_mut();
        let wires = wire_ends.into_iter().map(|end| world.observe(end)).collect::<Result<_, _>>()?;
        let open = Open { writer: Some(writer), interface, wires, path: path.to_owned(), failed: None };
        let capture = LiveCapture(Rc::new(RefCell::new(open)));
        driver.set_observer(Box::new(capture.clone()));
        Ok(capture)
    }
    /// Flushes the capture. Otherwise this happens when the last handle is dropped, including that of the
    /// driver.
    ///
    /// # Errors
    /// The capture is incomplete.
    pub fn finish(&self) -> Result<(), LiveCaptureError> {
        self.0.borrow_mut().finish()
    }
}

impl Open {
    fn finish(&mut self) -> Result<(), LiveCaptureError> {
        let end = self.writer.take().map_or(Ok(()), |writer| writer.finish().map(drop));
        let ended = self.failed.take().map_or(end, Err);
        ended.map_err(|error| LiveCaptureError::File { path: self.path.clone(), error })
    }
    fn write(&mut self, now: Instant, packet: &Packet) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.packet(self.interface, now, packet, None)
        {
            self.failed.get_or_insert(error);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

impl Observer for LiveCapture {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        let mut open = self.0.borrow_mut();
        if !open.wires.contains(&wire) {
            return;
        }
        match packet.segment_size() {
            None => open.write(now, packet),
            Some(_) => packet.clone().split_segments(|part| open.write(now, &part)),
        }
    }
}
