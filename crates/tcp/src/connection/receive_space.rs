//! The receive sequence space (RFC 9293 §3.3.1), the window over it, and what has arrived.

use super::pressure::Shortage;
use crate::config::Config;
use crate::receive::{LinuxMemory, ReceiveWindow, SackBlockList, StreamReassembly};
use farpace_units::{ByteCount, Seq};

/// What is known of the direction from the peer to here.
pub(super) struct ReceiveSpace {
    /// IRS.
    pub irs: Seq,
    /// RCV.NXT.
    pub nxt: Seq,
    /// Right edge of the window that was announced last.
    pub adv: Seq,
    /// Rcv.Wind.Shift of RFC 7323.
    pub wscale: u8,
    pub window: ReceiveWindow,
    /// The receive buffer as Linux counts it, where it is autotuned.
    pub memory: Option<Box<LinuxMemory>>,
    /// The program reports what it has read; what is taken from here is not counted as read.
    pub reads_are_reported: bool,
    pub shortage: Shortage,
    pub reassembly: StreamReassembly,
    pub sack_blocks: SackBlockList,
    /// Sequence number of the peer's FIN, once it is known.
    pub peer_fin: Option<Seq>,
    /// The program reads no more.
    pub read_shutdown: bool,
    /// The program has shut the reading side (`SHUT_RD`).
    pub shut: bool,
}

impl ReceiveSpace {
    /// An empty space with the first window of `config`. The peer's SYN says where it begins.
    pub fn new(config: &Config) -> Self {
        let opens = config.delayed_ack.is_modern_linux();
        let mss = u32::from(config.mss);
        let mut window = ReceiveWindow::new(config.receive_buffer, config.window_growth, opens, mss);
        let wscale = if config.window_scale { window_shift(window.max()) } else { 0 };
        if !config.window_scale {
            window.limit(u32::from(u16::MAX));
        }
        ReceiveSpace {
            irs: Seq::default(),
            nxt: Seq::default(),
            adv: Seq::default(),
            wscale,
            reassembly: StreamReassembly::new(ByteCount::new(u64::from(window.size()))),
            window,
            memory: None,
            reads_are_reported: false,
            shortage: Shortage::default(),
            sack_blocks: SackBlockList::default(),
            peer_fin: None,
            read_shutdown: false,
            shut: false,
        }
    }

    /// Where there is no whole connection Linux looks at the window alone (tcp_in_window).
    pub fn lies_in_window(&self, seq: Seq, len: u32, window: u32) -> bool {
        seq == self.nxt
            || ((seq + len).after(self.nxt) && seq.before(self.nxt + window))
            || (seq == self.nxt + window && len == 0)
    }

    /// `rcv_ssthresh`, `rcv_space` and `rcv_wnd` of TCP_INFO.
    pub fn tcp_info_memory(&self) -> (u32, u32, u32) {
        let size = self.window.size();
        self.memory.as_ref().map_or((size, size, self.adv.bytes_since(self.nxt)), |memory| memory.told())
    }

    /// Bytes that have arrived and were not read, in order or beyond a hole.
    pub fn received(&self) -> u64 {
        self.reassembly.readable().get() + self.reassembly.waiting().get()
    }
}

/// The least shift with which 16 bits can announce `buffer` bytes.
fn window_shift(buffer: u32) -> u8 {
    (0..14).find(|s| buffer >> s <= u32::from(u16::MAX)).unwrap_or(14)
}
