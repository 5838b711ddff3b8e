//! The header around what is sent: acknowledgment, window, options, and what the trace says of it.

use super::log::LogEntry;
use super::{Connection, ConnectionState};
use crate::segment::{OutgoingSegment, Segment};
use bytes::Bytes;
use farpace_events::{Cause, RecordDirection};
use farpace_units::{ByteCount, Instant, Seq};
use farpace_wire::tcp::{
    AckControl, MAX_OPTIONS_LEN, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};

impl Connection {
    /// Builds the header around a payload; every segment carries the latest acknowledgment.
    pub(super) fn emit(
        &mut self,
        now: Instant,
        out: &mut Vec<OutgoingSegment>,
        seq: Seq,
        flags: TcpFlags,
        payload: Bytes,
        cause: Cause,
    ) {
        let syn = flags.contains(TcpFlags::SYN);
        let has_ack = flags.contains(TcpFlags::ACK);
        // Linux answers a SYN that crosses its own with the options of its own.
        let offer = syn && (!has_ack || (self.config.is_linux() && self.opened_actively()));
        let timestamps = if offer { self.config.timestamps } else { self.ts.enabled };
        let sack = if offer { self.config.sack } else { self.sack };
        let scale = self.config.window_scale && (offer || self.rcv.wscale > 0 || self.snd.wscale > 0);
        let mut options = TcpOptions {
            mss: syn.then_some(self.config.mss),
            window_scale: (syn && scale).then_some(if offer {
                self.rcv.wscale.max(self.linux.offered_scale)
            } else {
                self.rcv.wscale
            }),
            sack_permitted: syn && sack,
            timestamps: (timestamps && (has_ack || syn || !self.config.is_linux())).then(|| Timestamps {
                value: self.timestamp(self.linux.stamp(now)),
                echo: if has_ack { self.ts.recent } else { 0 },
            }),
            ack_control: if syn { self.ack_control_of_syn(offer) } else { AckControl::default() },
            sack: SackBlocks::new(),
        };
        if let Some(stamps) = options.timestamps.filter(|_| syn && has_ack) {
            let first = self.linux.syn_stamps.map_or(stamps.value, |(first, _)| first);
            self.linux.syn_stamps = Some((first, stamps.value));
        }
        let fresh = !payload.is_empty() && matches!(cause, Cause::NewData | Cause::MtuProbe);
        let (mut flags, mut urgent) = (flags, 0);
        if has_ack && !syn && cause != Cause::Reset {
            let mut complete = self.put_ack_control(now, &mut flags, &mut options.ack_control, payload.len());
            if let Some(shared) = &self.linux.shared {
                options.sack = shared.0.clone();
            } else if self.sack && self.rcv.sack_blocks.any() {
                let room = self.sack_room(payload.len(), &options.ack_control);
                complete &= room > 0;
                if room > 0 {
                    options.sack = self.rcv.sack_blocks.take_blocks(room);
                }
            }
            self.ack.last_sent = self.rcv.nxt;
            self.ack.joined = false;
            if complete {
                let owed = self.ack.due.is_some() || self.ack.deadline.is_some();
                self.ack.due = None;
                self.ack.deadline = None;
                self.ack.policy.on_ack_sent(owed);
            }
            let pointer = match &self.linux.shared {
                Some(shared) => shared.1,
                None => self.urgent_pointer(seq),
            };
            if let Some(pointer) = pointer {
                flags = flags.with(TcpFlags::URG);
                urgent = pointer;
            }
            let plain = payload.is_empty() && options.sack.is_empty();
            flags = flags.with(self.ecn.flags(fresh, plain));
        }
        let ecn = self.ecn.codepoint(fresh && cause == Cause::NewData);
        let bare_reset = cause == Cause::Reset && !has_ack && self.config.is_linux();
        let window = if bare_reset { 0 } else { self.announce(syn) };
        let header = TcpHeader {
            src_port: self.ports.local,
            dst_port: self.ports.remote,
            seq,
            ack: if has_ack { self.rcv.nxt } else { Seq::default() },
            flags,
            window,
            urgent,
            options,
        };
        self.counters.sent[cause as usize] += 1;
        self.use_queue(payload.len());
        if !payload.is_empty() {
            self.counters.data_segments_sent += 1;
            self.counters.bytes_sent += ByteCount::of_len(payload.len());
            if cause.is_retransmission() {
                self.counters.bytes_sent_again += ByteCount::of_len(payload.len());
            }
        }
        if !payload.is_empty() && cause != Cause::AckProbe {
            self.ack.policy.on_data_sent(now);
        }
        if !payload.is_empty() || syn {
            self.snd.last_sent = now;
        }
        if self.log.is_some() {
            let entry = LogEntry {
                direction: RecordDirection::Sent,
                seq,
                len: payload.len(),
                ack: header.ack,
                sack: &header.options.sack,
                cause: Some(cause),
            };
            self.note(now, &entry);
        }
        out.push(OutgoingSegment {
            segment: Segment { header, payload, ecn, segment_size: 0 },
            cause,
            number: None,
        });
    }

