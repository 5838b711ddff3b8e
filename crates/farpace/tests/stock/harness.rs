//! Machines for tests, and programs on them.

use farpace::live::Namespace;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub const FARPACE: &str = env!("CARGO_BIN_EXE_farpace");
/// As long as anything here may take.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// True, and a line on stderr, if this cannot be tested here. In CI it must be.
pub fn skipped(why: &str) -> bool {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // Not `eprintln!`: the harness hides it for tests that pass.
    std::io::stderr().write_all(format!("skipped, {why}\n").as_bytes()).unwrap();
    true
}

/// True if these programs are here.
pub fn has(programs: &[&str]) -> bool {
    let is_here = |program: &&str| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    };
    match programs.iter().find(|program| !is_here(program)) {
        None => true,
        Some(missing) => !skipped(&format!("needs {missing}")),
    }
}

/// A new machine; none: there is no right to make one.
pub fn machine(what: &str) -> Option<Namespace> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("st{}-{}-{what}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    match Namespace::create(&name) {
        Ok(machine) => Some(machine),
        Err(error) => {
            skipped(&format!("needs root: {error}"));
            None
        }
    }
}

/// A command on a machine, in a folder.
pub fn command(on: &Namespace, words: &[&str], folder: &Path) -> Command {
    let mut command = Command::new("ip");
    // A shell starts its background jobs with SIGINT ignored. Programs inherit that, and Python keeps it.
    command.args(["netns", "exec", on.name(), "env", "--default-signal=INT"]);
    command.args(words).current_dir(folder);
    // Its output must not wait in a buffer for more of it.
    command.env("PYTHONUNBUFFERED", "1").env_remove("http_proxy").env_remove("HTTP_PROXY");
    command
}

/// What a program that ends has said. It gets as long as anything here may take.
pub fn run(on: &Namespace, words: &[&str], folder: &Path) -> Output {
    let seconds = TIMEOUT.as_secs().to_string();
    command(on, &[&["timeout", &seconds], words].concat(), folder).output().unwrap()
}

pub fn good(output: Output) -> String {
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{errors}", output.status);
    out.into_owned()
}

/// A program that runs until it is told to end; by force when this is dropped.
pub struct Running(pub Child);

impl Running {
    pub fn start(on: &Namespace, words: &[&str], folder: &Path) -> Self {
        let child = command(on, words, folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Running(child.unwrap())
    }
    /// The same, once it has said a line with these words.
    pub fn saying(on: &Namespace, words: &[&str], folder: &Path, says: &str) -> Self {
        let mut child =
            command(on, words, folder).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let running = Running(child);
        let mut line = String::new();
        while !line.contains(says) {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "{words:?} has not said `{says}`");
        }
        // What it says later must go somewhere.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        running
    }
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
    /// Its exit code, if it ends in time.
    pub fn ends(mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < TIMEOUT, "it goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until somebody listens there.
pub fn listening(on: &Namespace, at: &str) {
    let at: SocketAddr = at.parse().unwrap();
    let begun = Instant::now();
    while on.within(|| TcpStream::connect_timeout(&at, Duration::from_secs(2))).unwrap().is_err() {
        assert!(begun.elapsed() < TIMEOUT, "nobody listens at {at}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Bytes that cannot be guessed from their neighbours.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(step).collect()
}

/// Builds the libraries for `farpace exec`: tests of Rust need none, so nobody has built them yet.
pub fn libraries() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(FARPACE).parent().unwrap().parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([
            "build",
            "--offline",
            "--locked",
            "--quiet",
            "-p",
            "farpace-capi",
            "-p",
            "farpace-preload",
        ]);
        cargo.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

/// `farpace exec` with options and a program.
pub fn exec<'a>(options: &[&'a str], program: &[&'a str]) -> Vec<&'a str> {
    libraries();
    let options = [&["--addr", "10.77.0.2/24", "--addr", "fd77::2/64"], options].concat();
    [&[FARPACE, "exec"], &options[..], &["--"], program].concat()
}

/// How many packets of a capture pass tshark's filter; none without tshark.
pub fn tshark(capture: &Path, filter: &str) -> u64 {
    tshark_says(capture, filter, &["frame.number"]).lines().count() as u64
}

/// What tshark has in these fields of each packet that passes its filter.
pub fn tshark_says(capture: &Path, filter: &str, fields: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.env("LC_ALL", "C.UTF-8").arg("-n").arg("-r").arg(capture);
    for checked in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{checked}.check_checksum:TRUE")]);
    }
    command.args(["-Y", filter, "-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
