//! The documentation says what the code does: tables that are generated, names that are listed, examples that
//! are read.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use farpace::events::Cause;
use farpace::lab::scenario::{Scenario, schema};
use farpace::link::pacing::PacingConfig;
use farpace::link::pacing::tc::Tc;
use farpace::path::DropReason;
use farpace::tcp::config::{Congestion, Profile};
use farpace::trace::COLUMNS;
use farpace::units::Rate;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn document(name: &str) -> String {
    std::fs::read_to_string(place(name)).unwrap()
}

/// The part of `text` between two marks, and the text with that part replaced.
fn between<'a>(text: &'a str, name: &str, new: &str) -> (&'a str, String) {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let (before, rest) = text.split_once(&begin).unwrap();
    let (part, after) = rest.split_once(&end).unwrap();
    (part, format!("{before}{begin}{new}{end}{after}"))
}

/// First cells of the rows of the tables in `text`, without the quotes.
fn first_cells(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`')).map(|(cell, _)| cell).collect()
}

/// Breaks: docs/trace.md, when a column is added or changed. With FARPACE_BLESS=1 it writes the table anew.
#[test]
fn the_table_of_columns_is_the_schema() {
    let mut table = String::from("\n| column | type | unit | meaning |\n|---|---|---|---|\n");
    for c in &COLUMNS {
        let null = if c.nullable { ", null" } else { "" };
        table += &format!("| `{}` | {}{null} | {} | {} |\n", c.name, c.kind.name(), c.unit, c.description);
    }
    table += "\n";
    let text = document("trace.md");
    let (found, blessed) = between(&text, "columns", &table);
    if std::env::var_os("FARPACE_BLESS").is_some() {
        std::fs::write(place("trace.md"), blessed).unwrap();
        return;
    }
    assert_eq!(found, table, "docs/trace.md is out of date: run this test once with FARPACE_BLESS=1");
}

/// Breaks: docs/sweep.md, when the data set of a study gets another column. With FARPACE_BLESS=1 it writes
/// the table anew.
#[test]
fn the_table_of_a_study_is_its_columns() {
    use farpace::study::{FLOW_COLUMNS, RUN_COLUMNS};
    let mut table = String::from("\n| column | type | meaning |\n|---|---|---|\n");
    for column in RUN_COLUMNS.iter().chain(&FLOW_COLUMNS) {
        table += &format!("| `{}` | {} | {} |\n", column.name, column.kind.name(), column.description);
    }
    table += "\n";
    let text = document("sweep.md");
    let (found, blessed) = between(&text, "columns", &table);
    if std::env::var_os("FARPACE_BLESS").is_some() {
        std::fs::write(place("sweep.md"), blessed).unwrap();
        return;
    }
    assert_eq!(found, table, "docs/sweep.md is out of date: run this test once with FARPACE_BLESS=1");
}

/// Breaks: docs/trace.md, when there is a new reason to send, cut or wake.
#[test]
fn every_cause_is_listed() {
    let text = document("trace.md");
    let names = Cause::ALL.iter().map(|cause| cause.name()).collect();
    assert_eq!(first_cells(between(&text, "causes", "").0), names);
}

/// Breaks: docs/lab.md, when there is a new reason to drop.
#[test]
fn every_drop_reason_is_listed() {
    let names = DropReason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(first_cells(&document("lab.md")), names);
}

/// Breaks: the examples in docs/scenarios.md, which people copy.
#[test]
fn the_scenarios_of_the_documentation_can_be_run() {
    let text = document("scenarios.md");
    let blocks: Vec<_> =
        text.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        Scenario::parse(block, "docs/scenarios.md").unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Names of all properties in a schema.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                names.extend(properties.keys().cloned());
            }
            map.values().for_each(|value| properties(value, names));
        }
        Value::Array(list) => list.iter().for_each(|value| properties(value, names)),
        _ => {}
    }
}

/// Breaks: docs/scenarios.md, when the language gets a key that nobody told of.
#[test]
fn every_key_of_a_scenario_is_mentioned() {
    let mut names = BTreeSet::new();
    properties(&schema(), &mut names);
    assert!(names.len() > 40, "the schema was misread: {names:?}");
    let text = document("scenarios.md");
    let mentioned = |name: &&String| {
        text.contains(&format!("`{name}`"))
            || text.contains(&format!("[{name}]"))
            || text.contains(&format!("[{name}."))
    };
    let missing: Vec<_> = names.iter().filter(|name| !mentioned(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Breaks: docs/profiles.md, when there is a new profile.
#[test]
fn every_profile_is_listed() {
    let names = Profile::ALL.iter().map(|profile| profile.name()).collect();
    assert_eq!(first_cells(&document("profiles.md")), names);
}

/// Breaks: docs/profiles.md, when there is a new congestion control.
#[test]
fn every_congestion_control_is_listed() {
    let text = document("profiles.md");
    for congestion in Congestion::ALL {
        let name = serde_json::to_value(congestion).unwrap();
        let row = format!("| {} | ", name.as_str().unwrap());
        assert!(text.contains(&row), "{name}");
    }
}

/// Breaks: the commands in docs/satellite.md, which people copy: files, keys, values. None is run, each is
/// explained.
#[test]
fn the_commands_of_the_satellite_page_are_valid() {
    let text = document("satellite.md");
    let blocks: String =
        text.split("```sh\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    assert!(blocks.matches("--set").count() > 50);
    let shell = format!(
        "set -eu\nfarpace() {{ while [ $1 != run ] && [ $1 != explain ]; do shift; done; shift
         \"$FARPACE\" scenario explain \"$@\" >/dev/null || {{ echo \"$@\" >&2; exit 1; }}; }}\n{blocks}"
    );
    let output = Command::new("sh")
        .args(["-c", &shell])
        .env("FARPACE", env!("CARGO_BIN_EXE_farpace"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Breaks: docs/pacing.md, when pacing gets a key that nobody told of.
#[test]
fn every_key_of_pacing_is_mentioned() {
    let all = schema();
    let definitions = all["$defs"].as_object().unwrap();
    let text = document("pacing.md");
    for table in ["PacingConfig", "ClassConfig", "ClassFilter"] {
        let mut names = BTreeSet::new();
        properties(&definitions[table], &mut names);
        assert!(names.len() >= 3, "the schema was misread: {names:?}");
        let missing: Vec<_> = names.iter().filter(|name| !text.contains(&format!("| `{name}`"))).collect();
        let missing: Vec<_> =
            missing.into_iter().filter(|name| !text.contains(&format!(", `{name}` |"))).collect();
        assert!(missing.is_empty(), "{table}: {missing:?}");
    }
}

/// Breaks: what docs/pacing.md gives people to copy: the table, the commands of tc.
#[test]
fn the_examples_of_the_pacing_page_are_valid() {
    let text = document("pacing.md");
    let blocks = |kind: &str| -> Vec<String> {
        let mark = format!("```{kind}\n");
        text.split(&mark).skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned()).collect()
    };
    let line = Rate::from_mbit(1_000);
    let tables = blocks("toml");
    assert!(!tables.is_empty());
    for table in tables {
        let config = PacingConfig::parse(&table).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((config.check(line), config.warnings()), (vec![], vec![]), "{table}");
    }
    let tc: String = blocks("tc").concat();
    let sh = blocks("sh").concat().replace("farpace pacing tc ", "tc ");
    let sh: Vec<&str> = sh.lines().filter(|line| line.starts_with("tc ")).collect();
    assert!(sh.len() >= 4);
    for commands in [tc, sh.join("\n")] {
        let mut made = Tc::new(None);
        made.apply_text(&commands).unwrap_or_else(|error| panic!("{error}"));
        let config = made.config().unwrap();
        assert_eq!((config.check(line), config.warnings()), (vec![], vec![]), "{commands}");
    }
}

/// All Markdown files of the tree, without what is made in it.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !name.starts_with('.') && !matches!(name, "target" | "out" | "dist") {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").step_by(2).flat_map(str::lines).filter(|line| !line.starts_with("    "))
}

/// Targets of the links in a page.
fn links(text: &str) -> Vec<&str> {
    let after = prose(text).flat_map(|line| line.split("](").skip(1));
    after.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link).collect()
}

