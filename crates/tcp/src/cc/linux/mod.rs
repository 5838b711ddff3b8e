//! Reno and CUBIC as Linux 6 has them: in whole segments, for what was delivered.

mod cubic;
mod reno;

pub use cubic::LinuxCubic;
pub use reno::LinuxReno;

use crate::window::Window;
use farpace_units::Packets;

/// Slow start (RFC 3465 without a limit), up to the threshold. Gives what is left for congestion avoidance.
fn slow_start(window: &mut Window, acked: u32) -> u32 {
    let (cwnd, ssthresh) = (window.cwnd().get(), window.ssthresh().get());
    let up_to = cwnd.saturating_add(acked).min(ssthresh.max(cwnd));
    window.set_cwnd(Packets::new(up_to));
    acked - (up_to - cwnd)
}

/// One segment for each `per` that are acknowledged.
fn additive_increase(window: &mut Window, per: u32, acked: u32) {
    let per = per.max(1);
    let mut cwnd = window.cwnd().get();
    // What was saved up while a segment was dearer is spent one at a time.
    if window.cwnd_cnt >= per {
        window.cwnd_cnt = 0;
        cwnd = cwnd.saturating_add(1);
    }
    window.cwnd_cnt = window.cwnd_cnt.saturating_add(acked);
    if window.cwnd_cnt >= per {
        cwnd = cwnd.saturating_add(window.cwnd_cnt / per);
        window.cwnd_cnt %= per;
    }
    window.set_cwnd(Packets::new(cwnd));
}
