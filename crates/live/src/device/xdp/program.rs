//! The BPF program that passes frames to sockets, and its attachment to an interface.

use super::sys;
use super::{DeviceError, XdpMode};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Flags of an XDP link (`linux/if_link.h`).
const GENERIC: u32 = 1 << 1;
const DRIVER: u32 = 1 << 2;

/// A program attached to an interface until it is dropped or the process ends for any reason.
pub(super) struct Program {
    map: OwnedFd,
    _link: OwnedFd,
    /// How frames are received.
    pub mode: XdpMode,
}

/// One instruction (RFC 9669, section 3.1).
const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    u64::from_le_bytes({
        let [o0, o1] = offset.to_le_bytes();
        let [v0, v1, v2, v3] = value.to_le_bytes();
        [code, to | from << 4, o0, o1, v0, v1, v2, v3]
    })
}

/// Redirects each frame to the socket of its queue, or passes it to the system if the queue has none.
fn instructions(map: i32) -> [u64; 6] {
    const PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    [
        // r2 = index of the queue, in the fifth word of the context.
        instruction(0x61, 2, 1, 16, 0),
        // r1 = the map, in two halves.
        instruction(0x18, 1, 1, 0, map),
        0,
        // r3 = the result without an entry.
        instruction(0xb7, 3, 0, 0, PASS),
        // r0 = redirect_map(r1, r2, r3)
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0, 0),
    ]
}

/// Creates the map from queues to sockets, and loads the program that reads it.
pub(super) fn load(queues: u32) -> io::Result<(OwnedFd, OwnedFd)> {
    let map = sys::create_map(queues)?;
    let program = sys::load(&instructions(map.as_raw_fd()))?;
    Ok((map, program))
}

impl Program {
    /// Attaches the program to the driver of the interface, or otherwise before the system's stack.
    pub fn attach(index: u32, name: &str, queues: u32, wanted: Option<XdpMode>) -> Result<Self, DeviceError> {
        let (map, program) =
            load(queues).map_err(DeviceError::system(format!("load a BPF program for `{name}`")))?;
        let what = || DeviceError::system(format!("attach an XDP program to `{name}`"));
        let link = |flags| sys::link(program.as_fd(), index, flags);
        let (link, mode) = match wanted {
            Some(XdpMode::Generic) => (link(GENERIC).map_err(what())?, XdpMode::Generic),
            Some(mode) => (link(DRIVER).map_err(what())?, mode),
            None => match link(DRIVER) {
                Ok(link) => (link, XdpMode::Copy),
                // Another program is attached. The other mode would only hide that.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Err(what()(error)),
                Err(_) => (link(GENERIC).map_err(what())?, XdpMode::Generic),
            },
        };
        Ok(Program { map, _link: link, mode })
    }

    /// Directs the frames of `queue` to `socket`.
    pub fn enter(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        sys::enter(self.map.as_fd(), queue, socket)
    }
}
