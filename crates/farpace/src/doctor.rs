//! `farpace doctor`: what this machine allows, what would spoil results, and what dead processes have left.
//!
//! Start reading at [`run`].

use crate::{kernel, terminal};
use anyhow::Result;
use farpace_emulate::labs;
use farpace_live::doctor::{DoctorFinding, Judgement, machine, network, text};
use farpace_live::system::{Journal, clean, journals};
use serde_json::json;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Each line has the subject, the finding, and, if needed, the command that fixes it. `ok` is fine, `note` \
may falsify results or limit the rate, `PROBLEM` keeps farpace from using devices. Only --clean changes \
anything: it removes what killed farpace processes have left: interfaces, namespaces, addresses, \
parameters, offload settings.

Examples:
  farpace doctor
  sudo farpace doctor --clean
  farpace doctor --json | jq '.findings[] | select(.judgement != \"ok\")'

Exit codes: 0 there is no problem, 1 there is one.";

/// The arguments of `farpace doctor`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Remove what dead farpace processes have left
    #[arg(long)]
    clean: bool,
    /// Print JSON: {"findings": [{"what", "value", "judgement", "mend"}], "cleaned": [...]}
    #[arg(long)]
    json: bool,
}

/// `farpace doctor`.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (cleaned, failed) = if args.clean { clean_up() } else { (Vec::new(), Vec::new()) };
    let mut findings = machine::look();
    findings.extend(network::look());
    findings.extend(leftovers());
    findings.extend(failed);
    let bad = findings.iter().any(|finding| finding.judgement == Judgement::Problem);
    if args.json {
        terminal::print_json(&json!({ "findings": findings, "cleaned": cleaned }))?;
    } else {
        terminal::print(&text(&findings, &cleaned))?;
    }
    Ok(ExitCode::from(if bad { terminal::FAILED } else { terminal::OK }))
}

/// What was taken away, and what could not be.
fn clean_up() -> (Vec<String>, Vec<DoctorFinding>) {
    let (mut cleaned, mut failed) = (Vec::new(), Vec::new());
    for mut journal in journals().into_iter().filter(Journal::is_left_over) {
        let steps: Vec<_> = journal.steps.iter().map(ToString::to_string).collect();
        let name = format!("{} of process {}", journal.name, journal.pid);
        match clean(&mut journal) {
            Ok(()) if steps.is_empty() => {}
            Ok(()) => cleaned.push(format!("{name}: {}", steps.join("; "))),
            Err(errors) => {
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                let by_hand = format!("undo this by hand, then rm {}", journal.path.display());
                let mend = mend(&by_hand);
                failed.push(DoctorFinding::problem(format!("clean {name}"), errors.join("; "), mend));
            }
        }
    }
    match labs::clean() {
        Ok(labs) => cleaned.extend(labs.iter().map(|lab| format!("lab {lab}"))),
        Err(error) => {
            let mend = mend("remove these namespaces by hand: sudo ip netns delete NAME");
            failed.push(DoctorFinding::problem("clean labs", format!("{error:#}"), mend));
        }
    }
    match kernel::leftovers(true) {
        Ok(controls) => cleaned.extend(controls),
        Err(error) => {
            let mend = mend("`farpace kernel status` shows what is there");
            failed.push(DoctorFinding::problem("clean the kernel", format!("{error:#}"), mend));
        }
    }
    (cleaned, failed)
}

/// What to do if cleaning fails: `by_hand` if more rights do not help.
fn mend(by_hand: &str) -> String {
    match rustix::process::geteuid().is_root() {
        true => by_hand.to_owned(),
        false => "run it as root: sudo farpace doctor --clean".to_owned(),
    }
}

/// Something that is set on the machine, by a setup or a lab.
struct Findings {
    /// By whom.
    what: String,
    things: Vec<String>,
    kept: bool,
    /// Nobody will take it away who is not told to.
    is_left_over: bool,
}

impl Findings {
    fn by_setup(journal: &Journal) -> Self {
        Findings {
            what: format!("{} of process {}", journal.name, journal.pid),
            things: journal.steps.iter().map(ToString::to_string).collect(),
            kept: journal.kept,
            is_left_over: journal.is_left_over(),
        }
    }
    fn by_lab(lab: labs::NamespaceStatus) -> Self {
        let things = lab.namespaces.iter().map(|name| format!("network namespace {name}")).collect();
        Findings { what: lab.what, things, kept: false, is_left_over: lab.is_left_over }
    }
    fn finding(&self) -> DoctorFinding {
        if self.is_left_over {
            let value = format!("{}: {}", self.what, self.things.join("; "));
            return DoctorFinding::note("left over", value, "sudo farpace doctor --clean");
        }
        let state = if self.kept { "kept" } else { "running" };
        DoctorFinding::ok(state, format!("{}: {} things set", self.what, self.things.len()))
    }
}

/// What is set on the machine, and what of it dead processes have left.
fn leftovers() -> Vec<DoctorFinding> {
    let mut findings: Vec<_> =
        journals().iter().map(|journal| Findings::by_setup(journal).finding()).collect();
    match labs::seen() {
        Ok(labs) => findings.extend(labs.into_iter().map(|lab| Findings::by_lab(lab).finding())),
        Err(error) => {
            findings.push(DoctorFinding::problem("labs", format!("{error:#}"), "remove the file by hand"))
        }
    }
    if findings.iter().all(|finding| finding.judgement == Judgement::Ok) {
        findings.push(DoctorFinding::ok("left over", "nothing"));
    }
    findings
}
