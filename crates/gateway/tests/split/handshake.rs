//! What the hosts see of the handshake.

use crate::harness::*;
use farpace_tcp::config::{EcnMode, Settings};
use farpace_units::Span;
use farpace_wire::Packet;
use farpace_wire::tcp::{TcpFlags, TcpHeader};

fn header(packet: &Packet) -> TcpHeader {
    packet.tcp().unwrap().header()
}

fn with_flags(seen: &[Packet], flags: TcpFlags) -> Vec<&Packet> {
    let alike = |packet: &&Packet| {
        let had = header(packet).flags;
        [TcpFlags::SYN, TcpFlags::ACK, TcpFlags::RST].iter().all(|f| had.contains(*f) == flags.contains(*f))
    };
    seen.iter().filter(alike).collect()
}

// Breaks: connections do not outlive a crash of the gateway, as the two hosts have different numbers,
// scales or clocks.
#[test]
fn both_legs_have_the_numbers_and_options_of_the_hosts() {
    let mut net = Net::new(Plan::new());
    net.tap.on = true;
    let server_config = Settings {
        mss: Some(1200),
        receive_buffer_max: Some("40 MiB".parse().unwrap()),
        ..Settings::default()
    };
    let _server = serve(&mut net, server_config.resolve().unwrap(), 0);
    let _client = call(&mut net, linux(), 0);
    net.run_for(Span::from_secs(3));
    let both = TcpFlags::SYN.with(TcpFlags::ACK);
    for (from, to, flags) in [(FROM_CLIENT, TO_SERVER, TcpFlags::SYN), (FROM_SERVER, TO_CLIENT, both)] {
        let (sent, repeated) = (with_flags(&net.tap.seen[from], flags), with_flags(&net.tap.seen[to], flags));
        assert_eq!((sent.len(), repeated.len()), (1, 1));
        let (sent, repeated) = (sent[0], repeated[0]);
        assert_eq!(sent.ip().unwrap().addresses(), repeated.ip().unwrap().addresses());
        let (sent, repeated) = (header(sent), header(repeated));
        assert_eq!(
            (sent.seq, sent.src_port, sent.dst_port),
            (repeated.seq, repeated.src_port, repeated.dst_port)
        );
        assert_eq!(sent.options.window_scale, repeated.options.window_scale);
        assert_eq!(sent.options.sack_permitted, repeated.options.sack_permitted);
        assert_eq!(sent.options.timestamps.unwrap().value, repeated.options.timestamps.unwrap().value);
        assert_eq!(sent.options.mss.unwrap(), repeated.options.mss.unwrap());
    }
    let answered = with_flags(&net.tap.seen[TO_CLIENT], both);
    assert_eq!(header(answered[0]).options.mss, Some(1200));
}

// Breaks: a host is offered more than the other one has: what it then sends the other could not read.
#[test]
fn options_that_one_host_lacks_are_not_offered() {
    for lacking in ["sack", "timestamps", "window_scale"] {
        for at_client in [true, false] {
            let poor = Settings {
                sack: (lacking == "sack").then_some(false),
                timestamps: (lacking == "timestamps").then_some(false),
                window_scale: (lacking == "window_scale").then_some(false),
                ..Settings::default()
            };
            let (poor, rich) = (poor.resolve().unwrap(), linux());
            let mut net = Net::new(Plan::new());
            net.tap.on = true;
            let server = serve(&mut net, if at_client { rich.clone() } else { poor.clone() }, 50_000);
            let client = call(&mut net, if at_client { poor } else { rich }, 50_000);
            net.run_for(Span::from_secs(30));
            assert_done(&client, 50_000);
            assert_done(&server, 50_000);
            let (to, flags) = match at_client {
                true => (TO_SERVER, TcpFlags::SYN),
                false => (TO_CLIENT, TcpFlags::SYN.with(TcpFlags::ACK)),
            };
            let options = header(with_flags(&net.tap.seen[to], flags)[0]).options;
            assert_eq!(options.sack_permitted, lacking != "sack", "{lacking} {at_client}");
            assert_eq!(options.timestamps.is_some(), lacking != "timestamps", "{lacking} {at_client}");
            assert_eq!(options.window_scale.is_some(), lacking != "window_scale", "{lacking} {at_client}");
        }
    }
}

// Breaks: segments do not fit through the smaller of the two links.
#[test]
fn the_mss_is_clamped_to_the_mtu() {
    let mut plan = Plan::new();
    (plan.config.lan_mtu, plan.config.wan_mtu) = (1500, 1400);
    let mut net = Net::new(plan);
    net.tap.on = true;
    let server = serve(&mut net, linux(), 100_000);
    let client = call(&mut net, linux(), 100_000);
    net.run_for(Span::from_secs(30));
    assert_done(&client, 100_000);
    assert_done(&server, 100_000);
    let longest = |seen: &[Packet]| seen.iter().map(|p| p.network_len().get()).max().unwrap();
    assert_eq!(longest(&net.tap.seen[TO_SERVER]), 1400);
    assert_eq!(longest(&net.tap.seen[TO_CLIENT]), 1400);
}

