//! What is set takes the place of the profile's own.

use super::Settings;
use crate::config::{Config, Congestion, KeepAlive, Recovery};
use farpace_units::Span;

impl Settings {
    pub(super) fn overlay(&self, config: &mut Config) {
        // Every field is named, so that a new one cannot be forgotten. What follows from several settings is
        // in `derive`.
        let Settings {
            profile: _,
            congestion,
            external,
            rto,
            min_rto,
            delayed_ack,
            ack_delay,
            ack_every,
            ack_control: _,
            ack_requests: _,
            ack_request_every: _,
            cdl_bit: _,
            clock,
            mss,
            sack,
            timestamps,
            window_scale,
            window: _,
            receive_buffer: _,
            receive_buffer_max: _,
            send_buffer: _,
            send_buffer_max: _,
            initial_window,
            initial_ssthresh,
            cwnd_clamp,
            cwnd_floor,
            nagle,
            ecn,
            mtu_probing,
            keep_alive,
            keep_alive_interval,
            keep_alive_count,
            user_timeout,
            fin_timeout,
            abc: _,
            sack_sort: _,
            hint: _,
            dsack_scope: _,
            lost_rtx: _,
            reordering: _,
            reduction: _,
            detection: _,
            tail_loss_probe: _,
            timeout: _,
            undo: _,
            hystart: _,
            slow_start_limit,
            abe_filter: _,
            abe_first_interval: _,
            abe_cap: _,
            cws_reset: _,
            fast_start: _,
            pacing: _,
        } = self;
        self.overlay_recovery(&mut config.recovery);
        replace(&mut config.congestion, *congestion);
        config.external.clone_from(external);
        if external.is_some() {
            config.congestion = Congestion::Reno; // nothing follows from it
        }
        replace(&mut config.rto, *rto);
        replace(&mut config.min_rto, *min_rto);
        replace(&mut config.delayed_ack, *delayed_ack);
        replace(&mut config.mss, *mss);
        replace(&mut config.sack, *sack);
        replace(&mut config.timestamps, *timestamps);
        replace(&mut config.window_scale, *window_scale);
        replace(&mut config.cwnd_clamp, *cwnd_clamp);
        replace(&mut config.cwnd_floor, *cwnd_floor);
        replace(&mut config.nagle, *nagle);
        replace(&mut config.ecn, *ecn);
        replace(&mut config.mtu_probing, *mtu_probing);
        replace(&mut config.fin_timeout, *fin_timeout);
        config.ack_delay = ack_delay.or(config.ack_delay);
        config.ack_every = ack_every.or(config.ack_every);
        config.clock = clock.or(config.clock);
        config.initial_window = initial_window.or(config.initial_window);
        config.initial_ssthresh = initial_ssthresh.or(config.initial_ssthresh);
        config.slow_start_limit = slow_start_limit.or(config.slow_start_limit);
        config.user_timeout = user_timeout.or(config.user_timeout);
        config.keep_alive = keep_alive.map(|idle| KeepAlive {
            idle,
            interval: keep_alive_interval.unwrap_or(Span::from_secs(75)),
            count: keep_alive_count.unwrap_or(9),
        });
    }

    fn overlay_recovery(&self, recovery: &mut Recovery) {
        match recovery {
            Recovery::Linux26(switches) => {
                replace(&mut switches.abc, self.abc);
                replace(&mut switches.sack_sort, self.sack_sort);
                replace(&mut switches.hint, self.hint);
                replace(&mut switches.dsack_scope, self.dsack_scope);
                replace(&mut switches.lost_rtx, self.lost_rtx);
                replace(&mut switches.reordering, self.reordering);
                replace(&mut switches.reduction, self.reduction);
            }
            Recovery::Linux(switches) => {
                replace(&mut switches.tail_loss_probe, self.tail_loss_probe);
                replace(&mut switches.reordering, self.reordering);
            }
            Recovery::Modern(switches) => {
                replace(&mut switches.detection, self.detection);
                replace(&mut switches.reduction, self.reduction);
                replace(&mut switches.tail_loss_probe, self.tail_loss_probe);
                replace(&mut switches.timeout, self.timeout);
                replace(&mut switches.undo, self.undo);
            }
            Recovery::NewReno => {}
        }
    }
}

fn replace<T: Copy>(own: &mut T, set: Option<T>) {
    if let Some(value) = set {
        *own = value;
    }
}
