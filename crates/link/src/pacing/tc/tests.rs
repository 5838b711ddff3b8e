use super::*;
use crate::pacing::{
    ClassConfig, ClassFilter, ClassRate, GapFrameKind, Gaps, PacingConfig, Protocol, SchedulerKind,
};
use farpace_path::{Prefix, QueueLimit};
use farpace_units::{ByteCount, Packets, Rate, Span};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// §3.6 of the paper, verbatim.
const PAPER: &str = "\
tc qdisc add dev eth0 root handle 1: \\
psp default 3
tc class add dev eth0 parent 1: \\
classid 1:1 psp rate 500mbit
tc class add dev eth0 parent 1: \\
classid 1:2 psp rate 250mbit
tc class add dev eth0 parent 1: \\
classid 1:3 psp mode normal
tc qdisc add dev eth0 parent 1:1 \\
handle 10: pfifo
tc qdisc add dev eth0 parent 1:2 \\
handle 20: pfifo
tc qdisc add dev eth0 parent 1:3 \\
handle 30: pfifo
tc filter add dev eth0 parent 1: \\
protocol ip pref 1 u32 match ip \\
dst 192.168.2.0/24 classid 1:1
tc filter add dev eth0 parent 1: \\
protocol ip pref 1 u32 match ip \\
dst 192.168.3.0/24 classid 1:2
";

fn made(text: &str) -> PacingConfig {
    let mut tc = Tc::new(None);
    tc.apply_text(text).unwrap_or_else(|error| panic!("{error}"));
    tc.config().unwrap().clone()
}

/// A configuration from TOML.
fn table(text: &str) -> PacingConfig {
    toml::from_str(text).unwrap()
}

/// Breaks: the example of the paper (§3.6) works, for users who know the commands of PSPacer.
#[test]
fn the_papers_example_is_understood() {
    let config = made(PAPER);
    let expected = table(
        r#"
        scheduler = "psp"
        default = "1:3"
        [[classes]]
        name = "1:1"
        rate = "500 Mbit/s"
        [[classes]]
        name = "1:2"
        rate = "250 Mbit/s"
        [[classes]]
        name = "1:3"
        [[filters]]
        class = "1:1"
        priority = 1
        dst = "192.168.2.0/24"
        [[filters]]
        class = "1:2"
        priority = 1
        dst = "192.168.3.0/24"
        "#,
    );
    assert_eq!(config, expected);
    assert_eq!(config.check(Rate::from_mbit(1_000)), []);
    assert_eq!(config.warnings(), []);
}

