//! Settings as text: `profile=linux ecn=on sack=false ack_requests=rtt+flight-end`.

use super::options::{OptionsError, SocketOptions};
use farpace_tcp::config::Settings;
use farpace_units::Rate;
use serde_json::{Map, Value};

/// Maximum number of words in a text, to bound the time to parse it.
const MAX_WORDS: usize = 256;
/// Keys that do not belong to [`Settings`].
const OWN_KEYS: [&str; 3] = ["cookies", "backlog", "rate_cap"];

impl SocketOptions {
    /// Applies `text`: words `key=value`, separated by spaces or commas. Keys are those of [`Settings`] as in
    /// scenarios, `cookies` and `backlog` of listeners, and `rate_cap`. A word without `=` is the name of a
    /// profile. The values of a list are separated by `+`. Numbers of packets and bytes need no unit. `on`
    /// and `off` mean `true` and `false` for settings with these values. `key=default` resets a setting.
    ///
    /// # Errors
    /// See [`OptionsError`]; then nothing was changed.
    pub fn set(&mut self, text: &str) -> Result<(), OptionsError> {
        let mut changed = self.clone();
        let words = text.split([' ', '\t', '\n', ',']).filter(|word| !word.is_empty());
        for (count, word) in words.enumerate() {
            if count >= MAX_WORDS {
                return Err(OptionsError::Word { word: word.to_owned(), expected: "fewer words" });
            }
            let (key, value) = word.split_once('=').unwrap_or(("profile", word));
            changed.set_one(key, value)?;
        }
        // Contradictions are refused here, and not when a connection begins.
        changed.resolve(1500)?;
        *self = changed;
        Ok(())
    }

    fn set_one(&mut self, key: &str, value: &str) -> Result<(), OptionsError> {
        let wrong = |expected| OptionsError::Word { word: format!("{key}={value}"), expected };
        let is_default = value == "default";
        match key {
            "cookies" => {
                self.cookies = match value {
                    "on" | "true" | "default" => true,
                    "off" | "false" => false,
                    _ => return Err(wrong("on or off")),
                }
            }
            "backlog" if is_default => self.backlog = None,
            "backlog" => self.backlog = Some(value.parse().map_err(|_| wrong("a number of connections"))?),
            "rate_cap" if is_default => self.rate_cap = None,
            "rate_cap" => {
                let rate: Rate = value.parse().map_err(|_| wrong("a rate like 20Mbit/s"))?;
                self.rate_cap = Some(rate);
            }
            _ => self.settings = with(&self.settings, key, value)?,
        }
        Ok(())
    }

    /// The differences from the default, in the syntax of [`set`](Self::set).
    pub fn words(&self) -> String {
        let mut words: Vec<String> = fields(&self.settings)
            .into_iter()
            .filter_map(|(key, value)| Some(format!("{key}={}", word(&value)?)))
            .collect();
        if !self.cookies {
            words.push("cookies=off".to_owned());
        }
        words.extend(self.backlog.map(|backlog| format!("backlog={backlog}")));
        words.extend(self.rate_cap.map(|rate| format!("rate_cap={}bit/s", rate.bits_per_sec())));
        words.join(" ")
    }
}

/// The settings that are present.
fn fields(settings: &Settings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(all)) => all.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.replace(' ', "")),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(all) => all.iter().map(word).collect::<Option<Vec<_>>>().map(|all| all.join("+")),
        Value::Null | Value::Object(_) => None,
    }
}

/// `settings` with one setting changed. The type of the setting determines how its value is parsed.
fn with(settings: &Settings, key: &str, value: &str) -> Result<Settings, OptionsError> {
    let known = fields(settings);
    let attempt = |value: Value| {
        let mut all = known.clone();
        all.insert(key.to_owned(), value);
        serde_json::from_value::<Settings>(Value::Object(all)).map_err(|error| error.to_string())
    };
    if value == "default" {
        return attempt(Value::Null).map_err(|why| refused(key, value, why));
    }
    let text = Value::String(value.to_owned());
    let first = match attempt(text) {
        Ok(settings) => return Ok(settings),
        Err(why) => why,
    };
    let switch = match value {
        "true" | "on" | "yes" => Some(Value::Bool(true)),
        "false" | "off" | "no" => Some(Value::Bool(false)),
        _ => None,
    };
    let number =
        value.parse::<u64>().ok().map(Value::from).or_else(|| value.parse::<f64>().ok().map(Value::from));
    let list = value.split('+').map(|one| Value::String(one.to_owned())).collect();
    // Numbers without unit, of quantities with only one unit.
    let counted =
        ["packets", "B"].map(|unit| number.as_ref().map(|_| Value::String(format!("{value} {unit}"))));
    let [packets, bytes] = counted;
    let others = [switch, number, packets, bytes, Some(Value::Array(list))];
    let found = others.into_iter().flatten().find_map(|value| attempt(value).ok());
    found.ok_or_else(|| refused(key, value, first))
}

