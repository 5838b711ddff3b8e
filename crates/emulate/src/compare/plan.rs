//! What is run: one flow of a scenario, without end.

use anyhow::{Context, Result, bail};
use farpace_lab::scenario::Scenario;
use farpace_live::Wait;
use farpace_papers::congestion_name;
use farpace_papers::endless;
use farpace_tcp::config::{Config, Congestion, Profile, Settings};
use farpace_units::{ByteCount, Span};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::Arc;

/// Between two samples.
pub const STEP: Span = Span::from_millis(10);

/// The upper limit of autotuning at all ends, the kernel's and ours, where the scenario states none: 256 MiB.
/// With limits of their own, the ends would hold different amounts of data behind a loss.
pub(super) const AUTOTUNED_ROOM: u64 = 256 << 20;

/// A way to run a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// farpace's TCP in virtual time.
    Lab,
    /// farpace's TCP on devices, in real time.
    Farpace,
    /// The kernel's TCP, in real time.
    Kernel,
}

impl Backend {
    /// As tables and legends have it.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Lab => "lab",
            Backend::Farpace => "farpace, real time",
            Backend::Kernel => "kernel",
        }
    }
    /// As commands, JSON and files have it.
    pub const fn key(self) -> &'static str {
        match self {
            Backend::Lab => "lab",
            Backend::Farpace => "farpace",
            Backend::Kernel => "kernel",
        }
    }
}

impl FromStr for Backend {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        let found =
            [Backend::Lab, Backend::Farpace, Backend::Kernel].into_iter().find(|way| way.key() == word);
        found.ok_or_else(|| format!("there is no way `{word}`: expected lab, farpace or kernel"))
    }
}

/// A congestion control by the name of farpace or of the kernel, whose BBRv1 is `bbr`.
///
/// # Errors
/// A name that neither knows.
pub fn congestion_of(name: &str) -> Result<Congestion, String> {
    let ours = if name == "bbr" { "bbr1" } else { name };
    let found = Congestion::ALL.into_iter().find(|congestion| congestion_name(*congestion) == ours);
    found.ok_or_else(|| format!("there is no congestion control `{name}`: `farpace profiles` lists them"))
}

/// The kernel's name of a congestion control that farpace calls `name`.
pub fn kernel_name(name: &str) -> &str {
    match name {
        "bbr1" => "bbr",
        "westwood-plus" => "westwood",
        _ => name,
    }
}

/// What is run.
pub struct Plan {
    /// The ways, in the order in which they are shown. The others are held against the first.
    pub ways: Vec<Backend>,
    /// The scenario with its first flow alone.
    base: Scenario,
    /// How long each run lasts.
    pub lasts: Span,
    /// Congestion control, as farpace names it.
    pub congestion: String,
    /// The receiving end's window in bytes, if it has a fixed one.
    pub window: Option<u64>,
    /// How the network in real time waits.
    pub wait: Wait,
    /// The scenario's file.
    pub file: String,
    /// Its sender and receiver, as settings of sockets.
    pub settings: [Settings; 2],
}

impl Plan {
    /// The first flow of `base` with this TCP, by all of `ways`.
    ///
    /// # Errors
    /// A scenario without flows, or settings that contradict each other.
    pub fn new(
        mut base: Scenario,
        mut ways: Vec<Backend>,
        (profile, congestion): (Profile, Congestion),
        lasts: Span,
        wait: Wait,
        file: &str,
    ) -> Result<Self> {
        ways.sort_unstable();
        ways.dedup();
        for settings in base.flows.iter_mut().flat_map(|flow| [&mut flow.sender, &mut flow.receiver]) {
            let settings = Arc::make_mut(settings);
            settings.profile = Some(profile);
            settings.congestion = Some(congestion);
            // What the scenario says of its buffers stays.
            let room = Some(ByteCount::new(AUTOTUNED_ROOM));
            if settings.receive_buffer.is_none() {
                settings.receive_buffer_max = settings.receive_buffer_max.or(room);
            }
            if settings.send_buffer.is_none() {
                settings.send_buffer_max = settings.send_buffer_max.or(room);
            }
        }
        let plan = Plan::of(base, lasts, wait, file)?;
        Ok(Plan { ways, congestion: congestion_name(congestion), ..plan })
    }
    /// The first flow of a scenario with the TCP that it names, on devices.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn of(mut base: Scenario, lasts: Span, wait: Wait, file: &str) -> Result<Self> {
        let Some(flow) = base.flows.first() else { bail!("the scenario has no flow to run") };
        let mut flow = flow.clone();
        flow.start = Span::ZERO;
        flow.size = endless(base.bottleneck(&flow).map(|bottleneck| bottleneck.rate), lasts);
        let resolve = |settings: &Settings, which| -> Result<Config> {
            settings.resolve().with_context(|| format!("the {which} of flow `{}`", flow.name))
        };
        let congestion = congestion_name(resolve(&flow.sender, "sender")?.congestion);
        let buffer = resolve(&flow.receiver, "receiver")?.receive_buffer;
        let window = buffer.is_fixed().then(|| buffer.max.get());
        let settings = [&flow.sender, &flow.receiver].map(|settings| Settings::clone(settings));
        base.flows = vec![flow];
        base.datagrams.clear();
        base.duration = lasts;
        base.trace.bin = STEP;
        Ok(Plan {
            ways: vec![Backend::Farpace],
            base,
            lasts,
            congestion,
            window,
            wait,
            file: file.to_owned(),
            settings,
        })
    }
    /// The scenario of run `number`.
    pub fn scenario(&self, number: u64) -> Scenario {
        Scenario { seed: self.base.seed.saturating_add(number), ..self.base.clone() }
    }
    /// The same of the first.
    pub const fn base(&self) -> &Scenario {
        &self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(receiver: &str) -> Plan {
        let text = format!(
            "title = \"a test\"\n[hosts.a]\n[hosts.b]\n\
             [[links]]\nname = \"wan\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\n\
             [[flows]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 MB\"\n\
             [flows.receiver]\n{receiver}\n"
        );
        let scenario = Scenario::parse(&text, "a test").unwrap();
        let tcp = (Profile::Linux, Congestion::Cubic);
        Plan::new(scenario, vec![Backend::Lab], tcp, Span::from_secs(1), Wait::Sleep, "a test").unwrap()
    }

    /// Breaks: the kernel's ends hold more data than ours behind a loss, which then counts as a difference of
    /// the TCPs; or a window that the scenario states is not kept.
    #[test]
    fn all_ends_have_the_same_room() {
        let room = |plan: &Plan| plan.settings.each_ref().map(|settings| settings.resolve().unwrap());
        let [sender, receiver] = room(&plan(""));
        assert_eq!(sender.send_buffer.max, ByteCount::new(AUTOTUNED_ROOM));
        assert_eq!(receiver.receive_buffer.max, ByteCount::new(AUTOTUNED_ROOM));
        let stated = plan("receive_buffer = \"100 kB\"");
        assert_eq!(
            (stated.window, room(&stated)[1].receive_buffer.max),
            (Some(100_000), ByteCount::new(100_000))
        );
        let [_, receiver] = room(&plan("receive_buffer_max = \"1 MB\""));
        assert_eq!(receiver.receive_buffer.max, ByteCount::new(1_000_000));
    }
}