/// Breaks: each form of a command has its effect.
#[test]
fn commands_have_their_effects() {
    let root = "qdisc add dev eth0 root handle 1: edf default 2\nclass add dev eth0 parent 1: classid 1:1 \
                edf rate 1mbit\n\
                class add dev eth0 parent 1: classid 1:2 edf mode normal\n";
    let base = "default = \"1:2\"\nclasses = [{ name = \"1:1\", rate = \"1 Mbit/s\" }, { name = \"1:2\" }]\n";
    for (words, means) in [
        (
            "class change dev eth0 classid 1:1 edf rate 2mbit",
            "default = \"1:2\"\nclasses = [{ name = \"1:1\", rate = \"2 Mbit/s\" }, { name = \"1:2\" }]",
        ),
        (
            "class replace parent 1: classid 1:1 edf mode connection",
            "default = \"1:2\"\nclasses = [{ name = \"1:1\", rate = \"connection\" }, { name = \"1:2\" }]",
        ),
        ("cl del dev eth0 classid 1:1", "default = \"1:2\"\nclasses = [{ name = \"1:2\" }]"),
        (
            "q add dev eth0 parent 1:2 handle 10: pfifo limit 50",
            "default = \"1:2\"\nclasses = [{ name = \"1:1\", rate = \"1 Mbit/s\" }, { name = \"1:2\", limit \
             = \"50 packets\" }]",
        ),
        ("qdisc add dev eth0 parent 1:2 bfifo limit 1k\nqdisc del dev eth0 parent 1:2", base),
        (
            "qdisc add dev eth0 parent 1:2 bfifo",
            "default = \"1:2\"\nclasses = [{ name = \"1:1\", rate = \"1 Mbit/s\" }, { name = \"1:2\", limit \
             = \"1514 kB\" }]",
        ),
        (
            "qdisc change dev eth0 root edf gaps hybrid jitter 50us device_rate 1gbit mtu 9000 limit 64kb",
            &format!(
                "{base}gaps = \"hybrid\"\njitter = \"50 us\"\ndevice_rate = \"1 Gbit/s\"\nmtu = \"9 \
                 kB\"\nlimit = \"65536 B\""
            ),
        ),
        ("qdisc change root edf line 1gbit", &format!("{base}device_rate = \"1 Gbit/s\"")),
        (
            "qdisc replace dev eth0 root handle 2: htb default 1 burst 15kb tick 10ms\nclass add parent 2: \
             classid 2:1 htb rate 8mbit ceil 8000kbit",
            "scheduler = \"token-bucket\"\ndefault = \"2:1\"\nburst = \"15360 B\"\ntick = \"10 ms\"\nclasses \
             = [{ name = \"2:1\", rate = \"8 Mbit/s\" }]",
        ),
        (
            "qdisc replace root tbf rate 500mbit burst 15k limit 1mb",
            "scheduler = \"token-bucket\"\ndefault = \"1:1\"\nburst = \"15360 B\"\nclasses = [{ name \
             = \"1:1\", rate = \"500 Mbit/s\", limit = \"1048576 B\" }]",
        ),
        (
            "qdisc replace root tbf rate 8mbit buffer 10000 latency 10ms",
            "scheduler = \"token-bucket\"\ndefault = \"1:1\"\nburst = \"10 kB\"\nclasses = [{ name \
             = \"1:1\", rate = \"8 Mbit/s\", limit = \"20 kB\" }]",
        ),
        (
            "qdisc replace root tbf rate 8mbit burst 1kb limit 2kb\nqdisc change root tbf rate 9mbit",
            "scheduler = \"token-bucket\"\ndefault = \"1:1\"\nburst = \"1024 B\"\nclasses = [{ name \
             = \"1:1\", rate = \"9 Mbit/s\", limit = \"2048 B\" }]",
        ),
        (
            "qdisc replace root fq flow_limit 100 quantum 3028 timer_slack 20us",
            "scheduler = \"fq\"\ndefault = \"1:1\"\nlimit = \"100 packets\"\nquantum = \"3028 B\"\nslack \
             = \"20 us\"\nclasses = [{ name = \"1:1\", rate = \"connection\" }]",
        ),
        ("qdisc replace root pfifo limit 10", "scheduler = \"fifo\"\nlimit = \"10 packets\""),
        ("qdisc replace root bfifo", "scheduler = \"fifo\"\nlimit = \"1514 kB\""),
    ] {
        assert_eq!(made(&format!("{root}{words}")), table(means), "{words}");
    }
    let mut tc = Tc::new(Some(table(base)));
    tc.apply_text("tc qdisc del dev eth0 root").unwrap();
    assert_eq!(tc.config(), None);
}

