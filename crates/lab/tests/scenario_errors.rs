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

/// Breaks: the place, the cause or the hint in the error for a bad value or key.
#[test]
fn every_mistake_is_found_where_it_is() {
    let rows = include_str!("scenario_errors.txt").lines().filter(|row| !row.starts_with('#'));
    let mut tried = 0;
    for row in rows {
        // An empty hint ends its row.
        let row = format!("{row} ");
        let [n, replacement, place, message, hint] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("`{row}` has no 5 columns");
        };
        let error = refused(&spoil(n.parse().unwrap(), &replacement.replace("\\n", "\n")));
        let first = &error.problems[0];
        let found = first.position().map(|(line, column)| format!("{line}:{column}"));
        assert_eq!(found.as_deref(), Some(place), "{row}:\n{error}");
        assert!(first.message.contains(message), "{row}:\n{error}");
        assert!(first.hint.as_deref().unwrap_or_default().contains(hint.trim_end()), "{row}:\n{error}");
        tried += 1;
    }
    assert!(tried > 130, "{tried} rows");
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
fn independent_mistakes_are_reported_together_in_the_order_of_the_file() {
    let text =
        spoil(10, "rate = \"0 bit/s\"").replace("size = \"1 MB\"", "size = \"0 B\"").replace("\"t\"", "\"\"");
    let lines: Vec<_> = refused(&text).problems.iter().filter_map(|p| p.position()).collect();
    assert_eq!(lines, [(1, 9), (10, 8), (19, 8)]);
}

/// Breaks: what the user sees on the screen.
#[test]
fn an_error_is_printed_with_its_line() {
    assert_eq!(
        refused(&spoil(10, "rte = \"1 Gbit/s\"")).to_string(),
        "error: unknown key `rte`\n   --> t.toml:10:1\n    |\n 10 | rte = \"1 Gbit/s\"\n    | ^^^\n    \
         = did you mean `rate`?"
    );
}

/// Breaks: the mark under a value after tabs, after wide characters or in a very long line; control
/// characters of a file reach the terminal.
#[test]
fn marks_are_under_the_value() {
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
    says(spoil(5, &format!("stalls = [{outages}]")), "10001 stalls; the limit is 10000");
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