// Breaks: ECN is offered to a host whose peer has none, or lost between two that have it; DSCP and hop
// counts are not carried.
#[test]
fn ecn_is_negotiated_only_if_both_hosts_do() {
    let ecn = |mode| farpace_tcp::config::Config { ecn: mode, ..linux() };
    for (client_ecn, server_ecn, agreed) in [
        (EcnMode::On, EcnMode::Passive, true),
        (EcnMode::On, EcnMode::Off, false),
        (EcnMode::Off, EcnMode::Passive, false),
    ] {
        let mut net = Net::new(Plan::new());
        net.tap.on = true;
        let server = serve(&mut net, ecn(server_ecn), 20_000);
        let mut config = ecn(client_ecn);
        config.tuning.dscp = 46 << 2;
        config.tuning.hops = Some(33);
        let client = call(&mut net, config, 20_000);
        net.run_for(Span::from_secs(30));
        assert_done(&client, 20_000);
        assert_done(&server, 20_000);
        let syn = header(with_flags(&net.tap.seen[TO_SERVER], TcpFlags::SYN)[0]);
        assert_eq!(syn.flags.contains(TcpFlags::ECE), client_ecn == EcnMode::On);
        let marked = |seen: &[Packet]| seen.iter().any(|p| p.ip().unwrap().ecn().is_capable());
        assert_eq!(marked(&net.tap.seen[TO_SERVER]), agreed);
        assert_eq!(marked(&net.tap.seen[TO_CLIENT]), agreed);
        assert!(net.tap.seen[TO_SERVER].iter().all(|p| p.ip().unwrap().dscp() == 46));
        assert!(net.tap.seen[TO_SERVER].iter().all(|p| p.ip().unwrap().ttl() == 33));
        assert!(net.tap.seen[TO_CLIENT].iter().all(|p| p.ip().unwrap().dscp() == 0));
    }
}

// Breaks: a client believes in a server that does not answer, or hears nothing of one that refuses.
#[test]
fn the_client_is_answered_when_the_server_has_answered() {
    // Nobody listens: a reset, after a round trip.
    let mut net = Net::new(Plan::new());
    let client = call(&mut net, linux(), 10);
    net.run_for(Span::from_millis(500));
    assert_eq!(client.borrow().ended, None);
    net.run_for(Span::from_millis(200));
    assert_eq!(client.borrow().ended, Some(farpace_tcp::CloseReason::Reset));
    assert_eq!(net.totals().connections, 0);
    // Nothing comes back: the client hears nothing, and the gateway forgets.
    let mut net = Net::new(Plan { loss: 1.0, ..Plan::new() });
    net.tap.on = true;
    let client = call(&mut net, linux(), 10);
    net.run_for(Span::from_secs(5));
    assert_eq!(net.totals().half_open, 1);
    net.run_for(Span::from_secs(600));
    assert!(!client.borrow().connected);
    assert!(net.tap.seen[TO_CLIENT].is_empty());
    assert_eq!((net.totals().connections, net.totals().half_open), (0, 0));
}

// Breaks: a server takes hosts that do not exist for connected, as a flood of SYNs with forged sources goes
// on to its program.
#[test]
fn the_server_is_not_acknowledged_before_the_client_is_there() {
    let mut net = Net::new(Plan::new());
    let server = serve(&mut net, linux(), 10);
    let mut syn = farpace_wire::tcp::TcpHeader { src_port: 7, dst_port: SERVER_PORT, ..Default::default() };
    (syn.flags, syn.window) = (TcpFlags::SYN, 1000);
    let pair = farpace_wire::AddressPair::new("10.0.0.99".parse().unwrap(), net.addresses[1]).unwrap();
    let mac = farpace_wire::MacAddr;
    let below = farpace_wire::Below::new(mac([2; 6]), mac([2, 0, 192, 0, 2, 1]), pair, 9);
    net.tap.on = true;
    net.inject(farpace_gateway::Gateway::LAN, below.tcp(1, &syn, Default::default()));
    net.run_for(Span::from_secs(120));
    assert!(!net.tap.seen[TO_CLIENT].is_empty(), "the server has answered, and so has the gateway");
    assert!(!server.borrow().connected);
    assert!(net.tap.seen[TO_SERVER].iter().all(|packet| !header(packet).flags.contains(TcpFlags::ACK)));
    assert_eq!((net.totals().connections, net.totals().half_open), (0, 0));
}

/// Breaks: a late copy of the SYN of a connection that passes is split as if it opened one, and its leg
/// resets the connection that lives.
#[test]
fn a_late_copy_of_a_syn_ends_no_connection_that_passes() {
    let plan = Plan::new();
    let config = plan.config.clone();
    let mut net = Net::new(plan);
    net.tap.on = true;
    net.drain();
    let server = serve(&mut net, linux(), 10);
    let client = call(&mut net, linux(), 10_000_000);
    net.run_for(Span::from_secs(2));
    assert!(client.borrow().connected && !server.borrow().peer_closed);
    let syn = net.tap.seen[FROM_CLIENT][0].clone();
    assert!(header(&syn).flags.contains(TcpFlags::SYN));
    net.restart(config);
    net.inject(farpace_gateway::Gateway::LAN, syn);
    net.run_for(Span::from_secs(60));
    assert_done(&client, 10);
    assert_done(&server, 10_000_000);
    assert_eq!(net.totals().connections, 0);
}
