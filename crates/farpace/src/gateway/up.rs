//! `farpace gateway up`: the gateway on this host, until it is told to end.

use crate::terminal;
use anyhow::Result;
use farpace_gateway_service::{GatewayFile, GatewayService};
use farpace_units::{ByteCount, Span};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
SIGTERM and Ctrl-C hand the connections over to their hosts: nothing is lost. SIGHUP reads the configuration \
again. After kill -9 connections pass by the kernel; those with undelivered bytes end.

With --peer the gateway is one of a pair: both split, and all traffic between them for the networks behind \
the peer goes through an encrypted tunnel over all links at once. Datagrams, ICMP and other traffic \
precede TCP.

Examples:
  farpace gateway up --lan eth0 --wan eth1
  farpace gateway up --lan eth0 --peer hq.conf --via wan0 --via lte0
  farpace gateway up --lan eth0 --lan eth2 --wan eth1 --min-rtt 20ms --memory \"2 GiB\"
  farpace gateway up --config /etc/farpace/gateway.toml --metrics 127.0.0.1:9745 --json
  farpace gateway up --lan eth0 --wan eth1 --web 9746    the dashboard at http://127.0.0.1:9746/
  farpace gateway up --lan eth0 --wan eth1 --pcap captures    then: farpace explain captures/wan-000001.pcapng

Exit codes: 0 ended in order, 2 no rights, a bad configuration, or a device that has failed.";

/// The arguments of `farpace gateway up`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct GatewayUpArgs {
    /// Interface to the hosts of the LAN; may be repeated
    #[arg(long, value_name = "IF")]
    lan: Vec<String>,
    /// Interface to the far link; may be repeated
    #[arg(long, value_name = "IF", conflicts_with_all = ["peer", "via"])]
    wan: Vec<String>,
    /// File of the peer, for one of a pair of gateways; `farpace gateway keys` makes it
    #[arg(long, value_name = "FILE")]
    peer: Option<PathBuf>,
    /// Link of a path to the peer, by its interface or address; repeated for several paths at once
    #[arg(long, value_name = "IF|ADDR")]
    via: Vec<String>,
    /// Configuration file; options of the command line take precedence, SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Connections with a shorter handshake pass unsplit [default: 5 ms]
    #[arg(long, value_name = "TIME", value_parser = crate::emulate::words::span)]
    min_rtt: Option<Span>,
    /// Memory of all connections, as in "2 GiB" [default: a quarter of the host's]
    #[arg(long, value_name = "BYTES", value_parser = crate::transfer::bytes)]
    memory: Option<ByteCount>,
    /// Threads that the connections are spread over, 1 to 64; 1 with --peer [default: one for each processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Share of connections that pass unsplit, 0 to 0.5: `status` shows what splitting gains [default: 0]
    #[arg(long, value_name = "SHARE")]
    control_group: Option<f64>,
    /// Append a line of JSON for each connection that has ended to this file; SIGHUP opens it again
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Serve metrics in Prometheus' format at this address, as in 127.0.0.1:9745
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Serve a dashboard for browsers at this address; a port alone: for this host alone. Elsewhere it asks
    /// for a token, which is printed on a terminal, and kept in a file otherwise
    #[arg(long, value_name = "PORT|ADDR", value_parser = farpace_gateway_service::web_address)]
    web: Option<SocketAddr>,
    /// Capture the packets of both sides to files in this directory, for tshark and `farpace explain`; the
    /// oldest files are removed at --pcap-limit
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Bytes that captures keep of each packet, 96 to 65549 [default: its headers]
    #[arg(long, value_name = "BYTES")]
    snaplen: Option<u32>,
    /// Bytes of all captures in the directory together [default: 1 GiB]
    #[arg(long, value_name = "BYTES", value_parser = crate::transfer::bytes)]
    pcap_limit: Option<ByteCount>,
    /// Ends after this time; without it at Ctrl-C or SIGTERM
    #[arg(long = "for", value_name = "TIME", value_parser = crate::emulate::words::span)]
    lasts: Option<Span>,
    /// Print JSON: one line when it is up, one at the end
    #[arg(long)]
    json: bool,
}

impl GatewayUpArgs {
    /// The configuration file, with what the command line says in its place.
    fn file(&self) -> Result<GatewayFile> {
        let mut file = match &self.config {
            Some(path) => GatewayFile::read(path)?,
            None => GatewayFile::default(),
        };
        let lists = [(&mut file.lan, &self.lan), (&mut file.wan, &self.wan), (&mut file.via, &self.via)];
        for (list, given) in lists.into_iter().filter(|(_, given)| !given.is_empty()) {
            list.clone_from(given);
        }
        file.peer = self.peer.clone().or(file.peer);
        file.min_rtt = self.min_rtt.unwrap_or(file.min_rtt);
        file.memory = self.memory.or(file.memory);
        file.control_group = self.control_group.unwrap_or(file.control_group);
        file.threads = self.threads.or(file.threads);
        file.log = self.log.clone().or(file.log);
        file.metrics = self.metrics.or(file.metrics);
        file.web = self.web.or(file.web);
        file.pcap = self.pcap.clone().or(file.pcap);
        file.snaplen = self.snaplen.or(file.snaplen);
        file.pcap_limit = self.pcap_limit.unwrap_or(file.pcap_limit);
        file.check()?;
        Ok(file)
    }
}

/// `farpace gateway up`.
///
/// # Errors
/// A bad configuration, or a system that refuses.
pub fn run(args: &GatewayUpArgs) -> Result<ExitCode> {
    let mut service = GatewayService::start(args.file()?, terminal::note)?;
    match args.json {
        true => terminal::print(&format!("{}\n", service.up_json()))?,
        false => terminal::print(&service.up_text())?,
    }
    let ended = service.run(args.lasts, &|| args.file());
    let end = service.end(ended)?;
    let totals = end.totals;
    match args.json {
        true => terminal::print(&format!("{}\n", end.json))?,
        false => terminal::print(&format!(
            "{} connections split, {} handed over at the end, {} cut; {} to the WAN, {} to the LAN\n",
            totals.split, totals.handed_over, totals.cut, totals.moved[0], totals.moved[1]
        ))?,
    }
    Ok(ExitCode::SUCCESS)
}
