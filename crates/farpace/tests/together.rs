//! `farpace together` and `farpace papers all`: what they print and write.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::run;
use serde_json::Value;
use std::fs;

/// Breaks: a combination of cures is not measured, is measured as another one, or all five together carry
/// less than none.
#[test]
fn every_combination_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let words = ["together", "--path", "ship", "--seeds", "1", "--time", "12 s", "--json", "--out", "out"];
    let (code, json, error) = run(dir.path(), &words);
    assert_eq!(code, 0, "{error}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let out = dir.path().join("out");
    assert_eq!(json["format"], "farpace-together/1");
    let senders = json["paths"][0]["senders"].as_array().unwrap();
    assert_eq!(senders.len(), 2 * 12 + 4);
    let goodput = |era: &str, cures: usize| {
        let of = |s: &&Value| s["era"] == era && s["cures"].as_array().unwrap().len() == cures;
        senders.iter().find(of).unwrap()["goodput_mbit_s"]["mean"].as_f64().unwrap()
    };
    for era in ["printed", "today"] {
        let mut kinds: Vec<String> =
            senders.iter().filter(|s| s["era"] == era).map(|s| s["cures"].to_string()).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), 12, "{era}");
        assert!(
            goodput(era, 5) > 3.0 * goodput(era, 0),
            "{era}: {} and {}",
            goodput(era, 5),
            goodput(era, 0)
        );
    }
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("ship-goodput.svg") && !report.contains("http-equiv=\"refresh\""));
    assert!(out.join("figures/ship-arrived.svg").exists());
}

/// Breaks: the page on all papers lacks a paper, its claims, or the way to its report; or a word that is no
/// paper is taken.
#[test]
fn one_page_for_the_papers() {
    let dir = tempfile::tempdir().unwrap();
    let (code, json, error) =
        run(dir.path(), &["papers", "all", "--only", "ack,nics", "--json", "--out", "."]);
    assert_eq!(code, 0, "{error}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["format"], "farpace-papers/1");
    assert_eq!(json["papers"].as_array().unwrap().len(), 2);
    let page = fs::read_to_string(dir.path().join("index.html")).unwrap();
    for name in ["ack", "nics"] {
        let link = format!("{name}/report.html");
        assert!(page.contains(&format!("href=\"{link}\"")) && dir.path().join(&link).exists(), "{name}");
    }
    for claim in json["papers"][0]["claims"].as_array().unwrap() {
        let first = claim["text"].as_str().unwrap().split(['<', '&', '"', '\'']).next().unwrap();
        assert!(page.contains(first), "{first}");
    }
    let (code, _, error) = run(dir.path(), &["papers", "all", "--only", "akc"]);
    assert!(code == 2 && error.contains("akc") && error.contains("satellite"), "{error}");
}
