//! `farpace cc` from outside: the list, and a comparison on named paths and on files.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{LOSSY, run, with_scenario};
use serde_json::Value;

/// Breaks: the list, for people and for programs.
#[test]
fn the_list_says_when_to_use_each() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text, _) = run(dir.path(), &["cc", "list"]);
    assert_eq!(code, 0);
    let (code, json, _) = run(dir.path(), &["cc", "list", "--json"]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    let all = json["congestion"].as_array().unwrap();
    assert!(all.len() >= 19 && all.len() == text.lines().count(), "{text}");
    for c in all {
        let (name, line) = (c["name"].as_str().unwrap(), c["description"].as_str().unwrap());
        assert!(text.lines().any(|l| l.starts_with(name) && l.ends_with(line)), "{name}");
    }
}

/// Breaks: the comparison on a file: who is compared, in which form, and what must come out: a model of the
/// path makes more of random loss than Reno, and CUBIC beside CUBIC keeps what it has.
#[test]
fn a_scenario_file_is_a_path() {
    let dir = with_scenario(LOSSY);
    let arguments = ["cc", "compare", "--path", "scenario.toml", "--time", "8 s", "--seeds", "2"];
    let only = ["--only", "bbr3,reno,cubic"];
    let (code, out, err) = run(dir.path(), &[&arguments[..], &only, &["--json", "--out", "json"]].concat());
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["format"], "farpace-cc-compare/1");
    assert_eq!((json["seeds"].as_u64(), json["time_s"].as_f64()), (Some(2), Some(8.0)));
    let all = json["congestion"].as_array().unwrap();
    let names: Vec<&str> = all.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["reno", "cubic", "bbr3"]);
    for c in all {
        for key in [
            "goodput_mbit_s",
            "delay_mean_ms",
            "delay_95_ms",
            "delay_99_ms",
            "retransmitted_percent",
            "jain",
            "cubic_keeps_percent",
        ] {
            assert!(
                c[key]["mean"].is_f64() && c[key]["ci95"].is_f64() && c[key]["runs"].is_u64(),
                "{key}: {c}"
            );
        }
        let jain = c["jain"]["mean"].as_f64().unwrap();
        assert!((0.5..=1.0).contains(&jain), "{c}");
    }
    let goodput = |i: usize| all[i]["goodput_mbit_s"]["mean"].as_f64().unwrap();
    assert!(goodput(2) > 2.0 * goodput(0), "{} and {} Mbit/s", goodput(0), goodput(2));
    assert!((all[1]["cubic_keeps_percent"]["mean"].as_f64().unwrap() - 100.0).abs() < 1e-6);
    assert_eq!(all[1]["cubic_keeps_percent"]["runs"], 4);

    let (code, text, _) =
        run(dir.path(), &[&arguments[..], &only, &["--threads", "1", "--out", "text"]].concat());
    assert_eq!(code, 0);
    assert!(text.contains("CUBIC keeps") && text.contains("bbr3"), "{text}");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(read("json/report.html"), read("text/report.html"), "threads or --json change the result");
    let svg = read("text/figures/goodput-delay.svg");
    assert!(["reno", "cubic", "bbr3"].iter().all(|name| svg.contains(&format!(">{name}</text>"))), "{svg}");
}

/// Breaks: a path with a name does not run.
#[test]
fn paths_with_names_run() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["satellite", "lfn", "policed", "lossy"] {
        let arguments = ["cc", "compare", "--path", path, "--time", "2 s", "--seeds", "1", "--only", "reno"];
        let (code, text, err) = run(dir.path(), &arguments);
        assert_eq!(code, 0, "{path}: {err}");
        assert!(text.lines().any(|l| l.starts_with("reno")), "{path}: {text}");
    }
}

/// Breaks: controls that a file's TCP does not take stop the comparison of all others, or vanish without a
/// word.
#[test]
fn what_the_profile_does_not_take_is_left_out() {
    let old = format!("{LOSSY}\n")
        .replace("size = \"2 MB\"", "size = \"2 MB\"\nsender = { profile = \"linux-2.6.24\" }");
    let dir = with_scenario(&old);
    let arguments =
        ["cc", "compare", "--path", "scenario.toml", "--time", "2 s", "--seeds", "1", "--only", "bic,bbr3"];
    let (code, text, err) = run(dir.path(), &arguments);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("bbr3 is left out"), "{err}");
    assert!(text.lines().any(|l| l.starts_with("bic")) && !text.contains("bbr3"), "{text}");
}

/// Breaks: a wrong option is found out late, or by a panic.
#[test]
fn bad_input_is_refused_at_once() {
    let dir = with_scenario(LOSSY);
    for (more, says) in [
        (vec!["--path", "moon"], "satellite, lfn, policed, lossy"),
        (vec!["--path", "moon.toml"], "moon.toml"),
        (vec!["--path", "scenario.toml", "--only", "renno"], "renno"),
        (vec!["--path", "scenario.toml", "--time", "1 ms"], "--time"),
        (vec!["--path", "scenario.toml", "--set", "links.wire.speed=1"], "speed"),
        (vec!["--path", "scenario.toml", "--seeds", "0"], "seeds"),
        (vec![], "--path"),
    ] {
        let (code, _, err) = run(dir.path(), &[&["cc", "compare"], &more[..]].concat());
        assert_eq!(code, 2, "{more:?}: {err}");
        assert!(err.contains(says), "{more:?}: {err}");
    }
    assert!(!dir.path().join("out").exists());
}

/// Breaks: a search from outside: what it finds is no scenario, does not repeat, or is judged again.
#[test]
fn a_search_writes_scenarios() {
    let dir = tempfile::tempdir().unwrap();
    let space = "rate_mbit_s = [1, 4]\nrtt_ms = [5, 40]\nload = false\npolicer_ms = false\n";
    std::fs::write(dir.path().join("space.toml"), space).unwrap();
    let search = ["cc", "search", "--control", "reno", "--against", "bbr3", "--space", "space.toml"];
    let ends = ["--generations", "3", "--out", "found", "--json"];
    let arguments = [&search[..], &ends].concat();
    let (code, out, err) = run(dir.path(), &arguments);
    assert_eq!(code, 0, "{err}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["format"], "farpace-cc-search/1");
    assert_eq!(json["paths"], 48);
    let worst = json["worst"].as_array().unwrap();
    assert!(!worst.is_empty() && worst[0]["gap"].as_f64().unwrap() > 0.1, "{json}");
    assert_eq!(worst[0]["gaps"].as_array().map(Vec::len), Some(3), "{json}");
    let none = dir.path().join("none.toml");
    for (objective, text, says) in [
        ("starvation", "neighbour = []\n", "needs `neighbour`"),
        ("goodput", "\nrate_mbit_s = 5\n", "line 2: `rate_mbit_s`"),
    ] {
        std::fs::write(&none, text).unwrap();
        let more = ["--space", "none.toml", "--objective", objective];
        let (code, _, err) = run(dir.path(), &[&["cc", "search", "--control", "reno"], &more[..]].concat());
        assert!(code == 2 && err.contains(says), "{err}");
    }
    let file = dir.path().join("found").join(worst[0]["file"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), worst[0]["scenario"].as_str().unwrap());
    let (code, _, err) = run(dir.path(), &["scenario", "check", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let (_, again, _) = run(dir.path(), &arguments);
    assert_eq!(again, out);
    let (code, _, err) = run(dir.path(), &["cc", "search", "--control", "renno"]);
    assert!(code == 2 && err.contains("renno"), "{err}");
}
