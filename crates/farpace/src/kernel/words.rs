//! Controls and destinations as people type them.

use crate::emulate::words::{rate, span};
use farpace_kernel::{KernelControl, KernelDestination, Rule};
use farpace_units::{Packets, Span};
use std::net::IpAddr;

/// A control by its name.
///
/// # Errors
/// There is no such control.
pub fn control(text: &str) -> Result<KernelControl, String> {
    let found = KernelControl::ALL.into_iter().find(|control| control.name() == text);
    found.ok_or_else(|| {
        format!("`{text}` is no control: {}", KernelControl::ALL.map(KernelControl::name).join(" or "))
    })
}

/// What holds where nothing else is said.
pub fn usual(control: KernelControl, ack_requests: bool) -> Rule {
    Rule { control: Some(control), ack_requests, ..Rule::default() }
}

/// A destination, and what was said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct To {
    address: IpAddr,
    bits: u8,
    said: Rule,
    /// `kernel` was said.
    control: Option<Option<KernelControl>>,
    ack_requests: Option<bool>,
}

impl To {
    /// With what holds otherwise where nothing was said.
    pub fn complete(&self, usual: Rule) -> KernelDestination {
        let rule = Rule {
            control: self.control.unwrap_or(usual.control),
            ack_requests: self.ack_requests.unwrap_or(usual.ack_requests),
            ..self.said
        };
        KernelDestination { address: self.address, bits: self.bits, rule }
    }
}

/// A horizon: how long a packet may wait.
///
/// # Errors
/// Anything but a time from a millisecond to an hour.
pub fn horizon(text: &str) -> Result<Span, String> {
    let time = span(text)?;
    match time >= Span::from_millis(1) && time <= Span::from_secs(3_600) {
        true => Ok(time),
        false => Err("a horizon is from 1ms to 1h".into()),
    }
}

fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("`{text}` is no network: 10.0.0.0/8, 2001:db8::/32, or an address");
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(all), |bits| bits.trim().parse().map_err(|_| wrong()))?;
    if bits > all { Err(wrong()) } else { Ok((address, bits)) }
}

/// `10.0.0.0/8,control=star,rto-max=5s`.
///
/// # Errors
/// Anything else, with what was expected.
pub fn destination(text: &str) -> Result<To, String> {
    let mut words = text.split(',').map(str::trim);
    let (address, bits) = network(words.next().unwrap_or_default())?;
    let mut to = To { address, bits, said: Rule::default(), control: None, ack_requests: None };
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}`: KEY=VALUE was expected"))?;
        let said = &mut to.said;
        let time = |from: &str, to: &str| {
            let (low, high) = (span(from)?, span(to)?);
            let time = span(value)?;
            let within = time >= low && time <= high;
            if within { Ok(Some(time)) } else { Err(format!("{key}: from {from} to {to}")) }
        };
        let segments = |most: u32| {
            let number = value.parse().ok().filter(|n| (1..=most).contains(n));
            number.map(Packets::new).ok_or_else(|| format!("{key}: segments, 1 to {most}")).map(Some)
        };
        match key.trim() {
            "control" if value == "kernel" => to.control = Some(None),
            "control" => to.control = Some(Some(control(value)?)),
            "rto-min" => said.rto_min = time("8ms", "200ms")?,
            "rto-max" => said.rto_max = time("1s", "120s")?,
            "delack-max" => said.delack_max = time("8ms", "200ms")?,
            "initial-window" => said.initial_window = segments(1_000)?,
            "initial-receive-window" => said.initial_receive_window = segments(20_000)?,
            "max-rate" => said.max_rate = Some(rate(value)?),
            "ack-requests" => {
                to.ack_requests = match value {
                    "on" => Some(true),
                    "off" => Some(false),
                    _ => return Err("ack-requests: on or off".into()),
                }
            }
            _ => return Err(format!("`{key}` is none of the keys that --help lists")),
        }
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Rate;

    /// Breaks: what was typed for a destination, and what holds beside it.
    #[test]
    fn destinations() {
        let usual = usual(KernelControl::Farpace, true);
        let to = destination("10.0.0.0/8,control=star,rto-max=5s,max-rate=20mbit").unwrap().complete(usual);
        assert_eq!((to.bits, to.rule.control, to.rule.ack_requests), (8, Some(KernelControl::Star), true));
        assert_eq!(
            (to.rule.rto_max, to.rule.max_rate),
            (Some(Span::from_secs(5)), Some(Rate::from_mbit(20)))
        );
        let to = destination("2001:db8::1,control=kernel,ack-requests=off").unwrap().complete(usual);
        assert_eq!((to.bits, to.rule.control, to.rule.ack_requests), (128, None, false));
        let to = destination("192.0.2.1").unwrap().complete(usual);
        assert_eq!((to.bits, to.rule), (32, usual));
    }

    /// Breaks: words that make no sense are taken, or are refused without a reason that helps.
    #[test]
    fn nonsense() {
        for (text, reason) in [
            ("10.0.0.0/33", "no network"),
            ("example.com", "no network"),
            ("10.0.0.1,rto-max", "KEY=VALUE"),
            ("10.0.0.1,rto-max=500s", "from 1s to 120s"),
            ("10.0.0.1,initial-window=0", "1 to 1000"),
            ("10.0.0.1,speed=7", "none of the keys"),
            ("10.0.0.1,control=bbr", "farpace or star"),
        ] {
            let error = destination(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
