//! A socket on one queue of an interface, with memory and rings.

use super::memory::XdpMemory;
use super::ring::XdpRing;
use super::sys;
use nix::errno::Errno;
use nix::libc;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Entries per ring, and chunks per direction.
const ENTRIES: u32 = 2048;

/// One queue.
pub(super) struct XdpQueue {
    pub socket: OwnedFd,
    memory: XdpMemory,
    chunk: u32,
    arrived: XdpRing<libc::xdp_desc>,
    fill: XdpRing<u64>,
    outgoing: XdpRing<libc::xdp_desc>,
    completed: XdpRing<u64>,
    /// Chunks for transmission that the system does not own.
    free: Vec<u64>,
    returned: Vec<u64>,
}

impl XdpQueue {
    /// Binds a socket to this queue with these bind flags.
    pub fn open(index: u32, queue: u32, chunk: u32, flags: u16) -> io::Result<Self> {
        let socket = sys::socket()?;
        let fd = socket.as_fd();
        let memory = XdpMemory::new(2 * ENTRIES as usize * chunk as usize)?;
        sys::register(fd, &memory, chunk)?;
        for ring in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            sys::ring(fd, ring, ENTRIES)?;
        }
        let at = sys::offsets(fd)?;
        let arrived = XdpRing::map(fd, &at.rx, ENTRIES, libc::XDP_PGOFF_RX_RING)?;
        let outgoing = XdpRing::map(fd, &at.tx, ENTRIES, libc::XDP_PGOFF_TX_RING)?;
        let mut fill = XdpRing::map(fd, &at.fr, ENTRIES, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t)?;
        let completed =
            XdpRing::map(fd, &at.cr, ENTRIES, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t)?;
        let chunks = |from: u32| (from..from + ENTRIES).map(|n| u64::from(n) * u64::from(chunk)).collect();
        let incoming: Vec<u64> = chunks(0);
        fill.put(&incoming);
        sys::bind(fd, index, queue, flags | libc::XDP_USE_NEED_WAKEUP)?;
        let free = chunks(ENTRIES);
        Ok(XdpQueue { socket, memory, chunk, arrived, fill, outgoing, completed, free, returned: Vec::new() })
    }

    /// Receives up to `max` frames as bytes; none for an invalid descriptor.
    pub fn receive(&mut self, max: usize, mut each: impl FnMut(Option<Vec<u8>>)) -> usize {
        let (memory, returned, chunk) = (&self.memory, &mut self.returned, u64::from(self.chunk));
        let count = self.arrived.take(max, |frame| {
            let mut bytes = Vec::new();
            let whole = usize::try_from(frame.addr)
                .is_ok_and(|at| frame.len <= chunk as u32 && memory.read(at, frame.len as usize, &mut bytes));
            returned.push(frame.addr / chunk * chunk);
            each(whole.then_some(bytes));
        });
        let put = self.fill.put(&self.returned);
        self.returned.drain(..put);
        count
    }

    /// True if the system requires a call to continue receiving.
    pub fn fill_wants_call(&self) -> bool {
        self.fill.wants_call()
    }

    /// Number of frames that can be sent now.
    pub fn room(&mut self) -> usize {
        let free = &mut self.free;
        let (min, max) = (u64::from(ENTRIES) * u64::from(self.chunk), self.memory.len() as u64);
        self.completed.take(usize::MAX, |chunk| {
            // Accept only chunks that can have been passed to the system.
            if (min..max).contains(&chunk) && free.len() < ENTRIES as usize {
                free.push(chunk);
            }
        });
        self.free.len().min(self.outgoing.room())
    }

    /// Maximum length of a frame, in bytes.
    pub fn longest(&self) -> usize {
        self.chunk as usize
    }

    /// Copies a frame to shared memory. False: no chunk is free.
    pub fn push(&mut self, frame: &[u8], batch: &mut Vec<libc::xdp_desc>) -> bool {
        let Some(addr) = self.free.pop() else { return false };
        let fits = usize::try_from(addr).is_ok_and(|at| self.memory.write(at, frame));
        if !fits {
            self.free.push(addr);
            return false;
        }
        batch.push(libc::xdp_desc { addr, len: frame.len() as u32, options: 0 });
        true
    }

    /// Sends a batch of [pushed](Queue::push) frames, at most as many as [`room`](XdpQueue::room).
    pub fn commit(&mut self, batch: &[libc::xdp_desc]) {
        let put = self.outgoing.put(batch);
        self.free.extend(batch.iter().skip(put).map(|frame| frame.addr));
    }

    /// Makes the system send queued frames. Returns the number of calls, and whether all frames were taken.
    pub fn kick(&mut self) -> (u64, Result<bool, Errno>) {
        let mut calls = 0;
        while self.outgoing.waiting() > 0 && self.outgoing.wants_call() {
            let before = self.outgoing.waiting();
            calls += 1;
            match sys::kick(self.socket.as_fd()) {
                // A call takes only some frames; repeat it.
                Ok(()) | Err(Errno::EAGAIN) if self.outgoing.waiting() < before => {}
                Err(Errno::EINTR) => {}
                // The queue behind is full, or the driver is busy.
                Ok(()) | Err(Errno::EAGAIN | Errno::EBUSY | Errno::ENOBUFS) => return (calls, Ok(false)),
                Err(error) => return (calls, Err(error)),
            }
        }
        (calls, Ok(true))
    }
}
