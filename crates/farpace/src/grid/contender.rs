//! Who sends: a congestion control with the TCP around it.

use farpace_tcp::config::Congestion;

/// A sender: a name and the settings that make it, as a scenario writes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contender {
    /// What tables and `--json` call it.
    pub name: String,
    /// Keys of `flows.NAME.sender` and their values.
    pub settings: Vec<(String, String)>,
}

impl Contender {
    /// A congestion control of the paper on a stack of its time.
    pub fn paper(name: &str) -> Contender {
        let mut settings = set(&[
            ("profile", "rfc6675"),
            ("congestion", name),
            ("initial_window", "2 packets"),
            ("min_rto", "1 s"),
        ]);
        // One segment for each ACK in slow start; STAR has a start of its own.
        if name != "star" {
            settings.extend(set(&[("slow_start_limit", "1 packet")]));
        }
        Contender { name: name.to_owned(), settings }
    }

    /// STAR with another estimator: a filter, the interval assumed before the first ACK (none: the round trip of the
    /// handshake) and a cap in bandwidth-delay products (none: no cap).
    pub fn star(filter: &str, first_interval: Option<&str>, cap: Option<&str>) -> Contender {
        let mut star = Contender::paper("star").filtered(filter);
        star.settings.extend(set(&[("abe_first_interval", first_interval.unwrap_or("0 s"))]));
        star.settings.extend(cap.map(|cap| ("abe_cap".to_owned(), cap.to_owned())));
        star
    }

    /// The same sender, whose segments leave at a rate instead of in bursts.
    pub fn paced(mut self) -> Contender {
        self.settings.extend(set(&[("pacing", "true")]));
        self.name.push_str(", paced");
        self
    }

    /// The same with another filter of its bandwidth samples, for those that measure.
    pub fn filtered(mut self, filter: &str) -> Contender {
        self.settings.extend(set(&[("abe_filter", filter)]));
        self.name = format!("{}, {filter}", self.name);
        self
    }

    /// A congestion control on the stack of today; `farpace` on that of its own profile.
    pub fn modern(congestion: Congestion) -> Contender {
        let name = name(congestion);
        let profile = if congestion == Congestion::Farpace { "farpace" } else { "modern" };
        let settings = set(&[
            ("profile", profile),
            ("congestion", &name),
            ("initial_window", "10 packets"),
            ("min_rto", "200 ms"),
        ]);
        Contender { settings, name }
    }

    /// Every congestion control, on the stack of today.
    pub fn all_modern() -> Vec<Contender> {
        Congestion::ALL.into_iter().map(Contender::modern).collect()
    }

    /// The settings as overrides for the sender of `flow`.
    pub fn overrides(&self, flow: &str) -> impl Iterator<Item = (String, String)> {
        self.settings.iter().map(move |(key, value)| (format!("flows.{flow}.sender.{key}"), value.clone()))
    }
}

/// The name of a congestion control as scenarios write it.
pub fn name(congestion: Congestion) -> String {
    serde_json::to_value(congestion).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn set(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an algorithm has a name that no scenario knows.
    #[test]
    fn names_are_those_of_scenarios() {
        assert_eq!(name(Congestion::HighSpeed), "highspeed");
        assert_eq!(name(Congestion::TcpJ), "tcp-j");
        assert!(Contender::all_modern().iter().all(|c| !c.name.is_empty()));
    }
}
