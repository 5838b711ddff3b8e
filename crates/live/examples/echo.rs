//! An echo server on a stack of its own, with a thread for each connection. Needs root.
//!
//! ```sh
//! cargo run -p farpace-live --example echo &
//! nc 10.77.0.2 7
//! ```

#![allow(clippy::disallowed_methods, reason = "threads")]

use farpace_live::device::TunConfig;
use farpace_live::socket::{SocketOptions, Stack, Stream};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::IpAddr;

fn echo(mut stream: Stream) -> io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n])?,
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (kernel, ours): (IpAddr, IpAddr) = ("10.77.0.1".parse()?, "10.77.0.2".parse()?);
    let tun = TunConfig { addresses: vec![(kernel, 24)], ..TunConfig::new("fp0") };
    let stack = Stack::on_tun(tun, &[ours])?;
    let options = SocketOptions::profile("modern")?.nodelay(true);
    for stream in stack.listen((ours, 7), &options)?.incoming() {
        let stream = stream?;
        std::thread::spawn(move || {
            let from = stream.peer_addr();
            match echo(stream) {
                Ok(()) => println!("{from:?} has finished"),
                Err(error) => println!("{from:?}: {error}"),
            }
        });
    }
    Ok(())
}
