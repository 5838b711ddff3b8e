//! Paced NICs: how they are drawn, their elements, and the spacing at the far end.

use super::knobs::{DirectionKnobs, End, pick, sometimes, spread};
use farpace_lab::{Observer, WireId};
use farpace_link::nic::PacingNic;
use farpace_link::pacing::{
    Burstiness, ClassConfig, ClassFilter, ClassRate, Classifier, FCS, GapFrameKind, Gaps, PacingConfig,
    SchedulerKind, layer_2, wire_len,
};
use farpace_path as path;
use farpace_path::{Cx, Element, Inspection, Port, QueueLimit, Routes};
use farpace_units::{ByteCount, Instant, Packets, RandomStream, Rate, Span};
use farpace_wire::Packet;
use farpace_wire::ethernet::ETHERNET_LEN;
use std::net::Ipv4Addr;

/// Connection number n has this port and n at the client.
pub const FIRST_PORT: u16 = 10_000;

/// A link with a NIC that paces.
#[derive(Clone, Debug, PartialEq)]
pub struct Paced {
    pub config: PacingConfig,
    /// The node that removes gap frames.
    pub far_end: FarEnd,
}

/// The node at the far end of a paced link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FarEnd {
    Host,
    Router,
    Switch,
    /// It passes gap frames on to the host.
    Hub,
}

/// Highest share of the rate for all paced classes: then frames of any length fit, with the 20 B around each.
const MAX_LOAD: f64 = 0.7;
/// Lowest share of the rate for a class with gap frames, or a trial would be all gaps.
const MIN_SHARE: u64 = 64;
/// Highest rate for connections with gap frames, because they may want hardly any rate: 160 gap frames per
/// second.
const SLOW_LINK: Rate = Rate::from_mbit(2);

/// With a probability, a NIC for a direction of a trial with this number of connections.
pub fn draw(
    rng: &mut RandomStream,
    direction: &DirectionKnobs,
    ends: &[End; 2],
    side: usize,
    connections: u32,
) -> Option<Paced> {
    let corrupt = direction.corrupt > 0.0;
    sometimes(rng, 0.3, |r| {
        use SchedulerKind::{Edf, Fifo, Fq, Psp, TokenBucket};
        let far_end = pick(r, &[FarEnd::Host, FarEnd::Router, FarEnd::Switch, FarEnd::Hub]);
        // A switch would drop damaged frames, and ours learns from them wrong addresses.
        let far_end = if corrupt && far_end == FarEnd::Switch { FarEnd::Router } else { far_end };
        let own = direction.rate.bits_per_sec();
        let device_rate =
            sometimes(r, 0.2, |r| Rate::from_bits_per_sec((own as f64 * (0.5 + 0.5 * r.unit())) as u64));
        let mtu = [1_500, 9_000, 65_535].into_iter().find(|mtu| *mtu >= longest(ends) && r.chance(0.7));
        let mut config = PacingConfig {
            scheduler: pick(r, &[Edf, Edf, Edf, Edf, Psp, TokenBucket, Fq, Fifo]),
            gaps: pick(r, &[Gaps::Frames, Gaps::Frames, Gaps::Timers, Gaps::Hybrid]),
            gap_frame: pick(r, &[GapFrameKind::Pause, GapFrameKind::Experimental, GapFrameKind::ToSelf]),
            device_rate,
            mtu: ByteCount::new(mtu.unwrap_or(65_535)),
            jitter: Span::from_micros(r.below(100)),
            tick: Span::from_micros(spread(r, 100, 10_000)),
            burst: sometimes(r, 0.3, |r| ByteCount::new(spread(r, 1, 100_000))),
            limit: QueueLimit::Packets(direction.queue),
            ..PacingConfig::default()
        };
        classes(r, &mut config, device_rate.unwrap_or(direction.rate));
        filters(r, &mut config, side, connections);
        if config.follows_connections() && makes_gaps(&config) && direction.rate > SLOW_LINK {
            (config.scheduler, config.gaps) = (Edf, pick(r, &[Gaps::Timers, Gaps::Hybrid]));
        }
        Paced { config, far_end }
    })
}

fn makes_gaps(config: &PacingConfig) -> bool {
    let frames = config.scheduler == SchedulerKind::Edf && config.gaps == Gaps::Frames;
    frames || config.scheduler == SchedulerKind::Psp
}

