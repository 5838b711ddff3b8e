//! The kernel's end of a connection.

use crate::meter::{Measure, Meter};
use anyhow::Context;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A connection that stands still for so long is given up.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a read or write.
const CHUNK: usize = 1 << 20;
/// What slow start takes is not measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// What the kernel sends with, whatever the machine's default is: BBR would pace, and a connection that began
/// with it stays paced.
pub const CONGESTION: &str = "cubic";

/// The kernel connects to port 5001 there.
pub fn connect(to: impl Into<IpAddr>) -> anyhow::Result<TcpStream> {
    let to = SocketAddr::new(to.into(), 5001);
    farpace_live::connect_kernel(to, CONGESTION, TIMEOUT).context("no connection")
}

/// Reads for so many seconds after the warm-up.
pub fn read(mut stream: TcpStream, seconds: f64) -> anyhow::Result<Measure> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    pump(seconds, move |buffer| {
        let n = stream.read(buffer).context("nothing comes any more")?;
        anyhow::ensure!(n > 0, "the other end has closed");
        Ok(n)
    })
}

/// Writes for so many seconds after the warm-up.
pub fn write(mut stream: TcpStream, seconds: f64) -> anyhow::Result<Measure> {
    stream.set_write_timeout(Some(TIMEOUT))?;
    pump(seconds, move |buffer| stream.write(buffer).context("nothing is taken any more"))
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

/// Times of a question of one byte and its answer of one byte, in microseconds, in ascending order.
pub fn ask(mut stream: TcpStream, questions: usize) -> anyhow::Result<Vec<f64>> {
    stream.set_nodelay(true)?;
    let mut times = Vec::with_capacity(questions);
    for _ in 0..questions {
        let begin = Instant::now();
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Sends every byte back.
pub fn answer(mut stream: TcpStream) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 64];
    loop {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..n])?;
    }
}