/// Breaks: a `tc` filter matches the same packets as in Linux.
#[test]
fn filters_have_the_meaning_of_tc() {
    let root = "qdisc add root edf\nclass add parent 1: classid 1:1 edf rate 1mbit\n";
    for (words, means) in [
        (
            "protocol ip pref 5 u32 match ip src 10.0.0.1 match ip dport 80 0xffff flowid 1:1",
            "priority = 5\nsrc = \"10.0.0.1\"\ndst_port = 80",
        ),
        (
            "prio 1 protocol ip u32 match ip dport 80 0xffff classid 1:1",
            "priority = 1\nsrc = \"0.0.0.0/0\"\ndst_port = 80",
        ),
        (
            "pref 1 protocol ipv6 u32 match ip6 sport 0x50 ffff classid 1:1",
            "priority = 1\nsrc = \"::/0\"\nsrc_port = 80",
        ),
        (
            "pref 1 u32 match ip6 dst 2001:db8::/32 match ip6 priority 0xb8 0xfc classid 1:1",
            "priority = 1\ndst = \"2001:db8::/32\"\ndscp = 46",
        ),
        ("pref 1 u32 match ip dport 80 0xffff classid 1:1", "priority = 1\ndst_port = 80"),
        ("pref 0 u32 match u32 0 0 at 0 classid 1:1", ""),
        ("pref 1 matchall classid 1:1", "priority = 1"),
        (
            "pref 1 protocol ip u32 match ip protocol 17 0xff match ip tos 0xb8 0xfc match ip dst any \
             classid 1:1",
            "priority = 1\nsrc = \"0.0.0.0/0\"\nprotocol = \"udp\"\ndscp = 46",
        ),
        (
            "pref 1 protocol ip flower ip_proto tcp dst_ip 10.0.0.0/8 src_ip 10.1.2.3 dst_port 80 src_port 9 \
             ip_tos 0xb8/0xfc classid 1:1",
            "priority = 1\nprotocol = \"tcp\"\nsrc = \"10.1.2.3\"\ndst = \"10.0.0.0/8\"\nsrc_port = \
             9\ndst_port = 80\ndscp = 46",
        ),
    ] {
        let filter: ClassFilter = toml::from_str(&format!("class = \"1:1\"\n{means}")).unwrap();
        assert_eq!(
            made(&format!("{root}filter add dev eth0 parent 1: {words}")).filters,
            [filter],
            "{words}"
        );
    }
}

/// Breaks: filters without a priority are evaluated in the order of Linux (with the numbers of Linux 6.18),
/// and commands change and delete only the filters that they name.
#[test]
fn filters_are_added_changed_and_deleted() {
    let root = "qdisc add root edf\nclass add parent 1: classid 1:1 edf rate 1mbit\nclass add parent 1: \
                classid 1:2 edf rate 1mbit\n";
    let add = |pref: &str, port: u16| {
        format!("filter add parent 1: {pref} u32 match ip dport {port} 0xffff classid 1:1\n")
    };
    let three = format!("{root}{}{}{}", add("", 1), add("", 2), add("pref 7", 3));
    let left = |words: &str| -> Vec<(u16, Option<u16>, String)> {
        let filters = made(&format!("{three}{words}")).filters;
        filters.into_iter().map(|f| (f.priority, f.dst_port, f.class)).collect()
    };
    let row = |pref, port, class: &str| (pref, Some(port), class.to_owned());
    let [one, two, seven] = [row(49_152, 1, "1:1"), row(49_151, 2, "1:1"), row(7, 3, "1:1")];
    assert_eq!(left(""), [one.clone(), two.clone(), seven.clone()]);
    assert_eq!(left("filter del parent 1: pref 7"), [one.clone(), two.clone()]);
    assert_eq!(left("filter del parent 1:"), []);
    assert_eq!(left("filter del pref 7 u32 match ip dport 3 0xffff"), [one.clone(), two.clone()]);
    assert_eq!(left("filter del u32 match ip dport 1 0xffff"), [two.clone(), seven.clone()]);
    let changed = left("filter change pref 7 u32 match ip dport 3 0xffff classid 1:2");
    assert_eq!(changed, [one.clone(), two.clone(), row(7, 3, "1:2")]);
    assert_eq!(left("filter replace pref 7 u32 match ip dport 4 0xffff classid 1:2").len(), 4);
    let again = format!("filter del parent 1:\n{}", add("", 9));
    assert_eq!(left(&again), [row(49_152, 9, "1:1")]);
}

const ROOT: &str = "\
qdisc add dev eth0 root handle 1: edf default 2
class add parent 1: classid 1:1 edf rate 1mbit
class add parent 1: classid 1:2 edf mode normal
filter add pref 1 u32 match ip dport 9 0xffff classid 1:1
";

/// Asserts that commands after [`ROOT`] fail at this word with this problem.
fn assert_errors(errors: &[(&str, &str, &str)]) {
    for (words, at, problem) in errors {
        let mut tc = Tc::new(None);
        tc.apply_text(ROOT).unwrap();
        let error = tc.apply_text(words).expect_err(words);
        assert!(error.problem.contains(problem), "{words}:\n{error}");
        assert_eq!(error.words.get(error.at).map_or("", String::as_str), *at, "{words}:\n{error}");
    }
}

