use super::*;
use crate::pacing::{ClassConfig, PacingConfig, Protocol};
use bytes::Bytes;
use farpace_path::Prefix;
use farpace_wire::ethernet::{EtherType, MacAddr};
use farpace_wire::ip::AddressPair;
use farpace_wire::tcp::TcpHeader;
use farpace_wire::udp::UdpHeader;
use farpace_wire::{Below, fragment};
use proptest::prelude::*;
use std::net::IpAddr;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn below(src: IpAddr, dst: IpAddr, dscp: u8) -> Below {
    Below { tos: dscp << 2 | 2, ..Below::new(MAC, MAC, AddressPair::new(src, dst).unwrap(), 64) }
}

fn udp(src: &str, dst: &str, ports: (u16, u16), len: usize) -> Packet {
    let header = UdpHeader { src_port: ports.0, dst_port: ports.1 };
    below(ip(src), ip(dst), 0).udp(1, header, Bytes::from(vec![0; len])).unwrap()
}

fn tcp(ports: (u16, u16)) -> TcpHeader {
    let mut header = [0; 20];
    header[0..2].copy_from_slice(&ports.0.to_be_bytes());
    header[2..4].copy_from_slice(&ports.1.to_be_bytes());
    header[12] = 5 << 4;
    TcpHeader::parse(&header).unwrap().0
}

/// The same frame with `tags` VLAN tags.
fn tagged(packet: &Packet, tags: usize) -> Packet {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    for _ in 0..tags {
        frame.splice(12..12, [0x81, 0, 0, 7]);
    }
    Packet::from_frame(&frame).unwrap()
}

fn config(classes: usize, filters: Vec<ClassFilter>) -> PacingConfig {
    let class = |i: usize| ClassConfig { name: i.to_string(), rate: None, limit: None };
    PacingConfig { classes: (0..classes).map(class).collect(), filters, ..PacingConfig::default() }
}

/// A reference implementation of filter matching, field by field.
fn matches_by_definition(filter: &ClassFilter, packet: &Packet) -> bool {
    let Some(ip) = packet.ip() else {
        return *filter
            == ClassFilter {
                class: filter.class.clone(),
                priority: filter.priority,
                ..ClassFilter::default()
            };
    };
    let tcp = packet.tcp().map(|tcp| (tcp.src_port(), tcp.dst_port()));
    let ports = tcp.or_else(|_| packet.udp().map(|udp| (udp.src_port(), udp.dst_port()))).ok();
    filter.protocol.is_none_or(|p| p.number() == ip.protocol())
        && filter.src.is_none_or(|net| net.contains(ip.src()))
        && filter.dst.is_none_or(|net| net.contains(ip.dst()))
        && filter.dscp.is_none_or(|dscp| dscp == ip.dscp())
        && filter.src_port.is_none_or(|port| ports.is_some_and(|(src, _)| src == port))
        && filter.dst_port.is_none_or(|port| ports.is_some_and(|(_, dst)| dst == port))
}

fn small_address() -> impl Strategy<Value = IpAddr> {
    (any::<bool>(), 0u8..4, 0u8..4).prop_map(|(v4, net, host)| match v4 {
        true => [10, 0, net, host].into(),
        false => ip(&format!("2001:db8::{net}:{host}")),
    })
}

fn small_prefix() -> impl Strategy<Value = Prefix> {
    let bits = prop::sample::select(vec![0u8, 8, 24, 30, 31, 32, 64, 96, 112, 126, 127, 128]);
    (small_address(), bits).prop_map(|(address, bits)| {
        Prefix::new(address, if address.is_ipv4() { bits.min(32) } else { bits }).unwrap()
    })
}

fn small_filter(classes: usize) -> impl Strategy<Value = ClassFilter> {
    let maybe = prop::option::weighted::<BoxedStrategy<u16>>;
    let protocol = prop::option::weighted(0.3, prop::sample::select(vec![6u8, 17, 1]));
    let nets = (prop::option::of(small_prefix()), prop::option::of(small_prefix()));
    let ports = (maybe(0.3, (1u16..4).boxed()), maybe(0.3, (1u16..4).boxed()));
    (0..classes, 0u16..3, protocol, nets, ports, prop::option::weighted(0.2, 0u8..3)).prop_map(
        |(class, priority, protocol, (src, dst), (src_port, dst_port), dscp)| ClassFilter {
            class: class.to_string(),
            priority,
            protocol: protocol.map(Protocol::new),
            src,
            dst,
            src_port,
            dst_port,
            dscp,
        },
    )
}

