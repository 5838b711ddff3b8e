//! Which settings belong together, and their ranges.

use super::derive::payload;
use super::{Settings, SettingsError};
use crate::config::{
    AckControlMode, Config, Congestion, DelayedAck, MAX_MSS, MAX_WINDOW, MIN_MSS, Pacing, Profile, Recovery,
    Reduction,
};
use farpace_units::{Packets, Span};

/// A key, and whether it is set.
type Given = (&'static str, bool);

impl Settings {
    /// Each switch of a recovery needs a profile with that recovery.
    pub(super) fn validate_switches(&self) -> Result<(), SettingsError> {
        let profile = self.profile();
        let (linux26, modern) = (self.linux26_switches(), self.modern_switches());
        let halving = matches!(self.reduction, Some(Reduction::RateHalving | Reduction::RateHalvingProgress));
        let reduction = ("reduction", self.reduction.is_some());
        // The common slow start is that of all congestion controls that have none of their own.
        let old: Vec<Given> = modern.into_iter().filter(|given| given.0 != "slow_start_limit").collect();
        match profile.config().recovery {
            Recovery::Linux26(_) => {
                foreign(profile, "modern", &old)?;
                require(!reduction.1 || halving, "reduction", "a kind of rate halving here")
            }
            Recovery::Linux(_) => {
                let shared = ["tail_loss_probe", "hystart", "pacing", "reordering"];
                let own = |given: &Given| !shared.contains(&given.0);
                let modern: Vec<_> = modern.into_iter().chain([reduction]).filter(own).collect();
                foreign(profile, "modern", &modern)?;
                let linux26: Vec<_> = linux26.into_iter().filter(own).collect();
                foreign(profile, "linux-2.6", &linux26)
            }
            Recovery::Modern(_) => {
                foreign(profile, "linux-2.6", &linux26)?;
                require(!halving, "reduction", "`at-once` or `prr` here")
            }
            Recovery::NewReno => {
                foreign(profile, "linux-2.6", &linux26)?;
                foreign(profile, "modern", &old)?;
                foreign(profile, "linux-2.6", &[reduction])
            }
        }
    }

    /// What can be said of each setting without the others.
    pub(super) fn validate_ranges(&self) -> Result<(), SettingsError> {
        let mss = self.mss.is_none_or(|mss| (MIN_MSS..=MAX_MSS).contains(&mss));
        require(mss, "mss", "from 88 to 65495 bytes")?;
        for (key, packets) in [
            ("initial_window", self.initial_window),
            ("cwnd_clamp", self.cwnd_clamp),
            ("slow_start_limit", self.slow_start_limit),
            ("ack_every", self.ack_every),
            ("ack_request_every", self.ack_request_every),
        ] {
            require(!packets.is_some_and(Packets::is_zero), key, "at least 1 packet")?;
        }
        for (key, span) in [
            ("keep_alive", self.keep_alive),
            ("keep_alive_interval", self.keep_alive_interval),
            ("user_timeout", self.user_timeout),
            ("fin_timeout", self.fin_timeout),
        ] {
            require(span.is_none_or(|span| span >= Span::from_millis(1)), key, "at least 1 ms")?;
        }
        // RFC 5681 §4.2 has the upper limit.
        let held = Span::from_millis(1)..=Span::from_millis(500);
        let ack_delay = self.ack_delay.is_none_or(|delay| held.contains(&delay));
        require(ack_delay, "ack_delay", "from 1 ms to 500 ms")?;
        let ticks = Span::from_micros(1)..=Span::from_secs(1);
        require(self.clock.is_none_or(|tick| ticks.contains(&tick)), "clock", "from 1 us to 1 s")?;
        let cap = self.abe_cap.is_none_or(|cap| (0.0..=1e6).contains(&cap));
        require(cap, "abe_cap", "from 0 to 1000000")?;
        require(self.cdl_bit.is_none_or(|bit| (4..=6).contains(&bit)), "cdl_bit", "4, 5 or 6")
    }

    /// What depends on several settings.
    pub(super) fn validate(&self, config: &Config) -> Result<(), SettingsError> {
        let segment = u64::from(payload(config));
        let key = if self.fixed_window(config).is_some() { "window" } else { "receive_buffer_max" };
        let buffer = config.receive_buffer;
        let fits = buffer.initial.get() >= segment && buffer.max <= MAX_WINDOW;
        require(fits, key, "from one segment to 1 GiB")?;
        require(!config.send_buffer.initial.is_zero(), "send_buffer", "at least 1 B")?;
        let floor = !config.cwnd_floor.is_zero() && config.cwnd_floor <= config.cwnd_clamp;
        require(floor, "cwnd_floor", "from 1 packet to cwnd_clamp")?;
        let probes = self.keep_alive_interval.is_some() || self.keep_alive_count.is_some();
        require(self.keep_alive.is_some() || !probes, "keep_alive", "given with its other keys")?;
        self.validate_congestion(config)?;
        self.validate_acks(config)
    }

    fn validate_congestion(&self, config: &Config) -> Result<(), SettingsError> {
        let congestion = config.congestion;
        if config.is_model_based() {
            let modern = matches!(config.recovery, Recovery::Modern(_) | Recovery::Linux(_));
            let key = match config.external {
                Some(_) => "congestion = one of the program's own",
                None => "congestion = bbr1, bbr3 or farpace",
            };
            foreign(self.profile(), "modern", &[(key, !modern)])?;
            let paced = self.pacing != Some(false) || config.external.is_some();
            require(paced, "pacing", "true, or not given, for bbr1, bbr3 and farpace")?;
        }
        let slow_starts = "used with a congestion control that has the common slow start";
        for (key, given) in
            [("slow_start_limit", self.slow_start_limit.is_some()), ("hystart", self.hystart == Some(true))]
        {
            let has = congestion.slow_starts() && config.external.is_none();
            require(has || !given, key, slow_starts)?;
        }
        for (key, given) in [
            ("abe_filter", self.abe_filter.is_some()),
            ("abe_first_interval", self.abe_first_interval.is_some()),
            ("abe_cap", self.abe_cap.is_some()),
        ] {
            require(congestion.has_abe() || !given, key, "used with tcp-j, star or star-robust")?;
        }
        let resets = congestion == Congestion::Star || self.cws_reset.is_none();
        require(resets, "cws_reset", "used with star")?;
        let fast_start = self.fast_start != Some(true) || config.pacing == Pacing::Growth;
        require(fast_start, "fast_start", "used with cubic in profile modern, and with pacing")
    }

    fn validate_acks(&self, config: &Config) -> Result<(), SettingsError> {
        let policy = config.delayed_ack;
        let fixed = matches!(policy, DelayedAck::None | DelayedAck::Linux26) || policy.is_modern_linux();
        let held = "used with delayed_ack rfc5681, bsd or stretch";
        require(self.ack_delay.is_none() || !fixed, "ack_delay", held)?;
        let every = self.ack_every.is_none() || policy == DelayedAck::Stretch;
        require(every, "ack_every", "used with delayed_ack stretch")?;
        let control = self.ack_control.unwrap_or_default();
        for (key, given) in [
            ("ack_requests", self.ack_requests.is_some()),
            ("ack_request_every", self.ack_request_every.is_some()),
            ("cdl_bit", self.cdl_bit.is_some()),
        ] {
            require(control != AckControlMode::Off || !given, key, "used with an ack_control")?;
        }
        let has_bit = control.is_classic() || control == AckControlMode::Flag;
        let with_bit = "used with ack_control classic, classic-literal or flag";
        require(has_bit || self.cdl_bit.is_none(), "cdl_bit", with_bit)
    }

    fn linux26_switches(&self) -> [Given; 6] {
        [
            ("abc", self.abc.is_some()),
            ("sack_sort", self.sack_sort.is_some()),
            ("hint", self.hint.is_some()),
            ("dsack_scope", self.dsack_scope.is_some()),
            ("lost_rtx", self.lost_rtx.is_some()),
            ("reordering", self.reordering.is_some()),
        ]
    }

    fn modern_switches(&self) -> [Given; 8] {
        [
            ("detection", self.detection.is_some()),
            ("tail_loss_probe", self.tail_loss_probe.is_some()),
            ("timeout", self.timeout.is_some()),
            ("undo", self.undo.is_some()),
            ("hystart", self.hystart.is_some()),
            ("slow_start_limit", self.slow_start_limit.is_some()),
            ("fast_start", self.fast_start.is_some()),
            ("pacing", self.pacing.is_some()),
        ]
    }
}

fn require(holds: bool, key: &'static str, expected: &'static str) -> Result<(), SettingsError> {
    if holds { Ok(()) } else { Err(SettingsError::Range { key, expected }) }
}

fn foreign(profile: Profile, recovery: &'static str, given: &[Given]) -> Result<(), SettingsError> {
    match given.iter().find(|(_, given)| *given) {
        Some(&(key, _)) => Err(SettingsError::Foreign { key, recovery, profile: profile.name() }),
        None => Ok(()),
    }
}
