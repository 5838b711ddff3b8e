//! The result, for people and for programs.

use crate::meter::{Measure, Way};
use serde_json::json;

type Row = (&'static str, &'static str, Way, Measure);
/// Times in microseconds, ascending.
type Latency = (&'static str, &'static str, Vec<f64>);

/// The time that so many of all do not exceed.
fn quantile(times: &[f64], part: f64) -> f64 {
    let at = ((times.len() as f64 * part) as usize).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or(f64::NAN)
}

pub fn text(rows: &[Row], latencies: &[Latency]) {
    println!("{:<46} {:>4} {:>8} {:>8} {:>9} {:>9}", "", "way", "Gbit/s", "ratio", "CPU s/GB", "seg/call");
    for (_, what, way, measure) in rows {
        let per_call = measure
            .per_call
            .map_or("-".to_owned(), |(n, calls)| format!("{:.1}", n as f64 / calls.max(1) as f64));
        println!(
            "{what:<46} {:>4} {:>8.2} {:>8} {:>9.3} {per_call:>9}",
            way.name(),
            measure.gbits(),
            ratio(rows, *way, measure).map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            measure.cpu_per_gb(),
        );
    }
    println!("\nratio: to kernel to kernel with offloads, same direction. CPU: both ends, kernel included.");
    if !latencies.is_empty() {
        println!("\n{:<44} {:>10} {:>10} {:>8}", "1 byte there and back", "median us", "p99 us", "ratio");
    }
    let kernel =
        latencies.iter().find(|(name, ..)| *name == "kernel").map(|(_, _, times)| quantile(times, 0.5));
    for (_, what, times) in latencies {
        let median = quantile(times, 0.5);
        let ratio = kernel.map_or("-".to_owned(), |kernel| format!("{:.2}", median / kernel));
        println!("{what:<44} {median:>10.1} {:>10.1} {ratio:>8}", quantile(times, 0.99));
    }
}

/// Against the kernel, in the same run.
fn ratio(rows: &[Row], way: Way, measure: &Measure) -> Option<f64> {
    let kernel = rows.iter().find(|(name, _, of, _)| *name == "kernel" && *of == way)?;
    Some(measure.gbits() / kernel.3.gbits())
}

pub fn json(rows: &[Row], latencies: &[Latency]) {
    let rows: Vec<_> = rows
        .iter()
        .map(|(name, _, way, measure)| {
            json!({
                "contender": name,
                "way": way.name(),
                "gbit_per_s": measure.gbits(),
                "of_kernel": ratio(rows, *way, measure),
                "cpu_s_per_gb": measure.cpu_per_gb(),
                "segments_per_call": measure.per_call.map(|(n, calls)| n as f64 / calls.max(1) as f64),
            })
        })
        .collect();
    let latencies: Vec<_> = latencies
        .iter()
        .map(|(name, _, times)| json!({ "contender": name, "median_us": quantile(times, 0.5), "p99_us": quantile(times, 0.99) }))
        .collect();
    println!("{}", json!({ "format": "farpace bench live 1", "rows": rows, "latencies": latencies }));
}