fn small_packet() -> impl Strategy<Value = Packet> {
    let addresses =
        (small_address(), small_address()).prop_filter("one family", |(a, b)| a.is_ipv4() == b.is_ipv4());
    (addresses, 0u8..4, (1u16..4, 1u16..4), 0u8..3, 0usize..3).prop_map(
        |((src, dst), kind, ports, dscp, tags)| {
            let below = below(src, dst, dscp);
            let datagram = |len| {
                let header = UdpHeader { src_port: ports.0, dst_port: ports.1 };
                below.udp(1, header, Bytes::from(vec![0; len])).unwrap()
            };
            let packet = match kind {
                0 => below.tcp(1, &tcp(ports), Bytes::new()),
                1 => datagram(20),
                2 => fragment(datagram(2_000), 1_500, 9).unwrap().remove(usize::from(dscp % 2)),
                _ => return Packet::from_link(MAC, MAC, EtherType::ARP, Bytes::from_static(&[0; 28])),
            };
            tagged(&packet, tags)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Breaks: the classifier finds the same class as a linear search in the order of evaluation.
    #[test]
    fn the_classifier_equals_a_linear_search(
        filters in prop::collection::vec(small_filter(4), 0..30),
        packets in prop::collection::vec(small_packet(), 1..30),
        default in prop::option::of(0usize..4),
    ) {
        let mut config = config(4, filters);
        config.default = default.map(|at| at.to_string());
        let classifier = config.classifier();
        for packet in packets {
            for filter in &config.filters {
                prop_assert_eq!(filter.matches(&packet), matches_by_definition(filter, &packet), "{:?}", filter);
            }
            let walk = (0..3).find_map(|priority| {
                let mut these = config.filters.iter().filter(|f| f.priority == priority);
                these.find(|f| matches_by_definition(f, &packet)).map(|f| f.class.parse::<usize>().unwrap())
            });
            prop_assert_eq!(classifier.classify(&packet), walk.or(default));
        }
    }

    /// Breaks: a filter that is reported never to match is not the first match of any packet.
    #[test]
    fn covered_filters_never_match(
        filters in prop::collection::vec(small_filter(2), 0..12),
        packets in prop::collection::vec(small_packet(), 1..60),
    ) {
        let mut warnings = Vec::new();
        covered(&filters, &mut warnings);
        let order = ordered(&filters);
        for packet in packets {
            let Some(first) = order.iter().find(|at| matches_by_definition(&filters[**at], &packet)) else { continue };
            prop_assert!(warnings.iter().all(|w| w.at[1] != first.to_string()), "{:?}", warnings);
        }
    }
}

/// Breaks: which packets a filter matches: tagged packets, fragments, both families, all protocols.
#[test]
fn packets_of_all_kinds_are_classified() {
    let filter = |key: &str| -> ClassFilter { toml::from_str(&format!("class = \"0\"\n{key}")).unwrap() };
    let datagram = udp("10.0.0.1", "10.0.0.2", (5, 53), 2_000);
    let six = udp("2001:db8::1", "2001:db8::2", (5, 53), 20);
    let parts = fragment(datagram.clone(), 1_500, 9).unwrap();
    let echo = farpace_wire::Icmp::EchoRequest { ident: 1, seq: 1, data: b"x" };
    let ping = below(ip("10.0.0.1"), ip("10.0.0.2"), 0).icmp(1, &echo).unwrap();
    let arp = Packet::from_link(MAC, MAC, EtherType::ARP, Bytes::from_static(&[0; 28]));
    let marked = below(ip("10.0.0.1"), ip("10.0.0.2"), 46).tcp(1, &tcp((5, 53)), Bytes::new());
    let kinds = [
        ("plain", datagram.clone()),
        ("one tag", tagged(&datagram, 1)),
        ("two tags", tagged(&datagram, 2)),
        ("IPv6", six),
        ("first fragment", parts[0].clone()),
        ("last fragment", parts[1].clone()),
        ("ICMP", ping),
        ("ARP", arp),
        ("TCP, DSCP 46", marked),
    ];
    for (key, catches) in [
        ("", "plain, one tag, two tags, IPv6, first fragment, last fragment, ICMP, ARP, TCP, DSCP 46"),
        ("dst_port = 53", "plain, one tag, two tags, IPv6, TCP, DSCP 46"),
        (
            "dst = \"10.0.0.0/8\"",
            "plain, one tag, two tags, first fragment, last fragment, ICMP, TCP, DSCP 46",
        ),
        ("protocol = \"udp\"", "plain, one tag, two tags, IPv6, first fragment, last fragment"),
        ("protocol = \"udp\"\nsrc_port = 5", "plain, one tag, two tags, IPv6"),
        ("protocol = \"icmp\"", "ICMP"),
        ("dscp = 46", "TCP, DSCP 46"),
        ("dscp = 0\nsrc = \"0.0.0.0/0\"", "plain, one tag, two tags, first fragment, last fragment, ICMP"),
        ("src = \"::/0\"", "IPv6"),
    ] {
        let caught: Vec<_> =
            kinds.iter().filter(|(_, p)| filter(key).matches(p)).map(|(name, _)| *name).collect();
        assert_eq!(caught.join(", "), catches, "{key}");
    }
}

fn on_address(i: u32) -> ClassFilter {
    let dst = Prefix::new(IpAddr::V4((0x0a00_0000 + i).into()), 32).unwrap();
    ClassFilter { class: "0".into(), dst: Some(dst), ..ClassFilter::default() }
}

/// Breaks: ten thousand filters on addresses and ports cost one search for each shape, not one for each
/// filter.
#[test]
fn many_filters_are_few_shapes() {
    let port = |i: u16| ClassFilter { class: "1".into(), dst_port: Some(i), ..ClassFilter::default() };
    let filters = (0..10_000).map(on_address).chain((0..10_000).map(port)).collect();
    let config = config(2, filters);
    assert_eq!(config.check(farpace_units::Rate::from_mbit(1)), []);
    let classifier = config.classifier();
    assert_eq!(classifier.shapes.len(), 2);
    assert_eq!(classifier.classify(&udp("10.9.9.9", "10.0.39.15", (1, 9_999), 20)), Some(0));
    assert_eq!(classifier.classify(&udp("10.9.9.9", "10.0.39.16", (1, 9_999), 20)), Some(1));
    assert_eq!(classifier.classify(&udp("10.9.9.9", "10.0.39.16", (1, 10_000), 20)), None);
}

/// Breaks: the maximum numbers of filters and shapes are accepted, and more are refused.
#[test]
fn filters_have_limits() {
    let error_of = |filters: Vec<ClassFilter>| {
        let mut errors = Vec::new();
        check(&filters, &mut errors);
        errors.first().map(ToString::to_string).unwrap_or_default()
    };
    let many = |n: usize| error_of((0..n as u32).map(on_address).collect());
    assert_eq!(many(MAX_FILTERS), "");
    assert!(many(MAX_FILTERS + 1).contains("at most 65536"));
    let shapes = |n: u32| {
        let net = |bits: u32| Prefix::new(ip("::"), bits as u8).ok();
        let filter = |i| ClassFilter { src: net(i % 129), dst: net(i / 129), ..on_address(0) };
        error_of((0..n).map(filter).collect())
    };
    assert_eq!(shapes(MAX_SHAPES as u32), "");
    assert!(shapes(MAX_SHAPES as u32 + 1).contains("1025 shapes"));
    let bad = |text: &str| error_of(vec![toml::from_str(&format!("class = \"0\"\n{text}")).unwrap()]);
    assert!(bad("dscp = 64").contains("from 0 to 63"));
    assert!(bad("src = \"10.0.0.1\"\ndst = \"::1\"").contains("no packet goes from 10.0.0.1 to ::1"));
    assert!(bad("protocol = \"icmp\"\ndst_port = 1").contains("icmp have no ports"));
}

/// Breaks: a warning names each filter that never matches and the filter that covers it, and no other filter.
#[test]
fn covered_filters_cause_warnings() {
    let warned = |filters: &str| {
        let config: PacingConfig = toml::from_str(&format!(
            "default = \"b\"\nclasses = [{{ name = \"a\" }}, {{ name = \"b\" }}]\nfilters = [{filters}]"
        ))
        .unwrap();
        let warnings = config.warnings();
        warnings.iter().map(|w| format!("{}: {}", w.at.join("."), w.problem)).collect::<Vec<_>>().join("\n")
    };
    for (filters, expected) in [
        (
            r#"{ class = "a", dst = "10.0.0.0/8" }, { class = "b", dst = "10.1.0.0/16" }"#,
            "filters.1: never matches: filter 0, which precedes it, takes all of its packets to class `a`",
        ),
        (r#"{ class = "a", dst = "10.1.0.0/16" }, { class = "b", dst = "10.0.0.0/8" }"#, ""),
        (
            r#"{ class = "a", priority = 2, dst_port = 80 }, { class = "b", priority = 1 }"#,
            "filters.0: never matches: filter 1, which precedes it, takes all of its packets to class `b`",
        ),
        (
            r#"{ class = "a", dst_port = 80 }, { class = "a", dst_port = 80, protocol = "tcp", src = "::1" }"#,
            "filters.1: never matches: filter 0, which precedes it, takes all of its packets to the same \
             class `a`",
        ),
        (r#"{ class = "a", dst_port = 80, protocol = "tcp" }, { class = "b", dst_port = 80 }"#, ""),
        (
            r#"{ class = "a", src = "0.0.0.0/0" }, { class = "b", dst = "10.0.0.1" }"#,
            "filters.1: never matches: filter 0, which precedes it, takes all of its packets to class `a`",
        ),
        (r#"{ class = "a", src = "::/0" }, { class = "b", dst = "10.0.0.1" }"#, ""),
        (
            r#"{ class = "b", dst = "10.0.0.1" }"#,
            "classes.0: no filter selects class `a`, and it is not the default",
        ),
    ] {
        assert_eq!(warned(filters), expected, "{filters}");
    }
    let idle: PacingConfig =
        toml::from_str("scheduler = \"psp\"\ngaps = \"timers\"\nburst = \"1 kB\"").unwrap();
    let at: Vec<_> = idle.warnings().iter().map(|w| w.at.join(".")).collect();
    assert_eq!(at, ["gaps", "burst"]);
}
