//! The control socket of a running gateway: other processes of its user ask it what it does.
//!
//! A client sends a line, and gets an answer. A line is a word, and for `capture-start` a configuration as
//! JSON. Limits: root and the user of the gateway
//! alone, and [`MAX_CLIENTS`] at once. One that is silent for [`MAX_SERVICE`] is left.

use super::capture::{CaptureConfig, CaptureFiles};
use super::records::{self, ConnectionRecord};
use super::snapshot::Snapshot;
use crate::Note;
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use farpace_http::{HostRule, HttpRequest, HttpResponse, HttpRules, HttpServer};
use farpace_live::system::state_folder;
use farpace_live::{Handle, write_private};
use farpace_trace::table_rows;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Uid, geteuid};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Time for a client to go on at most.
const MAX_SERVICE: Duration = Duration::from_secs(2);
/// Clients that are served at once at most; further ones are turned away.
const MAX_CLIENTS: usize = 16;
/// Time for the gateway to answer at most.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Length of a question at most, in bytes.
const MAX_QUESTION: u64 = 16 << 10;
/// Length of an answer at most, in bytes.
const MAX_ANSWER: u64 = 16 << 20;
/// The lines of captures.
const CAPTURE_START: &str = "capture-start ";
const CAPTURE_STOP: &str = "capture-stop";
/// The line that asks for records, which are sent as Parquet.
const RECORDS: &str = "records";
/// Time for a file of records to be made.
const MAX_RECORDS_WAIT: Duration = Duration::from_secs(60);
/// Length of a file of records at most, in bytes.
const MAX_RECORDS_ANSWER: u64 = 1 << 30;
/// How a file of Parquet begins.
const PARQUET: &[u8] = b"PAR1";
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

/// What another thread wants of the loop of the gateway, with a way for its answer.
pub enum GatewayRequest {
    /// It wants to know something.
    Look(Question, Sender<Snapshot>),
    /// It wants the records of connections.
    Records(Sender<Result<Vec<Arc<ConnectionRecord>>>>),
    /// A capture is to begin.
    StartCapture(CaptureFiles, Sender<Result<Value>>),
    /// The capture is to end.
    StopCapture(Sender<Result<Value>>),
}

/// Questions of other threads to the loop of the gateway.
pub struct Questions {
    receiver: Receiver<GatewayRequest>,
    path: PathBuf,
    asker: Asker,
}

/// Asks from another thread.
#[derive(Clone)]
pub struct Asker {
    sender: Sender<GatewayRequest>,
    handle: Handle,
}

impl Asker {
    /// The answer; none if the gateway ends, or does not answer. The text is made in this thread: the loop of
    /// the gateway has packets to move.
    pub fn ask(&self, question: Question) -> Option<String> {
        let snapshot = self.request(|sender| GatewayRequest::Look(question, sender))?;
        Some(question.text(&snapshot))
    }

    fn request<T>(&self, make: impl FnOnce(Sender<T>) -> GatewayRequest) -> Option<T> {
        let (sender, answer) = channel();
        self.sender.send(make(sender)).ok()?;
        // A job wakes the loop, which does nothing else with it.
        self.handle.run(Box::new(|_, _| {})).ok()?;
        answer.recv_timeout(MAX_WAIT).ok()
    }

    /// A file of records, made in this thread; an error as JSON.
    fn records(&self) -> Option<Vec<u8>> {
        let records = self.request(GatewayRequest::Records)?;
        let file = records.and_then(|records| Ok(records::parquet(&records)?));
        Some(file.unwrap_or_else(|error| json!({ "error": format!("{error:#}") }).to_string().into_bytes()))
    }

