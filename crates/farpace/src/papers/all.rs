//! `farpace papers all`: all five papers, and their cures together, on one page.

use super::{Made, Overview, Saying, ack, nics, pacing, satellite, stops};
use crate::outdir::OutDir;
use crate::{interrupt, terminal, together};
use anyhow::{Result, bail};
use clap::Parser;
use farpace_report::{Page, Reproduction, Table, TableCell, TableColumn};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Each paper is made again as with --quick, and written to a directory of its own below --out; then the
cures of all of them meet on two paths, as in `farpace together`. One page shows the pictures that say it
all, with the claims that hold and those that fail.

Examples:
  farpace papers all                     about a minute on two cores; page in out/index.html
  farpace papers all --only stops,nics   these alone
  farpace papers all --full              nothing is left out: some ten minutes
  farpace papers all --json | jq '.papers[].claims[] | select(.holds | not)'

Exit codes:
  0    all runs were made and all bytes were right; claims may fail, which is printed
  1    bytes arrived other than they were sent
  2    a file that cannot be written
  130  interrupted; what was complete by then has been written";

/// The arguments of `farpace papers all`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Print JSON: all papers, and the combined runs
    #[arg(long)]
    pub json: bool,
    /// The directory for index.html and a directory for each paper
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Only these, separated by commas: stops, satellite, ack, pacing, nics, together
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Everything that each paper's own command does
    #[arg(long)]
    pub full: bool,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// A paper's place on the page.
struct Chapter {
    /// As in `farpace papers NAME`.
    name: &'static str,
    title: &'static str,
    /// The trouble and the cure.
    story: &'static str,
    make: fn(&Flags) -> Result<Made>,
}

/// What a paper's own command is told.
struct Flags {
    out: PathBuf,
    quick: bool,
    threads: Option<u16>,
}

/// The arguments of a paper's own command, read as if they had been typed: so its defaults are its own.
#[derive(Debug, Parser)]
struct Typed<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

impl Flags {
    fn typed<A: clap::Args>(&self) -> Result<A> {
        let mut words = vec!["paper".into(), "--out".into(), self.out.clone().into_os_string()];
        if self.quick {
            words.push("--quick".into());
        }
        if let Some(threads) = self.threads {
            words.extend(["--threads".into(), threads.to_string().into()]);
        }
        Ok(Typed::<A>::try_parse_from(words)?.args)
    }
}

/// Its name in `--only`.
const TOGETHER: &str = "together";

const CHAPTERS: [Chapter; 5] = [
    Chapter {
        name: "stops",
        title: "Transfers that stand still behind a policer",
        story: "A router that polices drops half of a window at once, and then some of what is sent again. Linux 2.6.17 did not notice that, and \
                stood still for seconds. The cure finds lost retransmissions by what the receiver reports.",
        make: |flags| stops::made(&flags.typed()?, Saying::Nothing),
    },
    Chapter {
        name: "satellite",
        title: "Bit errors half a second away",
        story: "Over a satellite TCP takes each bit error for congestion, and needs minutes to open its window again. TCP-STAR measures the bandwidth \
                and sets the window by that.",
        make: |flags| satellite::made(&flags.typed()?, Saying::Nothing),
    },
    Chapter {
        name: "ack",
        title: "Acknowledgments that are held back",
        story: "A receiver waits before it acknowledges; the sender pays with a window that opens slowly and round trips that are wrong. A flag in the \
                segment asks for an ACK at once.",
        make: |flags| ack::made(&flags.typed()?, Saying::Nothing),
    },
    Chapter {
        name: "pacing",
        title: "Bursts and small router queues",
        story: "A network card sends in bursts at twice the rate of the bottleneck; a router with a small queue drops them. PSPacer fills the time between \
                two packets with gap packets, whose bytes are the clock.",
        make: |flags| pacing::made(&flags.typed()?, Saying::Nothing),
    },
    Chapter {
        name: "nics",
        title: "Two unequal network cards",
        story: "If the frames of one connection go by a fast and a slow card in turn, those by the slow one come late and are taken for lost. Sent ahead of \
                their turn, they arrive in it.",
        make: |flags| nics::made(&flags.typed()?, Saying::Nothing),
    },
];

