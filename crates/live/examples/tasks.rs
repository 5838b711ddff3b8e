//! The same echo server with tasks on one thread. Needs root, and the feature `tokio`.
//!
//! ```sh
//! cargo run -p farpace-live --features tokio --example tasks
//! ```

use farpace_live::device::TunConfig;
use farpace_live::socket::{SocketOptions, Stack};
use std::error::Error;
use std::net::IpAddr;
use tokio::io::{AsyncWriteExt, copy, split};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (kernel, ours): (IpAddr, IpAddr) = ("10.77.0.1".parse()?, "10.77.0.2".parse()?);
    let tun = TunConfig { addresses: vec![(kernel, 24)], ..TunConfig::new("fp0") };
    let stack = Stack::on_tun(tun, &[ours])?;
    let listener = stack.listen((ours, 7), &SocketOptions::default())?;
    loop {
        let (stream, from) = listener.accept_async().await?;
        tokio::spawn(async move {
            let (mut read, mut write) = split(stream);
            match copy(&mut read, &mut write).await {
                Ok(bytes) => println!("{from}: {bytes} bytes"),
                Err(error) => println!("{from}: {error}"),
            }
            let _ = write.shutdown().await;
        });
    }
}