    /// Begins or ends a capture. The files are opened in this thread: a disk may be slow.
    fn capture(&self, config: Option<&str>, note: Note) -> Value {
        let answer = match config {
            None => self.request(GatewayRequest::StopCapture),
            Some(text) => {
                let read = || CaptureConfig::from_json(&serde_json::from_str(text)?);
                match read().and_then(|config| CaptureFiles::open(config, note)) {
                    Ok(files) => self.request(|sender| GatewayRequest::StartCapture(files, sender)),
                    Err(error) => Some(Err(error)),
                }
            }
        };
        match answer.unwrap_or_else(|| Err(anyhow!("the gateway ends"))) {
            Ok(value) => json!({ "capture": value }),
            Err(error) => json!({ "error": format!("{error:#}") }),
        }
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
    pub fn open(handle: Handle, metrics: Option<SocketAddr>, note: Note) -> Result<Self> {
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
            let served = Arc::new(());
            for peer in listener.incoming().flatten() {
                // One that says nothing must not keep others waiting.
                if Arc::strong_count(&served) > MAX_CLIENTS {
                    continue;
                }
                let (asker, place) = (asker.clone(), served.clone());
                let serve = move || {
                    // An error of a client does not matter here.
                    let _ = answer(peer, &asker, note);
                    drop(place);
                };
                let _ = std::thread::Builder::new().name("control".to_owned()).spawn(serve);
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

    /// What was asked since the last call.
    pub fn requests(&self) -> Vec<GatewayRequest> {
        self.receiver.try_iter().collect()
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn answer(mut peer: UnixStream, asker: &Asker, note: Note) -> io::Result<()> {
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
    let line = String::from_utf8_lossy(&word);
    let answer = match line.as_ref() {
        "status" => asker.ask(Question::Status).map(String::into_bytes),
        "metrics" => asker.ask(Question::Metrics).map(String::into_bytes),
        RECORDS => asker.records(),
        CAPTURE_STOP => Some(asker.capture(None, note).to_string().into_bytes()),
        other => match other.strip_prefix(CAPTURE_START) {
            Some(config) => Some(asker.capture(Some(config), note).to_string().into_bytes()),
            None => return Ok(()),
        },
    };
    answer.map_or(Ok(()), |answer| peer.write_all(&answer))
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

/// The status of all gateways of this host, at least one.
///
/// # Errors
/// No gateway runs, or one does not answer.
pub fn running() -> Result<Vec<Value>> {
    let gateways = status_of_all()?;
    if gateways.is_empty() {
        bail!("no gateway runs here: start one with `farpace gateway up --lan IF --wan IF`");
    }
    Ok(gateways)
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
                all.push(serde_json::from_slice(&text).context("a gateway of another version answers")?)
            }
            // It was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove_files(&path),
            Err(error) => bail!("the gateway at {} does not answer: {error}", path.display()),
        }
    }
    Ok(all)
}

/// The process `pid` of a gateway, or that of the only one.
fn process_of(pid: Option<u32>) -> Result<u32> {
    let all = running()?;
    let pids: Vec<_> = all.iter().filter_map(|status| status["pid"].as_u64()).collect();
    match (pid, pids.as_slice()) {
        (Some(pid), _) if pids.contains(&u64::from(pid)) => Ok(pid),
        (Some(pid), _) => bail!("no gateway has process {pid}: `farpace gateway status` shows them"),
        (None, [one]) => u32::try_from(*one).context("a gateway of another version answers"),
        (None, _) => bail!("{} gateways run here: name one with --pid {pids:?}", pids.len()),
    }
}

/// What the gateway `pid` answers to a line: JSON without an error.
fn json_of(pid: u32, answer: &[u8]) -> Result<Value> {
    let answer: Value = serde_json::from_slice(answer)
        .with_context(|| format!("the gateway {pid} of another version answers"))?;
    match answer["error"].as_str() {
        Some(error) => bail!("{error}"),
        None => Ok(answer),
    }
}

/// Begins a capture at the gateway with process `pid`, or at the only one, or ends it. The capture as it is
/// then.
///
/// # Errors
/// There is no such gateway, it does not answer, or it refuses.
pub fn switch_capture(pid: Option<u32>, start: Option<&CaptureConfig>) -> Result<Value> {
    let pid = process_of(pid)?;
    let line = match start {
        Some(config) => format!("{CAPTURE_START}{}", config.json()),
        None => CAPTURE_STOP.to_owned(),
    };
    if line.len() as u64 > MAX_QUESTION {
        bail!("the name of the directory is too long");
    }
    let answer = ask(&path_of(pid), &line, MAX_ANSWER, MAX_WAIT);
    let answer = answer.with_context(|| format!("the gateway {pid} does not answer"))?;
    Ok(json_of(pid, &answer)?["capture"].clone())
}

/// Writes the records of the connections of the gateway with process `pid`, or of the only one, to a file as
/// Parquet. An existing file is replaced when they are complete. The number of connections.
///
/// # Errors
/// There is no such gateway, it does not answer, or the file cannot be written.
pub fn write_records(pid: Option<u32>, file: &Path) -> Result<u64> {
    let pid = process_of(pid)?;
    let answer = ask(&path_of(pid), RECORDS, MAX_RECORDS_ANSWER, MAX_RECORDS_WAIT);
    let answer = answer.with_context(|| format!("the gateway {pid} does not answer"))?;
    let answer = Bytes::from(answer);
    if !answer.starts_with(PARQUET) {
        json_of(pid, &answer)?;
    }
    // One that was cut has no index at its end.
    let count = table_rows(&answer).with_context(|| format!("the gateway {pid} did not send all"))?;
    write_private(file, &answer).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(count)
}

fn fetch(path: &Path) -> io::Result<Vec<u8>> {
    ask(path, "status", MAX_ANSWER, MAX_WAIT)
}

/// The answer to a line, of so many bytes at most, for each part of which it waits so long.
fn ask(path: &Path, line: &str, most: u64, wait: Duration) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(wait))?;
    stream.set_write_timeout(Some(wait))?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.take(most).read_to_end(&mut answer)?;
    match answer.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(answer),
    }
}
