//! Outages of a tunnel, told once each: when they have lasted for a while, and when they are over.

use std::time::Duration;

/// A silence that the progress of a transfer shows.
pub(crate) const SILENT: Duration = Duration::from_secs(3);
/// Nothing was heard for so long: an outage. The other end answers within 2 s and a round trip, unless probes
/// are lost.
pub(crate) const OUTAGE: Duration = Duration::from_secs(5);

/// What the user has been told of the outages of a tunnel.
#[derive(Debug, Default)]
pub struct OutageWatch {
    /// Of the outage that the user knows of: how long it has lasted.
    known: Option<Duration>,
}

/// News of an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageNews {
    /// Nothing has been heard for so long.
    Began(Duration),
    /// The other end was heard again after so long.
    Ended(Duration),
}

impl OutageWatch {
    /// News, when nothing has been heard for `silent` although something was sent.
    pub fn look(&mut self, silent: Option<Duration>) -> Option<OutageNews> {
        match (silent.filter(|silent| *silent >= OUTAGE), self.known) {
            (Some(silent), None) => {
                self.known = Some(silent);
                Some(OutageNews::Began(silent))
            }
            (Some(silent), Some(_)) => {
                self.known = Some(silent);
                None
            }
            (None, known) => {
                self.known = None;
                known.map(OutageNews::Ended)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an outage is told again and again, not at all, or nobody is told that it is over.
    #[test]
    fn an_outage_is_told_once() {
        let s = |s| Some(Duration::from_secs(s));
        let mut watch = OutageWatch::default();
        let news: Vec<_> = [None, s(1), s(4), None, s(2), s(5), s(6), s(40), s(0), None, s(7)]
            .into_iter()
            .filter_map(|silent| watch.look(silent))
            .collect();
        let (began, ended) = (OutageNews::Began, OutageNews::Ended);
        let time = Duration::from_secs;
        assert_eq!(news, [began(time(5)), ended(time(40)), began(time(7))]);
    }
}