/// Breaks: an error names the wrong word and a correction, and words of `tc` that pacing does not support are
/// errors: qdiscs.
#[test]
fn errors_of_qdiscs_name_the_word_and_a_correction() {
    assert_errors(&[
        ("tc", "", "the command ends after `tc`: expected qdisc, class or filter"),
        ("tc qdsic add", "qdsic", "unknown word `qdsic`: did you mean `qdisc`?"),
        ("tc -s class show", "-s", "farpace pacing show"),
        ("tc class show dev eth0", "show", "farpace pacing show"),
        ("tc action add", "action", "pacing does not support: the objects are qdisc, class and filter"),
        ("qdisc frob", "frob", "unknown word `frob`: expected one of add, change, replace, delete"),
        ("qdisc add dev eth0", "", "ends after `eth0`: expected root or parent"),
        ("qdisc add dev eth0 root edf", "edf", "there is a root already, `edf`: `replace` starts over"),
        ("qdisc replace dev eth1 root edf", "eth1", "these commands are for `eth0`"),
        (
            "qdisc replace root fq_codel",
            "fq_codel",
            "a word of tc that pacing does not support: the kinds are edf, psp",
        ),
        ("qdisc replace root eddf", "eddf", "did you mean `edf`?"),
        ("qdisc replace ingress", "ingress", "only what leaves a device is paced"),
        ("qdisc replace root edf defalt 3", "defalt", "did you mean `default`?"),
        ("qdisc replace root edf gaps none", "none", "expected one of frames, timers, hybrid"),
        ("qdisc replace root htb r2q 10", "r2q", "classes do not borrow"),
        ("qdisc replace root fq limit 100", "limit", "`flow_limit` limits each"),
        ("qdisc replace root fq maxrate 1mbit", "maxrate", "fq has flow_limit"),
        ("qdisc replace root tbf rate 1mbit burst 1k", "1k", "tbf needs `limit` or `latency`"),
        ("qdisc replace root tbf burst 1k limit 1k", "1k", "tbf needs `rate`"),
        ("qdisc replace root tbf rate 1mbit peakrate 2mbit", "peakrate", "does not support"),
        ("qdisc change root psp", "psp", "the root is `edf`: `replace` makes it `psp`"),
        ("qdisc add parent 1:7 pfifo", "1:7", "there is no class 1:7; classes: 1:1, 1:2"),
        ("qdisc add parent 1:1 fq", "fq", "the queue of a class is `pfifo` or `bfifo`"),
        (
            "qdisc add parent 1:1 pfifo limit 5\nqdisc add parent 1:1 pfifo limit 6",
            "pfifo",
            "has a queue already",
        ),
    ]);
}

/// Breaks: the same for classes.
#[test]
fn errors_of_classes_name_the_word_and_a_correction() {
    assert_errors(&[
        (
            "class add parent 1: classid 1:3 psp rate 1mbit",
            "psp",
            "the root is `edf`, and so are its classes",
        ),
        ("class add parent 1: classid 1:3 edf rate 1mbits", "1mbits", "did you mean `1mbit`?"),
        (
            "class add parent 1: classid 1:3 edf",
            "edf",
            "expected `rate` with a rate, `mode normal` or `mode connection`",
        ),
        ("class add parent 1: classid 1:3 edf rate 1mbit mode normal", "normal", "not both"),
        ("class add parent 1: classid 1:3 edf rate 1mbit rate 2mbit", "2mbit", "`rate` is given twice"),
        ("class add parent 1: classid 1:3 edf rate 1mbit ceil 2mbit", "2mbit", "do not borrow"),
        (
            "class add parent 1: classid 1:1 edf rate 1mbit",
            "1:1",
            "there is a class 1:1 already: `change` changes it",
        ),
        ("class add parent 1:1 classid 1:3 edf rate 1mbit", "1:1", "have the root as parent: expected `1:`"),
        ("class add parent 2: classid 2:3 edf rate 1mbit", "2:", "there is no qdisc 2: (the root is 1:)"),
        ("class add parent 1: classid 2:3 edf rate 1mbit", "2:3", "this would be 1:3"),
        ("class add parent 1: edf rate 1mbit", "edf", "expected `classid`"),
        ("class add classid 1:3 edf rate 1mbit", "1:3", "expected `parent`"),
        ("class change classid 1:9 edf rate 1mbit", "1:9", "there is no class 1:9"),
        ("class del classid 1:1", "1:1", "1 filters select class 1:1"),
        ("class del classid 1:2", "1:2", "is the default"),
    ]);
}

