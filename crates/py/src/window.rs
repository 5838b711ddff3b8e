//! The window of a connection, as code in Python sees and sets it.

use farpace_tcp::{Window, slowest_pacing_rate};
use farpace_units::{Packets, Rate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Greatest window, in segments: more than any receive window holds.
const MAX_CWND_SEGMENTS: f64 = (1u32 << 30) as f64;
/// Greatest pacing rate, in bit/s.
const MAX_PACING_RATE_BIT_S: f64 = 1e15;

/// Congestion window and pacing rate of a connection.
///
/// cwnd_segments may have a fraction, which a control can add to; what counts are whole segments. Values
/// below 1 count as 1.
#[pyclass(name = "Window")]
#[derive(Clone, Debug)]
pub struct PyWindow {
    cwnd_segments: f64,
    pacing_rate_bit_s: Option<f64>,
    mss_bytes: u32,
}

impl PyWindow {
    /// One segment, which nothing paces.
    pub const fn closed() -> Self {
        PyWindow { cwnd_segments: 1.0, pacing_rate_bit_s: None, mss_bytes: 1 }
    }

    /// What a connection has, without pacing.
    pub fn of(cwnd: Packets, mss_bytes: u32) -> Self {
        PyWindow {
            cwnd_segments: f64::from(cwnd.get()),
            pacing_rate_bit_s: None,
            mss_bytes: mss_bytes.max(1),
        }
    }

    /// Takes over what a connection has. The fraction stays, if that is all in which they differ.
    pub fn follow(&mut self, window: &Window) {
        self.mss_bytes = window.mss();
        if self.segments() != window.cwnd() {
            self.cwnd_segments = f64::from(window.cwnd().get());
        }
    }

    /// Segments of the connection have so many bytes.
    pub fn measure(&mut self, mss_bytes: u32) {
        self.mss_bytes = mss_bytes.max(1);
    }

    /// The window in whole segments, at least 1.
    pub fn segments(&self) -> Packets {
        Packets::new(self.cwnd_segments.max(1.0) as u32)
    }

    /// The pacing rate; none: segments leave as the window allows.
    pub fn pacing(&self) -> Option<Rate> {
        self.pacing_rate_bit_s().map(|rate| Rate::from_bits_per_sec(rate as u64))
    }

    /// Slower than this nothing is paced, in bit/s.
    fn slowest_bit_s(&self) -> f64 {
        slowest_pacing_rate(self.mss_bytes).bits_per_sec() as f64
    }
}

#[pymethods]
impl PyWindow {
    /// Congestion window, in segments of mss_bytes.
    #[getter]
    fn cwnd_segments(&self) -> f64 {
        self.cwnd_segments
    }

    #[setter]
    fn set_cwnd_segments(&mut self, segments: f64) -> PyResult<()> {
        if !segments.is_finite() || segments < 0.0 {
            return Err(PyValueError::new_err(format!(
                "cwnd_segments = {segments}: a congestion window is a finite number of segments, 1 or more"
            )));
        }
        self.cwnd_segments = segments.clamp(1.0, MAX_CWND_SEGMENTS);
        Ok(())
    }

    /// The same in bytes.
    #[getter]
    fn cwnd_bytes(&self) -> f64 {
        self.cwnd_segments * f64::from(self.mss_bytes)
    }

    #[setter]
    fn set_cwnd_bytes(&mut self, bytes: f64) -> PyResult<()> {
        if !bytes.is_finite() || bytes < 0.0 {
            return Err(PyValueError::new_err(format!(
                "cwnd_bytes = {bytes}: a congestion window is a finite number of bytes, one segment or more"
            )));
        }
        self.set_cwnd_segments(bytes / f64::from(self.mss_bytes))
    }

    /// Rate at which payload leaves, in bit/s; None: as the window allows. The slowest is a segment in
    /// 200 ms; it is in force, too, where segments have become longer since a rate was set.
    #[getter]
    fn pacing_rate_bit_s(&self) -> Option<f64> {
        self.pacing_rate_bit_s.map(|rate| rate.max(self.slowest_bit_s()))
    }

    #[setter]
    fn set_pacing_rate_bit_s(&mut self, rate: Option<f64>) -> PyResult<()> {
        let slowest = self.slowest_bit_s();
        if let Some(rate) = rate
            && !(slowest..=MAX_PACING_RATE_BIT_S).contains(&rate)
        {
            return Err(PyValueError::new_err(format!(
                "pacing_rate_bit_s = {rate}: a pacing rate is from {slowest} bit/s, a segment of {} B in \
                 200 ms, to 1e15 bit/s, or None for no pacing; set a small window to send less",
                self.mss_bytes
            )));
        }
        self.pacing_rate_bit_s = rate;
        Ok(())
    }

    /// Payload of a full segment, in bytes.
    #[getter]
    fn mss_bytes(&self) -> u32 {
        self.mss_bytes
    }

    fn __repr__(&self) -> String {
        let pacing = self.pacing_rate_bit_s().map_or_else(|| "None".to_owned(), |rate| format!("{rate}"));
        format!("<farpace.Window cwnd_segments={} pacing_rate_bit_s={pacing}>", self.cwnd_segments)
    }
}
