//! The control socket of a host: access of other processes to the list of its connections.
//!
//! A host has a Unix socket in a directory of its user. A client that connects gets one [`Listing`] as JSON;
//! nothing is read from the client. Limits: only the user and root can open the directory and the socket, and
//! the user of the client is checked; one client is served at a time, for at most [`MAX_SERVICE_TIME`], with
//! [`PAUSE`] in between; a list has at most [`MAX_ROWS`](crate::socket::MAX_ROWS) sockets.

use crate::driver::{Ended, HostJob};
use crate::socket::Listing;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Uid, geteuid};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Maximum time to serve one client.
const MAX_SERVICE_TIME: Duration = Duration::from_secs(2);
/// Pause between two clients.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum time for a host to answer.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Maximum length of an answer, in bytes.
pub const MAX_ANSWER: u64 = 32 << 20;
/// Maximum number of hosts that are queried.
pub const MAX_HOSTS: usize = 256;
/// Bytes per write.
const PIECE: usize = 64 << 10;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 32;
/// Directory of the sockets, in the runtime directory of the user.
const FOLDER: &str = "farpace-hosts";

/// Why there is no control socket.
#[derive(Debug, Error)]
pub enum ControlError {
    /// There is no directory for it.
    #[error("there is no folder for its control socket: set XDG_RUNTIME_DIR to one that is yours alone")]
    NoFolder,
    /// The system refuses.
    #[error("cannot {what}: {error}")]
    System {
        /// The operation.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
}

fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> ControlError {
    let what = format!("{what} {}", path.display());
    move |error| ControlError::System { what, error }
}

/// Queues a job for a host.
pub(crate) type SubmitJob = Box<dyn Fn(HostJob) -> Result<(), Ended> + Send>;
/// Requests the list of a host. None: the host has ended, or does not answer.
type ControlRequest = Box<dyn Fn() -> Option<Listing> + Send>;

/// Directories for control sockets, the preferred one first.
fn folders() -> Vec<PathBuf> {
    let user = geteuid();
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let root = user.is_root().then(|| PathBuf::from("/run"));
    let mut all: Vec<_> = own.into_iter().chain(root).map(|dir| dir.join(FOLDER)).collect();
    all.push(PathBuf::from(format!("/run/user/{user}")).join(FOLDER));
    all.dedup();
    all
}

/// True if only this user can create files there.
fn is_ours(folder: &Path) -> bool {
    let about = fs::symlink_metadata(folder);
    about.is_ok_and(|about| about.is_dir() && about.uid() == geteuid().as_raw() && about.mode() & 0o077 == 0)
}

/// The directory of this user's control sockets. It is created if it is missing.
///
/// # Errors
/// There is no usable directory.
pub fn folder() -> Result<PathBuf, ControlError> {
    let make = |folder: &PathBuf| {
        // An existing directory is checked as it is.
        let _ = DirBuilder::new().mode(0o700).create(folder);
        is_ours(folder)
    };
    folders().into_iter().find(make).ok_or(ControlError::NoFolder)
}

/// The control socket of a host. Dropping it ends its thread and removes the file.
pub struct ControlSocket {
    path: PathBuf,
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Publishes the connections of the host that `submit` queues jobs for.
    ///
    /// # Errors
    /// There is no usable directory, or no thread can be started.
    pub fn open(name: &str, submit: SubmitJob) -> Result<Self, ControlError> {
        ControlSocket::with_request(
            name,
            Box::new(move || {
                let (sender, receiver) = mpsc::channel();
                // The receiver is gone if the answer is late.
                let job = move |host: &mut farpace_host::Host, cx: &mut farpace_path::Cx<'_>| {
                    let _ = sender.send(Listing::of(host, cx.now(), &BTreeMap::new()));
                };
                submit(Box::new(job)).ok()?;
                receiver.recv_timeout(MAX_SERVICE_TIME).ok()
            }),
        )
    }

