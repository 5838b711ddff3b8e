//! `farpace up`: a farpace host on a device of this machine.
//!
//! Start reading at [`run`]; `place` opens the device.

pub mod place;

use crate::device::InterfaceMode;
use crate::emulate::words;
use crate::realtime::{LateTolerance, RealtimeFigures};
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use farpace_emulate::LiveFigures;
use farpace_host::services::HostService;
use farpace_host::{Host, ListenSettings, Secret};
use farpace_live::socket::SocketOptions;
use farpace_live::{ControlSocket, Driver, HostAccount, InterfacePrefix, LiveCapture, default_memory};
use farpace_path::world::World;
use farpace_path::{BoundaryPort, Port};
use farpace_process::interrupt;
use farpace_units::{ByteCount, Instant, Span};
use place::HostDevice;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
The host has addresses of its own: it answers ping, and offers TCP services to everybody who can reach it. \
A TUN or TAP device is made for it. On an existing interface (--iface) it has its own MAC and IP \
addresses, and the system continues to use the interface. At the end, also after a signal, all settings \
are removed; after kill -9 `farpace doctor --clean` removes them.

Examples:
  farpace up                                              10.77.0.2 behind the TUN device fp0
  farpace up --tun fp1 --addr 10.78.0.2/24 --addr fd78::2/64
  farpace up --tap tap0 --mtu 9000 --serve echo,chargen:1900
  farpace up --iface eth1 --addr 192.168.1.77/24 --gateway 192.168.1.1
  farpace up --wireguard wg0.conf                         an end of WireGuard tunnels, without root
  farpace up --iface eth1 --mode af-xdp --addr 192.168.1.77/24    eth1 is ours alone meanwhile
  farpace up --set ack_control=safe --set ack_requests=rtt+flight-end
  farpace up --profile linux-2.6.17 --pcap old.pcapng --for 60s
Then:
  ping 10.77.0.2
  nc 10.77.0.2 7                 what you type comes back
  nc 10.77.0.2 19 | pv >/dev/null   text as fast as it can

But with --wireguard it needs root, or the rights cap_net_admin and cap_net_raw; `farpace doctor` tells what \
is missing. See docs/live.md.";

/// The arguments of `farpace up`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Make a TUN device with this name [default: fp0]
    #[arg(long, value_name = "NAME", group = "place")]
    tun: Option<String>,
    /// Make a TAP device with this name: Ethernet, with ARP
    #[arg(long, value_name = "NAME", group = "place")]
    tap: Option<String>,
    /// Be on this interface, beside the system
    #[arg(long, value_name = "NAME", group = "place")]
    iface: Option<String>,
    /// Behind WireGuard tunnels over UDP, as this file says (wg-quick's form); needs no privileges
    #[arg(long, value_name = "FILE", group = "place", conflicts_with_all = ["addr", "peer_addr", "gateway", "no_offload"])]
    wireguard: Option<PathBuf>,
    /// How to be on an interface
    #[arg(long, value_enum, default_value = "af-packet", requires = "iface")]
    mode: InterfaceMode,
    /// Address of the host with its network, IPv4 or IPv6; may be repeated [default: 10.77.0.2/24]
    #[arg(long, value_name = "ADDR/BITS", value_parser = farpace_live::prefix)]
    addr: Vec<InterfacePrefix>,
    /// Address of the kernel on the TUN or TAP device [default: the first of the network]
    #[arg(long, value_name = "ADDR", conflicts_with = "iface")]
    peer_addr: Vec<IpAddr>,
    /// Router to other networks; may be repeated, one for each family
    #[arg(long, value_name = "ADDR")]
    gateway: Vec<IpAddr>,
    /// Longest IP packet in bytes [default: 1500, or that of the interface]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..))]
    mtu: Option<u16>,
    /// TCP of the host: see `farpace profiles`
    #[arg(long, value_name = "NAME", default_value = "modern")]
    profile: String,
    /// Memory limit of its connections, as in "2 GiB" [default: a quarter of the host's memory]
    #[arg(long, value_name = "BYTES", value_parser = crate::transfer::bytes)]
    memory: Option<ByteCount>,
    /// A setting of its TCP, as in scenarios: ack_control=safe; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Services: echo, discard, chargen, each with a port as in echo:9000; or none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "echo,discard,chargen")]
    serve: Vec<String>,
    /// Single packets in both directions rather than super-segments: slower
    #[arg(long)]
    no_offload: bool,
    /// Write packets to this file (pcapng), split and with checksums as on a link
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// How it waits for packets: sleeping costs nothing, spinning a core
    #[arg(long, value_name = "HOW", value_enum, default_value = "sleep")]
    wait: LateTolerance,
    /// Ends after this time; without it at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = words::span_above_zero)]
    lasts: Option<Span>,
    /// Print JSON: one line when the host is up, one at the end
    #[arg(long)]
    json: bool,
}

