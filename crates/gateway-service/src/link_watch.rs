//! Hears from the kernel (rtnetlink) when interfaces or routes change, so that nobody has to look each
//! second.

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use std::os::fd::{AsRawFd, OwnedFd};

/// Groups of messages: links, and routes of both families.
const GROUPS: u32 = 0x1 | 0x40 | 0x400;
/// A message of the kernel, at most.
const BUFFER: usize = 64 << 10;
/// Messages that are read at once at most: the rest is read the next time.
const MAX_MESSAGES: usize = 256;
/// A link was made or has changed, or is gone; a route is gone.
const NEW_LINK: u16 = 16;
const DELETED_LINK: u16 = 17;
const DELETED_ROUTE: u16 = 25;
/// Where a message about a route has its table, and the tables `default`, `main` and `local`.
const TABLE: usize = HEADER + 4;
const OF_SYSTEM: [u8; 3] = [253, 254, 255];
/// Bytes of the header of a message.
const HEADER: usize = 16;

/// What has changed since it was asked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkChanges {
    /// Something of some interface.
    pub links: bool,
    /// Some route is gone, or may be.
    pub routes: bool,
}

/// A subscription to changes of interfaces and routes.
pub struct LinkWatch {
    socket: OwnedFd,
    /// The interfaces that matter; none: all of them.
    pub names: Vec<String>,
}

impl LinkWatch {
    /// Subscribes.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open() -> Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let made = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute);
        let made = made.context("cannot watch interfaces")?;
        bind(made.as_raw_fd(), &NetlinkAddr::new(0, GROUPS)).context("cannot watch interfaces")?;
        Ok(LinkWatch { socket: made, names: Vec::new() })
    }

    /// What has changed since the last call.
    pub fn changes(&self) -> LinkChanges {
        let mut changes = LinkChanges::default();
        let mut buffer = vec![0; BUFFER];
        for _ in 0..MAX_MESSAGES {
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(read) => note(&buffer[..read.min(BUFFER)], &self.names, &mut changes),
                Err(Errno::EINTR) => {}
                // Some were lost: anything may have changed.
                Err(Errno::ENOBUFS) => changes = LinkChanges { links: true, routes: true },
                Err(_) => break,
            }
        }
        changes
    }
}

/// True if a message about a link has one of these names in it.
fn is_about(message: &[u8], names: &[String]) -> bool {
    let has = |name: &String| {
        let wanted = [name.as_bytes(), &[0]].concat();
        message.windows(wanted.len()).any(|part| part == wanted)
    };
    names.is_empty() || names.iter().any(has)
}

/// Reads some messages.
fn note(mut messages: &[u8], names: &[String], changes: &mut LinkChanges) {
    while let Some(header) = messages.get(..HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let message = &messages[..length.clamp(HEADER, messages.len())];
        match u16::from_ne_bytes([header[4], header[5]]) {
            NEW_LINK | DELETED_LINK => changes.links |= is_about(message, names),
            // Routes of the main table come and go.
            DELETED_ROUTE => {
                changes.routes |= !message.get(TABLE).is_some_and(|table| OF_SYSTEM.contains(table))
            }
            _ => {}
        }
        messages = messages.get(length.max(HEADER).next_multiple_of(4)..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(of: u16, length: u32) -> Vec<u8> {
        let mut bytes = vec![0; length.max(HEADER as u32).next_multiple_of(4) as usize];
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes[4..6].copy_from_slice(&of.to_ne_bytes());
        bytes
    }

    /// Breaks: a change of an interface is not noticed behind another message, or a message with a wrong
    /// length ends the gateway.
    #[test]
    fn changes_are_read_from_messages() {
        let read = |bytes: &[u8]| {
            let mut changes = LinkChanges::default();
            note(bytes, &[], &mut changes);
            (changes.links, changes.routes)
        };
        assert_eq!(read(&[message(24, 21), message(16, 40)].concat()), (true, false));
        assert_eq!(read(&[message(17, 32), message(25, 28)].concat()), (true, true));
        for odd in [0, 1, 15, 17, u32::MAX / 4, u32::MAX - 5] {
            let mut bytes = message(24, 16);
            bytes[..4].copy_from_slice(&odd.to_ne_bytes());
            assert_eq!(read(&bytes), (false, false));
        }
        assert_eq!(read(&[16; 7]), (false, false));
        let mut of_main = message(DELETED_ROUTE, 28);
        of_main[TABLE] = 254;
        assert_eq!(read(&of_main), (false, false));
        let mut about = message(NEW_LINK, 40);
        about[32..38].copy_from_slice(b"wan10\0");
        assert!(is_about(&about, &["lan0".into(), "wan10".into()]) && is_about(&about, &[]));
        assert!(!is_about(&about, &["wan1".into(), "wan100".into()]));
        let watch = LinkWatch::open().unwrap();
        watch.changes();
        assert_eq!(watch.changes(), LinkChanges::default());
    }
}
