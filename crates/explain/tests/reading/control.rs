//! Congestion controls by their windows.

use super::make;

/// The control that is said to have sent these flights.
fn control(flights: &[u32]) -> &'static str {
    let (_, d) = super::verdict(101, &make::flights(flights));
    println!("{} {:.2}: {}", d.control.name, d.control.confidence, d.control.evidence);
    d.control.name
}

/// Flights from a cut to the next, which grow by so many segments in so many round trips.
fn epochs(from: u32, to: u32, rounds_each: u32, times: u32) -> Vec<u32> {
    let start: Vec<u32> = (0..12).map(|n| to - 12 + n).collect();
    let epoch = (0..(to - from) * rounds_each).map(|round| from + round / rounds_each).chain([to]);
    start.into_iter().chain([to]).chain((0..times).flat_map(|_| epoch.clone())).collect()
}

/// Breaks: Reno and CUBIC are no longer told by what remains of the flight after a cut, and by its growth.
#[test]
fn cuts_and_growth_tell_of_the_control() {
    assert_eq!(control(&epochs(20, 40, 1, 3)), "reno");
    assert_eq!(control(&epochs(28, 40, 2, 3)), "cubic");
}

/// Breaks: the loss that ends slow start, of which any share of the flight may remain, counts as a cut: BBR
/// passes for Reno.
#[test]
fn the_end_of_slow_start_is_no_cut() {
    for kept in [35, 48, 67] {
        let flights: Vec<u32> = [3, 6, 12, 24, 48, 96].into_iter().chain([kept; 60]).collect();
        assert_eq!(control(&flights), "unknown", "{kept}");
        let grows: Vec<u32> = [3, 6, 12, 24, 48, 96].into_iter().chain((0..60).map(|n| kept + n)).collect();
        assert_eq!(control(&grows), "unknown", "{kept}");
    }
}

/// Breaks: flights that stay as they are after cuts of any size pass for Reno's or CUBIC's.
#[test]
fn who_does_not_grow_is_neither_reno_nor_cubic() {
    let start = (28..40).collect::<Vec<u32>>();
    let constant = |kept: u32| [vec![kept; 20], vec![40; 3]].concat();
    for kept in [20, 28] {
        let flights = [start.clone(), constant(kept), constant(kept), constant(kept)].concat();
        assert_eq!(control(&flights), "unknown", "{kept}");
    }
}
