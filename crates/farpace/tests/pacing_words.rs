//! `farpace pacing tc` and `show`, and `farpace run --pace`.

mod common;

use common::{farpace, run, with_scenario};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// What the paper sets up (§3.6), shortened.
const COMMANDS: &str = "\
# As in the paper
tc qdisc add dev eth0 root handle 1: \\
   psp default 3
tc class add dev eth0 parent 1: classid 1:1 psp rate 500mbit
tc class add dev eth0 parent 1: classid 1:3 psp mode normal
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dst 192.168.2.0/24 classid 1:1
";

const PACED: &str = "default = \"1:3\"\nclasses = [{ name = \"1:1\", rate = \"500 Mbit/s\" }, { name \
                     = \"1:3\" }]\n\
                     filters = [{ class = \"1:1\", dst = \"10.0.0.2\" }]\n";

fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

/// Succeeds, with nothing said; standard output.
fn fine(dir: &Path, command: &str) -> String {
    let (code, stdout, stderr) = run(dir, &words(command));
    assert_eq!((code, stderr.as_str()), (0, ""), "{command}");
    stdout
}

fn refused(dir: &Path, command: &str) -> String {
    let (code, stdout, stderr) = run(dir, &words(command));
    assert_eq!((code, stdout.as_str()), (2, ""), "{command}: {stderr}");
    stderr
}

/// Breaks: setting pacing up with words, one command after another or a file of them, and reading what it
/// means.
#[test]
fn words_make_a_file_that_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("commands"), COMMANDS).unwrap();
    fine(dir, "pacing tc --batch commands --file batch.toml");
    let (code, _, stderr) = run(dir, &words("pacing tc qdisc add dev eth0 root handle 1: psp default 3"));
    assert_eq!(
        (code, stderr.as_str()),
        (0, "note: not complete yet: there is no class `1:3`: there are no classes\n")
    );
    run(dir, &words("pacing tc class add dev eth0 parent 1: classid 1:1 psp rate 500mbit"));
    fine(dir, "pace tc tc class add dev eth0 parent 1: classid 1:3 psp mode normal");
    let quoted =
        "filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dst 192.168.2.0/24 classid 1:1";
    assert_eq!(run(dir, &["pacing", "tc", quoted]).0, 0);
    let text = fs::read_to_string(dir.join("pacing.toml")).unwrap();
    assert_eq!(text, fs::read_to_string(dir.join("batch.toml")).unwrap());
    assert!(!common::names(dir).iter().any(|name| name.contains("partial")));

    let shown = fine(dir, "pacing show --line 1Gbit/s");
    let row = shown.lines().find(|line| line.starts_with("1:1 ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        cells,
        ["1:1", "500", "Mbit/s", "50.66", "3036", "24.288", "1498", "11.984", "1000", "packets", "1"]
    );
    assert!(shown.contains("506.588 Mbit/s of the line") && shown.contains("go to 1:3"), "{shown}");
    let json: Value = serde_json::from_str(&fine(dir, "pacing show --json")).unwrap();
    assert_eq!(
        (json["line_bit_s"].as_u64(), json["line_is_assumed"].as_bool()),
        (Some(1_000_000_000), Some(true))
    );
    assert_eq!(json["classes"][0]["gap_bytes"], 1_498);
    assert_eq!(json["classes"][1]["rate_bit_s"], Value::Null);
    assert_eq!(json["filters"][0]["matches"], "dst 192.168.2.0/24");

    // And back to words, from standard input to standard output.
    let commands = fine(dir, "pacing show --tc --device eth1");
    assert_eq!(commands.lines().count(), 4, "{commands}");
    let mut command = farpace(dir, &words("pacing tc --batch - --file -"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), text);
}

/// Breaks: configurations that cannot be built are shown as good, or nobody says which key is wrong.
#[test]
fn what_cannot_be_built_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let show = |text: &str, more: &str| {
        fs::write(dir.join("pacing.toml"), text).unwrap();
        run(dir, &words(&format!("pacing show{more}")))
    };
    let (code, stdout, _) = show(PACED, " --line 500Mbit/s");
    assert!(
        code == 2 && stdout.contains("error: classes.0.rate: the classes need 506587616 bit/s"),
        "{stdout}"
    );
    let (code, stdout, _) = show(&PACED.replace("dst = \"10.0.0.2\"", "dscp = 64"), " --json");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, json["errors"][0]["at"].as_str()), (2, Some("filters.0.dscp")));
    let covered = PACED.replace("filters = [", "filters = [{ class = \"1:3\" }, ");
    let (code, stdout, _) = show(&covered, "");
    assert!(code == 0 && stdout.contains("warning: filters.1: never matches: filter 0"), "{stdout}");
    let (code, stdout, stderr) = show("scheduler = \"edf\"\nclases = []", "");
    assert!(
        code == 2 && stdout.is_empty() && stderr.contains("pacing.toml") && stderr.contains("line 2"),
        "{stderr}"
    );
    assert!(refused(dir, "pacing show --file none.toml").contains("none.toml"));
    assert!(refused(dir, "pacing show --line fast").contains("500 Mbit/s"));
}