    pub(crate) fn with_request(name: &str, request: ControlRequest) -> Result<Self, ControlError> {
        let folder = folder()?;
        let (listener, path) = bind(&folder, name)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed("protect", &path))?;
        listener.set_nonblocking(true).map_err(failed("set up", &path))?;
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
        let bell = Arc::new(bell.map_err(|error| failed("wait at", &path)(error.into()))?);
        let name: String = name.chars().take(MAX_NAME).collect();
        let thread = std::thread::Builder::new().name("farpace-control".to_owned()).spawn({
            let bell = bell.clone();
            move || serve(&listener, &bell, &name, &request)
        });
        let thread = thread.map_err(failed("make a thread for", &path))?;
        Ok(ControlSocket { path, bell, thread: Some(thread) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // The counter cannot be full, because only this writes to it.
        let _ = self.bell.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Another process may have removed it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Binds a socket. A process may have several hosts.
fn bind(folder: &Path, name: &str) -> Result<(UnixListener, PathBuf), ControlError> {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let safe: String = name.chars().take(MAX_NAME).map(safe).collect();
    let mut number = 0;
    loop {
        let path = folder.join(format!("{}-{safe}-{number}.sock", std::process::id()));
        match UnixListener::bind(&path) {
            Ok(listener) => return Ok((listener, path)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && number < 65_536 => {
                // The socket of a process that was killed and had the same PID.
                if is_dead(&path) {
                    let _ = fs::remove_file(&path);
                } else {
                    number += 1;
                }
            }
            Err(error) => return Err(failed("make the control socket", &path)(error)),
        }
    }
}

/// True if no process listens there.
fn is_dead(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Waits for a descriptor to become readable, or for the timeout. True: the event counter is set.
fn rings(bell: &EventFd, listener: Option<&UnixListener>, time: PollTimeout) -> bool {
    let mut fds = vec![PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
    fds.extend(listener.map(|listener| PollFd::new(listener.as_fd(), PollFlags::POLLIN)));
    match poll(&mut fds, time) {
        Ok(_) => fds.first().is_some_and(|bell| bell.any() == Some(true)),
        Err(Errno::EINTR) => false,
        Err(_) => true,
    }
}

fn serve(listener: &UnixListener, bell: &EventFd, name: &str, request: &ControlRequest) {
    let pause = PollTimeout::try_from(PAUSE).unwrap_or(PollTimeout::ZERO);
    while !rings(bell, Some(listener), PollTimeout::NONE) {
        if let Ok((peer, _)) = listener.accept() {
            // An error of the client does not matter here.
            let _ = answer(peer, name, request);
        }
        if rings(bell, None, pause) {
            break;
        }
    }
}

fn answer(mut peer: UnixStream, name: &str, request: &ControlRequest) -> io::Result<()> {
    let until = Instant::now() + MAX_SERVICE_TIME;
    let user = Uid::from_raw(getsockopt(&peer, PeerCredentials)?.uid());
    if user != geteuid() && !user.is_root() {
        return Ok(());
    }
    let Some(mut listing) = request() else { return Ok(()) };
    (listing.name, listing.pid) = (name.to_owned(), std::process::id());
    peer.set_nonblocking(false)?;
    for piece in serde_json::to_vec(&listing)?.chunks(PIECE) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        peer.set_write_timeout(Some(left))?;
        peer.write_all(piece)?;
    }
    Ok(())
}

/// The lists of this user's hosts.
#[derive(Debug, Default)]
pub struct FoundHost {
    /// The lists, in the order of the file names.
    pub hosts: Vec<Listing>,
    /// Control sockets without an answer, with the reason.
    pub silent: Vec<(PathBuf, String)>,
}

/// Requests the lists of all hosts of this user. Removes sockets of killed processes.
pub fn hosts() -> FoundHost {
    let mut found = FoundHost::default();
    let mut paths = Vec::new();
    for folder in folders().iter().filter(|folder| is_ours(folder)) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        paths.extend(
            entries.map(|entry| entry.path()).filter(|path| path.extension() == Some("sock".as_ref())),
        );
    }
    paths.sort();
    for path in paths.into_iter().take(MAX_HOSTS) {
        match fetch(&path) {
            Ok(listing) => found.hosts.push(listing),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&path);
            }
            // The host has ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.silent.push((path, error.to_string())),
        }
    }
    found
}

fn fetch(path: &Path) -> io::Result<Listing> {
    let until = Instant::now() + MAX_WAIT;
    let mut stream = UnixStream::connect(path)?;
    let (mut text, mut piece) = (Vec::new(), vec![0; PIECE]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => break,
            n => text.extend_from_slice(piece.get(..n).unwrap_or_default()),
        }
        if text.len() as u64 > MAX_ANSWER {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer is too long"));
        }
    }
    if text.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the host does not answer"));
    }
    serde_json::from_slice(&text).map_err(io::Error::from)
}
