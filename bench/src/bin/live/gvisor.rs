//! gVisor's netstack (`bench/gvisor`, in Go), on TUN and on a veth by a packet socket with super-segments.

use crate::ends;
use crate::kernel::{own_namespace, tool};
use crate::meter::{Measure, Way, watch_child};
use anyhow::{Context, ensure};
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

pub fn tun(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    own_namespace()?;
    tool("ip tuntap add dev gv0 mode tun")?;
    tool("ip link set dev gv0 txqueuelen 10000")?;
    tool("ip address add 10.79.0.1/24 dev gv0")?;
    tool("ip link set dev gv0 up")?;
    run(&["tun", "gv0"], way, seconds)
}

/// The far end of the pair has no address in the kernel, so all that comes there is gVisor's.
pub fn packet(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    own_namespace()?;
    tool("ip link add near type veth peer name gv0")?;
    tool("ip address add 10.79.0.1/24 dev near")?;
    tool("ip link set dev near up")?;
    tool("ip link set dev gv0 up")?;
    run(&["packet", "gv0"], way, seconds)
}

fn run(device: &[&str], way: Way, seconds: f64) -> anyhow::Result<Measure> {
    let program = build()?;
    let mut command = Command::new(program);
    command.args(device).arg(way.name()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start gVisor")?;
    watch_child(Some(child.id()));
    let result = (|| {
        let mut said = [0; 9];
        child
            .stdout
            .as_mut()
            .context("no output")?
            .read_exact(&mut said)
            .context("gVisor does not listen")?;
        let stream = ends::connect(ADDRESS).context("no connection to gVisor")?;
        match way {
            Way::Out => ends::read(stream, seconds),
            Way::In => ends::write(stream, seconds),
        }
    })();
    watch_child(None);
    child.kill()?;
    child.wait()?;
    result
}

/// Builds it, if that has not been done.
fn build() -> anyhow::Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("gvisor");
    let program = std::env::current_exe()?.with_file_name("live-gvisor");
    let output =
        Command::new("go").arg("build").arg("-o").arg(&program).arg(".").current_dir(folder).output();
    let output = output.context("cannot run go, which builds gVisor")?;
    ensure!(output.status.success(), "go build: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(program)
}