/// Breaks: a wrong command changes the file, comments are lost without a word, or an error does not say
/// where.
#[test]
fn wrong_commands_leave_the_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let place = dir.join("pacing.toml");
    fs::write(&place, PACED).unwrap();
    let error = refused(dir, "pacing tc class add dev eth0 parent 1: classid 1:4 edf rat 1mbit");
    let marked = "error: unknown word `rat`: did you mean `rate`?\n  class add dev eth0 parent 1: classid \
                  1:4 edf rat 1mbit\n                                               ^^^\n";
    assert_eq!(error, marked);
    fs::write(
        dir.join("commands"),
        "class add parent 1: classid 1:4 edf rate 1mbit\n\nclass add parent 1: classid 1:4 edf rate 2mbit",
    )
    .unwrap();
    let error = refused(dir, "pacing tc --batch commands");
    assert!(error.starts_with("error: commands: line 3: there is a class 1:4 already"), "{error}");
    assert_eq!(fs::read_to_string(&place).unwrap(), PACED);

    let commented = format!("# mine\n{PACED}");
    fs::write(&place, &commented).unwrap();
    let change = "tc class change dev eth0 classid 1:1 edf rate 400mbit";
    assert!(refused(dir, &format!("pacing {change}")).contains("has comments, which would be lost"));
    assert_eq!(fs::read_to_string(&place).unwrap(), commented);
    fine(dir, "pacing tc --force class change dev eth0 classid 1:1 edf rate 400mbit");
    assert!(fs::read_to_string(&place).unwrap().contains("400 Mbit/s"));
    let (code, _, stderr) = run(dir, &words("pacing tc qdisc del dev eth0 root"));
    assert!(code == 0 && stderr.contains("is gone") && !place.exists(), "{stderr}");
    assert!(refused(dir, "pacing tc").contains("WORDS"));
    assert!(refused(dir, "pacing tc --batch none").contains("cannot read `none`"));
    assert!(
        refused(dir, "pacing tc --file no/such.toml qdisc add root edf")
            .contains("cannot write `no/such.toml`")
    );
}

/// Two flows from one host; `a` is at the second end of its link.
const SCENARIO: &str = r#"
title = "A paced sender"
duration = "20 s"
[hosts.a]
[hosts.b]
[routers.r]
[[links]]
name = "far"
between = ["r", "b"]
rate = "100 Mbit/s"
delay = "5 ms"
[[links]]
name = "near"
between = ["r", "a"]
rate = "1 Gbit/s"
delay = "10 us"
[[flows]]
name = "bulk"
from = "a"
to = "b"
size = "2 MB"
"#;

/// Breaks: a file's pacing is not put where the node sends, does not pace, or its counters cannot be shown.
#[test]
fn a_run_takes_pacing_from_a_file() {
    let dir = with_scenario(SCENARIO);
    let dir = dir.path();
    fs::write(
        dir.join("pacing.toml"),
        "classes = [{ name = \"all\", rate = \"20 Mbit/s\" }]\ndefault = \"all\"\n",
    )
    .unwrap();
    let stdout = fine(dir, "run scenario.toml --pace a=pacing.toml --json --no-report --out out");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    let goodput = json["flows"][0]["goodput_bit_s"].as_f64().unwrap();
    assert!((17e6..20e6).contains(&goodput), "{goodput}");
    let line = &json["pacing"][0];
    assert_eq!((line["link"].as_str(), line["direction"].as_str()), (Some("near"), Some("backward")));
    assert_eq!(json["pacing"].as_array().unwrap().len(), 1);
    let class = &line["classes"][0];
    let shown = fine(dir, "pacing show -s out");
    let sent = format!(" Sent {} bytes {} pkt (dropped 0)\n", class["sent_bytes"], class["packets"]);
    assert!(
        shown.starts_with("link near from a to r\nclass all rate 20000000bit\n") && shown.contains(&sent),
        "{shown}"
    );
    let again: Value = serde_json::from_str(&fine(dir, "pacing show -s out/summary.json --json")).unwrap();
    assert_eq!(again, json["pacing"]);
    // It is part of the scenario as it was run.
    let again = fine(dir, "run out/scenario.toml --json --no-report");
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["flows"], json["flows"]);
}

/// Breaks: `--pace` with a wrong node or file runs something else, or without a hint.
#[test]
fn wrong_pacing_of_a_run_is_told() {
    let dir = with_scenario(SCENARIO);
    let dir = dir.path();
    fs::write(dir.join("pacing.toml"), PACED).unwrap();
    let refused = |arguments: &str| refused(dir, &format!("run scenario.toml --no-report {arguments}"));
    assert!(refused("--pace x=pacing.toml").contains("no node `x`; there are a, b, r"));
    assert!(refused("--pace a=none.toml").contains("none.toml"));
    assert!(refused("--pace a").contains("NODE=FILE"));
    let tight = refused("--pace r=pacing.toml");
    assert!(tight.contains("pacing.toml: classes.0.rate:") && tight.contains("(link `far`)"), "{tight}");
    let twice = refused("--pace a=pacing.toml --set links.near.backward.queue=5packets");
    assert!(twice.contains("queue"), "{twice}");
    assert!(self::refused(dir, "pacing show -s scenario.toml").contains("is not the summary of a run"));
    fine(dir, "run scenario.toml --no-report --quiet --out plain");
    assert!(self::refused(dir, "pacing show -s plain").contains("nothing was paced"));
}

/// Breaks: users who ask for help.
#[test]
fn help_has_examples() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["pacing --help", "pacing tc --help", "pacing show --help"] {
        let help = fine(dir.path(), command);
        assert!(help.contains("Examples:\n  farpace pacing"), "{help}");
    }
}