/// `farpace up`.
///
/// # Errors
/// Arguments that make no sense, or a device that cannot be opened.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut options = SocketOptions::profile(&args.profile)?;
    options.set(&args.set.join(" ")).context("--set")?;
    let none = args.serve.iter().all(|word| word == "none" || word.is_empty());
    let words = args.serve.iter().filter(|_| !none);
    let services =
        words.map(|word| HostService::parse(word).map_err(anyhow::Error::msg)).collect::<Result<Vec<_>>>()?;
    let secret = secret()?;
    // Before anything is set: a signal from now on is an orderly end.
    interrupt::install();
    let place = place::open(args)?;
    let mtu = args.mtu.unwrap_or(place.device.info().mtu);
    let listening = listening(&options, mtu)?;
    let [first, rest @ ..] = place.ours.as_slice() else { return Err(anyhow!("the host needs an address")) };
    let mut host = Host::new(first.0, secret);
    host.set_memory_limit(args.memory.unwrap_or_else(default_memory));
    rest.iter().for_each(|(address, _)| host.add_address(*address));
    services.iter().try_for_each(|service| service.offer(&mut host, &listening))?;
    if let Some((mac, link)) = place.link.clone() {
        host.join_link(mac, link);
        host.share_link();
    }
    let about = about(args, &place, mtu, &services)?;
    let HostDevice { device, setup, .. } = place;
    let mut world = World::new(0);
    host.set_super_segments(device.info().super_segment);
    host.set_mtu(mtu);
    let host = world.add("host", Box::new(host))?;
    let boundary = world.add("device", Box::new(BoundaryPort::default()))?;
    world.connect((host, Port(0)), (boundary, Port(0)))?;
    let mut driver = Driver::new(world, args.wait.wait())?;
    driver.attach(boundary, device);
    driver.set_host(host);
    let handle = driver.handle();
    let control = ControlSocket::open("up", Box::new(move |job| handle.run(job)));
    let control =
        control.map_err(|error| terminal::note(&format!("`farpace ss` will not show this host: {error}")));
    let capture = args.pcap.as_ref().map(|path| LiveCapture::begin(path, "farpace up", &mut driver));
    let capture = capture.transpose()?;
    terminal::print(&about)?;
    let ended = serve(args, &mut driver, host);
    let account = HostAccount::of(&driver, host, Instant::ZERO);
    drop(control);
    drop(driver);
    if let Some(setup) = setup {
        for error in setup.undo().err().into_iter().flatten() {
            terminal::note(&format!("{error}; `farpace doctor --clean` tries again"));
        }
    }
    if let Some(capture) = capture {
        capture.finish()?;
    }
    match args.json {
        true => terminal::print(&(serde_json::to_string(&json!({ "end": account }))? + "\n"))?,
        false => terminal::print(&account.text())?,
    }
    Ok(terminal::ended(ended))
}

