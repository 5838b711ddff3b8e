//! Bad scenarios: each is refused at the right place, with a useful message.

use farpace_lab::scenario::{self, ErrorPlace, Scenario, ScenarioError};

/// A good scenario of 20 lines; the tests spoil one line each.
const GOOD: &str = r#"title = "t"
duration = "10 s"
[hosts.a]
[hosts.b]
address = "10.0.0.7"
[routers.r]
[[links]]
name = "up"
between = ["a", "r"]
rate = "1 Gbit/s"
[[links]]
name = "down"
between = ["r", "b"]
forward = {}
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "1 MB"
sender = {}
[trace]
taps = []
"#;

/// `GOOD` with line `n` (from 1) replaced.
fn spoil(n: usize, line: &str) -> String {
    let lines = GOOD.lines().enumerate().map(|(i, l)| if i + 1 == n { line } else { l });
    lines.collect::<Vec<_>>().join("\n")
}

fn refused(text: &str) -> ScenarioError {
    Scenario::parse(text, "t.toml").expect_err(text)
}

/// Breaks: the table below proves nothing, because the original file is bad.
#[test]
fn the_file_that_is_spoiled_is_good() {
    assert_eq!(Scenario::parse(GOOD, "t.toml").map(|s| s.title), Ok("t".to_string()));
}