fn refused(key: &str, value: &str, why: String) -> OptionsError {
    if key == "profile" {
        return OptionsError::Profile(value.to_owned());
    }
    if key == "congestion" {
        return OptionsError::Congestion(value.to_owned());
    }
    let why = match why.starts_with("unknown field") {
        true => format!("{why}, or one of `{}`", OWN_KEYS.join("`, `")),
        false => why,
    };
    OptionsError::Setting { word: format!("{key}={value}"), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_tcp::config::{AckControlMode, Congestion, EcnMode, MtuProbing, Profile, RequestRule};
    use farpace_units::{Packets, Span};

    /// Breaks: settings as text select the named values, and errors name the reason.
    #[test]
    fn settings_are_parsed() {
        let mut options = SocketOptions::default();
        let text = "linux,ecn=on sack=off timestamps=false\nwindow_scale=on mtu_probing=always cookies=off \
                    congestion=reno ack_control=safe ack_requests=rtt+flight-end min_rto=10ms \
                    initial_window=4 abe_cap=default receive_buffer=1MB rate_cap=20Mbit/s backlog=7";
        options.set(text).unwrap();
        let settings = Settings {
            profile: Some(Profile::Linux),
            ecn: Some(EcnMode::On),
            sack: Some(false),
            timestamps: Some(false),
            window_scale: Some(true),
            mtu_probing: Some(MtuProbing::Always),
            congestion: Some(Congestion::Reno),
            ack_control: Some(AckControlMode::Safe),
            ack_requests: Some(vec![RequestRule::Rtt, RequestRule::FlightEnd]),
            min_rto: Some(Span::from_millis(10)),
            initial_window: Some(Packets::new(4)),
            receive_buffer: Some(farpace_units::ByteCount::new(1_000_000)),
            ..Settings::default()
        };
        assert_eq!(options.settings, settings);
        assert_eq!((options.cookies, options.backlog), (false, Some(7)));
        assert_eq!(options.rate_cap, Some(Rate::from_bits_per_sec(20_000_000)));
        // The text of settings can be parsed again.
        let mut again = SocketOptions::default();
        again.set(&options.words()).unwrap();
        assert_eq!(again, options, "{}", options.words());
        // The name that it had before.
        let mut before = SocketOptions::default();
        before.set("ack_control=safe ask_for=rtt").unwrap();
        assert_eq!(before.settings.ack_requests, Some(vec![RequestRule::Rtt]));
        options.set("sack=default ack_requests=default cookies=on").unwrap();
        assert_eq!(
            (options.settings.sack, options.settings.ack_requests.as_ref(), options.cookies),
            (None, None, true)
        );
    }

    /// Breaks: an unknown word is refused, and a text is applied as a whole or not at all.
    #[test]
    fn wrong_settings_are_refused_as_a_whole() {
        let mut options = SocketOptions::default();
        for (text, expected) in [
            ("sack=false nonsense=3", "nonsense"),
            ("sack=perhaps", "sack=perhaps"),
            ("sack=false profile=none", "farpace profiles"),
            ("congestion=none", "farpace profiles"),
            ("sack=false ack_request_every=4", "ack_control"),
            ("cookies=maybe", "on or off"),
            ("rate_cap=fast", "20Mbit/s"),
            ("mss=7", "mss"),
        ] {
            let error = options.set(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert_eq!(options, SocketOptions::default(), "{text}");
        }
        assert!(options.set(&"sack=on ".repeat(300)).is_err());
    }
}
