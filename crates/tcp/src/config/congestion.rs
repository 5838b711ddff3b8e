//! The congestion controls by name.

use super::{AbeConfig, AbeFilter};
use farpace_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Congestion control. The first line of each says when to use it; `farpace profiles` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681: the measure of all others; short paths, and where nothing but fairness counts.
    Reno,
    /// With the constants of Linux 2.6.17: for the historical profiles.
    Bic,
    /// RFC 9438: the default of most systems; long clean paths with a queue of at least half a BDP.
    Cubic,
    /// HighSpeed TCP, RFC 3649: long clean paths with windows of thousands of segments.
    #[serde(rename = "highspeed")]
    HighSpeed,
    /// Scalable TCP: the fastest way back after a loss on clean paths of one's own; unfair to everyone.
    Scalable,
    /// Westwood: loss that is not congestion, on paths with a queue; measures the rate of each ACK.
    Westwood,
    /// Westwood+ as in Linux: the same with one measurement a round trip, which ACK compression cannot fool.
    WestwoodPlus,
    /// Hybla: long paths that compete with short ones; grows as if the round trip were 25 ms.
    Hybla,
    /// H-TCP: long clean paths; grows by the time since the last loss.
    #[serde(rename = "htcp")]
    HTcp,
    /// Vegas: low delay where nothing greedier shares the queue.
    Vegas,
    /// Veno: Reno for radio links; a loss without a queue costs a fifth instead of half.
    Veno,
    /// Illinois: long clean paths with a deep queue; the delay sets how fast it grows and falls.
    Illinois,
    /// DCTCP, RFC 8257: data centres whose queues mark early; never across the open Internet.
    Dctcp,
    /// LEDBAT++: background transfers that give way to everything else.
    LedbatPlusPlus,
    /// TCP-J: the satellite algorithm before TCP-STAR: Reno with the measured bandwidth as threshold after a
    /// loss.
    TcpJ,
    /// TCP-STAR as the paper prints it: a satellite link of one's own at 10 Mbit/s.
    Star,
    /// TCP-STAR with its estimator filtered, its window bounded, and losses counted: satellite links of any
    /// rate.
    StarRobust,
    /// BBRv1: lossy paths with any queue; ignores loss, and so takes what Reno and CUBIC beside it would
    /// have.
    Bbr1,
    /// BBRv3 (draft-ietf-ccwg-bbr): up to 2 % of random loss; always paced.
    Bbr3,
    /// For far paths of which nothing is known: bit errors, any queue, fair to its like; always paced.
    Farpace,
}

impl Congestion {
    /// All of them.
    pub const ALL: [Congestion; 20] = [
        Congestion::Reno,
        Congestion::Bic,
        Congestion::Cubic,
        Congestion::HighSpeed,
        Congestion::Scalable,
        Congestion::Westwood,
        Congestion::WestwoodPlus,
        Congestion::Hybla,
        Congestion::HTcp,
        Congestion::Vegas,
        Congestion::Veno,
        Congestion::Illinois,
        Congestion::Dctcp,
        Congestion::LedbatPlusPlus,
        Congestion::TcpJ,
        Congestion::Star,
        Congestion::StarRobust,
        Congestion::Bbr1,
        Congestion::Bbr3,
        Congestion::Farpace,
    ];

    /// The name as scenarios and socket options write it.
    pub const fn name(self) -> &'static str {
        match self {
            Congestion::Reno => "reno",
            Congestion::Bic => "bic",
            Congestion::Cubic => "cubic",
            Congestion::HighSpeed => "highspeed",
            Congestion::Scalable => "scalable",
            Congestion::Westwood => "westwood",
            Congestion::WestwoodPlus => "westwood-plus",
            Congestion::Hybla => "hybla",
            Congestion::HTcp => "htcp",
            Congestion::Vegas => "vegas",
            Congestion::Veno => "veno",
            Congestion::Illinois => "illinois",
            Congestion::Dctcp => "dctcp",
            Congestion::LedbatPlusPlus => "ledbat-plus-plus",
            Congestion::TcpJ => "tcp-j",
            Congestion::Star => "star",
            Congestion::StarRobust => "star-robust",
            Congestion::Bbr1 => "bbr1",
            Congestion::Bbr3 => "bbr3",
            Congestion::Farpace => "farpace",
        }
    }

    /// It estimates the bandwidth from ACKs as TCP-J does: `abe_filter` and `abe_first_interval` change that.
    pub const fn has_abe(self) -> bool {
        matches!(self, Congestion::TcpJ | Congestion::Star | Congestion::StarRobust)
    }

    /// How it estimates the bandwidth unless told otherwise: literally as TCP-J and TCP-STAR print it, or
    /// robustly.
    pub(super) const fn abe(self) -> AbeConfig {
        match self {
            Congestion::StarRobust => {
                AbeConfig { filter: AbeFilter::Tsw, first_interval: Span::ZERO, cap: Some(2.0), reset: false }
            }
            Congestion::TcpJ => AbeConfig {
                filter: AbeFilter::None,
                first_interval: Span::from_micros(1),
                cap: None,
                reset: false,
            },
            _ => AbeConfig {
                filter: AbeFilter::None,
                first_interval: Span::from_millis(1),
                cap: None,
                reset: false,
            },
        }
    }

    /// It follows a model of the path, measured by delivery rates, and paces by it: it needs the modern
    /// recovery.
    pub const fn is_model_based(self) -> bool {
        matches!(self, Congestion::Bbr1 | Congestion::Bbr3 | Congestion::Farpace)
    }

    /// Its slow start is the common one, which `hystart` and `slow_start_limit` change.
    pub const fn slow_starts(self) -> bool {
        !self.is_model_based()
            && !matches!(
                self,
                Congestion::Bic | Congestion::LedbatPlusPlus | Congestion::Star | Congestion::StarRobust
            )
    }
}
