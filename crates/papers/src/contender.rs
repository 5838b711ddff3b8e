//! Senders that are compared: a congestion control, and the TCP around it.

use crate::experiment::MeasureError;
use crate::observe::{Setting, set};
use farpace_tcp::config::Congestion;

/// A name, and settings of a sender as a scenario writes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contender {
    pub name: String,
    /// Keys of `flows.NAME.sender` and their values.
    settings: Vec<Setting>,
}

impl Contender {
    /// A congestion control of the paper on TCP-STAR, on a stack of its time.
    pub fn published(name: &str) -> Contender {
        let mut settings = vec![
            set("profile", "rfc6675"),
            set("congestion", name),
            set("initial_window", "2 packets"),
            set("min_rto", "1 s"),
        ];
        // One segment for each ACK in slow start. STAR has a start of its own.
        if name != "star" {
            settings.push(set("slow_start_limit", "1 packet"));
        }
        Contender { name: name.to_owned(), settings }
    }

    /// STAR with another estimator: a filter, the interval assumed before the first ACK (none: the round trip
    /// of the handshake) and a limit in bandwidth-delay products.
    pub fn star(filter: &str, first_interval: Option<&str>, cap: Option<&str>) -> Contender {
        let mut star = Contender::published("star").filtered(filter);
        star.settings.push(set("abe_first_interval", first_interval.unwrap_or("0 s")));
        star.settings.extend(cap.map(|cap| set("abe_cap", cap)));
        star
    }

    /// The same with segments that leave at a rate.
    pub fn paced(mut self) -> Contender {
        self.settings.push(set("pacing", "true"));
        self.name.push_str(", paced");
        self
    }

    /// The same with another filter of bandwidth samples.
    pub fn filtered(mut self, filter: &str) -> Contender {
        self.settings.push(set("abe_filter", filter));
        self.name = format!("{}, {filter}", self.name);
        self
    }

    /// A congestion control on a modern stack; `farpace` on that of its own profile.
    pub fn modern(congestion: Congestion) -> Contender {
        let name = congestion_name(congestion);
        let profile = if congestion == Congestion::Farpace { "farpace" } else { "modern" };
        let settings = vec![
            set("profile", profile),
            set("congestion", &name),
            set("initial_window", "10 packets"),
            set("min_rto", "200 ms"),
        ];
        Contender { settings, name }
    }

    /// The settings for the sender of `flow`.
    pub fn overrides(&self, flow: &str) -> impl Iterator<Item = Setting> {
        self.settings.iter().map(move |(key, value)| set(format!("flows.{flow}.sender.{key}"), value))
    }
}

/// The name of a congestion control as scenarios write it.
pub fn congestion_name(congestion: Congestion) -> String {
    serde_json::to_value(congestion).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The congestion controls named in `only`, or all of them, in their usual order.
///
/// # Errors
/// A name that none has.
pub fn chosen_controls(only: &[String]) -> Result<Vec<Congestion>, MeasureError> {
    let known = |word: &String| Congestion::ALL.iter().any(|c| congestion_name(*c) == *word);
    if let Some(word) = only.iter().find(|word| !known(word)) {
        let text = format!("there is no congestion control `{word}`; `farpace cc list` lists them");
        return Err(MeasureError::Invalid(text));
    }
    let wanted = |c: &Congestion| only.is_empty() || only.contains(&congestion_name(*c));
    Ok(Congestion::ALL.into_iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: an algorithm has a name that no scenario knows.
    #[test]
    fn names_are_those_of_scenarios() {
        assert_eq!(congestion_name(Congestion::HighSpeed), "highspeed");
        assert_eq!(congestion_name(Congestion::TcpJ), "tcp-j");
        assert!(Congestion::ALL.iter().all(|c| !congestion_name(*c).is_empty()));
    }

    /// Breaks: `--only` takes words that mean nothing, or changes the order.
    #[test]
    fn only_what_is_named() {
        let words =
            |list: &[&str]| chosen_controls(&list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["cubic", "reno"]).unwrap(), [Congestion::Reno, Congestion::Cubic]);
        assert_eq!(words(&[]).unwrap().len(), Congestion::ALL.len());
        assert!(words(&["cubik"]).unwrap_err().to_string().contains("cubik"));
    }
}
