//! Marks on files and directories, by which a sender without token is recognised again.
//!
//! The key of a sender is never stored. An extended attribute of a received object contains two hashes: of
//! the key, and of key and content. So no other sender can learn what a file contains, and the sender itself
//! only about content that it has sent.

use crate::fault::TransferFault;
use crate::line::SenderKey;
use crate::message::Hash;
use crate::path::{self, RelPath};
use rustix::fs::{self as sys, XattrFlags};
use std::os::fd::AsFd;

const ATTRIBUTE: &str = "user.farpace.sender";
const WHO: &str = "farpace transfer 2: the mark of a sender";
const WHAT: &str = "farpace transfer 2: the mark of a sender on a content";
const PARTIAL: &str = "farpace transfer 2: the partial file of a sender";

/// A sender without token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stranger(SenderKey);

impl Stranger {
    /// A sender with this key. A sender without a key gets a random one.
    pub fn new(key: SenderKey) -> Result<Self, TransferFault> {
        let mut own = key;
        if key == [0; 32] {
            rustix::rand::getrandom(&mut own, rustix::rand::GetRandomFlags::empty())
                .map_err(|errno| super::os(errno, "no random numbers"))?;
        }
        Ok(Stranger(own))
    }
    fn who(&self) -> Hash {
        blake3::derive_key(WHO, &self.0)
    }
    fn what(&self, content: &Hash) -> Hash {
        blake3::derive_key(WHAT, &[self.0, *content].concat())
    }
    /// The name of its partial file for `path`.
    pub fn partial_name(&self, path: &RelPath) -> String {
        let hash = blake3::derive_key(PARTIAL, &[&self.0, path.as_bytes()].concat());
        format!("{}{}", blake3::Hash::from_bytes(hash).to_hex(), path::PARTIAL)
    }
    /// Marks a received object. On file systems without attributes, the sender is not recognised again.
    pub fn mark(&self, on: impl AsFd, content: Option<&Hash>) {
        let mut mark = self.who().to_vec();
        mark.extend(content.map_or([0; 32], |content| self.what(content)));
        let _ = sys::fsetxattr(on, ATTRIBUTE, &mark, XattrFlags::empty());
    }
    /// Whether this sender has sent the object.
    pub fn has_brought(&self, it: impl AsFd) -> bool {
        read(it).is_some_and(|(who, _)| who == self.who())
    }
    /// Whether this sender has sent the object with this content.
    pub fn has_brought_content(&self, it: impl AsFd, content: &Hash) -> bool {
        read(it).is_some_and(|mark| mark == (self.who(), self.what(content)))
    }
}

fn read(it: impl AsFd) -> Option<(Hash, Hash)> {
    let mut mark = [0; 65];
    let len = sys::fgetxattr(it, ATTRIBUTE, &mut mark).ok()?;
    let (who, what) = mark.get(..len).filter(|mark| mark.len() == 64)?.split_at(32);
    Some((who.try_into().ok()?, what.try_into().ok()?))
}
