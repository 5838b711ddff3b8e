//! How a transfer goes, in words.

use crate::outage::SILENT;
use crate::speed;
use farpace_transfer::LineProgress;

/// Rate and remaining time by the last seconds, files, the file at hand, and whether anything moves.
pub fn going(progress: &LineProgress) -> String {
    let (moved, time) = progress.recent;
    let left = progress.total_bytes.saturating_sub(progress.bytes);
    let remaining = match (time.as_secs_f64() * left as f64 / moved.max(1) as f64) as u64 {
        _ if moved == 0 => "?".to_owned(),
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3_600),
    };
    let files = format!("{}/{} files", progress.files, progress.total_entries);
    let silent = match progress.silent {
        silent if silent < SILENT => String::new(),
        silent => format!(", no progress for {} s", silent.as_secs()),
    };
    format!("{}, {remaining} left, {files}, {}{silent}", speed(moved, time), progress.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Breaks: the remaining time is reckoned with what was there before, or an outage is not told.
    #[test]
    fn remaining_time_follows_the_rate() {
        let progress = LineProgress {
            total_bytes: 3_000_000,
            bytes: 2_000_000,
            spared: 1_000_000,
            work: 1_000_000,
            total_entries: 4,
            files: 1,
            name: "film".to_owned(),
            elapsed: Duration::from_secs(80),
            recent: (500_000, Duration::from_secs(4)),
            silent: Duration::ZERO,
        };
        assert_eq!(going(&progress), "1 Mbit/s, 8 s left, 1/4 files, film");
        let recent = (0, Duration::from_secs(5));
        let silent = LineProgress { recent, silent: Duration::from_secs(9), ..progress };
        assert_eq!(going(&silent), "0 bit/s, ? left, 1/4 files, film, no progress for 9 s");
    }
}
