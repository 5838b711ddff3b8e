//! Whether classes hold on devices of this kernel, for `farpace kernel doctor`: it is tried, in a network
//! namespace of its own.

use crate::classes::{ClassesWanted, namespace, up};
use crate::error::KernelServiceError;
use farpace_kernel::{ClassCounters, ClassOrder, Feature, class_devices};
use farpace_link::pacing::PacingConfig;
use farpace_live::system::{Setup, SystemError, SystemInterface, in_namespace};
use farpace_process::stopwatch::Stopwatch;
use farpace_units::Span;
use std::net::UdpSocket;
use std::path::Path;

/// Full frames that are sent; each takes 12.1 ms of its class.
const PACKETS: u64 = 4;
const CONFIG: &str = "default = \"a\"\n[[classes]]\nname = \"a\"\nrate = \"1 Mbit/s\"\n";
const BYTES: usize = 1_518 - 14 - 20 - 8 - 4;
/// The last leaves three intervals after the first; by `htb`, whose bucket holds one frame, two.
const EXPECTED: Span = Span::from_millis(24);
/// A machine may be busy.
const TIMEOUT: Span = Span::from_secs(3);

/// Of a veth pair, and of ifb, by which what comes in is paced.
pub fn features() -> Vec<Feature> {
    let purpose = "`up --classes`";
    let of = |name, kind| {
        let found = tried(kind);
        let works = found.is_ok();
        Feature {
            name,
            purpose,
            works,
            required: false,
            found: found.unwrap_or_else(|error| first_line(&error)),
        }
    };
    vec![of("classes on veth", "veth"), of("classes on ifb", "ifb")]
}

fn first_line(error: &KernelServiceError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn tried(kind: &str) -> Result<String, KernelServiceError> {
    let setup = Setup::begin("kernel-doctor")?;
    let namespace = format!("fp-doctor-{}", std::process::id() % 100_000);
    setup.namespace(&namespace)?;
    let device = SystemInterface::within(&namespace, "a");
    if kind == "veth" {
        setup.veth(&device, &SystemInterface::within(&namespace, "b"))?;
        setup.up(&SystemInterface::within(&namespace, "b"))?;
    } else {
        setup.interface(&device, kind)?;
    }
    setup.address(&device, [192, 0, 2, 1].into(), 24)?;
    setup.up(&device)?;
    setup.neighbour(&device, [192, 0, 2, 2].into(), "02:00:00:00:00:02")?;
    let mut answer = None;
    in_namespace(Some(&namespace), || {
        answer = Some(measure());
        Ok::<_, SystemError>(())
    })?;
    answer.ok_or_else(|| refused("nothing was measured"))?
}

fn refused(why: impl Into<String>) -> KernelServiceError {
    KernelServiceError::Refused(why.into())
}

/// In the namespace: sends, and says when it left.
fn measure() -> Result<String, KernelServiceError> {
    let config = PacingConfig::parse(CONFIG).map_err(refused)?;
    let devices = ["a".to_owned()];
    let wanted = ClassesWanted {
        file: Path::new("doctor"),
        devices: &devices,
        horizon: Span::from_secs(10),
        super_segments: false,
    };
    let up = up(&wanted, &config, &mut |_| {})?.into_iter().next().ok_or_else(|| refused("no device"))?;
    let socket = UdpSocket::bind("192.0.2.1:0")?;
    let clock = Stopwatch::start();
    for _ in 0..PACKETS {
        socket.send_to(&[0; BYTES], "192.0.2.2:9")?;
    }
    let how = match up.order {
        ClassOrder::Fq => "departure times, held by fq",
        ClassOrder::Htb => "no fq, held by htb",
    };
    if !up.counts_lateness {
        return Ok(format!("{how}; nobody sees when packets leave"));
    }
    let namespace = namespace()?;
    let class = || -> Option<ClassCounters> {
        let device = class_devices().into_iter().find(|device| device.namespace == namespace)?;
        device.classes.into_iter().next()
    };
    let left = || class().is_some_and(|class| class.left >= PACKETS);
    clock.wait_until_soon(TIMEOUT.as_nanos(), left);
    let took = clock.elapsed();
    let class = class().ok_or_else(|| refused("the classes have gone"))?;
    if class.left < PACKETS {
        return Err(refused(format!("{how}: {} of {PACKETS} packets left", class.left)));
    }
    if took.as_nanos() * 10 < u128::from(EXPECTED.as_nanos()) * 9 {
        let ms = took.as_secs_f64() * 1e3;
        return Err(refused(format!("{how}: not held, {PACKETS} packets left within {ms:.1} ms")));
    }
    let late = class.late.mean().unwrap_or_default();
    Ok(format!("{how}; {:.0} us late on average", late.as_secs_f64() * 1e6))
}
