//! `farpace lab grid`: the lab against reality over many paths. The grid itself is `farpace_emulate::grid`.

use crate::realtime::LateTolerance;
use crate::{scenario, terminal};
use anyhow::Result;
use farpace_emulate::compare::{Backend, congestion_of};
use farpace_emulate::grid::{
    FULL, GridJournal, GridKept, GridObserver, GridPlan, GridProgress, GridResults, GridRules, QUICK,
    measure, parse,
};
use farpace_process::outdir::OutDir;
use farpace_process::{interrupt, stopwatch::Stopwatch};
use farpace_tcp::config::Congestion;
use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Each point is a path with one bottleneck, run as by `farpace lab compare` with the same seeds in each way.
Runs of a point are repeated until half of the 95 % interval of the goodput ratio is at most --interval. A run
in real time is held against the lab with the same stalls: times of at least 50 us in which the machine did
not run the network. A point at which stalls alone take more than half of the goodput is `machine too busy`.
Needs root and iproute2. Runs are kept in runs.jsonl of --out.

Examples:
  sudo farpace lab grid --quick --out out/quick
  sudo farpace lab grid --congestion cubic,reno,bbr --runs 3..10 --out out/grid
  sudo farpace lab grid --congestion cubic,reno,bbr --runs 3..10 --out out/grid --resume
  sudo farpace lab grid --congestion cubic,reno,bbr --runs 3..10 --out out/grid --resume --farpace-again
  sudo farpace lab grid --points my-paths.toml --with kernel --json

Exit codes:
  0    no way differs from the lab
  1    a way differs at a point
  2    wrong usage, a bad list of points, or what the system does not allow
  130  interrupted; --resume goes on";

/// The arguments of `farpace lab grid`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Points from a TOML file, in place of the built-in list
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub points: Option<PathBuf>,
    /// A short built-in list, for a first look
    #[arg(long)]
    pub quick: bool,
    /// Print the list of points, and run nothing
    #[arg(long, conflicts_with = "points")]
    pub list: bool,
    /// Congestion controls of points that name none, separated by commas
    #[arg(long, value_name = "NAMES", value_parser = congestion_of)]
    #[arg(value_delimiter = ',', default_value = "cubic")]
    pub congestion: Vec<Congestion>,
    /// The ways that are held against the lab, separated by commas: farpace, kernel
    #[arg(long = "with", value_name = "WAYS", value_delimiter = ',', default_value = "farpace,kernel")]
    pub ways: Vec<Backend>,
    /// Runs of each way at each point that count: at least and at most
    #[arg(long, value_name = "MIN..MAX", value_parser = GridRules::parse_runs, default_value = "3..10")]
    pub runs: RangeInclusive<usize>,
    /// Half of the interval of the ratio at which runs end, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub interval: f64,
    /// How long each run lasts; on long paths at least 50 round trips
    #[arg(long, value_name = "S", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// How the network waits for the next packet
    #[arg(long, value_name = "HOW", value_enum, default_value = "hybrid")]
    pub wait: LateTolerance,
    /// Go on with the runs that --out has
    #[arg(long)]
    pub resume: bool,
    /// With --resume: keep the kernel's runs, also of a grid of another version, and make farpace's again,
    /// in the lab and in real time
    #[arg(long, requires = "resume")]
    pub farpace_again: bool,
    /// Print JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for runs.jsonl, grid.json, report.html and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/grid")]
    pub out: PathBuf,
}

/// One line on a terminal, elsewhere a line a minute.
struct GridLine {
    clock: Stopwatch,
    minutes: Option<u64>,
}

impl GridObserver for GridLine {
    fn progress(&mut self, at: &GridProgress) {
        let minutes = Some(self.clock.elapsed().as_secs() / 60);
        if std::io::stderr().is_terminal() {
            terminal::show_over(&at.text().chars().take(79).collect::<String>());
        } else if minutes != self.minutes {
            self.minutes = minutes;
            terminal::note(&at.text());
        }
    }
}

/// `farpace lab grid`.
///
/// # Errors
/// A list of points that is none, what the system does not allow, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let built_in = if args.quick { QUICK } else { FULL };
    if args.list {
        terminal::print(built_in)?;
        return Ok(ExitCode::SUCCESS);
    }
    interrupt::install();
    let points = match &args.points {
        None => parse(built_in, "the built-in list", &args.congestion)?,
        Some(file) => parse(&scenario::read_text(file)?, &file.display().to_string(), &args.congestion)?,
    };
    let rules = GridRules { runs: args.runs.clone(), half_width: args.interval / 100.0 };
    let plan = GridPlan::new(points, &args.ways, rules, args.seconds, args.wait.wait())?;
    let out = OutDir::open(&args.out, &["report.html".to_owned(), "grid.json".to_owned()])?;
    let kept = match (args.resume, args.farpace_again) {
        (false, _) => GridKept::Nothing,
        (true, false) => GridKept::All,
        (true, true) => GridKept::Kernel,
    };
    let mut journal = GridJournal::open(&args.out, args.seconds, kept)?;
    let mut line = GridLine { clock: Stopwatch::start(), minutes: None };
    let finished = measure(&plan, &mut journal, &mut line)?;
    terminal::show_over("");
    if !finished {
        terminal::note(&format!(
            "Interrupted: {} runs are kept; --resume goes on with them.",
            journal.runs().len()
        ));
        return Ok(ExitCode::from(terminal::INTERRUPTED));
    }
    let results = GridResults::new(&plan, journal.runs());
    if args.json {
        terminal::print_json(&results.json())?;
    } else {
        let tables = [results.table(), results.differences()].into_iter().filter(|table| !table.is_empty());
        let tables: Vec<String> = tables.map(|table| terminal::table(&table)).collect();
        terminal::print(&format!("{}\n{}\n", tables.join("\n"), results.sentence()))?;
    }
    results.failures().iter().for_each(|failure| terminal::note(&format!("failed: {failure}")));
    let agrees = results.agrees();
    let command: Vec<String> = ["farpace".to_owned()].into_iter().chain(std::env::args().skip(1)).collect();
    results.write(out, &command.join(" "))?;
    terminal::say_where(&args.out.join("report.html"), args.json)?;
    Ok(ExitCode::from(if agrees { terminal::OK } else { terminal::FAILED }))
}
