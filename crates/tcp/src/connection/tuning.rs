//! What can be changed while a connection lives.

use super::Connection;
use crate::config::{Config, KeepAlive};
use farpace_units::{ByteCount, Rate, Span};

impl Connection {
    /// What it was made with, and what was changed since.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Bytes in order that wait to be read.
    pub fn readable(&self) -> ByteCount {
        self.reassembly.readable()
    }
    /// Bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> ByteCount {
        self.buffer.len()
    }
    /// Less than a full segment waits while anything is outstanding (RFC 9293 §3.7.4), or not.
    pub fn set_nagle(&mut self, nagle: bool) {
        self.config.nagle = nagle;
    }
    /// Probing of an idle connection (RFC 9293 §3.8.4), from now on.
    pub fn set_keep_alive(&mut self, keep_alive: Option<KeepAlive>) {
        self.config.keep_alive = keep_alive;
    }
    /// How long what was written may go without progress (RFC 5482), from now on.
    pub fn set_user_timeout(&mut self, user_timeout: Option<Span>) {
        self.config.user_timeout = user_timeout;
    }
    /// How long FIN-WAIT-2 lasts once the program has closed both directions, from now on.
    pub fn set_fin_timeout(&mut self, fin_timeout: Span) {
        self.config.fin_timeout = fin_timeout;
    }
    /// Payload leaves at this rate at most, whatever congestion control says.
    pub fn set_rate_cap(&mut self, cap: Option<Rate>) {
        self.pacer.set_cap(cap);
        self.set_pace();
    }
}
