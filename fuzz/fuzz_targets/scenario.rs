//! Any text as a scenario: it is refused with an error, or explained and read back the same, without a panic.
//! A first line `path=value` is taken as an override.

#![no_main]

use farpace_lab::scenario::{Scenario, explain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let overrides: Vec<(String, String)> = text
        .lines()
        .next()
        .and_then(|l| l.strip_prefix("#--set "))
        .and_then(|l| l.split_once('='))
        .map(|(path, value)| (path.to_string(), value.to_string()))
        .into_iter()
        .collect();
    match Scenario::parse_with(text, "fuzz.toml", &overrides) {
        Err(error) => assert!(!error.problems.is_empty() && error.to_string().starts_with("error: ")),
        Ok(scenario) => {
            assert!(explain(&scenario).lines().count() > 3);
            let again = scenario.to_toml().expect("numbers from TOML can be written");
            assert_eq!(Scenario::parse(&again, "again.toml").as_ref(), Ok(&scenario));
        }
    }
});
