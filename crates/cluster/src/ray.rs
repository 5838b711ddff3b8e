//! The runs of a study are made on a Ray cluster.
//!
//! `python3 -m farpace.ray` is the program that talks to the cluster. It asks for runs and says what came of
//! them on its standard output, a line of JSON each ([`RayMessage`]); this process answers on its standard
//! input, and alone writes the study.

use crate::error::ClusterError;
use farpace_process::interrupt;
use farpace_study::{QueueOptions, RunRecord, StudyEnd, StudyPlan, StudyQueue, StudySink};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How often Ctrl-C is looked for.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// How long the program may take to withdraw its tasks, in units of [`ASK_EVERY`].
const MAX_WAITS: u32 = 400;
/// Longest message that is read.
const MAX_MESSAGE: u64 = 1 << 30;

/// Says which of the packages an interpreter lacks, and which build of farpace it has.
const PROBE: &str = r#"
import importlib.util, json
def has(name):
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None
missing = [name for name in ("farpace", "ray") if not has(name)]
build = None
if "farpace" not in missing:
    from farpace import _farpace
    build = getattr(_farpace, "build", lambda: "an older one")()
print(json.dumps({"missing": missing, "build": build}))
"#;

/// Where the runs are made.
#[derive(Clone, Copy, Debug)]
pub struct RayCluster<'a> {
    /// As Ray has it: `auto`, or `HOST:PORT`.
    pub address: &'a str,
    /// The interpreter.
    pub python: &'a Path,
    /// Tasks at a time; none: one per processor of the cluster.
    pub jobs: Option<u16>,
    /// The longest time of one run on the clock.
    pub run_limit: Duration,
    /// Names this build of farpace.
    pub version: &'a str,
}

/// What the interpreter has.
#[derive(Deserialize)]
struct PythonPackages {
    missing: Vec<String>,
    build: Option<String>,
}

/// What the program says.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RayMessage {
    /// It wants so many runs at most. The answer is an array of them; an empty one: there are none now.
    Take(usize),
    /// What came of runs.
    Add(Vec<RunRecord>),
    /// It cannot go on.
    Failed(String),
}

impl RayCluster<'_> {
    /// Looks whether the interpreter can do it.
    ///
    /// # Errors
    /// What is missing, and the command that mends it.
    pub fn check(&self) -> Result<(), ClusterError> {
        let python = || self.python.to_owned();
        let lacks = |problem: String| Err(ClusterError::Packages { python: python(), problem });
        let probe = Command::new(self.python).args(["-c", PROBE]).stdin(Stdio::null()).output();
        let probe = match probe {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(ClusterError::NoPython(python()));
            }
            probe => probe.map_err(|source| ClusterError::Python { python: python(), source })?,
        };
        let Ok(found) = serde_json::from_slice::<PythonPackages>(&probe.stdout) else {
            let why = String::from_utf8_lossy(&probe.stderr);
            let last = why.trim().lines().last().unwrap_or("no reason given");
            return lacks(format!("cannot load farpace: {last}"));
        };
        let name = self.python.display();
        if found.missing.iter().any(|name| name == "farpace") {
            return lacks(format!(
                "has no farpace: in farpace's tree, {name} -m pip install './crates/py[ray]'"
            ));
        }
        if !found.missing.is_empty() {
            return lacks(format!("has no ray: {name} -m pip install ray"));
        }
        let (own, build) = (self.version, found.build.unwrap_or_default());
        if build != own {
            return lacks(format!(
                "has farpace {build}, and this is {own}; rows of two builds do not belong together. In the \
                 tree of this one: {name} -m pip install --force-reinstall './crates/py[ray]'"
            ));
        }
        Ok(())
    }

    /// Makes the runs that the folder does not have yet, and writes the data set. Whatever happens, runs that
    /// are finished are kept.
    ///
    /// # Errors
    /// A folder that does not fit, files that cannot be written, or a cluster that cannot be used.
    pub fn run(
        &self,
        plan: &StudyPlan,
        folder: &Path,
        options: QueueOptions<'_>,
        sink: &dyn StudySink,
    ) -> Result<StudyEnd, ClusterError> {
        let mut queue = StudyQueue::open(plan, folder, options)?;
        sink.begin(queue.total(), queue.finished());
        let served = self.serve(&mut queue, sink);
        let committed = queue.commit();
        let interrupted = served?;
        Ok(StudyEnd { interrupted, ..committed? })
    }

    fn command(&self, left: u64) -> Command {
        let mut command = Command::new(self.python);
        command.args(["-m", "farpace.ray", "--address", self.address]);
        command.arg("--left").arg(left.to_string());
        command.arg("--run-limit").arg(self.run_limit.as_secs_f64().to_string());
        if let Some(jobs) = self.jobs {
            command.arg("--jobs").arg(jobs.to_string());
        }
        // Ctrl-C is for this process alone, which tells the other.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        command
    }

    /// Answers the program until it ends. True: it was interrupted.
    fn serve(&self, queue: &mut StudyQueue, sink: &dyn StudySink) -> Result<bool, ClusterError> {
        if !queue.has_ready() {
            sink.spared(queue.end().spared);
            return Ok(false);
        }
        let left = queue.total() - queue.finished();
        let mut child = self.command(left).spawn().map_err(ClusterError::program("start Python"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ClusterError::Failed("Python was started without pipes".to_owned()));
        };
        let (said, hear) = sync_channel(1);
        let answered = std::thread::scope(|scope| {
            scope.spawn(move || listen(output, &said));
            let answered = RayConversation { queue, sink, spared: 0, child: &child, input, hear }.hold();
            if answered.is_err() {
                // It has nobody to work for.
                _ = child.kill();
            }
            answered
        });
        let status = child.wait().map_err(ClusterError::program("wait for Python"))?;
        let interrupted = answered?;
        if !interrupted && !status.success() {
            return Err(ClusterError::EndedEarly { python: self.python.to_owned(), status });
        }
        if !interrupted && queue.outstanding() > 0 {
            return Err(ClusterError::NotBack(queue.outstanding()));
        }
        Ok(interrupted)
    }
}

