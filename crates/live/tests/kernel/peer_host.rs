//! A host on a TUN device, in the namespace of the test.

use farpace_host::{Application, Host, ListenSettings, Secret};
use farpace_live::device::{Tun, TunConfig};
use farpace_live::{Driver, DriverError, Handle, Stats, Wait};
use farpace_path::world::World;
use farpace_path::{BoundaryPort, Element, Port};
use farpace_tcp::config::{Config, Settings};
use farpace_units::RandomStream;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::thread::JoinHandle;

pub const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
pub const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
pub const KERNEL6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
pub const OURS6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));
pub const PORT: u16 = 5001;

/// The application of each connection.
pub type Program = fn() -> Box<dyn Application>;
/// An element on the path to the kernel.
pub type PathElement = (&'static str, fn() -> Box<dyn Element>);

/// Configuration of the host.
pub struct HostPlan {
    pub program: Program,
    pub mtu: u16,
    pub offload: bool,
    pub settings: Settings,
    /// Elements between host and device.
    pub elements: &'static [PathElement],
}

impl HostPlan {
    pub fn new(program: Program) -> Self {
        let settings = Settings::default();
        HostPlan { program, mtu: 1500, offload: true, settings, elements: &[] }
    }
}

pub struct LiveHost {
    pub handle: Handle,
    thread: JoinHandle<Result<Stats, DriverError>>,
}

/// The TCP configuration of the tests.
pub fn config(settings: &Settings) -> Config {
    settings.clone().resolve().unwrap()
}

impl LiveHost {
    /// Starts the host; its application listens on [`PORT`].
    pub fn up(plan: HostPlan) -> Self {
        let made = Driver::spawn("driver", move || -> Result<_, DriverError> {
            let addresses = match plan.mtu {
                ..1280 => vec![(KERNEL, 24)], // too small for IPv6
                _ => vec![(KERNEL, 24), (KERNEL6, 64)],
            };
            let (mtu, offload) = (plan.mtu, plan.offload);
            let tun = TunConfig { addresses, mtu, offload, ..TunConfig::new("fp0") };
            let tun = Tun::open(&tun).unwrap();
            let mut host = Host::new(OURS, Secret::from_stream(&mut RandomStream::new(1, "test")));
            host.add_address(OURS6);
            let mut settings = ListenSettings::new(config(&plan.settings));
            (settings.accepted, settings.backlog) = (20_000, 2_000);
            host.listen(PORT, settings, plan.program).unwrap();
            if plan.elements.is_empty() {
                return Driver::of_host(host, Box::new(tun), Wait::Sleep);
            }
            let mut world = World::new(7);
            let host = world.add("host", Box::new(host))?;
            let mut end = (host, Port(0));
            for (name, make) in plan.elements {
                let id = world.add(name, make())?;
                world.connect(end, (id, Port(0)))?;
                end = (id, Port(1));
            }
            let port = world.add("device", Box::new(BoundaryPort::default()))?;
            world.connect(end, (port, Port(0)))?;
            let mut driver = Driver::new(world, Wait::Sleep)?;
            driver.attach(port, Box::new(tun));
            driver.set_host(host);
            Ok(driver)
        });
        let (handle, thread) = made.unwrap();
        LiveHost { handle, thread }
    }

    /// Stops it, and returns the counters.
    pub fn down(self) -> Stats {
        self.handle.stop();
        self.thread.join().unwrap().unwrap()
    }
}

/// Sets a kernel parameter of this namespace.
pub fn sysctl(name: &str, value: &str) {
    std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
        .unwrap_or_else(|e| panic!("{name}={value}: {e}"));
}
