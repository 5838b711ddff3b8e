//! What follows from several settings, where nothing is said of it.

use super::{Settings, SettingsError};
use crate::config::ack_control::DEFAULT_BIT;
use crate::config::{
    AbeConfig, AckControlMode, AckRequests, BufferSize, Config, Congestion, EcnMode, Pacing, Recovery,
    RequestRule, Rto, SLOW_TICK, TimeoutProcedure,
};
use farpace_units::{ByteCount, Packets};

impl Settings {
    /// # Errors
    /// A size that is fixed and has an upper limit of autotuning too.
    pub(super) fn derive(&self, config: &mut Config) -> Result<(), SettingsError> {
        let defaults = self.profile().defaults();
        let congestion = config.congestion;
        let cubic = congestion == Congestion::Cubic;
        if let (Recovery::Modern(switches), None) = (&mut config.recovery, self.timeout) {
            match congestion {
                Congestion::Star => switches.timeout = TimeoutProcedure::AenLiteral,
                Congestion::StarRobust => switches.timeout = TimeoutProcedure::Aen,
                _ => {}
            }
        }
        if config.rto == Rto::Net2 && config.clock.is_none() {
            config.clock = Some(SLOW_TICK);
        }
        if congestion == Congestion::Dctcp && self.ecn.is_none() {
            config.ecn = EcnMode::Dctcp;
        }
        if defaults.unscaled {
            let most = Packets::new(u32::from(u16::MAX) / payload(config).max(1));
            config.cwnd_clamp = self.cwnd_clamp.unwrap_or(most);
            config.initial_ssthresh = self.initial_ssthresh.or(Some(most));
        }
        if congestion == Congestion::Bic && self.initial_ssthresh.is_none() && defaults.bic_ssthresh.is_some()
        {
            config.initial_ssthresh = defaults.bic_ssthresh;
        }
        config.hystart = self.hystart.unwrap_or(cubic && defaults.hystart_with_cubic);
        config.pacing = self.pacing(config, cubic && defaults.growth_pacing_with_cubic);
        config.fast_start =
            self.fast_start.unwrap_or(config.pacing == Pacing::Growth && self.slow_start_limit.is_none());
        config.abe = self.abe(congestion);
        config.ack_requests = self.ack_requests();
        let window = self.fixed_window(config);
        config.receive_buffer =
            buffer("receive_buffer_max", config.receive_buffer, window, self.receive_buffer_max)?;
        config.send_buffer =
            buffer("send_buffer_max", config.send_buffer, self.send_buffer, self.send_buffer_max)?;
        Ok(())
    }

    /// The receive buffer of fixed size that is set, in bytes.
    pub(super) fn fixed_window(&self, config: &Config) -> Option<ByteCount> {
        self.window.map(|w| w.in_bytes(ByteCount::new(payload(config).into()))).or(self.receive_buffer)
    }

    fn pacing(&self, config: &Config, by_growth: bool) -> Pacing {
        let robust = config.congestion == Congestion::StarRobust;
        let paces = by_growth
            || config.congestion.is_model_based()
            || robust && matches!(config.recovery, Recovery::Modern(_));
        match self.pacing.unwrap_or(paces) {
            false => Pacing::Off,
            true if by_growth => Pacing::Growth,
            true => Pacing::Fixed,
        }
    }

    fn abe(&self, congestion: Congestion) -> AbeConfig {
        let own = congestion.abe();
        AbeConfig {
            filter: self.abe_filter.unwrap_or(own.filter),
            first_interval: self.abe_first_interval.unwrap_or(own.first_interval),
            cap: self.abe_cap.or(own.cap).filter(|cap| *cap > 0.0),
            reset: self.cws_reset.unwrap_or(own.reset),
        }
    }

    fn ack_requests(&self) -> AckRequests {
        let control = self.ack_control.unwrap_or_default();
        let own: &[_] = match control {
            AckControlMode::Off => &[],
            _ if self.ack_request_every.is_some() => &[],
            _ => &[RequestRule::Auto],
        };
        AckRequests {
            control,
            when: self.ack_requests.as_deref().unwrap_or(own).iter().copied().collect(),
            every: self.ack_request_every,
            bit: self.cdl_bit.unwrap_or(DEFAULT_BIT),
        }
    }
}

/// Payload of a full-size segment in bytes.
pub(super) fn payload(config: &Config) -> u32 {
    u32::from(config.mss) - if config.timestamps { 12 } else { 0 }
}

/// A buffer of the profile's size, or as settings want it.
fn buffer(
    max_key: &'static str,
    profile: BufferSize,
    fixed: Option<ByteCount>,
    max: Option<ByteCount>,
) -> Result<BufferSize, SettingsError> {
    match (fixed, max) {
        (Some(_), Some(_)) => {
            Err(SettingsError::Range { key: max_key, expected: "left out where the size is fixed" })
        }
        (Some(size), None) => Ok(BufferSize::fixed(size)),
        (None, Some(max)) => Ok(BufferSize::auto(profile.initial.min(max), max)),
        (None, None) => Ok(profile),
    }
}