/// Bytes of the longest IP packet of a trial.
fn longest(ends: &[End; 2]) -> u64 {
    ends.iter().map(|end| u64::from(end.settings.mss.unwrap_or(1_460)) + 40).max().unwrap_or(1_500)
}

fn classes(r: &mut RandomStream, config: &mut PacingConfig, link: Rate) {
    let link = link.bits_per_sec();
    let weights: Vec<u64> = (0..1 + r.below(5)).map(|_| spread(r, 1, 16)).collect();
    let load = MAX_LOAD * (0.2 + 0.8 * r.unit());
    let all = link as f64 * load / weights.iter().sum::<u64>() as f64;
    let mut left = (link as f64 * MAX_LOAD) as u64;
    for (number, weight) in weights.into_iter().enumerate() {
        let own = ((all * weight as f64) as u64).max(link / MIN_SHARE).max(4_000);
        let rate = match r.below(6) {
            0 => None,
            1 => Some(ClassRate::Connection),
            _ if own > left => None,
            _ => {
                left -= own;
                Some(ClassRate::Fixed(Rate::from_bits_per_sec(own)))
            }
        };
        // Four seconds at its rate, as elsewhere.
        let max = (own * 4 / (8 * 1_500)).clamp(2, 1_000);
        let limit = Some(QueueLimit::Packets(Packets::new(spread(r, 2, max) as u32)));
        config.classes.push(ClassConfig { name: format!("c{number}"), rate, limit });
    }
}

/// Classes for connections by their ports, some by protocol only, some by default or by none.
fn filters(r: &mut RandomStream, config: &mut PacingConfig, side: usize, connections: u32) {
    let names: Vec<String> = config.classes.iter().map(|class| class.name.clone()).collect();
    config.default = sometimes(r, 0.6, |r| pick(r, &names));
    for number in 0..connections.min(40) {
        let port = Some(FIRST_PORT + number as u16);
        let filter =
            ClassFilter { class: pick(r, &names), priority: r.below(3) as u16, ..ClassFilter::default() };
        config.filters.push(match (r.below(5), side) {
            (0, _) => continue,
            (1, _) => {
                ClassFilter { protocol: Some(farpace_link::pacing::Protocol::TCP), priority: 9, ..filter }
            }
            (_, 0) => ClassFilter { src_port: port, ..filter },
            _ => ClassFilter { dst_port: port, ..filter },
        });
    }
}

impl Paced {
    /// The lowest rate at which a full queue drains, and its packets, for bounds.
    pub fn slowest(&self, link: Rate) -> (Rate, u64) {
        let link = self.config.effective_rate(link);
        // The rate left for unpaced classes, with frames of the worst length.
        let rest = Rate::from_bits_per_sec(link.bits_per_sec() / 16);
        let fixed = self.config.classes.iter().filter_map(|class| match class.rate {
            Some(ClassRate::Fixed(rate)) => Some(rate),
            _ => None,
        });
        let limits = self.config.classes.iter().filter_map(|class| class.limit).chain([self.config.limit]);
        let max = limits.map(|limit| limit.bounds().1).max().unwrap_or(0);
        (fixed.min().unwrap_or(rest).min(rest), max)
    }

    /// The node at the far end of the link; none: the host itself. Port 0 faces the client.
    pub fn element(&self) -> Option<Box<dyn Element>> {
        Some(match self.far_end {
            FarEnd::Host => return None,
            FarEnd::Switch => Box::new(path::Switch::new(2)),
            FarEnd::Hub => Box::new(path::Hub::new(2)),
            FarEnd::Router => {
                let mut routes = Routes::default();
                for side in 0..2u8 {
                    let address = Ipv4Addr::new(10, 0, 0, side + 1).into();
                    let prefix = path::Prefix::new(address, 32).expect("32 bits");
                    routes.add(prefix, Port(side.into())).expect("two are not too many");
                }
                Box::new(path::Router::new(2, routes).expect("two ports"))
            }
        })
    }
}

/// One direction of a link, with a pacing NIC or without.
pub enum LinkTransmitter {
    Plain(Box<path::LinkDirection>),
    Paced(Box<PacingNic>),
}

impl LinkTransmitter {
    pub fn new(direction: &DirectionKnobs) -> LinkTransmitter {
        match &direction.paced {
            Some(paced) => LinkTransmitter::Paced(Box::new(
                PacingNic::new(&paced.config, direction.rate, direction.delay).expect("as drawn"),
            )),
            None => LinkTransmitter::Plain(Box::new(
                path::LinkDirection::new(path::LinkConfig {
                    rate: Some(direction.rate),
                    delay: direction.delay,
                    queue: QueueLimit::Packets(direction.queue),
                    framing: path::Framing::ETHERNET,
                })
                .expect("rates and queues above nothing"),
            )),
        }
    }
}

