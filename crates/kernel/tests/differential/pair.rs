//! A control in Rust and the same in C, which are told the same.

use crate::driver::{Answer, InC};
use farpace_kernel::KernelControl;
use farpace_tcp::Window;
use farpace_tcp::cc::{AckSample, CongestionControl, CongestionEvent, Cut, Farpace, Star};
use farpace_tcp::config::{Abc, Congestion, Settings};
use farpace_units::{Instant, Packets, Span};

pub const MSS: u32 = 1448;
/// The kernel's counter of delivered segments begins here, so that it wraps soon.
const DELIVERED: u32 = u32::MAX - 1_000;

/// Something that happens to a control.
#[derive(Clone, Debug)]
pub enum Happening {
    Established(Span),
    /// True: recovery lets it raise the window.
    Ack(Box<AckSample>, bool),
    Cut(Cut),
    Timeout,
    Undo,
}

/// How far two answers are from each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distance {
    /// Segments beyond the one that rounding may take, as a part of the window.
    pub window: f64,
    pub threshold: f64,
    /// Of the pacing rate, as a part.
    pub pacing: f64,
}

pub struct Pair {
    control: KernelControl,
    rust: Box<dyn CongestionControl>,
    window: Window,
    c: InC,
}

fn rust(control: KernelControl) -> Box<dyn CongestionControl> {
    match control {
        KernelControl::Farpace => Box::new(Farpace::default()),
        KernelControl::Star => {
            let settings = Settings { congestion: Some(Congestion::StarRobust), ..Settings::default() };
            Box::new(Star::robust(settings.resolve().unwrap().abe))
        }
    }
}

impl Pair {
    pub fn new(control: KernelControl, cwnd: u32) -> Self {
        let window = Window::new(Packets::new(cwnd), None, Packets::MAX, Abc::Off, MSS);
        Pair { control, rust: rust(control), window, c: InC::start(control, cwnd, MSS, DELIVERED) }
    }

    /// Tells both; the distance of their answers, and that of the one in Rust.
    pub fn tell(&mut self, now: Instant, happening: &Happening) -> (Distance, Answer) {
        let rust = self.tell_rust(now, happening);
        let c = self.c.tell(&words(happening));
        let part = |a: u64, b: u64, grace: u64| {
            let apart = a.abs_diff(b).saturating_sub(grace);
            apart as f64 / (a.max(b).max(1)) as f64
        };
        let distance = Distance {
            window: part(rust.cwnd, c.cwnd, 1),
            threshold: part(rust.ssthresh, c.ssthresh, 1),
            // A burst is no rate.
            pacing: if rust.pacing.min(c.pacing) > 100_000_000_000 {
                0.0
            } else {
                part(rust.pacing, c.pacing, 1)
            },
        };
        (distance, rust)
    }

    fn tell_rust(&mut self, now: Instant, happening: &Happening) -> Answer {
        let owns = self.control == KernelControl::Farpace;
        match happening {
            Happening::Established(rtt) => {
                self.rust.on_event(now, &mut self.window, CongestionEvent::Established(*rtt))
            }
            Happening::Ack(ack, may_raise) => {
                if !ack.delivered.is_zero() {
                    self.rust.on_acked(ack);
                }
                if owns || *may_raise {
                    self.rust.on_ack(&mut self.window, ack);
                }
            }
            Happening::Cut(cut) => {
                let ssthresh = self.rust.ssthresh(now, &self.window, self.window.cwnd(), *cut);
                if !owns {
                    self.window.set_ssthresh(ssthresh);
                    self.window.set_cwnd(ssthresh);
                }
            }
            Happening::Timeout => {
                self.rust.on_event(now, &mut self.window, CongestionEvent::EnterLoss { total_lost: 0 })
            }
            Happening::Undo => {
                let cwnd = self.rust.undo_cwnd(&self.window);
                if !owns {
                    self.window.set_cwnd(cwnd);
                }
                self.rust.on_event(now, &mut self.window, CongestionEvent::Undo);
            }
        }
        Answer {
            cwnd: u64::from(self.window.cwnd().get()),
            ssthresh: u64::from(self.window.ssthresh().get()),
            pacing: self.rust.pacing().map_or(0, |rate| rate.bits_per_sec() / 8),
        }
    }
}

/// The event in the words of drive.c.
fn words(happening: &Happening) -> String {
    let counter = |delivered: u64| u64::from(DELIVERED).wrapping_add(delivered) & u64::from(u32::MAX);
    let us = |span: Option<Span>| span.map_or(0, |span| span.as_nanos() / 1_000);
    match happening {
        Happening::Established(rtt) => format!("E {}", us(Some(*rtt))),
        Happening::Ack(a, may_raise) => {
            let rate = a.rate.unwrap_or_default();
            let numbers = [
                a.now.as_nanos(),
                rate.rate.map_or(0, |rate| rate.bits_per_sec() / 8),
                u64::from(a.acked.get()),
                u64::from(a.delivered.get()),
                u64::from(a.lost.get()),
                u64::from(a.in_flight.get()),
                us(a.rtt),
                us(rate.rtt),
                us(a.min_rtt),
                us(Some(a.srtt)),
                counter(rate.prior_delivered),
                counter(rate.total_delivered),
                u64::from(a.mss),
                u64::from(a.max_window),
                u64::from(a.rate.is_some()),
                u64::from(a.cwnd_limited),
                u64::from(a.ece),
                u64::from(*may_raise),
                u64::from(a.peer_clock.is_some()),
                u64::from(a.peer_clock.unwrap_or_default()),
                u64::from(a.rate.is_some_and(|rate| rate.app_limited)),
            ];
            numbers.iter().fold("A".to_owned(), |line, number| format!("{line} {number}"))
        }
        Happening::Cut(Cut::Ecn) => "M".into(),
        Happening::Cut(_) => "C".into(),
        Happening::Timeout => "L".into(),
        Happening::Undo => "U".into(),
    }
}
