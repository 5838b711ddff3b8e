//! On devices.

use super::backend_run::{BackendRun, CompareSample};
use super::ends::{CompareEnd, CompareEnds, EndPlace};
use super::plan::{Backend, Plan, STEP};
use crate::{NoFigures, RealtimeOptions};
use crate::{Residents, Site};
use anyhow::{Context, Result, anyhow};
use farpace_lab::scenario::Scenario;
use farpace_live::Namespace;
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_units::{ByteCount, Span};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of a read or write.
const CHUNK: usize = 256 * 1024;
/// Shorter times in which the network stands still are not kept. A full packet takes so long at 240 Mbit/s.
const MIN_STALL: Span = Span::from_micros(50);

/// Runs the scenario with ends of our own, or of the kernel.
///
/// # Errors
/// What the system does not allow, or a connection that breaks.
pub fn run(plan: &Plan, scenario: &Scenario, way: Backend) -> Result<BackendRun> {
    let residents = if way == Backend::Kernel { Residents::Kernel } else { Residents::Others };
    let options =
        RealtimeOptions { wait: plan.wait, whole: false, bin: Span::from_millis(100), captures: None };
    let name = format!("compare-{}", std::process::id());
    let mut site = Site::make(scenario, &name, &plan.file, residents, &options)
        .context("no network in real time (it needs root)")?;
    let flow = scenario.flows.first().context("the scenario has no flow")?;
    let (from, to) = (place(&mut site, &flow.from)?, place(&mut site, &flow.to)?);
    let ends = match way {
        Backend::Kernel => CompareEnds::kernel(plan, from, &to)?,
        Backend::Lab | Backend::Farpace => CompareEnds::ours(plan, &from, &to)?,
    };
    site.network().log_stalls(MIN_STALL);
    let over = AtomicBool::new(false);
    let course = std::thread::scope(|scope| {
        let course = scope.spawn(|| {
            let course = transfer(&ends, plan.lasts);
            over.store(true, Ordering::Release);
            course
        });
        let ran = site.network().run(None, &mut NoFigures, || over.load(Ordering::Acquire));
        // A connection that never opens ends by itself; it must not wait for a network that has failed.
        let course = course.join().unwrap_or_else(|_| Err(anyhow!("the thread has panicked")));
        ran.and(course)
    });
    let stopped = ends.stop();
    let summary = site.network().finish()?;
    let stalls = site.network().logged_stalls();
    site.remove()?;
    let (samples, sent) = course.with_context(|| way.name())?;
    stopped?;
    let mut trial = BackendRun::of(way, samples, sent);
    (trial.drops, trial.accuracy, trial.stalls) = (summary.drops, Some(summary.accuracy), stalls);
    Ok(trial)
}

/// A host of the site.
fn place(site: &mut Site, host: &str) -> Result<EndPlace> {
    let state = site.state().hosts.iter().find(|state| state.host == host);
    let namespace = Namespace::existing(&state.context("no such host")?.namespace);
    let boundary = site.network().boundaries().ports().iter().find(|boundary| boundary.host == host).cloned();
    Ok(EndPlace { namespace, boundary: boundary.context("no such host")? })
}

/// Connects and sends for so long; what was seen meanwhile, and how many data segments were sent.
fn transfer(ends: &CompareEnds, lasts: Span) -> Result<(Vec<CompareSample>, u64)> {
    let clock = Stopwatch::start();
    let out = ends.connect()?;
    let (delivered, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let chunk = vec![0x5a; CHUNK];
            // A write waits while there is no room.
            loop {
                let wrote = out.write(&chunk);
                if over.load(Ordering::Relaxed) || !wrote.is_ok_and(|n| n > 0) {
                    break;
                }
            }
        });
        let receiver = scope.spawn(|| {
            let arrives = ends.accept(|| over.load(Ordering::Relaxed))?;
            let mut chunk = vec![0; CHUNK];
            while !over.load(Ordering::Relaxed)
                && let Ok(n) = arrives.read(&mut chunk)
            {
                delivered.fetch_add(ByteCount::of_len(n.unwrap_or(0)).get(), Ordering::Relaxed);
            }
            arrives.close();
            anyhow::Ok(())
        });
        let course = watch(&out, &clock, lasts, &delivered);
        over.store(true, Ordering::Relaxed);
        // The network is still up: what has been sent goes on to come until the reset is there.
        out.close();
        receiver.join().unwrap_or_else(|_| Err(anyhow!("the thread has panicked"))).and(course)
    })
}

/// Samples until the time is over.
fn watch(
    out: &CompareEnd,
    clock: &Stopwatch,
    lasts: Span,
    delivered: &AtomicU64,
) -> Result<(Vec<CompareSample>, u64)> {
    let mut samples = Vec::new();
    let mut next = STEP;
    loop {
        clock.wait_until(next.min(lasts).as_nanos(), interrupt::asked);
        let at = clock.elapsed();
        let (sample, sent) = out.look(at.as_secs_f64(), delivered.load(Ordering::Relaxed))?;
        samples.push(sample);
        if at.as_nanos() >= u128::from(lasts.as_nanos()) || interrupt::asked() {
            return Ok((samples, sent));
        }
        // A step that the machine has slept through is left out.
        while u128::from(next.as_nanos()) <= at.as_nanos() {
            next += STEP;
        }
    }
}
