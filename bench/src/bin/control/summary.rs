//! A group of paths in a few numbers: the first control beside the others.

use farpace_papers::search::{BESIDE_CUBIC, ITSELF, ListedPath, PathNumbers};
use farpace_papers::statistics::{jain, percentile};

/// Goodput below this part of the best is named.
const AIM: f64 = 0.95;

/// Prints what each group comes to.
pub fn print(all: &[(&ListedPath, &[PathNumbers])]) {
    let mut groups: Vec<&str> = all.iter().map(|(path, _)| path.group).collect();
    groups.dedup();
    for group in groups {
        let of: Vec<_> = all.iter().filter(|(path, _)| path.group == group).map(|(_, runs)| *runs).collect();
        println!("{group}: {} paths", of.len());
        match group {
            ITSELF => quantity("Jain's index", of.iter().filter_map(|r| Some(jain(&r.first()?.late_mbit_s)))),
            BESIDE_CUBIC => beside_cubic(&of),
            _ => alone(&of),
        }
    }
}

fn quantity(name: &str, values: impl Iterator<Item = f64>) {
    let mut values: Vec<f64> = values.collect();
    let [least, tenth, median, most] =
        [0.0, 10.0, 50.0, 100.0].map(|p| percentile(&mut values, p).unwrap_or(f64::NAN));
    println!("    {name:34} least {least:6.3}  10 % {tenth:6.3}  median {median:6.3}  most {most:6.3}");
}

fn alone(of: &[&[PathNumbers]]) {
    let ratio = |runs: &&[PathNumbers]| {
        let (first, others) = runs.split_first()?;
        let best = others.iter().map(|run| run.goodput_mbit_s).fold(0.0, f64::max);
        (best > 0.0).then(|| first.goodput_mbit_s / best)
    };
    let ratios: Vec<f64> = of.iter().filter_map(ratio).collect();
    quantity("goodput / best of the others", ratios.iter().copied());
    let below = ratios.iter().filter(|ratio| **ratio < AIM).count();
    println!("    below {AIM} of the best: {below}");
    // A millisecond more for all: queues that are shorter are none.
    let delay = |runs: &&[PathNumbers]| {
        let (first, others) = runs.split_first()?;
        let least = others.iter().map(|run| run.delay_mean_ms).fold(f64::INFINITY, f64::min);
        least.is_finite().then(|| (first.delay_mean_ms + 1.0) / (least + 1.0))
    };
    quantity("delay / least of the others", of.iter().filter_map(delay));
}

/// What each keeps, in parts of what two of CUBIC have in their places.
fn beside_cubic(of: &[&[PathNumbers]]) {
    let share = |flow: usize| {
        move |runs: &&[PathNumbers]| {
            let late = |run: &PathNumbers| run.late_mbit_s.get(flow).copied();
            let cubic = late(runs.iter().find(|run| run.control == "cubic")?)?;
            (cubic > 0.0).then_some(late(runs.first()?)? / cubic)
        }
    };
    quantity("its own rate / CUBIC's there", of.iter().filter_map(share(0)));
    quantity("CUBIC keeps, of beside CUBIC", of.iter().filter_map(share(1)));
}
