//! The properties of hosts: several NICs, processors.

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
    let mut told = s.hosts.iter().filter(|(_, host)| host.multi_nic.is_some() || host.processor.is_some());
    if told.clone().next().is_none() {
        return;
    }
    page.gap();
    page.item(0, "Hosts");
    told.by_ref().for_each(|(name, host)| write_host(page, s, name, host));
}

fn write_host(page: &mut ExplainPage, s: &Scenario, name: &str, host: &HostSpec) {
    if let Some(config) = &host.multi_nic {
        let cards = s.cards(name);
        let mut total = 0_u64;
        let mut words = Vec::new();
        for (i, card) in cards.iter().enumerate() {
            let (Some(rate), Some(d)) = (s.card_rate(*card), s.direction(*card)) else { continue };
            let link = &s.links[card.link].name;
            words.push(format!("nic{i} ({link}, to {}) {rate}", d.to));
            total = total.saturating_add(rate.bits_per_sec());
        }
        page.item(
            1,
            &format!(
                "{name} has {} as one: {}. Together they send {}.",
                if words.len() == 1 {
                    "1 network card".to_owned()
                } else {
                    format!("{} network cards", words.len())
                },
                words.join(", "),
                rate(Rate::from_bits_per_sec(total))
            ),
        );
        page.item(2, &order(config));
        page.item(2, &neighbours(config));
    }
    if let Some(p) = &host.processor {
        let p = p.config();
        let (data, ack) =
            (p.per_byte * FULL.get(), p.per_byte * (ETHERNET_HEADER + ByteCount::new(52)).get());
        let (send, receive, receive_ack) = (p.send + data, p.receive + data, p.receive_ack + ack);
        page.item(
            1,
            &format!(
                "The processor of {name} works on one frame at a time: {} for a full frame that is sent, {} for one \
                 that is received, {} for a received ACK. It sends {} of full frames at most, {} if every other one is \
                 acknowledged.",
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
    let shares = config.ratio.as_ref().map_or("what each way carries".to_owned(), ToString::to_string);
    match config.order {
        OrderKind::Earliest => {
            "A card that falls idle takes the frame that arrives in its turn there (earliest).".to_owned()
        }
        OrderKind::Skip => {
            let by = config.skip.map_or("as many frames as rates and hops ask for".to_owned(), |skip| {
                if skip == 1 { "1 frame".to_owned() } else { format!("{skip} frames") }
            });
            format!(
                "Cards send by shares: {shares}. Frames for narrow cards are sent ahead by {by}; none is held for more than {} \
                 (skip).",
                config.hold
            )
        }
        OrderKind::RoundRobin => format!("Cards take turns by shares: {shares} (round-robin)."),
        OrderKind::FlowHash => "Each flow keeps to one card (flow-hash): it has no more than that.".to_owned(),
        OrderKind::MinRtt => "The way with the shortest round trip that has room is taken (min-rtt).".to_owned(),
        OrderKind::Blest => {
            "The shortest way that has room is taken, a slow one only if it does not block the window (blest)."
                .to_owned()
        }
        OrderKind::Ecf => {
            "The way by which a frame arrives first is taken or waited for (ecf).".to_owned()
        }
    }
}

fn neighbours(config: &MultiNicConfig) -> String {
    let known = match config.extended_arp {
        true => "Neighbours are told of all cards by extended ARP",
        false => "Neighbours are not told of its cards: it uses the first alone",
    };
    let probed = match config.probe {
        true => format!("; ways are probed every {}", config.probe_interval),
        false => "; ways are not probed".to_owned(),
    };
    let ordered = config.resequence.map_or(String::new(), |r| {
        let asks = if config.repairs() { ", and asked for again if it is missing" } else { "" };
        format!("; what it receives is put in order, for at most {} and {}{asks}", r.time, r.bytes)
    });
    format!("{known}{probed}{ordered}.")
}