impl path::ElementDirection for LinkTransmitter {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        match self {
            LinkTransmitter::Plain(link) => link.on_packet(packet, out, cx),
            LinkTransmitter::Paced(nic) => nic.on_packet(packet, out, cx),
        }
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        match self {
            LinkTransmitter::Plain(link) => link.on_wake(out, cx),
            LinkTransmitter::Paced(nic) => nic.on_wake(out, cx),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        match self {
            LinkTransmitter::Plain(link) => link.deadline(),
            LinkTransmitter::Paced(nic) => nic.deadline(),
        }
    }
    fn held(&self) -> u64 {
        match self {
            LinkTransmitter::Plain(link) => link.held(),
            LinkTransmitter::Paced(nic) => nic.held(),
        }
    }
    fn inspect(&self) -> Inspection {
        match self {
            LinkTransmitter::Plain(link) => link.inspect(),
            LinkTransmitter::Paced(nic) => nic.inspect(),
        }
    }
}

/// Observes the far ends of paced links: the queue that each class would make before a link of its own rate.
pub struct Meters {
    /// By wire.
    directions: Vec<(WireId, Meter)>,
}

struct Meter {
    classifier: Classifier,
    /// The time of a frame to the far end.
    link: Rate,
    delay: Span,
    /// By index in the configuration; none: no promise.
    classes: Vec<Option<Burstiness>>,
    /// The law: at most two full frames, and rounding to nanoseconds.
    max: Vec<ByteCount>,
    frames: u64,
    gaps: u64,
}

impl Meters {
    /// For the wires at the far ends of both directions.
    pub fn new(directions: &[DirectionKnobs; 2], ends: &[End; 2], wires: [WireId; 2]) -> Self {
        let full = layer_2(ByteCount::new(longest(ends)) + ByteCount::of_len(ETHERNET_LEN));
        let directions = directions.iter().zip(wires).filter_map(|(direction, wire)| {
            let config = &direction.paced.as_ref()?.config;
            let precise = config.scheduler == SchedulerKind::Edf && config.gaps == Gaps::Frames;
            let rates: Vec<_> = (config.classes.iter())
                .map(|class| match class.rate {
                    Some(ClassRate::Fixed(rate)) if precise => Some(rate),
                    _ => None,
                })
                .collect();
            let rounding = |rate: Rate| rate.bytes_in(Span::from_nanos(2)) + ByteCount::new(1);
            let meter = Meter {
                classifier: config.classifier(),
                link: direction.rate,
                delay: direction.delay,
                max: rates.iter().map(|r| full + full + rounding(r.unwrap_or_default())).collect(),
                classes: rates.into_iter().map(|rate| rate.map(Burstiness::at)).collect(),
                frames: 0,
                gaps: 0,
            };
            Some((wire, meter))
        });
        Meters { directions: directions.collect() }
    }

    /// Panics if a class was too bursty. Frames and gap frames seen.
    pub fn check(&self) -> [u64; 2] {
        for (_, meter) in &self.directions {
            for (number, (class, max)) in meter.classes.iter().zip(&meter.max).enumerate() {
                let Some(q) = class else { continue };
                assert!(q.peak() <= *max, "class c{number} is not paced precisely: {} of {max}", q.peak());
            }
        }
        let sum = |what: fn(&Meter) -> u64| self.directions.iter().map(|(_, meter)| what(meter)).sum();
        [sum(|meter| meter.frames), sum(|meter| meter.gaps)]
    }
}

impl Observer for Meters {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        let Some((_, meter)) = self.directions.iter_mut().find(|(own, _)| *own == wire) else { return };
        if GapFrameKind::of(packet).is_some() {
            meter.gaps += 1;
            return;
        }
        let Some(place) = meter.classifier.classify(packet) else { return };
        let Some(Some(q)) = meter.classes.get_mut(place) else { return };
        meter.frames += 1;
        // Frames have different lengths: pacing is about when they begin.
        let took = meter.link.time_for(wire_len(packet.len())) + meter.delay;
        q.arrive(now.since(Instant::ZERO + took).as_nanos(), packet.len().max(ByteCount::new(60)) + FCS);
    }
}
