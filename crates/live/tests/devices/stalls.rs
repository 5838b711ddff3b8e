//! A driver whose process is suspended for a while.

use farpace_link::nic::PacingNic;
use farpace_link::pacing::PacingConfig;
use farpace_live::{Device, DeviceCounters, DeviceInfo, Driver, Wait};
use farpace_path::world::World;
use farpace_path::{BoundaryPort, Duplex, Port, ends_at_port};
use farpace_units::{Rate, Span};
use farpace_wire::Packet;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const FRAMES: usize = 80;
/// Interval of frames of 1,000 bytes at 8 Mbit/s.
const INTERVAL: Duration = Duration::from_millis(1);
const STALL: Duration = Duration::from_millis(40);

/// Delivers given frames, records when others are written, and stalls at one of them.
struct Scripted {
    info: DeviceInfo,
    /// Never readable.
    quiet: UnixDatagram,
    gives: Vec<Packet>,
    sent: Arc<Mutex<Vec<Instant>>>,
    stalls_at: Option<usize>,
}

impl Device for Scripted {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn receive(&mut self, _: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        into.append(&mut self.gives);
        Ok(())
    }
    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        // Gap frames are ignored.
        for _ in packets.drain(..).filter(|packet| !ends_at_port(packet)) {
            let mut sent = self.sent.lock().unwrap();
            sent.push(Instant::now());
            if self.stalls_at == Some(sent.len()) {
                drop(sent);
                std::thread::sleep(STALL);
            }
        }
        Ok(())
    }
    fn fd(&self) -> BorrowedFd<'_> {
        self.quiet.as_fd()
    }
    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }
}

/// Departure times of paced frames, with a stall in between.
fn paced_through_a_stall(spreads: bool) -> (Vec<Instant>, Driver) {
    let config = "default = \"all\"\n[[classes]]\nname = \"all\"\nrate = \"8 Mbit/s\"\n";
    let config = PacingConfig::parse(config).unwrap();
    let nic = PacingNic::new(&config, Rate::from_mbit(1_000), Span::ZERO).unwrap();
    let mut world = World::new(0);
    let stack = world.add("stack", Box::new(BoundaryPort::default())).unwrap();
    let nic = world.add("NIC", Box::new(Duplex::new(Some(nic), None))).unwrap();
    let link = world.add("line", Box::new(BoundaryPort::timed())).unwrap();
    world.connect((stack, Port(0)), (nic, Port(0))).unwrap();
    world.connect((nic, Port(1)), (link, Port(0))).unwrap();
    let mut driver = Driver::new(world, Wait::Sleep).unwrap();
    if spreads {
        driver.spread_stalls(Span::from_millis(1));
    }
    let sent = Arc::new(Mutex::new(Vec::new()));
    let device = |gives, stalls_at| {
        let info = DeviceInfo { name: "scripted".into(), mtu: 1500, mac: None, super_segment: 0 };
        let (quiet, sent) = (UnixDatagram::unbound().unwrap(), sent.clone());
        Box::new(Scripted { info, quiet, gives, sent, stalls_at })
    };
    // With its check sequence a frame has 1,000 bytes.
    let frame = || Packet::from_frame(&[0x11; 996]).unwrap();
    driver.attach(stack, device((0..FRAMES).map(|_| frame()).collect(), None));
    driver.attach(link, device(Vec::new(), Some(10)));
    let deadline = Instant::now() + Duration::from_secs(20);
    while sent.lock().unwrap().len() < FRAMES {
        assert!(Instant::now() < deadline, "{} frames have left", sent.lock().unwrap().len());
        driver.run_round().unwrap();
    }
    let times = sent.lock().unwrap().clone();
    (times, driver)
}

/// The maximum by which the frames of any interval exceed so many times the rate.
fn excess(times: &[Instant], rate: f64) -> f64 {
    let from = |first: usize| {
        let began = times[first];
        times[first..].iter().enumerate().map(move |(n, at)| {
            (n + 1) as f64 - at.duration_since(began).as_secs_f64() / INTERVAL.as_secs_f64() * rate
        })
    };
    (0..times.len()).flat_map(from).fold(0.0, f64::max)
}

/// Breaks: after a stall a pacer does not send everything it has missed in one burst. The bound holds on a
/// loaded machine, which can only add stalls: one frame by itself, one for the permitted lateness, and the
/// error of the timers of the test; besides 2 % over the rate, at which stalls are made up for.
#[test]
fn delayed_frames_never_leave_in_a_burst() {
    let (times, driver) = paced_through_a_stall(true);
    let max = excess(&times, 1.02);
    assert!(max < 3.0, "{max} frames more than the rate allows");
    let stats = driver.stats();
    assert!(stats.stalls >= 1 && stats.stalled >= Span::from_millis(30), "{stats:?}");
    assert!(stats.made_up > Span::ZERO && stats.made_up <= stats.stalled, "{stats:?}");
    // Without the option, due frames leave at once: the clock of the emulator is that of the machine.
    let (times, driver) = paced_through_a_stall(false);
    assert!(excess(&times, 1.0) > 30.0, "{}", excess(&times, 1.0));
    assert_eq!(driver.stats().stalls, 0);
}
