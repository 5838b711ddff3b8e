//! Who uses an interface or an address: farpace processes that would disturb each other are told apart.

use super::{SystemError, state_folder};
use crate::device::{Device, DeviceCounters, DeviceInfo};
use farpace_units::Span;
use farpace_wire::Packet;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::net::if_::if_nametoindex;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An interface or an address that this process uses, until this is dropped. The kernel releases it if the
/// process is killed.
#[derive(Debug)]
pub struct InterfaceLock {
    path: PathBuf,
    file: Flock<File>,
}

impl InterfaceLock {
    /// Takes all of these interfaces, of the network namespace of this thread, for this process alone: it
    /// carries their frames. Where the folder of the state cannot be written, without root, nothing is taken.
    ///
    /// # Errors
    /// An interface that does not exist, that is given twice, or that another process uses; the error names
    /// the process.
    pub fn take_all<'a>(
        interfaces: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<InterfaceLock>, SystemError> {
        let interfaces: Vec<_> = interfaces.collect();
        let twice = interfaces.iter().enumerate().find(|(at, name)| interfaces[..*at].contains(name));
        if let Some((_, name)) = twice {
            return Err(SystemError::Twice((*name).to_owned()));
        }
        let locks = interfaces.into_iter().map(|name| of_interface(name, FlockArg::LockExclusiveNonblock));
        Ok(locks.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Takes an interface for a host that has addresses of its own there: others may share it, but nobody may
    /// carry its frames.
    ///
    /// # Errors
    /// As [`take_all`](Self::take_all).
    pub fn share(interface: &str) -> Result<Vec<InterfaceLock>, SystemError> {
        Ok(of_interface(interface, FlockArg::LockSharedNonblock)?.into_iter().collect())
    }

    /// Takes the addresses of a host on a device of this machine.
    ///
    /// # Errors
    /// Another host of this network namespace has one; the error names its process and device.
    pub fn take_addresses(
        addresses: impl Iterator<Item = IpAddr>,
        device: &str,
    ) -> Result<Vec<InterfaceLock>, SystemError> {
        let take = |address: IpAddr| {
            let file = format!("{}-{address}.lock", namespace_number()?);
            let folder = state_folder().join("interfaces");
            take(&folder, &file, FlockArg::LockExclusiveNonblock, device).map_err(|refusal| {
                refusal.explain(
                    &address.to_string(),
                    "two hosts would get the packets of one. Give another address: --addr",
                )
            })
        };
        Ok(addresses.map(take).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }
}

fn namespace_number() -> Result<u64, SystemError> {
    let path = "/proc/thread-self/ns/net";
    let about = fs::metadata(path);
    let about = about.map_err(|error| SystemError::System { what: format!("read {path}"), error })?;
    Ok(about.ino())
}

fn of_interface(name: &str, how: FlockArg) -> Result<Option<InterfaceLock>, SystemError> {
    let index = if_nametoindex(name).map_err(|error| SystemError::System {
        what: format!("find the interface `{name}` (`ip link` shows which there are)"),
        error: error.into(),
    })?;
    let file = format!("{}-{index}.lock", namespace_number()?);
    let why = "its frames would be carried or answered twice. End that process, or choose another interface";
    take(&state_folder().join("interfaces"), &file, how, name).map_err(|refusal| refusal.explain(name, why))
}

/// Why a lock is refused.
#[derive(Debug)]
enum LockRefusal {
    /// By this process.
    Held(String),
    System(SystemError),
}

impl LockRefusal {
    fn explain(self, what: &str, why: &'static str) -> SystemError {
        match self {
            LockRefusal::Held(holder) => SystemError::Locked { what: what.to_owned(), holder, why },
            LockRefusal::System(error) => error,
        }
    }
}

fn take(
    folder: &Path,
    file: &str,
    how: FlockArg,
    device: &str,
) -> Result<Option<InterfaceLock>, LockRefusal> {
    let path = folder.join(file);
    let failed = |what: &str| {
        let what = format!("{what} {}", path.display());
        |error: io::Error| LockRefusal::System(SystemError::System { what, error })
    };
    let open = || {
        fs::create_dir_all(folder)?;
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)
    };
    loop {
        let file = match open() {
            Err(error)
                if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
            {
                return Ok(None);
            }
            opened => opened.map_err(failed("open"))?,
        };
        let mut file = match Flock::lock(file, how) {
            Ok(file) => file,
            Err((mut file, Errno::EWOULDBLOCK)) => {
                let holders: Vec<_> = users(&mut file).iter().filter_map(|user| described(user)).collect();
                let nobody = || "another process".to_owned();
                return Err(LockRefusal::Held(holders.first().cloned().unwrap_or_else(nobody)));
            }
            Err((_, error)) => return Err(failed("lock")(error.into())),
        };
        // Whoever had it may have removed the file after it was opened here.
        let same = |there: fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == there.ino());
        if fs::metadata(&path).is_ok_and(same) {
            // Others may share it.
            let mut all = users(&mut file);
            all.retain(|user| described(user).is_some());
            all.push(format!("{} {device}", std::process::id()));
            let text = all.join("\n");
            let written =
                file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
            written.map_err(failed("write"))?;
            return Ok(Some(InterfaceLock { path, file }));
        }
    }
}

impl Drop for InterfaceLock {
    fn drop(&mut self) {
        // While others share it, the file stays. The lock is released when the file is closed, after this.
        if self.file.relock(FlockArg::LockExclusiveNonblock).is_ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The users as the file names them: process and device.
fn users(file: &mut File) -> Vec<String> {
    let mut text = String::new();
    // They may not have been written yet.
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
    text.lines().map(str::to_owned).collect()
}

/// A user in words; none: there is no such process.
fn described(user: &str) -> Option<String> {
    let (pid, device) = user.split_once(' ')?;
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ").trim().to_owned();
    Some(if line.is_empty() {
        format!("process {pid} on {device}")
    } else {
        format!("process {pid} ({line}) on {device}")
    })
}

/// A device whose interface and addresses are locked as long as it exists.
pub struct LockedDevice {
    device: Box<dyn Device>,
    _locks: Vec<InterfaceLock>,
}

impl LockedDevice {
    /// A device with its locks.
    pub fn new(device: Box<dyn Device>, locks: Vec<InterfaceLock>) -> Self {
        LockedDevice { device, _locks: locks }
    }
}

impl Device for LockedDevice {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }
    fn receive(&mut self, budget: usize, into: &mut Vec<Packet>) -> io::Result<()> {
        self.device.receive(budget, into)
    }
    fn send(&mut self, packets: &mut VecDeque<Packet>) -> io::Result<()> {
        self.device.send(packets)
    }
    fn fd(&self) -> BorrowedFd<'_> {
        self.device.fd()
    }
    fn counters(&self) -> DeviceCounters {
        self.device.counters()
    }
    fn due_in(&self) -> Option<Span> {
        self.device.due_in()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: two emulators on one interface, which duplicate every frame; hosts that share an interface
    /// exclude each other; or an interface that stays taken.
    #[test]
    fn an_interface_has_one_carrier_or_several_hosts() {
        let folder = std::env::temp_dir().join(format!("farpace-locks-{}", std::process::id()));
        let (alone, shared) = (FlockArg::LockExclusiveNonblock, FlockArg::LockSharedNonblock);
        let lock = |file: &str, how| take(&folder, file, how, "eth1").map(Option::unwrap);
        let holder = |refused: Result<InterfaceLock, LockRefusal>| match refused {
            Err(LockRefusal::Held(holder)) => holder,
            other => panic!("{other:?}"),
        };
        let first = lock("1-2.lock", alone).unwrap();
        let told = holder(lock("1-2.lock", alone));
        assert!(told.starts_with(&format!("process {} (", std::process::id())), "{told}");
        assert!(told.ends_with(" on eth1"), "{told}");
        holder(lock("1-2.lock", shared));
        let other = lock("1-3.lock", alone).unwrap();
        drop(first);
        let hosts = [lock("1-2.lock", shared).unwrap(), lock("1-2.lock", shared).unwrap()];
        holder(lock("1-2.lock", alone));
        let [one, two] = hosts;
        drop(one);
        holder(lock("1-2.lock", alone));
        drop(two);
        let again = lock("1-2.lock", alone).unwrap();
        drop((other, again));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
        assert!(InterfaceLock::take_all(["no-such-if0"].into_iter()).is_err());
        let twice = InterfaceLock::take_all(["lo", "lo"].into_iter()).unwrap_err().to_string();
        assert_eq!(twice, "`lo` is given twice");
    }
}
