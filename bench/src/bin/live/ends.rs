//! The kernel's end of a connection.

use crate::meter::{Measure, Meter};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes of a read or write.
const CHUNK: usize = 1 << 20;
/// What slow start takes is not measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// Reads for so many seconds after the warm-up.
pub fn read(mut stream: TcpStream, seconds: f64) -> anyhow::Result<Measure> {
    pump(seconds, move |buffer| {
        let n = stream.read(buffer)?;
        anyhow::ensure!(n > 0, "the other end has closed");
        Ok(n)
    })
}

/// Writes for so many seconds after the warm-up.
pub fn write(mut stream: TcpStream, seconds: f64) -> anyhow::Result<Measure> {
    pump(seconds, move |buffer| Ok(stream.write(buffer)?))
}

fn pump(seconds: f64, mut step: impl FnMut(&mut [u8]) -> anyhow::Result<usize>) -> anyhow::Result<Measure> {
    let mut buffer = vec![0; CHUNK];
    let begin = Instant::now();
    while begin.elapsed() < WARM_UP {
        step(&mut buffer)?;
    }
    let meter = Meter::start()?;
    let (begin, time, mut bytes) = (Instant::now(), Duration::from_secs_f64(seconds), 0);
    while begin.elapsed() < time {
        bytes += step(&mut buffer)? as u64;
    }
    meter.stop(bytes)
}
