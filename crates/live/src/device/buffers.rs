//! Read buffers, reused without being cleared.

use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};

/// Shorter packets are copied out of the buffer. Otherwise small unread packets would each hold a whole
/// buffer.
const COPIED: usize = 16 * 1024;
/// Maximum number of buffers that are kept for reuse; the memory of others is freed.
const KEPT: usize = 256;

/// Buffers of one size. The contents of a buffer become [`Bytes`] without a copy. When the last of them is
/// dropped, the buffer returns.
#[derive(Debug)]
pub(crate) struct FrameBuffers {
    size: usize,
    back: Arc<Mutex<Vec<Box<[u8]>>>>,
    /// Buffers of the next read.
    current: Vec<Box<[u8]>>,
}

/// A buffer in use.
struct LentBuffer {
    buffer: Option<Box<[u8]>>,
    len: usize,
    back: Arc<Mutex<Vec<Box<[u8]>>>>,
}

impl AsRef<[u8]> for LentBuffer {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_deref().and_then(|buffer| buffer.get(..self.len)).unwrap_or_default()
    }
}

impl Drop for LentBuffer {
    fn drop(&mut self) {
        let mut back = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(buffer) = self.buffer.take()
            && back.len() < KEPT
        {
            back.push(buffer);
        }
    }
}

impl FrameBuffers {
    /// Buffers of `size` bytes.
    pub fn new(size: usize) -> Self {
        FrameBuffers { size, back: Arc::default(), current: Vec::new() }
    }

    /// The buffer of the next read.
    pub fn room(&mut self) -> &mut [u8] {
        self.buffers_for(1).first_mut().map_or(&mut [], |buffer| buffer)
    }

    /// The buffers of the next `count` reads.
    pub fn buffers_for(&mut self, count: usize) -> &mut [Box<[u8]>] {
        while self.current.len() < count {
            let fresh = self.fresh();
            self.current.push(fresh);
        }
        &mut self.current[..count]
    }

    fn fresh(&self) -> Box<[u8]> {
        let used = self.back.lock().unwrap_or_else(PoisonError::into_inner).pop();
        used.unwrap_or_else(|| vec![0; self.size].into_boxed_slice())
    }

    /// The first `len` bytes of the buffer of [`room`](Self::room).
    pub fn take(&mut self, len: usize) -> Bytes {
        self.take_at(0, len)
    }

    /// The first `len` bytes of the buffer with this index in [`buffers_for`](Self::rooms).
    pub fn take_at(&mut self, number: usize, len: usize) -> Bytes {
        let Some(buffer) = self.current.get(number) else { return Bytes::new() };
        let len = len.min(buffer.len());
        if len < COPIED {
            return Bytes::copy_from_slice(&buffer[..len]);
        }
        let fresh = self.fresh();
        let buffer = self.current.get_mut(number).map(|buffer| std::mem::replace(buffer, fresh));
        Bytes::from_owner(LentBuffer { buffer, len, back: self.back.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a buffer in use is not overwritten by the next read, and buffers return for reuse.
    #[test]
    fn buffers_return_for_reuse() {
        let mut buffers = FrameBuffers::new(64 * 1024);
        buffers.room().fill(1);
        let first = buffers.take(60_000);
        buffers.room().fill(2);
        let second = buffers.take(60_000);
        buffers.room()[..100].fill(3);
        let small = buffers.take(100);
        assert!(first.iter().all(|byte| *byte == 1) && first.len() == 60_000);
        assert!(second.iter().all(|byte| *byte == 2));
        let address = first.as_ptr();
        drop(first);
        assert_eq!(small[..], [3; 100]);
        let third = buffers.take(50_000);
        buffers.room().fill(4);
        let fourth = buffers.take(50_000);
        assert_eq!(fourth.as_ptr(), address, "the buffer that came back is used again");
        assert_eq!(third[0], 3);
    }
}
