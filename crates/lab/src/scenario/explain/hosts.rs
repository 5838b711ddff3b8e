//! The properties of hosts: several NICs, processors, stalls, transmit queues.

use super::super::figures::ETHERNET_HEADER;
use super::super::number::{rate, time};
use super::super::spec::{HostSpec, Scenario};
use super::page::ExplainPage;
use farpace_link::multi_nic::{MultiNicConfig, OrderKind};
use farpace_units::{ByteCount, Rate, Span};

/// A full frame without its overhead.
const FULL: ByteCount = ByteCount::new(1_514);

/// The hosts with properties worth mentioning.
pub(super) fn write(page: &mut ExplainPage, s: &Scenario) {
    let has_any = |host: &HostSpec| {
        host.multi_nic.is_some() || host.processor.is_some() || host.transmit_queue || !host.stalls.is_empty()
    };
    let mut listed = s.hosts.iter().filter(|(_, host)| has_any(host));
    if listed.clone().next().is_none() {
        return;
    }
    page.gap();
    page.item(0, "Hosts");
    listed.by_ref().for_each(|(name, host)| write_host(page, s, name, host));
}

fn write_host(page: &mut ExplainPage, s: &Scenario, name: &str, host: &HostSpec) {
    if let Some(config) = &host.multi_nic {
        let nics = s.nics(name);
        let mut total = 0_u64;
        let mut words = Vec::new();
        for (i, nic) in nics.iter().enumerate() {
            let (Some(rate), Some(d)) = (s.nic_rate(*nic), s.direction(*nic)) else { continue };
            let link = &s.links[nic.link].name;
            words.push(format!("nic{i} ({link}, to {}) {rate}", d.to));
            total = total.saturating_add(rate.bits_per_sec());
        }
        page.item(
            1,
            &format!(
                "{name} has {} as one: {}. Together they send {}.",
                if words.len() == 1 { "1 NIC".to_owned() } else { format!("{} NICs", words.len()) },
                words.join(", "),
                rate(Rate::from_bits_per_sec(total))
            ),
        );
        page.item(2, &order(config));
        page.item(2, &neighbours(config));
    }
    if host.transmit_queue {
        let words = "asks the queue of its NIC for room: a segment that finds it full is kept, not lost.";
        page.item(1, &format!("TCP of {name} {words}"));
    }
    if !host.stalls.is_empty() {
        let still = host.stalls.iter().fold(Span::ZERO, |t, stall| t + stall.lasts);
        let stalls = match host.stalls.len() {
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        page.item(1, &format!("{name} stands still {stalls}, {} in all: packets wait.", time(still)));
    }
    if let Some(p) = &host.processor {
        let p = p.config();
        let (data, ack) =
            (p.per_byte * FULL.get(), p.per_byte * (ETHERNET_HEADER + ByteCount::new(52)).get());
        let (send, receive, receive_ack) = (p.send + data, p.receive + data, p.receive_ack + ack);
        page.item(
            1,
            &format!(
                "The processor of {name} works on one frame at a time: {} for a full frame that is sent, \
                 {} for one that is received, {} for a received ACK. It sends {} of full frames at most, \
                 {} if every other one is acknowledged.",
                time(send),
                time(receive),
                time(receive_ack),
                at_most(send),
                at_most(send + receive_ack / 2)
            ),
        );
    }
}

/// The rate of full frames of which each takes `span`.
fn at_most(span: Span) -> String {
    if span.is_zero() { "any rate".to_owned() } else { rate(Rate::of(FULL, span)) }
}

fn order(config: &MultiNicConfig) -> String {
    let shares = config.ratio.as_ref().map_or("the rates of the paths".to_owned(), ToString::to_string);
    match config.order {
        OrderKind::Earliest => {
            "An idle NIC takes the frame that arrives in order there (earliest).".to_owned()
        }
        OrderKind::Skip => {
            let by = config.skip.map_or(
                "a number of frames that follows from rates and hops".to_owned(),
                |skip| {
                    if skip == 1 { "1 frame".to_owned() } else { format!("{skip} frames") }
                },
            );
            format!(
                "NICs send by shares: {shares}. Frames for narrow NICs are sent ahead by {by}; none waits \
                 for more than {} (skip).",
                config.hold
            )
        }
        OrderKind::RoundRobin => format!("NICs send round robin by shares: {shares} (round-robin)."),
        OrderKind::FlowHash => "Each flow uses one NIC only (flow-hash).".to_owned(),
        OrderKind::MinRtt => {
            "A frame takes the path with the shortest round trip that has room (min-rtt).".to_owned()
        }
        OrderKind::Blest => {
            "A frame takes the shortest path that has room, a slow one only if it does not block the window \
             (blest)."
                .to_owned()
        }
        OrderKind::Ecf => {
            "A frame takes the path by which it arrives first, or waits for it (ecf).".to_owned()
        }
    }
}

fn neighbours(config: &MultiNicConfig) -> String {
    let known = match config.extended_arp {
        true => "It announces all NICs to its neighbours by extended ARP",
        false => "It does not announce its NICs and uses only the first",
    };
    let probed = match config.probe {
        true => format!("; paths are probed every {}", config.probe_interval),
        false => "; paths are not probed".to_owned(),
    };
    let ordered = config.resequence.map_or(String::new(), |r| {
        let requests = if config.repairs() { ", and missing ones are requested" } else { "" };
        let time = match (r.time, config.probe) {
            (None, true) => "for as long as the round trips of the paths require, at most 500 ms,".to_owned(),
            (_, probe) => format!("for at most {}", r.initial_time(probe)),
        };
        format!("; received frames are resequenced, {time} and {}{requests}", r.bytes)
    });
    format!("{known}{probed}{ordered}.")
}