/// How the services listen.
///
/// # Errors
/// Settings that contradict each other, or that services do not have.
fn listening(options: &SocketOptions, mtu: u16) -> Result<ListenSettings> {
    if options.rate_cap.is_some() {
        bail!("--set rate_cap: services have no rate of their own");
    }
    let settings = ListenSettings::new(options.resolve(mtu).context("--set")?);
    let backlog = options.backlog.unwrap_or(settings.backlog);
    Ok(ListenSettings { cookies: options.cookies, backlog, ..settings })
}

/// Runs until a signal comes, the time is over, or the device is gone.
fn serve(args: &Args, driver: &mut Driver, host: farpace_path::world::ElementId) -> Result<()> {
    const LOOK: Span = Span::from_millis(20);
    let end = args.lasts.map_or(Instant::FAR_FUTURE, |lasts| Instant::ZERO + lasts);
    let mut figures = RealtimeFigures::new(args.json);
    let (mut look, mut paused, mut before) = (Instant::ZERO, Span::ZERO, HostAccount::default());
    let ended = loop {
        match driver.run_round() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error.into()),
        }
        let now = driver.now();
        if now < look {
            continue;
        }
        look = now + LOOK;
        let pause = driver.stats().longest_pause;
        if pause > paused {
            let seconds = pause.as_nanos() as f64 / 1e9;
            terminal::note(&format!(
                "suspended for {seconds:.1} s: the host did not run meanwhile, and goes on now"
            ));
            paused = pause;
        }
        if interrupt::asked() || now >= end {
            break Ok(());
        }
        if figures.is_due(now) {
            let account = HostAccount::of(driver, host, Instant::ZERO);
            figures.show(now, &account.lines(&before));
            before = account;
        }
    };
    figures.clear();
    ended
}

/// What is there now, and how to reach it.
fn about(args: &Args, place: &HostDevice, mtu: u16, services: &[HostService]) -> Result<String> {
    let info = place.device.info();
    let offload = info.super_segment > 0;
    let with_bits = |all: &[InterfacePrefix]| {
        all.iter().map(|(address, bits)| format!("{address}/{bits}")).collect::<Vec<_>>()
    };
    let mac = place.link.as_ref().map(|(mac, _)| mac.to_string());
    if args.json {
        let up = json!({ "up": {
            "interface": info.name, "device": place.what, "mtu": mtu, "mac": mac,
            "super_segments": offload, "addresses": with_bits(&place.ours),
            "kernel_addresses": with_bits(&place.kernels), "services": services,
        }});
        return Ok(serde_json::to_string(&up)? + "\n");
    }
    let mut text = format!("{}: {}, MTU {mtu} B, ", info.name, place.what);
    text += match (&args.wireguard, offload) {
        (Some(_), _) => "encrypted\n",
        (None, true) => "super-segments and checksums left to the system\n",
        (None, false) => "single packets\n",
    };
    for kernel in with_bits(&place.kernels) {
        text += &format!("  {kernel}: the kernel\n");
    }
    let mac = mac.map_or(String::new(), |mac| format!(" at {mac}"));
    let offers: Vec<_> = services.iter().map(HostService::to_string).collect();
    let offers = if offers.is_empty() { "no services".to_owned() } else { offers.join(", ") };
    for ours in with_bits(&place.ours) {
        text += &format!("  {ours}: farpace{mac}; answers ping; {offers}\n");
    }
    for step in place.setup.iter().flat_map(|setup| setup.steps()) {
        text += &format!("  set; at the end: {step}\n");
    }
    if let Some((address, _)) = place.ours.first() {
        let from = if args.wireguard.is_some() { " from a peer" } else { "" };
        text += &format!("Try{from}: ping {address}");
        text +=
            &services.first().map_or(String::new(), |service| format!("   nc {address} {}", service.port));
        text += "\n";
    }
    let end = args.lasts.map_or("Ctrl-C ends it".to_owned(), |lasts| format!("It ends after {lasts}"));
    Ok(format!("{text}{end} and takes everything away.\n"))
}

/// A key that nobody knows.
fn secret() -> Result<Secret> {
    let mut key = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut rng| rng.read_exact(&mut key))
        .context("cannot read /dev/urandom")?;
    Ok(Secret::new(key))
}
