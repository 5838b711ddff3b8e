//! Partial files: a file has another name until it is complete and verified.

use super::budget::BudgetAccount;
use super::{Destination, Peer, os, times};
use crate::fault::{Code, TransferFault};
use crate::limits::MAX_DATA;
use crate::message::{FileTime, Hash};
use crate::path::RelPath;
use rustix::fs::{self as sys, AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// A partial file.
pub(crate) struct Partial {
    /// The directory of its final name.
    pub(super) parent: OwnedFd,
    pub(super) path: RelPath,
    /// Its present directory and name.
    pub(super) dir: OwnedFd,
    pub(super) name: String,
    pub(super) file: File,
    pub(super) peer: Peer,
    pub(super) account: BudgetAccount,
    pub(super) mode: u16,
    pub(super) modified: FileTime,
    pub(super) size: u64,
    pub(super) at: u64,
}

impl Partial {
    /// Writes bytes.
    pub fn write(&mut self, place: &Destination, bytes: &[u8]) -> Result<(), TransferFault> {
        debug_assert!(bytes.len() <= MAX_DATA);
        let stranger = self.peer.is_stranger();
        self.account.data(&place.budget, &self.file, self.at, bytes.len() as u64, stranger)?;
        self.file.write_all_at(bytes, self.at).map_err(|error| {
            let mut fault = TransferFault::of(&error, "cannot write it");
            if fault.code == Code::NoSpace {
                fault.text = format!(
                    "the disk is full: {} of {} bytes of {} are there",
                    self.at, self.size, self.path
                );
            }
            fault
        })?;
        self.at = self.at.saturating_add(bytes.len() as u64);
        Ok(())
    }
    /// Skips zeros.
    pub fn skip(&mut self, place: &Destination, len: u64) -> Result<(), TransferFault> {
        let stranger = self.peer.is_stranger();
        self.account.hole(&place.budget, &self.file, self.at, len, stranger)?;
        self.at = self.at.saturating_add(len);
        Ok(())
    }

    /// Renames it to its final name: it is complete, and `content` is its verified hash.
    pub fn keep(self, place: &Destination, content: &Hash) -> Result<(), TransferFault> {
        let Partial { parent, path, dir, name, file, peer, mode, modified, size, .. } = &self;
        // A hole at the end was not written.
        let fault = |error: &io::Error, what| TransferFault::of(error, what);
        file.set_len(*size).map_err(|error| fault(&error, "cannot write it"))?;
        if let Peer::Stranger(stranger) = peer {
            stranger.mark(file, Some(content));
        }
        sys::fchmod(file, Mode::from_raw_mode((*mode).into()))
            .map_err(|errno| os(errno, "cannot set its permissions"))?;
        sys::futimens(file, &times(*modified)).map_err(|errno| os(errno, "cannot set its time"))?;
        if place.policy.sync {
            file.sync_all().map_err(|error| fault(&error, "cannot bring it to the disk"))?;
        }
        let last = path.split().1;
        let renamed = if place.policy.overwrite {
            sys::renameat(dir, name.as_str(), parent, last)
        } else {
            match sys::renameat_with(dir, name.as_str(), parent, last, RenameFlags::NOREPLACE) {
                // The file system does not support it.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    sys::linkat(dir, name.as_str(), parent, last, AtFlags::empty())
                        .and_then(|()| sys::unlinkat(dir, name.as_str(), AtFlags::empty()))
                }
                other => other,
            }
        };
        match renamed {
            Ok(()) => place.settle(parent),
            // Another transfer was faster; this file is not needed.
            Err(errno @ (Errno::EXIST | Errno::ISDIR)) => {
                self.discard(place);
                Err(os(errno, "cannot give it its name"))
            }
            Err(errno) => Err(os(errno, "cannot give it its name")),
        }
    }
    /// Removes it; it cannot be resumed.
    pub fn discard(self, place: &Destination) {
        let _ = sys::unlinkat(&self.dir, self.name.as_str(), AtFlags::empty());
        self.account.close(&place.budget);
    }
    /// Ends the transfer of this file. The written part stays, including holes at its end, and can be
    /// resumed.
    pub fn leave(self, place: &Destination) {
        if self.at == 0 {
            return self.discard(place);
        }
        let _ = self.file.set_len(self.at);
        if self.peer.is_stranger() {
            place.one_left();
        }
    }
}