/// Reads messages until there are no more.
fn listen(output: ChildStdout, said: &SyncSender<Result<RayMessage, ClusterError>>) {
    let mut reader = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let message = match reader.by_ref().take(MAX_MESSAGE).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => serde_json::from_slice(&line).map_err(ClusterError::Message),
            Err(error) => Err(ClusterError::program("read from Python")(error)),
        };
        if said.send(message).is_err() {
            return;
        }
    }
}

/// What is said between this process and the program.
struct RayConversation<'a> {
    queue: &'a mut StudyQueue,
    sink: &'a dyn StudySink,
    /// Runs that the sink knows not to be needed.
    spared: u64,
    child: &'a Child,
    input: ChildStdin,
    hear: Receiver<Result<RayMessage, ClusterError>>,
}

impl RayConversation<'_> {
    /// Answers until the program ends. True: it was interrupted.
    fn hold(mut self) -> Result<bool, ClusterError> {
        self.say(&self.queue.order())?;
        let mut waits = 0;
        loop {
            match self.hear.recv_timeout(ASK_EVERY) {
                Ok(message) => self.answer(message?)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(interrupt::asked()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if interrupt::asked() {
                if waits == 0 {
                    let id = i32::try_from(self.child.id()).map_err(std::io::Error::other);
                    id.and_then(|id| Ok(kill(Pid::from_raw(id), Signal::SIGINT)?))
                        .map_err(ClusterError::program("interrupt Python"))?;
                }
                waits += 1;
                if waits > MAX_WAITS {
                    return Err(ClusterError::NotWithdrawn);
                }
            }
        }
    }

    fn answer(&mut self, message: RayMessage) -> Result<(), ClusterError> {
        match message {
            RayMessage::Take(most) => {
                let runs = self.queue.take(most);
                let spared = self.queue.end().spared;
                if spared > self.spared {
                    self.sink.spared(spared - self.spared);
                    self.spared = spared;
                }
                self.say(&runs)
            }
            RayMessage::Add(records) => {
                for record in records {
                    self.sink.finished(&record);
                    self.queue.add(record)?;
                }
                Ok(())
            }
            RayMessage::Failed(why) => Err(ClusterError::Failed(why)),
        }
    }

    /// An answer. A program that has ended is noticed elsewhere.
    fn say(&mut self, what: &impl serde::Serialize) -> Result<(), ClusterError> {
        let mut line = serde_json::to_vec(what).map_err(ClusterError::Answer)?;
        line.push(b'\n');
        match self.input.write_all(&line).and_then(|()| self.input.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(ClusterError::program("write to Python")(error))
            }
            _ => Ok(()),
        }
    }
}

/// The interpreter that is used if none is named.
pub fn python(named: Option<&PathBuf>) -> &Path {
    named.map_or(Path::new("python3"), PathBuf::as_path)
}
