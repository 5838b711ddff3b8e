//! The send sequence space (RFC 9293 §3.3.1) and the bytes that stand in it.

use crate::config::Config;
use crate::send_buffer::SendBuffer;
use bytes::Bytes;
use farpace_units::{Instant, Seq};

/// What is known of the direction from here to the peer.
pub(super) struct SendSpace {
    /// ISS.
    pub iss: Seq,
    /// SND.UNA.
    pub una: Seq,
    /// SND.NXT.
    pub nxt: Seq,
    /// SND.WND, bytes.
    pub wnd: u32,
    /// SND.WL1.
    pub wl1: Seq,
    /// The largest window that the peer has announced (MAX.SND.WND), bytes.
    pub max_wnd: u32,
    /// Snd.Wind.Shift of RFC 7323.
    pub wscale: u8,
    /// Payload of a full segment: what both ends and the path allow, less our options.
    pub mss: u32,
    /// Stream offset of SND.UNA.
    pub una_offset: u64,
    pub buffer: SendBuffer,
    /// Something was not taken because too much was unsent.
    pub unsent_refused: bool,
    /// The program has closed the sending side.
    pub fin_queued: bool,
    /// Sequence number of our FIN, once it was sent.
    pub fin_seq: Option<Seq>,
    /// SND.NXT when the congestion window last held data back.
    pub limited_at: Option<Seq>,
    /// When a segment with data was last sent.
    pub last_sent: Instant,
}

impl SendSpace {
    /// An empty space that begins at `iss`.
    pub fn new(now: Instant, config: &Config, iss: Seq) -> Self {
        SendSpace {
            iss,
            una: iss,
            nxt: iss,
            wnd: 0,
            wl1: Seq::default(),
            max_wnd: 0,
            wscale: 0,
            mss: u32::from(config.mss),
            una_offset: 0,
            buffer: SendBuffer::new(config.send_buffer.initial),
            unsent_refused: false,
            fin_queued: false,
            fin_seq: None,
            limited_at: None,
            last_sent: now,
        }
    }

    /// Stream offset of SND.NXT.
    pub fn sent_offset(&self) -> u64 {
        self.una_offset + u64::from(self.nxt.bytes_since(self.una))
    }

    /// Bytes written and not sent yet. Not to be asked between an advance of SND.UNA and the release of what
    /// it acknowledges.
    pub fn unsent(&self) -> u64 {
        self.buffer.end().saturating_sub(self.sent_offset())
    }

    /// Data or a FIN waits to be sent for the first time.
    pub fn has_unsent(&self) -> bool {
        self.fin_seq.is_none() && (self.unsent() > 0 || self.fin_queued)
    }

    /// Payload of a sequence range at or after SND.UNA, and whether it ends with our FIN.
    pub fn stored(&mut self, seq: Seq, len: u32) -> (bool, Bytes) {
        let fin = self.fin_seq.is_some_and(|f| seq + len == f + 1);
        let start = self.una_offset + u64::from(seq.bytes_since(self.una));
        (fin, self.buffer.slice(start, (len - u32::from(fin)) as usize))
    }

    /// Bytes of the peer's window that nothing was sent into (RFC 9293 §3.8.6.2.1).
    pub fn usable_window(&self) -> u32 {
        (self.una + self.wnd).bytes_since(self.nxt)
    }

    /// The next new segment lies in the peer's window.
    pub fn next_in_window(&self) -> bool {
        let len = self.unsent().min(u64::from(self.mss)) as u32;
        let fin = u32::from(self.fin_queued && u64::from(len) == self.unsent());
        self.has_unsent() && len + fin <= self.usable_window()
    }

    /// Nothing outstanding, and the peer's window is too small for what should be sent next.
    pub fn window_blocks(&self) -> bool {
        let (usable, unsent) = (self.usable_window(), self.unsent());
        usable == 0 || (u64::from(usable) < unsent.min(u64::from(self.mss)) && usable < self.max_wnd / 2)
    }

    /// Bytes written, and the FIN, that are not acknowledged.
    pub fn outstanding_bytes(&self) -> u64 {
        let fin = self.fin_queued && self.fin_seq.is_none_or(|fin| !self.una.after(fin));
        self.buffer.len().get() + u64::from(fin)
    }

    /// SND.UNA has moved from there: what it acknowledges leaves the buffer.
    pub fn release_acknowledged(&mut self, prior_snd_una: Seq) {
        let mut bytes = u64::from(self.una.bytes_since(prior_snd_una));
        // The FIN has a number but no byte.
        if self.fin_seq.is_some_and(|fin| self.una.after(fin)) {
            bytes -= 1;
        }
        self.una_offset += bytes;
        self.buffer.release(self.una_offset);
    }
}
