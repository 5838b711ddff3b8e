//! farpace on a TUN device, and on a veth by a packet socket and by AF_XDP.

use crate::ends;
use crate::kernel::{own_namespace, tool};
use crate::meter::{Measure, Way};
use bytes::Bytes;
use farpace_host::{Application, Host, ListenSettings, LocalLink, Secret};
use farpace_live::device::{PacketConfig, PacketSocket, Tun, TunConfig, XdpConfig, XdpSocket};
use farpace_live::{Device, DeviceError, Driver, DriverError, Handle, Stats, Wait};
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::{ByteCount, Instant, RandomStream};
use farpace_wire::MacAddr;
use std::net::{IpAddr, Ipv4Addr};
use std::thread::JoinHandle;

const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
const MAC: MacAddr = MacAddr([2, 0xfa, 0, 0, 0, 2]);
/// What the others have here, and the most that the kernel gives a sender by itself. More would only be more
/// memory to go through.
const BUFFER: ByteCount = ByteCount::new(4 << 20);

/// What carries its packets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    /// A TUN device, with super-segments or without.
    Tun { offload: bool },
    /// A packet socket at the far end of a veth; without super-segments neither end of it has them.
    Packet { offload: bool },
    /// AF_XDP there.
    Xdp,
}

impl Path {
    /// What there must be in the namespace.
    fn prepare(self) -> anyhow::Result<()> {
        if matches!(self, Path::Tun { .. }) {
            return Ok(());
        }
        tool("ip link add near type veth peer name far")?;
        tool(&format!("ip address add {KERNEL}/24 dev near"))?;
        for end in ["near", "far"] {
            tool(&format!("ip link set dev {end} up"))?;
            if self != (Path::Packet { offload: true }) {
                tool(&format!("ethtool -K {end} tso off gso off gro off"))?;
            }
        }
        Ok(())
    }

    fn open(self) -> Result<Box<dyn Device>, DeviceError> {
        Ok(match self {
            Path::Tun { offload } => {
                let config = TunConfig { addresses: vec![(KERNEL, 24)], offload, ..TunConfig::new("fp0") };
                Box::new(Tun::open(&config)?)
            }
            Path::Packet { offload } => {
                let config =
                    PacketConfig { mac: Some(MAC), super_segments: offload, ..PacketConfig::new("far") };
                Box::new(PacketSocket::open(&PacketConfig { bypass_queue: true, ..config })?)
            }
            Path::Xdp => Box::new(XdpSocket::open(&XdpConfig { mac: Some(MAC), ..XdpConfig::new("far") })?),
        })
    }
}

pub fn sleeping(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    run(way, seconds, Path::Tun { offload: true }, Wait::Sleep)
}

pub fn spinning(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    run(way, seconds, Path::Tun { offload: true }, Wait::Spin)
}

pub fn plain(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    run(way, seconds, Path::Tun { offload: false }, Wait::Sleep)
}

pub fn packet(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    run(way, seconds, Path::Packet { offload: true }, Wait::Sleep)
}

pub fn packet_plain(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    run(way, seconds, Path::Packet { offload: false }, Wait::Sleep)
}

pub fn xdp(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    run(way, seconds, Path::Xdp, Wait::Sleep)
}

/// Sends for ever, and reads all that comes.
struct Both(Bytes);

impl Application for Both {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected | ConnectionEvent::Writable => {
                while !self.0.is_empty() && !connection.write(&mut self.0.clone()).is_zero() {}
            }
            ConnectionEvent::Readable => {
                connection.read(drop);
            }
            ConnectionEvent::PeerClosed => connection.close(),
            _ => {}
        }
    }
}

/// Questions and answers.
pub fn latency(questions: usize, wait: Wait) -> anyhow::Result<Vec<f64>> {
    own_namespace()?;
    let (handle, thread) = station(Path::Tun { offload: true }, wait, || Box::new(Echo))?;
    let times = ends::ask(ends::connect(OURS)?, questions);
    handle.stop();
    thread.join().map_err(|_| anyhow::anyhow!("the station has panicked"))??;
    times
}

/// Sends back what comes.
struct Echo;

impl Application for Echo {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::Readable {
            let mut all = Vec::new();
            connection.read(|bytes| all.push(bytes));
            all.iter_mut().for_each(|bytes| _ = connection.write(bytes));
        }
    }
}

fn run(way: Way, seconds: f64, path: Path, wait: Wait) -> anyhow::Result<Measure> {
    own_namespace()?;
    path.prepare()?;
    let chunk = Bytes::from(vec![0; if way == Way::Out { 1 << 20 } else { 0 }]);
    let (handle, thread) = station(path, wait, move || Box::new(Both(chunk.clone())))?;
    let stream = ends::connect(OURS)?;
    let measure = match way {
        Way::Out => ends::read(stream, seconds),
        Way::In => ends::write(stream, seconds),
    };
    handle.stop();
    let stats = thread.join().map_err(|_| anyhow::anyhow!("the station has panicked"))??;
    let device = stats.devices.first().copied().unwrap_or_default();
    let segments = device.segments_received + device.segments_sent;
    Ok(Measure { per_call: Some((segments, device.reads + device.writes + stats.sleeps)), ..measure? })
}

/// Our machine, with a program for each connection.
fn station(
    path: Path,
    wait: Wait,
    program: impl FnMut() -> Box<dyn Application> + Send + 'static,
) -> anyhow::Result<(Handle, JoinHandle<Result<Stats, DriverError>>)> {
    Ok(Driver::spawn("station", move || -> Result<_, DriverError> {
        let other =
            |error: Box<dyn std::error::Error + Send + Sync>| DriverError::Wait(std::io::Error::other(error));
        let device = path.open().map_err(|e| other(e.into()))?;
        let mut host = Host::new(OURS, Secret::from_stream(&mut RandomStream::new(1, "bench")));
        if let Some(mac) = device.info().mac {
            host.join_link(mac, LocalLink::default());
        }
        let settings =
            Settings { send_buffer: Some(BUFFER), receive_buffer: Some(BUFFER), ..Settings::default() };
        let settings = settings.resolve().map_err(|e| other(e.into()))?;
        host.listen(5001, ListenSettings::new(settings), program).map_err(|e| other(e.into()))?;
        Driver::of_host(host, device, wait)
    })?)
}