    /// A reset without options that acknowledges `ack`, as that of a host which knows no such connection.
    pub(super) fn emit_as_stranger(&mut self, out: &mut Vec<OutgoingSegment>, ack: Seq) {
        let header = TcpHeader {
            src_port: self.ports.local,
            dst_port: self.ports.remote,
            ack,
            flags: TcpFlags::RST.with(TcpFlags::ACK),
            ..TcpHeader::default()
        };
        self.counters.sent[Cause::Reset as usize] += 1;
        let segment = Segment { header, ..Segment::default() };
        out.push(OutgoingSegment { segment, cause: Cause::Reset, number: None });
    }

    /// SACK blocks that fit beside `payload` bytes: options come off the segment, not on top of it (RFC 6691
    /// §2). What does not fit goes with an acknowledgment of its own.
    fn sack_room(&self, payload: usize, control: &AckControl) -> usize {
        let control = if control.is_empty() { 0 } else { control.to_wire().len() };
        let others = control + self.ts.option_bytes() as usize;
        let most = (MAX_OPTIONS_LEN - others - 4) / 8;
        if payload == 0 {
            return most;
        }
        ((self.snd.mss as usize).saturating_sub(payload + control + 4) / 8).min(most)
    }

    /// The window field, and with it the right edge that is promised.
    pub(super) fn announce(&mut self, syn: bool) -> u16 {
        if self.state == ConnectionState::SynSent || (syn && self.state == ConnectionState::Closed) {
            return self.first_window().min(u32::from(u16::MAX)) as u16;
        }
        if self.rcv.shortage.closed && !syn {
            return 0; // what was promised is still taken if there is memory for it
        }
        if self.is_request() && !syn {
            // Linux answers for what it keeps of a SYN, and rounds nothing.
            let window = self.rcv.adv.bytes_since(self.rcv.nxt) >> self.rcv.wscale;
            return window.min(u32::from(u16::MAX)) as u16;
        }
        if let Some(units) = self.announce_memory() {
            return units;
        }
        let free = self.free();
        let edge = (self.rcv.nxt + free).later(self.rcv.adv);
        // Receiver's silly-window avoidance (RFC 9293 §3.8.6.2.2): the edge moves by useful steps only.
        let step = self.snd.mss.min(self.rcv.window.size() / 2);
        if edge.bytes_since(self.rcv.adv) >= step {
            self.rcv.adv = edge;
        }
        let window = self.rcv.adv.bytes_since(self.rcv.nxt);
        if syn {
            return window.min(u32::from(u16::MAX)) as u16;
        }
        // The field counts units of the scale. A part of one is announced as a whole one, so that the edge
        // never moves back, and so that a small window is not announced as none; but no more than one unit
        // beyond the buffer.
        let (scale, unit) = (self.rcv.wscale, 1u32 << self.rcv.wscale);
        let mut units = window.saturating_add(unit - 1) >> scale;
        if units << scale > free.saturating_add(unit - 1).max(window) {
            units -= 1;
        }
        let units = units.min(u32::from(u16::MAX));
        self.rcv.adv = (self.rcv.nxt + (units << scale)).later(self.rcv.adv);
        units as u16
    }

    /// Reading made so much room that the peer should hear of it at once.
    pub(super) fn window_opened(&self) -> bool {
        let was = self.rcv.adv.bytes_since(self.rcv.nxt);
        let gain = self.right_edge().bytes_since(self.rcv.adv);
        let wide = gain >= self.rcv.window.size() / 2;
        let reopened = was < self.snd.mss && gain >= self.snd.mss;
        // After its FIN the peer sends nothing that would need room. It may even be gone, and would answer
        // with a reset.
        (wide || reopened) && self.state.receives()
    }
}
