//! Words for boxes that look into TCP segments.

use super::super::middlebox::{AckThinningSpec, MiddleboxSpec, StripOnSpec, StripOptions};
use super::super::spec::ResolvedDirection;

/// What a middlebox does; none if there is none.
pub(super) fn middlebox(d: &ResolvedDirection<'_>) -> Option<String> {
    let MiddleboxSpec { strip_options, strip_options_on, clear_reserved, clear_ae, drop_without_ack } =
        d.middlebox?;
    let mut parts = Vec::new();
    if let Some(options) = strip_options {
        let which = match options {
            StripOptions::Unknown => "all options but MSS, window scale, SACK and timestamps".to_owned(),
            StripOptions::Kinds(kinds) => {
                let kinds: Vec<String> = kinds.iter().map(u8::to_string).collect();
                format!("options of {} {}", if kinds.len() == 1 { "kind" } else { "kinds" }, kinds.join(", "))
            }
        };
        let from = match strip_options_on.unwrap_or_default() {
            StripOnSpec::Syn => "segments with SYN",
            StripOnSpec::Data => "segments without SYN",
            StripOnSpec::All => "all segments",
        };
        parts.push(format!("strips {which} from {from}"));
    }
    match (clear_reserved, clear_ae) {
        (true, true) => parts.push("clears the reserved bits and AE".to_owned()),
        (true, false) => parts.push("clears the reserved bits".to_owned()),
        (false, true) => parts.push("clears AE".to_owned()),
        (false, false) => {}
    }
    if *drop_without_ack {
        parts.push("drops segments without ACK, SYN and RST".to_owned());
    }
    Some(format!("Before it a middlebox: it {}.", parts.join("; it ")))
}

/// How ACKs are thinned; none if they are not.
pub(super) fn ack_thinning(d: &ResolvedDirection<'_>) -> Option<String> {
    let AckThinningSpec { every, hold } = d.ack_thinning?;
    Some(format!(
        "Before it ACKs are thinned: of {every} pure ACKs of a connection that come within {hold} the newest goes on. A \
         round trip whose ACK comes back this way takes up to {hold} longer, and windows open in larger steps."
    ))
}
