//! What several network cards say to each other: lists of cards behind address resolution, and probes.

use crate::nics::{cards, list_json};
use farpace_link::multi_nic::probe::{Message, Probe, Traffic};
use farpace_wire::icmp::neighbour_cards;
use farpace_wire::{Extension, Packet};
use serde_json::{Value, json};

/// What is said, in words that follow those for the packet, and as a key of JSON with its value. None for any other packet.
pub fn said(packet: &Packet) -> Option<(String, &'static str, Value)> {
    if let Some(message) = Message::of(packet) {
        return Some(match message {
            Ok(message) => probe(&message),
            // Somebody else's, perhaps: the EtherType is for experiments of all kinds.
            Err(why) => (format!("({why})"), "probe", Value::Null),
        });
    }
    let list =
        if packet.arp().is_ok() { Extension::parse_arp(packet.payload()) } else { neighbour_cards(packet) };
    match list {
        Ok(list) => list.map(|list| {
            let targets = if list.targets.is_empty() {
                String::new()
            } else {
                format!(", knows {}", list.targets.len())
            };
            let text =
                format!("cards: {}{targets}, generation {}, {}", cards(&list), list.generation, list.flags);
            (text, "cards", list_json(&list))
        }),
        Err(why) => Some((format!("bad list of cards: {why}"), "bad_cards", json!(why.to_string()))),
    }
}

fn probe(message: &Message) -> (String, &'static str, Value) {
    let traffic = |Traffic { frames, bytes }: Traffic| json!({ "frames": frames, "line_bytes": bytes.get() });
    let common = |kind: &str, Probe { lane, seq, sent_at, sent, rtt }: &Probe| {
        json!({
            "kind": kind, "card": lane.0, "number": seq, "sent_at_ns": sent_at.as_nanos(), "sent": traffic(*sent),
            "rtt_ns": (!rtt.is_zero()).then_some(rtt.as_nanos()),
        })
    };
    match message {
        Message::Probe(probe) => {
            let text =
                format!("probe {} of card {}, {} frames sent", probe.seq, probe.lane.0, probe.sent.frames);
            (text, "probe", common("probe", probe))
        }
        Message::Reply(reply) => {
            let (probe, places) = (&reply.probe, &reply.places);
            let text = format!(
                "answer to probe {} of card {}, {} frames sent, {} received, {} late",
                probe.seq, probe.lane.0, probe.sent.frames, reply.received.frames, places.late
            );
            let mut value = common("reply", probe);
            value["arrived_at_ns"] = json!(reply.arrived_at.as_nanos());
            value["received"] = traffic(reply.received);
            value["late"] = json!(places.late);
            value["harmful"] = json!(places.harmful);
            value["overtook"] = json!(places.overtook);
            (text, "probe", value)
        }
    }
}