/// Breaks: the same for filters.
#[test]
fn errors_of_filters_name_the_word_and_a_correction() {
    assert_errors(&[
        (
            "filter add parent 1: u32 match ip dst 10.0.0.1/8 classid 1:1",
            "10.0.0.1/8",
            "did you mean \"10.0.0.0/8\"?",
        ),
        ("filter add parent 1: u32 match ip dst 10.0.0.1 classid 1:9", "1:9", "there is no class 1:9"),
        ("filter add parent 1: u32 match ip dst 10.0.0.1", "10.0.0.1", "expected `classid`"),
        ("filter add parent 1: u32 classid 1:1", "1:1", "expected `match`"),
        (
            "filter add parent 1: u32 match ip dport 80 0xff00 classid 1:1",
            "0xff00",
            "expected the mask 0xffff",
        ),
        ("filter add parent 1: u32 match ip dport 80 classid 1:1", "classid", "not a mask"),
        ("filter add parent 1: u32 match ip dport 99999 0xffff classid 1:1", "99999", "from 0 to 65535"),
        ("filter add parent 1: u32 match ip tos 0xb8 0xff classid 1:1", "0xff", "the DSCP only"),
        ("filter add parent 1: u32 match ip tos 0xb9 0xfc classid 1:1", "0xfc", "bits outside of the mask"),
        ("filter add parent 1: u32 match ip ihl 5 0xf classid 1:1", "ihl", "does not support"),
        ("filter add parent 1: u32 match tcp dst 80 0xffff classid 1:1", "tcp", "match ip protocol 6 0xff"),
        ("filter add parent 1: u32 match u32 1 0xff at 4 classid 1:1", "u32", "does not support"),
        (
            "filter add parent 1: u32 match ip src 10.0.0.1 match ip dst ::1 classid 1:1",
            "::1",
            "is IPv6, and the filter is not",
        ),
        ("filter add protocol ip u32 match ip6 dst ::1 classid 1:1", "ip6", "expected `match ip`"),
        (
            "filter add u32 match ip src 10.0.0.1 match ip src 10.0.0.2 classid 1:1",
            "10.0.0.2",
            "`src` is given twice",
        ),
        (
            "filter add u32 match ip src 10.0.0.1 action drop",
            "action",
            "selects a class and does nothing else",
        ),
        ("filter add protocol arp matchall classid 1:1", "arp", "does not support"),
        ("filter add flower vlan_id 5 classid 1:1", "vlan_id", "does not support"),
        ("filter add flower dst_port 80-90 classid 1:1", "80-90", "port ranges"),
        ("filter add flower ip_tos 0xb8 classid 1:1", "0xb8", "expected the mask 0xfc"),
        ("filter add fw classid 1:1", "fw", "the kinds of filters are u32, flower, matchall"),
        ("filter add parent 1:1 matchall classid 1:1", "1:1", "have the root as parent"),
        ("filter del pref 9", "9", "there is no filter of pref 9"),
        ("filter change pref 2 matchall classid 1:1", "1:1", "there is no such filter"),
        ("filter add handle 800::1 matchall classid 1:1", "handle", "does not support"),
    ]);
}