/// What a link to a heading of a page is called, by the rule that web pages of repositories and books share.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let name = |heading: &str| -> String {
        heading.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect()
    };
    headings.map(|heading| name(heading).replace(' ', "-")).collect()
}

/// Breaks: a reader's click, on a page that was moved or a heading that was renamed.
#[test]
fn every_link_leads_somewhere() {
    let mut all = Vec::new();
    pages(&place(".."), &mut all);
    let mut count = 0;
    let mut wrong = Vec::new();
    for page in &all {
        let text = std::fs::read_to_string(page).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            count += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let found = target.exists()
                && (heading.is_empty()
                    || anchors(&std::fs::read_to_string(&target).unwrap_or_default()).contains(heading));
            if !found {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(count > 100, "only {count} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Breaks: a program has to guess what the JSON of a command means.
#[test]
fn the_json_of_every_command_is_described() {
    fn with_json(command: &clap::Command, name: &str, found: &mut Vec<String>) {
        if command.get_arguments().any(|arg| arg.get_long() == Some("json")) {
            found.push(name.to_owned());
        }
        for below in command.get_subcommands() {
            with_json(below, &format!("{name} {}", below.get_name()), found);
        }
    }
    let mut found = Vec::new();
    with_json(&<farpace::cli::Cli as clap::CommandFactory>::command(), "farpace", &mut found);
    assert!(found.len() > 20, "{found:?}");
    let text = document("json.md");
    let is_described = |name: &String| ["`", " "].iter().any(|end| text.contains(&format!("`{name}{end}")));
    let missing: Vec<_> = found.iter().filter(|name| !is_described(name)).collect();
    assert!(missing.is_empty(), "docs/json.md says nothing of {missing:?}");
}

/// Breaks: the book, in which a page that SUMMARY.md does not name cannot be found.
#[test]
fn every_page_is_in_the_book() {
    let summary = document("SUMMARY.md");
    let listed: BTreeSet<_> = links(&summary).into_iter().map(|l| place(l).canonicalize().unwrap()).collect();
    let mut all = Vec::new();
    pages(&place(""), &mut all);
    let missing: Vec<_> = all
        .iter()
        .filter(|page| !page.ends_with("SUMMARY.md") && !listed.contains(&page.canonicalize().unwrap()))
        .collect();
    assert!(all.len() > 20 && missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

/// Breaks: the way into the code, when a file that ARCHITECTURE.md or its drawing names is moved.
#[test]
fn every_file_of_the_architecture_is_there() {
    let mut folders = vec![place("../crates")];
    let mut found = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let end = if path.is_dir() { "/" } else { "" };
            found.insert(format!("{}{end}", path.display()));
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    let is_name = |word: &&str| word.ends_with(".rs") || (word.ends_with('/') && word.contains("/src/"));
    let page = document("../ARCHITECTURE.md");
    let drawing = document("img/life-of-a-packet.svg");
    let named: BTreeSet<_> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .chain(drawing.split(['<', '>', ' ', ',']))
        .filter(is_name)
        .map(|name| format!("/{}", name.trim_start_matches("farpace/src/")))
        .collect();
    assert!(named.len() > 60, "only {named:?}");
    let missing: Vec<_> = named.iter().filter(|name| !found.iter().any(|f| f.ends_with(*name))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