type Mistake = (usize, &'static str, (usize, usize), &'static str, &'static str);

/// Breaks: the place, the cause or the hint in the error for a bad value or key.
#[test]
fn every_mistake_is_found_where_it_is() {
    // Line to spoil, what to write there, line and column of the error, part of the message, part of the hint.
    #[rustfmt::skip]
    let table: &[Mistake] = &[
        // Form
        (1, "title = \"t", (1, 11), "not TOML", ""),
        (2, "title = \"u\"", (2, 1), "duplicate key", ""),
        (1, "titel = \"t\"", (1, 1), "unknown key `titel`", "did you mean `title`?"),
        (1, "", (1, 1), "the scenario has no `title`", "a text in quotes"),
        (1, "title = 5", (1, 9), "expected a text in quotes, found the number 5", "One line"),
        (2, "seed = -1", (2, 8), "expected a whole number from 0, found the number -1", ""),
        (2, "seed = 99999999999999999999", (2, 8), "beyond 2^63", ""),
        (2, "seed = 2026-01-01", (2, 8), "found the date or time 2026-01-01", ""),
        (6, "router.r = {}", (6, 1), "unknown key `router`", "address"),
        (10, "rte = \"1 Gbit/s\"", (10, 1), "unknown key `rte`", "did you mean `rate`?"),
        (10, "loss = 0.01", (10, 1), "unknown key `loss`", "belongs to `forward` or `backward` of a link"),
        (10, "rate = \"1 Gbps\"", (10, 8), "unknown unit `Gbps`", "did you mean `Gbit/s`?"),
        (10, "rate = \"1000\"", (10, 8), "has no unit", "Rate in both directions"),
        (10, "rate = 1000", (10, 8), "expected a rate with its unit, like \"500 Mbit/s\", found the number 1000", "Rate in both directions"),
        (10, "rate = \"10 ms\"", (10, 8), "unknown unit `ms`", ""),
        (10, "delay = \"0.1 ns\"", (10, 9), "whole number of nanoseconds", ""),
        (10, "queue = \"10 ms\"", (10, 9), "\"1000 packets\" or \"256 kB\"", ""),
        (9, "between = []", (9, 11), "expected a list of 2, found 0", "The two ends"),
        (9, "between = [\"a\", \"r\", \"b\"]", (9, 11), "expected a list of 2, found 3", "The two ends"),
        (9, "between = \"a\"", (9, 11), "expected a list, found the string \"a\"", "The two ends"),
        (9, "", (7, 1), "this entry has no `between`", "The two ends"),
        (14, "forward = 5", (14, 11), "expected a table", ""),
        (14, "forward = { loss = \"1 %\" }", (14, 20), "expected a number from 0 to 1, found the string \"1 %\"", ""),
        (14, "forward = { policer = { rate = \"1 Mbit/s\" } }", (14, 23), "`policer` has no `burst`", "like \"16 MB\""),
        (14, "forward = { policer = { rate = \"1 Mbit/s\", burst = \"1 MB\", counts = \"wire\" } }", (14, 69), "unknown word \"wire\"", "valid here: ip, frame"),
        (20, "sender = { profile = \"linux-2.6.18\" }", (20, 22), "unknown word \"linux-2.6.18\"", "did you mean \"linux-2.6.17\"?"),
        (20, "sender = { profil = \"newreno\" }", (20, 12), "unknown key `profil`", "did you mean `profile`?"),
        (20, "sender = { mss = 70000 }", (20, 18), "expected a whole number from 0 to 65535, found the number 70000", ""),
        (5, "address = \"10.0.0\"", (5, 11), "invalid IP address", ""),
        (6, "[routers.r]\nrate = \"1 Mbit/s\"", (7, 1), "unknown key `rate`", "takes no keys"),
        // Values
        (1, "title = \"\"", (1, 9), "the title is empty", ""),
        (2, "duration = \"0 s\"", (2, 12), "0 s is not possible", "720 h"),
        (2, "duration = \"721 h\"", (2, 12), "is not possible", "720 h"),
        (5, "address = \"127.0.0.1\"", (5, 11), "cannot be the address", "10.0.0.1"),
        (3, "[hosts.a]\naddress = \"10.0.0.7\"", (6, 11), "host `a` has the address 10.0.0.7 too", ""),
        (10, "rate = \"0 bit/s\"", (10, 8), "a rate of 0 lets nothing pass", "infinitely fast"),
        (10, "queue = \"0 B\"", (10, 9), "holds nothing", ""),
        (10, "queue = \"1500 B\"", (10, 9), "never holds a full-size frame of 1514 B", ""),
        (10, "overhead = \"1 MB\"", (10, 12), "an overhead of 1 MB", "24 B"),
        (14, "forward = { loss = 1.5 }", (14, 20), "1.5 is not a probability", "1 % is 0.01"),
        (14, "forward = { corrupt = nan }", (14, 23), "is not a probability", ""),
        (14, "backward = { duplicate = -1 }", (14, 26), "-1 is not a probability", ""),
        (14, "forward = { queue = \"0 packets\" }", (14, 21), "holds nothing", ""),
        (14, "forward = { reorder = { chance = 0.1, extra = \"0 s\" } }", (14, 47), "no packet is overtaken", ""),
        (14, "forward = { policer = { rate = \"0 bit/s\", burst = \"1 MB\" } }", (14, 32), "a rate of 0", "leave `policer` out"),
        (14, "forward = { policer = { rate = \"1 Mbit/s\", burst = \"1 kB\" } }", (14, 52), "never lets a full-size packet of 1500 B pass", ""),
        (14, "forward = { policer = { rate = \"1 Gbit/s\", burst = \"64 kB\", refill = \"1 ms\" } }", (14, 70), "each refill brings 125 kB", "every 512 us"),
        (14, "forward = { policer = { rate = \"1 Mbit/s\", burst = \"1 MB\", refill = \"1 ms\", phase = \"1 ms\" } }", (14, 85), "a phase of 1 ms is not less than", ""),
        (14, "forward = { outages = [{ at = \"1 s\", lasts = \"1 s\" }, { at = \"1500 ms\", lasts = \"1 s\" }] }", (14, 55), "begins at 1500 ms, before the last one ends at 2 s", "without overlap"),
        (14, "forward = { outages = [{ at = \"1 s\", lasts = \"0 s\" }] }", (14, 46), "lasts 0 s", ""),
        (14, "forward = { outages = [{ at = \"10 s\", lasts = \"1 s\" }] }", (14, 31), "the run ends at 10 s", ""),
        (14, "forward = { mtu = { limit = \"67 B\" } }", (14, 29), "an MTU of 67 B is below the 68 B", ""),
        (14, "forward = { mtu = { limit = \"1500 B\", changes = [{ at = \"2 s\", limit = \"1 kB\" }, { at = \"2 s\", limit = \"1 kB\" }] } }", (14, 89), "not later than the one before", "order of time"),
        (14, "forward = { mtu = { limit = \"1500 B\", changes = [{ at = \"2 s\", limit = \"9 B\" }] } }", (14, 72), "below the 68 B", ""),
        (19, "size = \"0 B\"", (19, 8), "sends nothing", ""),
        (19, "size = \"1 MB\"\nport = 0", (20, 8), "port 0", "1 to 65535"),
        (19, "size = \"1 MB\"\nstart = \"10 s\"", (20, 9), "the run ends at 10 s", "raise `duration`"),
        (20, "sender = { profile = \"newreno\", hint = \"none\" }", (20, 33), "`hint` belongs to the linux-2.6 recovery", ""),
        (20, "receiver = { window = \"0 packets\" }", (20, 23), "`window` must be from one segment", ""),
        (20, "receiver = { receive_buffer = \"2 GiB\" }", (20, 31), "to 1 GiB", ""),
        (20, "receiver = { window = \"9 packets\", receive_buffer = \"1 MB\" }", (20, 36), "two ways to say the same", ""),
        (22, "bin = \"0 s\"", (22, 7), "a bin of 0 s", ""),
        (22, "bin = \"1 ns\"", (22, 7), "are too many", "10000000 bins"),
        (22, "snaplen = \"40 B\"", (22, 11), "a snaplen of 40 B", "96 B"),
        // Links
        (14, "forward = { bit_errors = 2 }", (14, 26), "2 is not a probability", "from 0 to 1"),
        (14, "forward = { bit_error = 1e-7 }", (14, 13), "unknown key `bit_error`", "did you mean `bit_errors`?"),
        (10, "bit_errors = 1e-7", (10, 1), "unknown key `bit_errors`", "belongs to `forward` or `backward` of a link"),
        (14, "forward = { burst_loss = { begin = 0.1 } }", (14, 26), "`burst_loss` has no `end`", "length of a burst is 1/`end`"),
        (14, "forward = { burst_loss = { begin = 0.1, end = 9 } }", (14, 47), "9 is not a probability", ""),
        (14, "forward = { clock_jumps = [{ at = \"1 s\", ticks = 0 }] }", (14, 50), "a jump by 0 ticks", ""),
        (14, "forward = { aqm = { codel = {} } }", (14, 13), "on an infinitely fast line nothing queues", "a `rate`"),
        (10, "aqm = { codel = {} }", (10, 1), "on an infinitely fast line nothing queues", "a `rate`"),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = {} }", (14, 38), "this manages nothing", "red, codel or fq_codel"),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { red = {}, codel = {} } }", (14, 38), "a queue has one discipline", "leave one"),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { pie = {} } }", (14, 40), "unknown key `pie`", ""),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { red = { target = \"5 ms\" } } }", (14, 48), "unknown key `target`", "belongs to `codel` in `aqm`"),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { red = { min = \"0 packets\" } } }", (14, 54), "threshold of 0 packets", ""),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { red = { max = \"5 packets\" } } }", (14, 54), "not above the lower one of 5 packets", "three times"),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { red = { weight = 0 } } }", (14, 57), "0 is not possible", "at most 1"),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { codel = { target = \"0 s\" } } }", (14, 59), "never met", "5 ms"),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { codel = { interval = \"5 ms\" } } }", (14, 61), "not above the target of 5 ms", "round trip"),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { fq_codel = { quantum = \"0 B\" } } }", (14, 63), "nobody's turn", ""),
        (14, "forward = { rate = \"1 Mbit/s\", aqm = { fq_codel = { flows = 0 } } }", (14, 61), "0 queues are not possible", "65536"),
        (10, "schedule = {}", (10, 12), "without steps changes nothing", "`file`"),
        (10, "schedule = { steps = [{ at = \"1 s\" }] }", (10, 30), "this step changes nothing", "a `rate`, a `delay` or both"),
        (10, "schedule = { steps = [{ at = \"1 s\", rate = \"0 bit/s\" }] }", (10, 44), "a rate of 0", "outages"),
        (10, "schedule = { steps = [{ at = \"2 s\", delay = \"1 ms\" }, { at = \"1 s\", delay = \"2 ms\" }] }", (10, 62), "the step at 1 s is not later", "order of time"),
        (10, "schedule = { period = \"2 s\", steps = [{ at = \"2 s\", delay = \"1 ms\" }] }", (10, 46), "not within the period of 2 s", ""),
        (10, "schedule = { period = \"0 s\", steps = [{ at = \"2 s\", delay = \"1 ms\" }] }", (10, 23), "a period of 0 s", "do not repeat"),
        (10, "schedule = { file = \"leo.csv\" }", (10, 21), "leo.csv: no files can be read here", ""),
        (10, "schedule = { file = \"../leo.csv\" }", (10, 21), "is not the name of a file in the scenario's folder", ""),
        (10, "schedule = { file = \"leo.csv\", steps = [{ at = \"2 s\", delay = \"1 ms\" }] }", (10, 21), "two ways to say the same", ""),
        // Pacing
        (14, "forward = { pacing = {} }", (14, 13), "an infinitely fast line cannot be paced", "a `rate`"),
        (10, "pacing = {}", (10, 1), "unknown key `pacing`", "belongs to `forward` or `backward` of a link"),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = {}, queue = \"9 kB\" }", (14, 45), "no queue but those of its classes", "`limit`"),
        (14, "rate = \"1 Gbit/s\"\naqm = { codel = {} }\nforward = { pacing = {} }", (16, 13), "paced or has `aqm`, not both", "leave `pacing` or `aqm` out"),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = {}, schedule = { steps = [{ at = \"1 s\", delay = \"1 ms\" }] } }", (14, 32), "paced or has `schedule`, not both", ""),
        (14, "overhead = \"0 B\"\nbackward = { rate = \"1 Gbit/s\", pacing = {} }", (14, 12), "pacing counts the 24 B", "leave `overhead` out"),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { gap = \"frames\" } }", (14, 43), "unknown key `gap`", "did you mean `gaps`?"),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { gap_frame = \"paus\" } }", (14, 55), "unknown word \"paus\"", "did you mean \"pause\"?"),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { scheduler = \"wfq\" } }", (14, 55), "unknown word \"wfq\"", "edf, psp"),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { line = \"2 Gbit/s\" } }", (14, 50), "the line has 1 Gbit/s", ""),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { mtu = \"1 kB\" } }", (14, 49), "flow `bulk` sends packets of 1500 B", "raise `mtu`"),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { mtu = \"9 B\" } }", (14, 49), "the MTU must be 68 to 65535 B", ""),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { default = \"c\" } }", (14, 53), "there is no class `c`", ""),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { classes = [{ name = \"c\", rate = \"1 Mbps\" }] } }", (14, 75), "unknown unit `Mbps`", "did you mean `Mbit/s`?"),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { classes = [{ name = \"c\" }, { name = \"d\", rate = \"990 Mbit/s\" }] } }", (14, 91), "of a line of 1 Gbit/s", ""),
        (14, "forward = { rate = \"1 Gbit/s\", pacing = { filters = [{ class = \"c\" }] } }", (14, 64), "there is no class `c`", ""),
        // Middleboxes
        (14, "forward = { middlebox = {} }", (14, 25), "this middlebox does nothing", "drop_without_ack"),
        (14, "forward = { middlebox = { clear_ae = false } }", (14, 25), "this middlebox does nothing", ""),
        (14, "forward = { middlebox = { strip_options = [] } }", (14, 43), "an empty list strips nothing", "[254]"),
        (14, "forward = { middlebox = { strip_options = [254, 1] } }", (14, 49), "expected the kind of a TCP option, from 2 to 255, found the number 1", ""),
        (14, "forward = { middlebox = { strip_options = [256] } }", (14, 44), "from 2 to 255, found the number 256", ""),
        (14, "forward = { middlebox = { strip_options = [\"mss\"] } }", (14, 44), "from 2 to 255, found the string \"mss\"", ""),
        (14, "forward = { middlebox = { strip_options = 254 } }", (14, 43), "expected \"unknown\" or a list of kinds, like [30, 254], found the number 254", "NOPs"),
        (14, "forward = { middlebox = { strip_options = \"unknwon\" } }", (14, 43), "unknown word \"unknwon\"", "did you mean \"unknown\"?"),
        (14, "forward = { middlebox = { strip_options = [8], strip_options_on = \"ack\" } }", (14, 67), "unknown word \"ack\"", "syn, data, all"),
        (14, "forward = { middlebox = { clear_ae = true, strip_options_on = \"syn\" } }", (14, 44), "nothing is stripped", "strip_options = "),
        (14, "forward = { drop_without_ack = true }", (14, 13), "unknown key `drop_without_ack`", "belongs to `middlebox`"),
        (10, "middlebox = { clear_ae = true }", (10, 1), "unknown key `middlebox`", "belongs to `forward` or `backward` of a link"),
        (14, "forward = { ack_thinning = {} }", (14, 28), "`ack_thinning` has no `every`", "One of so many"),
        (14, "forward = { ack_thinning = { every = 1 } }", (14, 38), "one of 1 ACKs thins nothing", "at least 2"),
        (14, "forward = { ack_thinning = { every = -4 } }", (14, 38), "a whole number from 2", ""),
        (14, "forward = { ack_thinning = { every = 4, hold = \"0 s\" } }", (14, 48), "never meets another", "5 ms"),
        // Names
        (3, "[hosts.\"a b\"]", (3, 8), "`a b` cannot be a name", "begins with a letter"),
        (8, "name = \"\"", (8, 8), "the name is empty", ""),
        (8, "name = \"down\"", (12, 8), "the name of another link", "unique"),
        (8, "name = \"a\"", (8, 8), "the name of another host", "unique"),
        (6, "[routers.a]\n[routers.r]", (6, 10), "`a` is the name of a host too", ""),
        (9, "between = [\"a\", \"rr\"]", (9, 17), "no host, router or switch is called `rr`", "there are a, b, r"),
        (9, "between = [\"a\", \"a\"]", (9, 11), "from `a` to itself", ""),
        (17, "from = \"r\"", (17, 8), "`r` is a router", "hosts: a, b"),
        (6, "[switches.a]\n[routers.r]", (6, 11), "`a` is the name of a host too", ""),
        (6, "[switches.r]\nkind = \"bridge\"", (7, 8), "unknown word \"bridge\"", "switch, hub"),
        (6, "[switches.r]\n[switches.s]", (7, 11), "`s` has no link", ""),
        (18, "to = \"c\"", (18, 6), "no host is called `c`", "there are a, b"),
        (18, "to = \"a\"", (18, 6), "from `a` to itself", ""),
        (22, "taps = [\"a\", \"donw\"]", (22, 14), "no host or link is called `donw`", "did you mean `down`?"),
        (22, "clock = \"grtc\"", (22, 9), "unknown word \"grtc\"", "exact, gtrcnet"),
        (22, "taps = [\"r\"]", (22, 9), "`r` is a router", "its links are up, down"),
        // The network
        (6, "[hosts.lonely]\n[routers.r]", (6, 8), "`lonely` has no link", "connect it"),
        (13, "between = [\"r\", \"a\"]", (13, 11), "closes a loop: r - a - r", "up, down"),
        (6, "[hosts.c]\n[routers.r]", (6, 8), "`c` has no link", ""),
    ];
    for (n, line, position, message, hint) in table {
        let text = spoil(*n, line);
        let error = refused(&text);
        let first = &error.problems[0];
        assert_eq!(first.position(), Some(*position), "line {n} `{line}`:\n{error}");
        assert!(first.message.contains(message), "line {n} `{line}`:\n{error}");
        assert!(first.hint.as_deref().unwrap_or_default().contains(hint), "line {n} `{line}`:\n{error}");
    }
}

/// A scenario of the given links, with routers r1 to r4, hosts a and b, and one flow.
fn network(links: &[(&str, &str)]) -> String {
    let mut text = "title = \"t\"\n[hosts.a]\n[hosts.b]\n".to_string();
    for r in ["r1", "r2", "r3", "r4"] {
        if links.iter().any(|(x, y)| *x == r || *y == r) {
            text.push_str(&format!("[routers.{r}]\n"));
        }
    }
    for (i, (x, y)) in links.iter().enumerate() {
        text.push_str(&format!("[[links]]\nname = \"l{i}\"\nbetween = [\"{x}\", \"{y}\"]\n"));
    }
    text + "[[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 MB\"\n"
}

/// Breaks: networks that this version cannot route are accepted, or refused without the cause.
#[test]
fn networks_that_cannot_be_routed() {
    let loop_of_three =
        refused(&network(&[("a", "r1"), ("r1", "r2"), ("r2", "r3"), ("r3", "b"), ("r3", "r1")])).to_string();
    assert!(loop_of_three.contains("link `l4` closes a loop: r3 - r2 - r1 - r3"), "{loop_of_three}");
    assert!(loop_of_three.contains("remove one of the links l2, l1, l4"), "{loop_of_three}");

    let parallel = refused(&network(&[("a", "r1"), ("r1", "b"), ("r1", "b")])).to_string();
    assert!(parallel.contains("link `l2` closes a loop: r1 - b - r1"), "{parallel}");

    let two_nics = refused(&network(&[("a", "r1"), ("r1", "b"), ("a", "r2")]));
    assert_eq!(two_nics.problems[0].message, "host `a` has more than one link");
    assert!(matches!(&two_nics.problems[0].place, ErrorPlace::Text { source, .. } if source.contains("r2")));

    let pieces = refused(&network(&[("a", "r1"), ("b", "r2")]));
    assert_eq!(pieces.problems[0].message, "there is no path from `a` to `b`");

    assert!(Scenario::parse(&network(&[("a", "r1"), ("r1", "r2"), ("r2", "b"), ("r2", "r3")]), "t").is_ok());
}

/// Breaks: a file without hosts or flows is accepted.
#[test]
fn empty_parts() {
    let text = "title = \"t\"\nlinks = []\nflows = []\n[hosts]\n";
    let messages: Vec<String> = refused(text).problems.into_iter().map(|p| p.message).collect();
    assert_eq!(messages, ["there are no flows", "there are no hosts"]);
}

/// Breaks: an author has to run the check once for each mistake.
#[test]
fn independent_mistakes_are_told_together_in_the_order_of_the_file() {
    let text =
        spoil(10, "rate = \"0 bit/s\"").replace("size = \"1 MB\"", "size = \"0 B\"").replace("\"t\"", "\"\"");
    let lines: Vec<_> = refused(&text).problems.iter().filter_map(|p| p.position()).collect();
    assert_eq!(lines, [(1, 9), (10, 8), (19, 8)]);
}

/// Breaks: what the user sees on the screen.
#[test]
fn the_error_as_printed() {
    assert_eq!(
        refused(&spoil(10, "rte = \"1 Gbit/s\"")).to_string(),
        "error: unknown key `rte`\n   --> t.toml:10:1\n    |\n 10 | rte = \"1 Gbit/s\"\n    | ^^^\n    = did you mean `rate`?"
    );
}

/// Breaks: the mark under a value after tabs, after wide characters or in a very long line; control
/// characters of a file reach the terminal.
#[test]
fn marks_stand_under_the_value() {
    let printed = refused("title = \"\u{e9}t\u{e9}\"\t; \u{1b}[2J").to_string();
    assert!(printed.contains("t.toml:1:15"), "{printed}");
    assert!(!printed.contains('\u{1b}') && !printed.contains('\t'), "{printed:?}");
    let line = format!("forward = {{ {}loss = 7.5 }}", " ".repeat(5_000));
    let error = refused(&spoil(14, &line));
    assert_eq!(error.problems[0].position(), Some((14, 5_020)));
    let printed = error.to_string();
    let lines: Vec<&str> = printed.lines().collect();
    let at = lines[3].find("7.5").expect("the value is shown");
    assert_eq!(lines[4].find("^^^"), Some(at), "{printed}");
    assert!(lines.iter().all(|l| l.len() < 120), "{printed}");
}

/// Breaks: a file can make the reader use unlimited memory or time.
#[test]
fn limits_hold() {
    let says = |text: String, part: &str| {
        let error = refused(&text).to_string();
        assert!(error.contains(part), "{error}");
    };
    says("#".repeat(scenario::MAX_TEXT.as_len() + 1), "the limit is 1 MiB");
    let hosts: String = (0..scenario::MAX_NODES).map(|i| format!("[hosts.h{i}]\n")).collect();
    says(spoil(4, &format!("[hosts.b]\n{hosts}")).replace("address = \"10.0.0.7\"", ""), "the limit is 1000");
    let links: String = (0..scenario::MAX_LINKS)
        .map(|i| format!("[[links]]\nname = \"l{i}\"\nbetween = [\"a\", \"r\"]\n"))
        .collect();
    says(GOOD.to_string() + &links, "1002 links; the limit is 1000");
    let flows: String = (0..scenario::MAX_FLOWS)
        .map(|i| format!("[[flows]]\nname = \"f{i}\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 MB\"\n"))
        .collect();
    says(GOOD.to_string() + &flows, "1001 flows; the limit is 1000");
    let taps = "\"a\",".repeat(scenario::MAX_TAPS + 1);
    says(spoil(22, &format!("taps = [{taps}]")), "65 taps; the limit is 64");
    let outages = "{at = \"1 s\", lasts = \"1 s\"},".repeat(scenario::MAX_OUTAGES + 1);
    says(spoil(14, &format!("forward = {{ outages = [{outages}] }}")), "10001 outages; the limit is 10000");
    let steps = "{at = \"1 s\", delay = \"1 s\"},".repeat(scenario::MAX_STEPS + 1);
    says(spoil(10, &format!("schedule = {{ steps = [{steps}] }}")), "10001 steps; the limit is 10000");
    says(spoil(8, &format!("name = \"{}\"", "n".repeat(scenario::MAX_NAME + 1))), "cannot be a name");
    says(format!("a = {}", "[".repeat(100_000)), "not TOML");
    let many = vec![("seed".to_string(), "1".to_string()); scenario::MAX_OVERRIDES + 1];
    let error = Scenario::parse_with(GOOD, "t", &many).unwrap_err().to_string();
    assert!(error.contains("1001 overrides"), "{error}");
    // More mistakes than fit on a screen are counted.
    let error = refused(&spoil(22, &format!("taps = [{}]", "\"x\",".repeat(20))));
    assert_eq!((error.problems.len(), error.more), (8, 12));
}