/// Breaks: errors without a root, in long commands and in later lines of a script state the problem.
#[test]
fn errors_of_scripts_state_the_line() {
    let mut empty = Tc::new(None);
    for words in [
        "class add parent 1: classid 1:1 edf rate 1mbit",
        "filter add matchall classid 1:1",
        "qdisc del root",
    ] {
        let error = empty.apply_text(words).unwrap_err();
        assert!(error.problem.contains("there is no root yet"), "{error}");
    }
    let long = empty.apply(&vec!["x".to_owned(); MAX_WORDS + 1]).unwrap_err();
    assert!(long.to_string().contains("at most 1000 words") && long.to_string().len() < 100, "{long}");
    let error = Tc::new(None).apply_text("\n# begin\ntc qdisc add \\\n root psp default x").unwrap_err();
    let expected = "line 3: `x` is not a number in hexadecimal, from 0 to ffff\n  tc qdisc add root psp \
                    default x\n                                ^";
    assert_eq!(error.to_string(), expected);
}

/// Breaks: a failed command has no effect, also on later commands.
#[test]
fn a_failed_command_has_no_effect() {
    let mut tc = Tc::new(None);
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    tc.apply(&words("qdisc add root handle 1: psp default 3")).unwrap();
    let before = tc.clone();
    for bad in [
        "class add dev eth9 parent 7: classid 7:1 psp rate x",
        "qdisc change root psp gaps timers limit x",
        "filter add pref x",
    ] {
        tc.apply(&words(bad)).unwrap_err();
        assert_eq!(format!("{tc:?}"), format!("{before:?}"), "{bad}");
    }
    tc.apply(&words("class add dev eth0 parent 1: classid 1:3 psp mode normal")).unwrap();
}

/// Breaks: a note warns users who write `mbps` for megabits per second.
#[test]
fn bytes_per_second_are_noted() {
    let mut tc = Tc::new(None);
    tc.apply_text("qdisc add root edf\nclass add parent 1: classid 1:1 edf rate 500mbps").unwrap();
    assert_eq!(tc.notes(), ["tc counts bytes in `500mbps`: that is 4 Gbit/s"]);
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (1u32..100_000).prop_map(|n| QueueLimit::Packets(Packets::new(n))),
        (1u64..1 << 40).prop_map(|n| QueueLimit::Bytes(ByteCount::new(n))),
        Just(QueueLimit::Unlimited),
    ]
}

fn filters(classes: Vec<String>) -> impl Strategy<Value = ClassFilter> {
    let net = |v4: bool| {
        (any::<u128>(), any::<u8>()).prop_map(move |(bits, len)| {
            let (address, len): (IpAddr, u8) = match v4 {
                true => (Ipv4Addr::from_bits(bits as u32).into(), len % 33),
                false => (Ipv6Addr::from_bits(bits).into(), len % 129),
            };
            Prefix::new(address, len).unwrap()
        })
    };
    let nets = any::<bool>().prop_flat_map(move |v4| (prop::option::of(net(v4)), prop::option::of(net(v4))));
    let ports = (prop::option::of(any::<u16>()), prop::option::of(any::<u16>()));
    let head = (prop::option::of(any::<u8>()), prop::option::of(0u8..64));
    (prop::sample::select(classes), any::<u16>(), nets, ports, head).prop_map(
        |(class, priority, (src, dst), (src_port, dst_port), (protocol, dscp))| {
            let protocol = protocol.map(Protocol::new);
            ClassFilter { class, priority, protocol, src, dst, src_port, dst_port, dscp }
        },
    )
}