/// `farpace papers all`.
///
/// # Errors
/// A file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let known = || CHAPTERS.iter().map(|chapter| chapter.name).chain([TOGETHER]);
    if let Some(word) = args.only.iter().find(|word| !known().any(|name| name == *word)) {
        bail!("there is no paper `{word}`: {}", known().collect::<Vec<_>>().join(", "));
    }
    let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|word| word == name);
    let count = known().filter(|name| wanted(name)).count();
    let mut made = Vec::new();
    for (number, chapter) in (1..).zip(CHAPTERS.iter().filter(|chapter| wanted(chapter.name))) {
        terminal::note(&format!("{number} of {count}: {}", chapter.title));
        let flags = Flags { out: args.out.join(chapter.name), quick: !args.full, threads: args.threads };
        match (chapter.make)(&flags)? {
            Ok(mut overview) => {
                // As seen from the page.
                for figure in &mut overview.shown.figures {
                    figure.file_name = format!("{}/{}", chapter.name, figure.file_name);
                }
                terminal::note(&format!("   {}", overview.shown.verdict));
                made.push((chapter, overview));
            }
            Err(code) => return Ok(code),
        }
    }
    let mut meetings = Vec::new();
    if wanted(TOGETHER) {
        terminal::note(&format!("{count} of {count}: All cures together"));
        meetings = match together::measured(1, args.threads)? {
            Ok(meetings) => meetings,
            Err(code) => return Ok(code),
        };
    }
    for results in &meetings {
        terminal::note(&format!("   {}", results.verdict()));
    }
    let out = OutDir::open(&args.out, &["index.html".to_owned()])?;
    out.write("index.html", page(args, &made, &meetings).as_bytes())?;
    for figure in meetings.iter().flat_map(together::figures) {
        out.write(&figure.file_name, figure.svg.as_bytes())?;
    }
    out.commit()?;
    if args.json {
        terminal::print_json(&json(&made, &meetings))?;
    } else {
        terminal::print(&summary(&made).to_text())?;
    }
    terminal::say_where(&args.out.join("index.html"), args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn summary(made: &[(&Chapter, Overview)]) -> Table {
    let columns = vec![
        TableColumn::text("paper"),
        TableColumn::text("what it cures"),
        TableColumn::number("claims that hold", ""),
        TableColumn::number("that fail", ""),
        TableColumn::text("more"),
    ];
    let mut table = Table::new("Five papers", columns);
    for (chapter, Overview { reproduction, .. }) in made {
        let holds = reproduction.claims.iter().filter(|claim| claim.holds).count();
        table.row(vec![
            chapter.name.into(),
            chapter.title.into(),
            TableCell::Number(holds as f64, Some(0)),
            TableCell::Number((reproduction.claims.len() - holds) as f64, Some(0)),
            format!("farpace papers {}", chapter.name).into(),
        ]);
    }
    table
}

fn page(args: &Args, made: &[(&Chapter, Overview)], meetings: &[together::Results]) -> String {
    let mut page = Page::new("Five reasons why TCP fails on far networks, and five cures");
    let claims = made.iter().flat_map(|(_, overview)| &overview.reproduction.claims);
    let (holds, fails): (Vec<_>, Vec<_>) = claims.partition(|claim| claim.holds);
    page.verdict(
        &format!(
            "Of {} claims of five papers {} hold here; why the others do not is said with each.",
            holds.len() + fails.len(),
            holds.len()
        ),
        holds.len() > fails.len(),
    );
    page.paragraph(
        "Each paper was written inside the kernel of its time. Here all of them run in one TCP, in virtual time: the same runs with the same numbers come \
         out on any machine. Every byte that arrived was compared with the byte sent.",
    );
    page.table(&summary(made));
    for (chapter, Overview { shown, reproduction, report }) in made {
        page.heading(chapter.title).paragraph(chapter.story).paragraph(&shown.verdict);
        for figure in &shown.figures {
            page.figure(figure);
        }
        page.table(&shown.table);
        for claims in [true, false] {
            let these: Vec<_> =
                reproduction.claims.iter().filter(|claim| claim.holds == claims).cloned().collect();
            if !these.is_empty() {
                let word = if claims { "hold" } else { "fail" };
                let count = these.len();
                page.folded(&format!("{count} claim{} {word}", if count == 1 { "" } else { "s" }), |page| {
                    page.claims(&these);
                });
            }
        }
        page.paragraph(&format!("The paper: {}.", reproduction.paper));
        page.link("All of it, with every table, figure and assumption", &below(&args.out, report));
        let quick = if args.full { "" } else { "    # without --quick: everything" };
        page.command(&format!("farpace papers {}{quick}", chapter.name));
    }
    if !meetings.is_empty() {
        page.heading("All together").paragraph(
        "Each paper's path has one trouble. These have all five. Every cure is there as its paper prints it, in a Linux 2.6.17, and as one would do it \
         today; each alone, all but one, and all. Some stand in each other's way.",
    );
        for results in meetings {
            together::add_to(&mut page, results, &together::figures(results));
        }
        page.command("farpace together");
    }
    page.render()
}

/// The path of a report as seen from the page.
fn below(out: &Path, report: &Path) -> String {
    report.strip_prefix(out).unwrap_or(report).display().to_string()
}

fn json(made: &[(&Chapter, Overview)], meetings: &[together::Results]) -> Value {
    let papers: Vec<&Reproduction> = made.iter().map(|(_, overview)| &overview.reproduction).collect();
    json!({ "format": "farpace-papers/1", "papers": papers, "together": together::json(meetings) })
}
