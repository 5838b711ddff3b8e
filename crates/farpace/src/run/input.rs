//! What a run is made from: the scenario with its overrides, the payload, and where results go.

use super::{Args, TraceFormat, pace};
use anyhow::{Context, Result, bail};
use farpace_lab::Payload;
use farpace_process::interrupt::Litter;
use farpace_run::{RunInput, RunSummary};
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that was given, read and checked.
pub struct Input {
    /// What the summary and the report name.
    pub run: RunInput,
    pub payload: Option<Payload>,
    pub received: Option<PathBuf>,
    /// `--out`, if it was given.
    pub out: Option<PathBuf>,
    pub trace: TraceFormat,
    pub quiet: bool,
    pub clock_speed: bool,
    /// Say why flows took their time.
    pub explain: bool,
    report: bool,
    captures: bool,
    _litter: Option<Litter>,
}

impl Input {
    pub fn read(args: &Args) -> Result<Input> {
        // Flows may be drawn from the seed, so it must be known when the scenario is read.
        let seed = args.seed.map(|seed| ("seed".to_owned(), seed.to_string()));
        let set: Vec<(String, String)> = args.set.iter().cloned().chain(seed).collect();
        let mut scenario = pace::load(&args.scenario, &set, &args.pace)?;
        let payload = args.payload.as_deref().map(Payload::file).transpose()?;
        if let (Some(payload), Some(flow)) = (&payload, scenario.flows.first_mut()) {
            flow.size = payload.len();
        }
        if let Some(received) = &args.received {
            for (taken, what) in [(args.payload.as_ref(), "payload"), (Some(&args.scenario), "scenario")] {
                if taken.is_some_and(|taken| same_file(taken, received)) {
                    bail!(
                        "--received `{}` is the {what} itself: it would be overwritten",
                        received.display()
                    );
                }
            }
            if received.is_dir() {
                bail!("--received `{}` is a directory, not a file", received.display());
            }
        }
        let trace = args.trace.unwrap_or(match args.out {
            Some(_) => TraceFormat::Parquet,
            None => TraceFormat::None,
        });
        let mut input = Input {
            run: RunInput {
                scenario,
                file: args.scenario.clone(),
                set: args.set.clone(),
                command: command_line(args),
            },
            payload,
            received: args.received.clone(),
            out: args.out.clone(),
            trace,
            quiet: args.quiet,
            clock_speed: args.clock_speed,
            explain: args.explain,
            report: !args.no_report,
            captures: !args.no_captures,
            _litter: None,
        };
        input._litter = input.received_unfinished().filter(|p| !p.exists()).map(|p| Litter::watch(&p));
        Ok(input)
    }

    /// The scenario's file without directory and ending.
    pub fn name(&self) -> String {
        self.run.file.file_stem().map_or_else(|| "run".to_owned(), |stem| stem.to_string_lossy().into_owned())
    }
    /// Whether a report is wanted.
    pub fn report(&self) -> bool {
        self.report
    }
    /// Whether captures are wanted, and possible.
    pub fn captures(&self) -> bool {
        self.captures && self.out.is_some() && !self.run.scenario.trace.taps.is_empty()
    }
    /// Where results go, if there are any to write.
    pub fn directory(&self) -> Option<PathBuf> {
        let anything = self.report || self.trace != TraceFormat::None;
        match &self.out {
            Some(dir) => Some(dir.clone()),
            None => anything.then(|| Path::new("out").join(self.name())),
        }
    }
    /// The trace's file name.
    pub fn trace_name(&self) -> Option<&'static str> {
        match self.trace {
            TraceFormat::Parquet => Some("trace.parquet"),
            TraceFormat::Csv => Some("trace.csv"),
            TraceFormat::None => None,
        }
    }
    /// Names of the files that will be written (figures aside, which have a directory of their own).
    pub fn planned(&self) -> Vec<String> {
        let mut names: Vec<String> = self.trace_name().into_iter().map(str::to_owned).collect();
        if self.report {
            names.push("report.html".to_owned());
        }
        if self.out.is_some() {
            names.extend(["scenario.toml".to_owned(), "summary.json".to_owned()]);
        }
        if self.captures() {
            names.extend(self.run.scenario.taps().into_iter().map(|tap| format!("{}.pcapng", tap.name)));
            names.push("drops.pcapng".to_owned());
        }
        names
    }
    /// Where received bytes are written while they come: under another name, so that nothing unfinished has
    /// the name of the whole. A pipe or device is written directly.
    pub fn received_unfinished(&self) -> Option<PathBuf> {
        let place = self.received.as_ref()?;
        if place.exists() && !place.is_file() {
            return Some(place.clone());
        }
        let mut name = place.clone().into_os_string();
        name.push(".partial");
        Some(name.into())
    }
    /// Takes away what could not be written to its end.
    pub fn remove_received(&self) {
        if let Some(unfinished) = self.received_unfinished().filter(|path| path.is_file()) {
            let _ = fs::remove_file(unfinished);
        }
    }
    /// Gives the received bytes their name, if they are complete and right.
    pub fn settle_received(&self, summary: &RunSummary) -> Result<()> {
        let (Some(place), Some(unfinished)) = (&self.received, self.received_unfinished()) else {
            return Ok(());
        };
        let intact = summary.flows.first().is_some_and(|flow| flow.intact);
        if !intact || unfinished == *place {
            return Ok(());
        }
        fs::rename(&unfinished, place).with_context(|| format!("cannot write `{}`", place.display()))
    }
    /// Where the received bytes are, in a line for people.
    pub fn received_note(&self, summary: &RunSummary) -> Option<String> {
        let (place, unfinished) = (self.received.as_ref()?, self.received_unfinished()?);
        let intact = summary.flows.first().is_some_and(|flow| flow.intact);
        if intact {
            return Some(format!("{} (received)", place.display()));
        }
        unfinished.exists().then(|| format!("{} (received, not complete)", unfinished.display()))
    }
}

/// Whether two paths lead to one file, which the second need not have yet.
fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        use std::os::unix::fs::MetadataExt;
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// The command line as a shell takes it.
fn command_line(args: &Args) -> String {
    let mut words = vec!["farpace".to_owned(), "run".to_owned(), quoted(&args.scenario.to_string_lossy())];
    let mut option = |name: &str, value: &str| {
        words.push(name.to_owned());
        words.push(quoted(value));
    };
    for (key, value) in &args.set {
        option("--set", &format!("{key}={value}"));
    }
    for (node, file) in &args.pace {
        option("--pace", &format!("{node}={}", file.display()));
    }
    if let Some(seed) = args.seed {
        option("--seed", &seed.to_string());
    }
    for (name, path) in [("--payload", &args.payload), ("--received", &args.received), ("--out", &args.out)] {
        if let Some(path) = path {
            option(name, &path.to_string_lossy());
        }
    }
    words.join(" ")
}

/// In quotes, if a shell would otherwise take it for something else.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=+:,%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the command line in a report does something else when it is pasted into a shell.
    #[test]
    fn the_command_line_survives_a_shell() {
        assert_eq!(quoted("links.wan.delay=20 ms"), "'links.wan.delay=20 ms'");
        assert_eq!(quoted("flows.*.size=1"), "'flows.*.size=1'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("a/b-c_d.toml"), "a/b-c_d.toml");
    }
}
