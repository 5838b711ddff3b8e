//! The control socket of a running gateway: other processes of its user ask it what it does.
//!
//! A client sends a word and a line end, and gets an answer. Limits: root and the user of the gateway
//! alone, one client at a time, each for [`MAX_SERVICE`] at most.

use super::snapshot::Snapshot;
use anyhow::{Context, Result, bail};
use farpace_http::{HostRule, HttpRequest, HttpResponse, HttpRules, HttpServer};
use farpace_live::Handle;
use farpace_live::system::state_folder;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Uid, geteuid};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Time for a client at most.
const MAX_SERVICE: Duration = Duration::from_secs(2);
/// Time for the gateway to answer at most.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Length of a question at most, in bytes.
const MAX_QUESTION: u64 = 64;
/// Length of an answer at most, in bytes.
const MAX_ANSWER: u64 = 16 << 20;
/// Where metrics are.
const METRICS_PATH: &str = "/metrics";

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// All, as JSON.
    Status,
    /// Metrics.
    Metrics,
}

impl Question {
    fn text(self, snapshot: &Snapshot) -> String {
        match self {
            Question::Status => snapshot.json().to_string(),
            Question::Metrics => snapshot.metrics(),
        }
    }
}

/// Questions of other threads to the loop of the gateway.
pub struct Questions {
    receiver: Receiver<(Question, Sender<Snapshot>)>,
    path: PathBuf,
    asker: Asker,
}

/// Asks from another thread.
#[derive(Clone)]
pub struct Asker {
    sender: Sender<(Question, Sender<Snapshot>)>,
    handle: Handle,
}

impl Asker {
    /// The answer; none if the gateway ends, or does not answer. The text is made in this thread: the loop of
    /// the gateway has packets to move.
    pub fn ask(&self, question: Question) -> Option<String> {
        let (sender, answer) = channel();
        self.sender.send((question, sender)).ok()?;
        // A job wakes the loop, which does nothing else with it.
        self.handle.run(Box::new(|_, _| {})).ok()?;
        let snapshot = answer.recv_timeout(MAX_WAIT).ok()?;
        Some(question.text(&snapshot))
    }
}

/// Where the socket of a gateway is.
fn path_of(pid: u32) -> PathBuf {
    state_folder().join(format!("gateway-{pid}.sock"))
}

/// Where the token of the dashboard of a gateway is, if it is in a file.
pub fn token_path_of(pid: u32) -> PathBuf {
    path_of(pid).with_extension("token")
}

/// Removes the files of a gateway that was killed: its socket, and the token of its dashboard.
pub fn remove_files_of(pid: u32) {
    remove_files(&path_of(pid));
}

fn remove_files(socket: &Path) {
    let _ = fs::remove_file(socket);
    let _ = fs::remove_file(socket.with_extension("token"));
}

impl Questions {
    /// Opens the control socket, and serves metrics at an address.
    ///
    /// # Errors
    /// The socket cannot be made, or the address cannot be listened at.
    pub fn open(handle: Handle, metrics: Option<SocketAddr>) -> Result<Self> {
        let path = path_of(std::process::id());
        let _ = fs::remove_file(&path); // of a killed process with the same number
        let shown = path.display().to_string();
        let listener =
            UnixListener::bind(&path).with_context(|| format!("cannot make the control socket {shown}"))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))
            .with_context(|| format!("cannot protect {shown}"))?;
        let (sender, receiver) = channel();
        let asker = Asker { sender, handle };
        if let Some(address) = metrics {
            serve_metrics(address, asker.clone())?;
        }
        let kept = asker.clone();
        let serve = move || {
            for peer in listener.incoming().flatten() {
                // An error of a client does not matter here.
                let _ = answer(peer, &asker);
            }
        };
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(serve)
            .context("cannot start a thread")?;
        Ok(Questions { receiver, path, asker: kept })
    }

    /// For another thread that asks.
    pub fn asker(&self) -> Asker {
        self.asker.clone()
    }

    /// Answers what was asked.
    pub fn answer(&self, mut with: impl FnMut(Question) -> Snapshot) {
        for (question, sender) in self.receiver.try_iter() {
            // Who has asked may have given up.
            let _ = sender.send(with(question));
        }
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(mut peer: UnixStream, asker: &Asker) -> io::Result<()> {
    let user = Uid::from_raw(getsockopt(&peer, PeerCredentials)?.uid());
    if user != geteuid() && !user.is_root() {
        return Ok(());
    }
    peer.set_read_timeout(Some(MAX_SERVICE))?;
    peer.set_write_timeout(Some(MAX_SERVICE))?;
    let mut word = Vec::new();
    let mut byte = [0];
    while (word.len() as u64) < MAX_QUESTION && peer.read(&mut byte)? == 1 && byte[0] != b'\n' {
        word.push(byte[0]);
    }
    let question = match word.as_slice() {
        b"status" => Question::Status,
        b"metrics" => Question::Metrics,
        _ => return Ok(()),
    };
    match asker.ask(question) {
        Some(text) => peer.write_all(text.as_bytes()),
        None => Ok(()),
    }
}

/// Serves the metrics over HTTP.
fn serve_metrics(address: SocketAddr, asker: Asker) -> Result<()> {
    let server = HttpServer::listen(address)
        .with_context(|| format!("cannot serve metrics at {address}; say another address with --metrics"))?;
    let answer = move |request: &HttpRequest| {
        let text = (request.path() == METRICS_PATH).then(|| asker.ask(Question::Metrics)).flatten();
        match text {
            Some(text) => HttpResponse::ok("text/plain; version=0.0.4", text),
            None => HttpResponse::text(404, "see /metrics\n"),
        }
    };
    let rules = HttpRules {
        name: "metrics",
        hosts: HostRule::AddressOr(farpace_http::own_name()),
        other_method: 404,
    };
    server.serve(rules, answer).context("cannot start a thread")
}

/// The status of every gateway of this host.
///
/// # Errors
/// There is none that answers, and why.
pub fn status_of_all() -> Result<Vec<Value>> {
    let folder = state_folder();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("gateway-") && name.ends_with(".sock")
    };
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            bail!("cannot read {}: run it as root", folder.display())
        }
        other => other.into_iter().flatten().flatten(),
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(is_ours).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        match fetch(&path) {
            Ok(text) => {
                all.push(serde_json::from_str(&text).context("a gateway of another version answers")?)
            }
            // It was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove_files(&path),
            Err(error) => bail!("the gateway at {} does not answer: {error}", path.display()),
        }
    }
    Ok(all)
}

fn fetch(path: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(MAX_WAIT))?;
    stream.set_write_timeout(Some(MAX_WAIT))?;
    stream.write_all(b"status\n")?;
    let mut text = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut text)?;
    match text.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(text),
    }
}
