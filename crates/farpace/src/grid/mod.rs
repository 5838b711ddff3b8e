//! Many runs in virtual time: who sends over which path, with which seed, and what came out.
//!
//! [`satellite`] builds the scenarios of a satellite path, [`contender`] says who may send, [`mod@measure`] makes one
//! run and notes what tables need. [`run_all`] makes many of them in parallel: results come in the order of the
//! jobs, whatever the number of threads. Commands use [`run_all_or_end`].

pub mod contender;
pub mod measure;
pub mod satellite;

pub use contender::Contender;
pub use measure::{FlowMeasurement, Measurement, Reading, measure};
pub use satellite::{Ber, Queue, Satellite};

use crate::terminal;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::fmt::Display;
use std::process::ExitCode;

/// Makes all runs, with so many at a time (none: one per core); none of them if interrupted. On a terminal a bar
/// on standard error shows how far they are.
///
/// # Errors
/// What `one` returns first, in the order of jobs.
pub fn run_all<J: Display + Sync, M: Send>(
    jobs: &[J],
    threads: Option<u16>,
    one: impl Fn(&J) -> Result<Option<M>> + Sync,
) -> Result<Option<Vec<M>>> {
    let bar = ProgressBar::new(jobs.len() as u64);
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.tick();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.map_or(0, usize::from)).build();
    let counted = |job: &J| {
        bar.set_message(job.to_string());
        let done = one(job).with_context(|| job.to_string());
        bar.inc(1);
        done
    };
    let all: Vec<Result<Option<M>>> =
        pool.context("no threads")?.install(|| jobs.par_iter().with_max_len(1).map(counted).collect());
    bar.finish_and_clear();
    all.into_iter().collect()
}

/// The same for a command: if not all runs were made, standard error has said why, and the command ends with this code.
///
/// # Errors
/// The exit code.
pub fn run_all_or_end<J: Display + Sync, M: Send>(
    jobs: &[J],
    threads: Option<u16>,
    one: impl Fn(&J) -> Result<Option<M>> + Sync,
) -> Result<Vec<M>, ExitCode> {
    match run_all(jobs, threads, one) {
        Ok(Some(all)) => Ok(all),
        Ok(None) => {
            terminal::note("Interrupted: nothing was written.");
            Err(ExitCode::from(terminal::INTERRUPTED))
        }
        Err(error) => {
            terminal::complain(&error);
            Err(ExitCode::from(terminal::FAILED))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    /// Breaks: determinism of every grid: results in another order, or another error, with more threads.
    #[test]
    fn the_order_is_that_of_the_jobs() {
        let jobs: Vec<u32> = (0..50).collect();
        for threads in [1, 2, 7] {
            let all = run_all(&jobs, Some(threads), |n| Ok(Some(n * 2))).unwrap().unwrap();
            assert_eq!(all, jobs.iter().map(|n| n * 2).collect::<Vec<u32>>());
            let stopped = run_all(&jobs, Some(threads), |n| Ok((*n != 7).then_some(*n))).unwrap();
            assert_eq!(stopped, None);
            let failed = run_all::<u32, u32>(&jobs, Some(threads), |n| {
                if *n > 10 { bail!("trouble") } else { Ok(Some(*n)) }
            });
            assert_eq!(format!("{:#}", failed.unwrap_err()), "11: trouble");
        }
    }
}
