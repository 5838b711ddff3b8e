//! What farpace computes, pinned: a change of structure must not change it.
//!
//! `golden/digests.txt` has a line for each item: its name, a digest of it, and a digest of the numbers in it
//! (`-` if it is binary). Digests are the first 128 bits of BLAKE3. JSON is digested with its keys sorted,
//! without the version of farpace and without what depends on the machine. The digest of numbers stays if
//! only keys and words get other names. `golden/COMMAND.keys` lists all keys of each command's JSON, so that
//! a review sees each key that comes or goes.
//!
//! What was digested is kept in `golden/found` of Cargo's directory for tests (`target/tmp`), and what agreed
//! with its digest in `golden/agreed`. If an item differs, the test names both files. Run the test once
//! before a change, to have the latter.
//!
//! With `FARPACE_BLESS=1` the test writes digests and keys anew.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::farpace;
use farpace::units::RandomStream;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Streams of random numbers, by seed and name.
const STREAMS: [(u64, &str); 5] =
    [(1, "loss"), (2, "loss"), (1, "payload pattern"), (7, "wire.forward"), (u64::MAX, "")];

/// Runs of which every file is pinned: a name, and the command without `--out`.
const RUNS: [(&str, &str); 5] = [
    ("satellite", r#"run scenarios/gallery/satellite.toml --set trace.taps='["space"]'"#),
    (
        "together",
        r#"run scenarios/gallery/together.toml --set duration="8 s" --set trace.taps='["wide", "space"]'"#,
    ),
    ("impaired", "run scenarios/gallery/impaired.toml"),
    ("paced", r#"run scenarios/gallery/paced.toml --set flows.bulk.size="10 MB" --set trace.taps='["nic"]'"#),
    ("nics", r#"run scenarios/gallery/nics.toml --set flows.bulk.size="2 MB" --set trace.taps='["a"]'"#),
];

/// Commands whose standard output is pinned, the longest first. Before the first dot is the name of their
/// list of keys. They run in a directory with `scenarios`, the directories of the runs above, `commands.tc`
/// and `pacing.toml`. `ALL` stands for all scenario files. Commands that measure time or read the state of
/// the machine are not here.
const COMMANDS: [(&str, &str); 72] = [
    ("papers-nics.json", r#"papers nics --quick --time "400 ms" --assume literal --json --out out/nics"#),
    (
        "papers-pacing.json",
        r#"papers pacing --quick --time "3 s" --sets 10 --assume literal --json --out out/pacing"#,
    ),
    ("papers-ack-estimators.json", "papers ack --estimators --quick --json --out out/estimators"),
    (
        "papers-satellite.json",
        r#"papers satellite --quick --seeds 1 --time "16 s" --assume literal --json --out out/satellite"#,
    ),
    (
        "papers-stops.json",
        r#"papers stops --quick --set flows.bulk.size="10 MB" --assume literal --json --out out/stops"#,
    ),
    ("papers-ack-today.json", "papers ack --today --quick --json --out out/today"),
    ("papers-ack.json", "papers ack --quick --assume literal --json --out out/ack"),
    ("papers-beside.json", "papers ack --quick --json --out out/beside"),
    ("papers-world.json", "papers ack --quick --assume five-segments --json --out out/world"),
    ("papers-worlds.json", "papers ack --assume list --json"),
    ("papers-worlds.txt", "papers ack --assume list"),
    (
        "papers-satellite-frontier.json",
        r#"papers satellite --frontier --only cubic,farpace --seeds 1 --time "4 s" --json --out out/frontier"#,
    ),
    ("together.ship.json", r#"together --path ship --seeds 1 --time "10 s" --json --out out/ship"#),
    ("together.office.json", r#"together --path office --seeds 1 --time "1 s" --json --out out/office"#),
    ("cc-compare.lossy.json", r#"cc compare --path lossy --seeds 1 --time "2 s" --json --out out/lossy"#),
    (
        "cc-compare.satellite.json",
        r#"cc compare --path satellite --only reno,cubic,bbr3 --seeds 1 --json --out out/cc"#,
    ),
    ("cc-list.json", "cc list --json"),
    ("cc-list.txt", "cc list"),
    ("profiles.json", "profiles --json"),
    ("profiles.txt", "profiles"),
    ("run.aqm.json", "run scenarios/gallery/aqm.toml --json --no-report"),
    (
        "run.bonding.json",
        r#"run scenarios/gallery/bonding.toml --set flows.bulk.size="50 MB" --json --no-report"#,
    ),
    ("run.firewall.json", "run scenarios/gallery/firewall.toml --json --no-report"),
    ("run.leo.json", "run scenarios/gallery/leo.toml --json --no-report"),
    ("run.lossy.json", "run scenarios/gallery/lossy.toml --json --no-report"),
    (
        "run.lossy-linux26.json",
        "run scenarios/gallery/lossy.toml --set flows.*.sender.profile=linux-2.6.17 --seed 5 --json \
         --no-report",
    ),
    ("run.nics.json", r#"run scenarios/gallery/nics.toml --set flows.bulk.size="20 MB" --json --no-report"#),
    (
        "run.paced.json",
        r#"run scenarios/gallery/paced.toml --set flows.bulk.size="40 MB" --json --no-report"#,
    ),
    (
        "run.satellite.json",
        "run scenarios/gallery/satellite.toml --set flows.bulk.sender.profile=farpace --json --no-report",
    ),
    ("run.shared.json", r#"run scenarios/gallery/shared.toml --set duration="10 s" --json --no-report"#),
    ("run.small-queue.json", "run scenarios/gallery/small-queue.toml --json --no-report"),
    ("run.thinned-acks.json", "run scenarios/gallery/thinned-acks.toml --json --no-report"),
    (
        "run.together-office.json",
        r#"run scenarios/gallery/together-office.toml --set duration="2 s" --json --no-report"#,
    ),
    ("scenario-check.txt", "scenario check ALL"),
    ("scenario-schema.json", "scenario schema"),
    ("nics-pair.json", "nics pair --ours 1G,1G,100M --theirs 100M,2.5G --json"),
    ("nics-pair.txt", "nics pair --ours 1G,1G,100M --theirs 100M,2.5G"),
    ("nics-order.json", "nics order --paths 1G,100M --json"),
    ("nics-order.txt", "nics order --paths 1G,100M"),
    (
        "nics-order.lines.json",
        r#"nics order --paths "80 Mbit/s@20 ms,180 Mbit/s@45 ms,150 Mbit/s@30 ms" --frames 500 --json"#,
    ),
    (
        "nics-order.skip.json",
        "nics order --paths 1G,100M --order skip --skip 8 --ratio 90/10 --frames 200 --json",
    ),
    ("nics-order.round-robin.json", "nics order --paths 1G,100M --order round-robin --frames 200 --json"),
    ("nics-order.flow-hash.json", "nics order --paths 1G,100M --order flow-hash --frames 200 --json"),
    ("nics-order.min-rtt.json", "nics order --paths 1G,100M --order min-rtt --frames 200 --json"),
    ("nics-order.blest.json", "nics order --paths 1G,100M --order blest --frames 200 --json"),
    ("nics-order.ecf.json", "nics order --paths 1G,100M --order ecf --frames 200 --json"),
    ("nics-show-scenario.nics.json", "nics show scenarios/gallery/nics.toml --json"),
    ("nics-show-scenario.bonding.json", "nics show scenarios/gallery/bonding.toml --json"),
    ("nics-show-scenario.together.json", r#"nics show scenarios/gallery/together.toml --for "3 s" --json"#),
    ("nics-show-scenario.txt", "nics show scenarios/gallery/nics.toml"),
    ("nics-show-capture.json", "nics show nics/a.nic0.pcapng --json"),
    ("nics-show-capture.txt", "nics show nics/a.nic0.pcapng"),
    ("pacing-tc.txt", "pacing tc --file - --batch commands.tc"),
    ("pacing-show.json", "pacing show --file pacing.toml --json"),
    ("pacing-show.line.json", r#"pacing show --file pacing.toml --line "10 Gbit/s" --json"#),
    ("pacing-show.txt", "pacing show --file pacing.toml"),
    ("pacing-show.tc.txt", "pacing show --file pacing.toml --tc"),
    ("pacing-show-statistics.json", "pacing show -s paced --json"),
    ("pacing-show-statistics.txt", "pacing show -s paced"),
    ("pacing-report.json", "pacing report paced/nic.r.pcapng --json --no-report --quiet"),
    (
        "pacing-report.rate.json",
        r#"pacing report paced/nic.r.pcapng --flow "src 10.0.0.1" --rate "490 Mbit/s" --json --no-report --quiet"#,
    ),
    ("pacing-report.txt", "pacing report paced/nic.r.pcapng --no-report --quiet"),
    ("show.impaired.json", "show impaired/a.pcapng --count 1500 --json"),
    ("show.impaired.txt", "show impaired/a.pcapng --count 1500"),
    ("show.drops.json", "show impaired/drops.pcapng --json"),
    ("show.drops.txt", "show impaired/drops.pcapng"),
    ("show.nics.json", "show nics/a.nic0.pcapng --count 500 --json"),
    ("show.nics.txt", "show nics/a.nic0.pcapng --count 500"),
    ("show.together.json", "show together/ship.nic0.pcapng --count 500 --json"),
    ("show.together.txt", "show together/ship.nic0.pcapng --count 500"),
    ("run.paced-by-file.json", "run scenarios/gallery/lossy.toml --pace a=pacing.toml --json --no-report"),
    ("run.seed.json", "run scenarios/gallery/lossy.toml --seed 9 --json --no-report"),
];

/// `commands.tc`, which makes `pacing.toml`.
const TC: &str = "\
tc qdisc add dev eth0 root handle 1: psp default 3
tc class add dev eth0 parent 1: classid 1:1 psp rate 500mbit
tc class add dev eth0 parent 1: classid 1:2 psp rate 250mbit
tc class add dev eth0 parent 1: classid 1:3 psp mode normal
tc qdisc add dev eth0 parent 1:2 handle 20: pfifo limit 2000
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dst 10.0.0.2 classid 1:1
tc filter add dev eth0 parent 1: protocol ip pref 2 u32 match ip dst 192.168.2.0/24 classid 1:2
";

/// How many commands run at a time.
const AT_A_TIME: usize = 2;

/// Something that is pinned, as it is digested.
struct Item {
    name: String,
    bytes: Vec<u8>,
    /// Digest of the numbers in it; `-` if it is binary.
    numbers: String,
    /// Paths of its keys, if it is JSON.
    keys: BTreeSet<String>,
}

impl Item {
    fn binary(name: impl Into<String>, bytes: Vec<u8>) -> Item {
        Item { name: name.into(), bytes, numbers: "-".into(), keys: BTreeSet::new() }
    }

    fn text(name: impl Into<String>, text: String) -> Item {
        let numbers = numbers_in(&text).collect::<Vec<_>>().join("\n");
        Item {
            name: name.into(),
            bytes: text.into_bytes(),
            numbers: digest(numbers.as_bytes()),
            keys: BTreeSet::new(),
        }
    }

    /// `text` is one JSON value, or several, one after the other. `remark` is digested too.
    fn json(name: impl Into<String>, text: &str, remark: &str) -> Item {
        let (mut canonical, mut numbers, mut keys) = (String::new(), Vec::new(), BTreeSet::new());
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let mut value = value.unwrap();
            if let Value::Object(map) = &mut value {
                // The version, and what is of this machine. Only the outermost level has them.
                for key in ["farpace", "wall", "directory"] {
                    if map.remove(key).is_some() {
                        keys.insert(key.to_owned());
                    }
                }
            }
            value.sort_all_objects();
            collect(&value, "", &mut numbers, &mut keys);
            canonical += &format!("{value:#}\n");
        }
        // Sorted: keys with other names come in another order.
        numbers.sort();
        let name = name.into();
        if name == "scenario-schema.json" {
            // The keys of scenarios, not those of the schema language.
            keys.retain(|path| path.rsplit('.').nth(1) == Some("properties"));
        }
        Item {
            name,
            bytes: (canonical + remark).into_bytes(),
            numbers: digest(numbers.join("\n").as_bytes()),
            keys,
        }
    }

    /// The name of its list of keys.
    fn command(&self) -> &str {
        self.name.split('.').next().unwrap()
    }
}

/// Adds the numbers, truth values and nulls in `value`, and the paths of its keys below `path`.
fn collect(value: &Value, path: &str, numbers: &mut Vec<String>, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(value, &path, numbers, keys);
                keys.insert(path);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, path, numbers, keys)),
        Value::String(text) => numbers.extend(numbers_in(text).map(str::to_owned)),
        other => numbers.push(other.to_string()),
    }
}

/// Digits, with the dots between them.
fn numbers_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
}

/// The first 128 bits of BLAKE3, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

/// Splits a command as a shell does: quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (Some(open), _) if c == open => quote = None,
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words
}

/// Runs a command; its standard output, and its exit code in words. Wrong usage is a mistake of this test.
fn output(dir: &Path, line: &str) -> (String, String) {
    let mut words = words(line);
    if words.last().is_some_and(|word| word == "ALL") {
        words.pop();
        words.extend(scenarios(dir));
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let output = farpace(dir, &words).output().unwrap();
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), format!("exit code {}\n", code.unwrap()))
}

/// All scenario files that are shipped.
fn scenarios(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for folder in common::names(&dir.join("scenarios")) {
        let names = common::names(&dir.join("scenarios").join(&folder));
        all.extend(names.iter().map(|name| format!("scenarios/{folder}/{name}")));
    }
    assert!(all.len() > 20, "scenarios were not found");
    all
}

/// The files of one of [`RUNS`]; its directory stays.
fn run_files(dir: &Path, name: &str, line: &str) -> Vec<Item> {
    let (_, code) = output(dir, &format!("{line} --out {name} --trace parquet --no-report --quiet"));
    output(dir, &format!("{line} --out {name}-csv --trace csv --no-captures --no-report --quiet"));
    let out = dir.join(name);
    let names = common::names(&out);
    assert!(names.iter().filter(|name| name.ends_with(".pcapng")).count() >= 3, "{name}: {names:?}");
    let mut items: Vec<_> = names
        .iter()
        .map(|file| {
            let bytes = fs::read(out.join(file)).unwrap();
            let item = format!("files.{name}.{file}");
            match file.rsplit_once('.').unwrap().1 {
                "pcapng" => Item::binary(item, without_program(bytes)),
                "parquet" => Item::binary(item, without_footer(bytes)),
                // Its keys are those of the command.
                "json" => Item {
                    keys: BTreeSet::new(),
                    ..Item::json(item, &String::from_utf8(bytes).unwrap(), &code)
                },
                _ => Item::text(item, String::from_utf8(bytes).unwrap()),
            }
        })
        .collect();
    let csv = fs::read_to_string(dir.join(format!("{name}-csv/trace.csv"))).unwrap();
    let (head, rows) = csv.split_once('\n').unwrap();
    items.push(Item::text(format!("files.{name}.trace.columns"), head.to_owned()));
    items.push(Item::text(format!("files.{name}.trace.csv"), rows.to_owned()));
    items
}

/// A capture without its section header, which names the version of farpace.
fn without_program(mut capture: Vec<u8>) -> Vec<u8> {
    assert_eq!(capture[..4], 0x0a0d_0d0a_u32.to_le_bytes());
    let len = u32::from_le_bytes(capture[4..8].try_into().unwrap());
    capture.drain(..len as usize);
    capture
}

/// A Parquet file without its footer, which describes the columns in words: what is left are the values.
fn without_footer(mut table: Vec<u8>) -> Vec<u8> {
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
    let end = table.len() - 8;
    let len = u32::from_le_bytes(table[end..end + 4].try_into().unwrap());
    table.truncate(end - len as usize);
    table
}

/// Does `work` for all of `tasks`, in order, [`AT_A_TIME`] at a time.
fn each<T: Sync>(tasks: &[T], work: impl Fn(&T) -> Vec<Item> + Sync) -> Vec<Item> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let items = work(task);
                    done.lock().unwrap().extend(items);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

/// Where digests and lists of keys are.
fn pinned() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn bless() -> bool {
    std::env::var_os("FARPACE_BLESS").is_some()
}

/// Compares with `golden/digests.txt`, or writes it. `owned` says which of its lines are of these items.
/// Gives what differs.
fn check_digests(items: &[Item], owned: fn(&str) -> bool) -> Vec<String> {
    // The tests of this file run at the same time.
    static FILE: Mutex<()> = Mutex::new(());
    let _guard = FILE.lock().unwrap();
    let path = pinned().join("digests.txt");
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut digests: BTreeMap<String, String> = text
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, digests)| (name.to_owned(), digests.to_owned()))
        .collect();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden");
    let (found, agreed) = (kept.join("found"), kept.join("agreed"));
    fs::create_dir_all(&found).unwrap();
    fs::create_dir_all(&agreed).unwrap();
    let mut wrong = Vec::new();
    let mut lines = BTreeMap::new();
    for item in items {
        let whole = digest(&item.bytes);
        let line = format!("{whole} {}", item.numbers);
        let (found, agreed) = (found.join(&item.name), agreed.join(&item.name));
        fs::write(&found, &item.bytes).unwrap();
        let before = digests.get(&item.name);
        if before == Some(&line) || bless() {
            fs::copy(&found, &agreed).unwrap();
        } else if let Some((pinned, numbers)) = before.and_then(|line| line.split_once(' ')) {
            let what = match item.numbers.as_str() {
                "-" => "",
                same if same == numbers => "; its numbers are the same, in other words or another order",
                _ => "; its numbers differ",
            };
            let is_kept = fs::read(&agreed).is_ok_and(|bytes| digest(&bytes) == pinned);
            let (found, agreed) = (found.display(), agreed.display());
            wrong.push(format!("{}: {whole} is not {pinned}{what}", item.name));
            wrong.push(if is_kept {
                format!("    diff {agreed} {found}")
            } else {
                format!("    {found} (run this test at an earlier commit to have what was pinned)")
            });
        } else {
            wrong.push(format!("{}: it is not in digests.txt", item.name));
        }
        assert!(lines.insert(item.name.clone(), line).is_none(), "{}: twice", item.name);
    }
    let gone = digests.keys().filter(|name| owned(name) && !lines.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{name}: it is in digests.txt, and is no longer made")));
    if bless() {
        digests.retain(|name, _| !owned(name));
        digests.extend(lines);
        let text: String = digests.iter().map(|(name, line)| format!("{name} {line}\n")).collect();
        fs::write(&path, text).unwrap();
        return Vec::new();
    }
    wrong
}

/// Compares with the lists of keys, or writes them. Gives what differs.
fn check_keys(items: &[Item]) -> Vec<String> {
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for item in items.iter().filter(|item| !item.keys.is_empty()) {
        keys.entry(item.command()).or_default().extend(item.keys.iter().map(String::as_str));
    }
    let names = common::names(&pinned());
    let mut stale: BTreeSet<_> = names.iter().filter_map(|name| name.strip_suffix(".keys")).collect();
    let mut wrong = Vec::new();
    for (command, keys) in keys {
        stale.remove(command);
        let path = pinned().join(format!("{command}.keys"));
        if bless() {
            fs::write(&path, keys.iter().map(|key| format!("{key}\n")).collect::<String>()).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let before: BTreeSet<_> = text.lines().collect();
        wrong.extend(keys.difference(&before).map(|key| format!("{command}.keys: new key {key}")));
        wrong.extend(before.difference(&keys).map(|key| format!("{command}.keys: key {key} is gone")));
    }
    for command in stale {
        if bless() {
            fs::remove_file(pinned().join(format!("{command}.keys"))).unwrap();
        } else {
            wrong.push(format!("{command}.keys: no command has this list any more"));
        }
    }
    wrong
}

fn is_of_streams(name: &str) -> bool {
    name.starts_with("random.")
}

fn agree(wrong: &[String]) {
    let how = "if that is intended, run this test once with FARPACE_BLESS=1";
    assert!(wrong.is_empty(), "\n{}\n{how}", wrong.join("\n"));
}

/// Breaks: runs by their seed: a stream of the same seed and name gives other numbers.
#[test]
fn random_streams_are_those_that_are_pinned() {
    let mut items = Vec::new();
    for (seed, name) in STREAMS {
        let mut bytes = vec![0; 1_000_000];
        RandomStream::new(seed, name).fill(&mut bytes);
        items.push(Item::binary(format!("random.{seed}.{}.bytes", name.replace(' ', "-")), bytes));
        let mut stream = RandomStream::new(seed, name);
        let drawn = (0..100_000).flat_map(|n: u64| {
            let chance = u64::from(stream.chance(0.3));
            [stream.next_u64(), stream.unit().to_bits(), stream.below(n * n), chance].map(u64::to_le_bytes)
        });
        let drawn = drawn.flatten().collect();
        items.push(Item::binary(format!("random.{seed}.{}.draws", name.replace(' ', "-")), drawn));
    }
    agree(&check_digests(&items, is_of_streams));
}

/// Breaks: results that others compare with: a trace, a capture or the output of a command differs, or its
/// JSON has other keys.
#[test]
fn runs_and_commands_put_out_what_is_pinned() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    std::os::unix::fs::symlink(shipped.canonicalize().unwrap(), dir.join("scenarios")).unwrap();
    fs::write(dir.join("commands.tc"), TC).unwrap();
    output(dir, "pacing tc --file pacing.toml --batch commands.tc");

    let mut items = each(&RUNS, |(name, line)| run_files(dir, name, line));
    let explained = scenarios(dir).into_iter().map(|path| {
        let name = path.trim_start_matches("scenarios/").trim_end_matches(".toml").replace('/', "-");
        (format!("scenario-explain.{name}.txt"), format!("scenario explain {path}"))
    });
    let named = COMMANDS.iter().map(|(name, line)| ((*name).to_owned(), (*line).to_owned()));
    let commands: Vec<_> = named.chain(explained).collect();
    items.extend(each(&commands, |(name, line)| {
        let (text, code) = output(dir, line);
        let is_json = name.ends_with(".json");
        vec![if is_json { Item::json(name, &text, &code) } else { Item::text(name, text + &code) }]
    }));

    let mut wrong = check_digests(&items, |name| !is_of_streams(name));
    wrong.extend(check_keys(&items));
    agree(&wrong);
}