fn configs() -> impl Strategy<Value = PacingConfig> {
    use SchedulerKind::{Edf, Fifo, Fq, Psp, TokenBucket};
    let schedulers = prop::sample::select(vec![Edf, Psp, TokenBucket, Fq, Fifo]);
    let gaps = prop::sample::select(vec![Gaps::Frames, Gaps::Timers, Gaps::Hybrid]);
    let frames = vec![GapFrameKind::Pause, GapFrameKind::Experimental, GapFrameKind::ToSelf];
    let gaps = (gaps, prop::sample::select(frames));
    let rate = prop_oneof![
        Just(None),
        Just(Some(ClassRate::Connection)),
        any::<u64>().prop_map(|n| Some(ClassRate::Fixed(Rate::from_bits_per_sec(n)))),
    ];
    let class = (rate, prop::option::of(limits()));
    let classes =
        (1u16..0xfff0, prop::collection::vec((1u16.., class), 1..6)).prop_map(|(major, classes)| {
            let mut taken = std::collections::BTreeSet::new();
            let new = classes.into_iter().filter(|(minor, _)| taken.insert(*minor)).collect::<Vec<_>>();
            let class =
                |(minor, (rate, limit))| ClassConfig { name: units::name((major, minor)), rate, limit };
            new.into_iter().map(class).collect::<Vec<_>>()
        });
    let spans = (any::<u64>(), any::<u64>(), any::<u64>());
    let sizes = (any::<u64>(), prop::option::of(any::<u64>()), prop::option::of(any::<u64>()), limits());
    (schedulers, gaps, prop::option::of(any::<u64>()), spans, sizes, classes).prop_flat_map(
        |(
            scheduler,
            (gaps, gap_frame),
            device_rate,
            (jitter, tick, slack),
            (mtu, burst, quantum, limit),
            classes,
        )| {
            let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
            let default = prop::option::of(prop::sample::select(names.clone()));
            (default, prop::collection::vec(filters(names), 0..5)).prop_map(move |(default, filters)| {
                PacingConfig {
                    scheduler,
                    gaps,
                    gap_frame,
                    device_rate: device_rate.map(Rate::from_bits_per_sec),
                    mtu: ByteCount::new(mtu),
                    jitter: Span::from_nanos(jitter),
                    tick: Span::from_nanos(tick),
                    burst: burst.map(ByteCount::new),
                    slack: Span::from_nanos(slack),
                    quantum: quantum.map(ByteCount::new),
                    limit,
                    default,
                    classes: classes.clone(),
                    filters,
                }
            })
        },
    )
}

proptest! {
    /// Breaks: a configuration written as `tc` commands reads back unchanged.
    #[test]
    fn commands_read_back_as_the_configuration(config in configs()) {
        let text = to_tc(&config, "eth0").unwrap().join("\n");
        let mut tc = Tc::new(None);
        tc.apply_text(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(tc.config(), Some(&config), "{}", text);
    }

    /// Breaks: every input yields a configuration or an error, never a panic.
    #[test]
    fn no_input_panics(words in prop::collection::vec(prop::sample::select(vec![
        "tc", "qdisc", "class", "filter", "add", "del", "change", "replace", "dev", "eth0", "root", "parent", "1:", "1:1",
        "handle", "classid", "psp", "edf", "htb", "tbf", "fq", "pfifo", "bfifo", "rate", "1mbit", "default", "1", "limit",
        "match", "ip", "ip6", "dst", "10.0.0.1", "::1", "dport", "80", "0xffff", "u32", "0", "flower", "dst_ip", "pref",
        "mode", "normal", "burst", "latency", "\\", "#", "\n",
    ]), 0..60)) {
        let mut tc = Tc::new(None);
        let _ = tc.apply_text(PAPER);
        let _ = tc.apply_text(&words.join(" "));
        let _ = tc.config().map(|config| config.check(Rate::from_mbit(1)));
    }
}

/// Breaks: classes with names that `tc` does not know get numbers, and comments tell which.
#[test]
fn other_names_get_numbers() {
    let config = table(
        "default = \"rest\"\nclasses = [{ name = \"film\", rate = \"1 Mbit/s\" }, { name = \"rest\" \
         }]\nfilters = [{ class = \"film\", dscp = 46 }]",
    );
    let text = to_tc(&config, "eth0").unwrap().join("\n");
    assert!(text.contains("# 1:1 is \"film\"\n"), "{text}");
    let read = made(&text);
    assert_eq!(read.default.as_deref(), Some("1:2"));
    assert_eq!(read.filters[0].class, "1:1");
    assert_eq!(
        to_tc(&read, "eth0").unwrap(),
        to_tc(&config, "eth0").unwrap().into_iter().filter(|l| !l.starts_with('#')).collect::<Vec<_>>()
    );
    let mut more = Tc::new(Some(config));
    more.apply_text("filter add pref 1 u32 match ip dport 80 0xffff classid film").unwrap();
    assert_eq!(more.config().unwrap().filters[1].class, "film");
    let unknown = PacingConfig { default: Some("x".into()), ..PacingConfig::default() };
    assert_eq!(to_tc(&unknown, "eth0"), Err(ToTcError::UnknownClass("x".into())));
}
