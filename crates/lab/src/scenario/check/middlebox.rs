//! Rules of `middlebox` and `ack_thinning`: each has to do something.

use super::super::document::DocumentStep;
use super::super::middlebox::{AckThinningSpec, MiddleboxSpec, StripOptions};
use super::Checker;

impl Checker<'_> {
    pub(super) fn middlebox(&mut self, at: &[DocumentStep], middlebox: &MiddleboxSpec) {
        let below = |key: &str| [at, &[DocumentStep::from(key)]].concat();
        // Every field is named, so that a new one cannot be forgotten.
        let MiddleboxSpec { strip_options, strip_options_on, clear_reserved, clear_ae, drop_without_ack } =
            middlebox;
        match strip_options {
            Some(StripOptions::Kinds(kinds)) if kinds.is_empty() => {
                self.value(below("strip_options"), "an empty list strips nothing")
                    .hint("leave it out, or name kinds: [254]");
            }
            None if strip_options_on.is_some() => {
                self.key(below("strip_options_on"), "nothing is stripped")
                    .hint("say what: strip_options = \"unknown\"");
            }
            None if !clear_reserved && !clear_ae && !drop_without_ack => {
                self.value(at.to_vec(), "this middlebox does nothing")
                    .hint("give it strip_options, clear_reserved, clear_ae or drop_without_ack");
            }
            _ => {}
        }
    }

    pub(super) fn ack_thinning(&mut self, at: &[DocumentStep], thinning: &AckThinningSpec) {
        let below = |key: &str| [at, &[DocumentStep::from(key)]].concat();
        let AckThinningSpec { every, hold } = thinning;
        if *every < 2 {
            self.value(below("every"), format!("one of {every} ACKs thins nothing"))
                .hint("it must be at least 2; leave `ack_thinning` out for none");
        }
        if hold.is_zero() {
            self.value(below("hold"), "held for no time, no ACK meets another").hint("5 ms is the default");
        }
    }
}
