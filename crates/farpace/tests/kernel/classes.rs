//! Pacing classes on a device: which packets are in which class, what is dropped, what is left behind, and
//! the rates.

use crate::harness::{farpace, here, until};
use farpace::live::Namespace;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// Two namespaces with a veth pair between them, and a folder for files.
struct Pair {
    a: Namespace,
    b: Namespace,
    folder: tempfile::TempDir,
}

fn ip(line: &str) {
    let output = Command::new("ip").args(line.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Pair {
    fn new() -> Pair {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = |end| format!("k{}-{}-{end}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let [a, b] = ["a", "b"].map(|end| Namespace::create(&name(end)).unwrap());
        ip(&format!("-n {} link add eth1 type veth peer name eth1 netns {}", a.name(), b.name()));
        for (host, number) in [(&a, 1), (&b, 2)] {
            let other = 3 - number;
            let lines = [
                format!("link set eth1 address 02:00:00:00:00:0{number}"),
                format!("addr add 10.3.0.{number}/24 dev eth1"),
                format!("addr add fd03::{number}/64 dev eth1 nodad"),
                "link set eth1 up".to_owned(),
                format!("neigh replace 10.3.0.{other} lladdr 02:00:00:00:00:0{other} dev eth1 nud permanent"),
                format!("neigh replace fd03::{other} lladdr 02:00:00:00:00:0{other} dev eth1 nud permanent"),
            ];
            host.configure(&(lines.join("\n") + "\n")).unwrap();
        }
        Pair { a, b, folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("pacing.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// A command in namespace a: its output.
    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        self.a.within(|| Command::new(program).args(arguments).output().unwrap()).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.output(env!("CARGO_BIN_EXE_farpace"), arguments)
    }

    fn up(&self, text: &str, more: &[&str]) -> Classes {
        let file = self.file(text);
        let words = ["kernel", "up", "--classes", file.to_str().unwrap(), "--dev", "eth1"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_farpace"));
        command.args([&words, more].concat()).stdout(Stdio::piped());
        let mut child = self.a.within(|| command.spawn().unwrap()).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("eth1 have"), "`{line}`");
        Classes { child, number: self.number() }
    }

    fn number(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(format!("/run/netns/{}", self.a.name())).unwrap().ino()
    }

    /// What `ip` and `tc` say of the device.
    fn state(&self) -> String {
        let said = |program: &str, line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            String::from_utf8(self.output(program, &words).stdout).unwrap()
        };
        let link = said("ip", "-d link show dev eth1");
        let segments = link.split_whitespace().skip_while(|word| *word != "gso_max_segs").nth(1).unwrap();
        format!(
            "{}{}{segments}",
            said("tc", "qdisc show dev eth1"),
            said("tc", "filter show dev eth1 egress")
        )
    }

    /// Sends datagrams of so many bytes of layer 2 from a to b.
    fn send(&self, to: &str, port: u16, count: usize, layer_2: usize) {
        let headers = if to.contains(':') { 14 + 40 + 8 + 4 } else { 14 + 20 + 8 + 4 };
        let payload = vec![0; layer_2 - headers];
        let any = if to.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
        self.a
            .within(|| {
                let socket = UdpSocket::bind(any).unwrap();
                for _ in 0..count {
                    // A packet that a class drops is an error at once.
                    let _ = socket.send_to(&payload, (to, port));
                }
            })
            .unwrap();
    }
}

/// Classes that hold on eth1.
struct Classes {
    child: Child,
    number: u64,
}

impl Classes {
    fn status(&self) -> Value {
        let (code, out, error) = farpace(&["kernel", "status", "--json"]);
        assert_eq!(code, 0, "{error}");
        let status: Value = serde_json::from_str(&out).unwrap();
        let devices = status["devices"].as_array().unwrap().clone();
        devices.into_iter().find(|device| device["namespace"] == self.number).unwrap()
    }
    fn class(&self, name: &str) -> Value {
        let status = self.status();
        let mut classes = status["classes"].as_array().unwrap().iter();
        let found = classes.find(|class| class["class"] == name);
        assert!(found.is_some(), "{name}: {status}");
        found.unwrap().clone()
    }
    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Classes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Breaks: a packet is in another class than the configuration says, or its bytes are counted wrongly.
#[test]
fn packets_find_their_class() {
    let Some(_here) = here() else { return };
    let pair = Pair::new();
    let up = pair.up(
        "default = \"rest\"\n\
         classes = [{ name = \"port\", rate = \"90 Mbit/s\" }, { name = \"net\", rate = \"90 Mbit/s\" }, { \
         name = \"six\" }, { name = \"rest\" }]\n\
         [[filters]]\nclass = \"net\"\npriority = 2\ndst = \"10.3.0.0/30\"\n\
         [[filters]]\nclass = \"port\"\npriority = 1\nprotocol = \"udp\"\ndst_port = 53\n\
         [[filters]]\nclass = \"six\"\npriority = 3\ndst = \"fd03::/64\"\n",
        &[],
    );
    pair.send("10.3.0.2", 53, 3, 100);
    pair.send("10.3.0.2", 54, 5, 1_518);
    pair.send("fd03::2", 53, 7, 200);
    pair.send("fd03::2", 54, 11, 90);
    pair.send("10.3.0.9", 54, 1, 100);
    let counted = |name: &str| {
        let class = up.class(name);
        [class["packets"].as_u64().unwrap(), class["bytes"].as_u64().unwrap()]
    };
    // In a later version of the file's order, port 53 is looked at first: in both families.
    assert_eq!(counted("port"), [10, 3 * 100 + 7 * 200]);
    assert_eq!(counted("net"), [5, 5 * 1_518]);
    let six = counted("six");
    // The system itself may send ICMPv6 there.
    assert!(six[0] >= 11 && six[1] >= 11 * 90, "{six:?}");
    // 10.3.0.9 is nobody: what asks for it is no IP.
    let rest = counted("rest");
    assert!(rest[0] >= 1 && rest[1] >= 64, "{rest:?}");
    up.end();
}

/// Breaks: a queue holds more or less than its limit, or packets wait for ever, and nobody counts them.
#[test]
fn what_does_not_fit_is_dropped() {
    let Some(_here) = here() else { return };
    let pair = Pair::new();
    let up = pair.up(
        "classes = [{ name = \"short\", rate = \"8 kbit/s\", limit = \"3 packets\" }, { name = \"long\", \
         rate = \"8 kbit/s\", limit = \"unlimited\" }]\n\
         filters = [{ class = \"long\", dst_port = 7 }, { class = \"short\", dst_port = 9 }]\n",
        &["--horizon", "4s"],
    );
    // 1.518 s each: the first leaves, and two wait for 3.036 s and 4.554 s with their own time.
    pair.send("10.3.0.2", 9, 10, 1_518);
    // Those that begin at 0, 1.518 and 3.036 s.
    pair.send("10.3.0.2", 7, 10, 1_518);
    let counted = |name: &str| {
        let class = up.class(name);
        ["packets", "limit_drops", "horizon_drops"].map(|key| class[key].as_u64().unwrap())
    };
    assert_eq!(counted("short"), [3, 7, 0]);
    assert_eq!(counted("long"), [3, 0, 7]);
    up.end();
}

/// Breaks: what was set on the device stays when the command ends, is killed or was kept; or is not found by
/// `doctor --clean`.
#[test]
fn nothing_stays_on_the_device() {
    let Some(_here) = here() else { return };
    let pair = Pair::new();
    let before = pair.state();
    let text = "default = \"a\"\nclasses = [{ name = \"a\", rate = \"50 Mbit/s\" }]";
    let up = pair.up(text, &[]);
    let within = pair.state();
    assert!(
        within.contains("clsact") && within.contains("fp_classify") && within.ends_with("\n1"),
        "{within}"
    );
    up.end();
    assert_eq!(pair.state(), before);

    drop(pair.up(text, &[]));
    assert!(pair.state().contains("fp_classify"));
    let (_, listed, _) = farpace(&["doctor"]);
    assert!(listed.contains("kernel-classes of process"), "{listed}");
    farpace(&["doctor", "--clean"]);
    assert_eq!(pair.state(), before);

    let mut kept = pair.up(text, &["--stay"]);
    assert!(kept.child.wait().unwrap().success());
    pair.send("10.3.0.2", 9, 2, 1_518);
    // How late they were is counted by a program that was pinned.
    // The kernel may send neighbour discovery besides.
    until("two packets have left", || kept.class("a")["left_frames"].as_u64() >= Some(2));
    let (code, told, error) = farpace(&["kernel", "down"]);
    assert!(code == 0 && told.contains("1 devices"), "{told} {error}");
    assert_eq!(pair.state(), before);
}

/// Breaks: a queueing discipline of somebody else is replaced, or a file that the kernel cannot do is taken.
#[test]
fn what_it_cannot_do_is_refused() {
    let Some(_here) = here() else { return };
    let pair = Pair::new();
    let refused = |text: &str| {
        let file = pair.file(text);
        let output = pair.run(&["kernel", "up", "--classes", file.to_str().unwrap(), "--dev", "eth1"]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let fine = "default = \"a\"\nclasses = [{ name = \"a\", rate = \"50 Mbit/s\" }]\n";
    let said = refused(&format!("scheduler = \"psp\"\ngaps = \"hybrid\"\n{fine}"));
    assert!(said.contains("pacing.toml: scheduler") && said.contains("pacing.toml: gaps"), "{said}");
    let said = refused(&format!("line = \"10 Mbit/s\"\n{fine}"));
    assert!(said.contains("classes.0.rate"), "{said}");
    let output = pair.output("tc", &["qdisc", "add", "dev", "eth1", "root", "handle", "5:", "pfifo"]);
    assert!(output.status.success());
    let before = pair.state();
    let said = refused(fine);
    assert!(said.contains("pfifo 5:") && said.contains("tc qdisc delete"), "{said}");
    assert_eq!(pair.state(), before);
}

fn transfer(pair: &Pair, bytes: usize) {
    let listener = pair.b.within(|| TcpListener::bind("10.3.0.2:5001").unwrap()).unwrap();
    let mut stream = pair.a.within(|| TcpStream::connect("10.3.0.2:5001").unwrap()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let reader = spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all
    });
    let data: Vec<u8> = (0..bytes).map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    stream.write_all(&data).unwrap();
    drop(stream);
    assert!(reader.join().unwrap() == data, "the bytes differ");
}

/// Breaks: frames of a connection leave back to back in super-segments; or, where that was asked for, these
/// are counted as one frame.
#[test]
fn super_segments_are_one_frame_or_counted() {
    let Some(_here) = here() else { return };
    let pair = Pair::new();
    let text = "default = \"a\"\nclasses = [{ name = \"a\", rate = \"200 Mbit/s\", limit = \"unlimited\" }]";
    let up = pair.up(text, &[]);
    transfer(&pair, 2_000_000);
    let class = up.class("a");
    assert_eq!(class["super_segments"], 0, "{class}");
    up.end();
    let up = pair.up(text, &["--keep-super-segments"]);
    transfer(&pair, 2_000_000);
    let class = up.class("a");
    let number = |key: &str| class[key].as_u64().unwrap();
    assert!(number("super_segments") > 0 && number("packets") < 1_382, "{class}");
    // 1,382 frames with 70 bytes of headers and check sequences each, at least.
    assert!(number("bytes") >= 2_000_000 + 1_382 * 70, "{class}");
    up.end();
}

/// tcpdump on eth1 of namespace a.
struct Capture(Child);

impl Capture {
    fn begin(pair: &Pair, file: &Path) -> Option<Capture> {
        let words = ["-i", "eth1", "-s", "64", "-B", "16384", "--time-stamp-precision=nano", "-U", "-w"];
        let mut command = Command::new("tcpdump");
        command.args(words).arg(file).arg("udp").stderr(Stdio::piped());
        let mut child = pair.a.within(|| command.spawn()).unwrap().ok()?;
        let mut said = String::new();
        BufReader::new(child.stderr.take()?).read_line(&mut said).ok()?;
        said.contains("listening").then_some(Capture(child))
    }
    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.0.wait().unwrap();
    }
}

/// Breaks: a class has another rate than the configuration says, or frames leave in bursts: `pacing report`
/// on a capture says so.
#[test]
fn a_capture_proves_the_rates_in_real_time() {
    let Some(_here) = here() else { return };
    let pair = Pair::new();
    let capture = pair.folder.path().join("trace.pcap");
    let up = pair.up(
        "classes = [{ name = \"low\", rate = \"2 Mbit/s\" }, { name = \"high\", rate = \"20 Mbit/s\" }]\n\
         filters = [{ class = \"low\", dst_port = 1 }, { class = \"high\", dst_port = 2 }]",
        &[],
    );
    let Some(tcpdump) = Capture::begin(&pair, &capture) else {
        assert!(std::env::var_os("CI").is_none(), "tcpdump is missing");
        return;
    };
    pair.a
        .within(|| {
            let socket = || UdpSocket::bind("10.3.0.1:0").unwrap();
            let flows = [(socket(), 1), (socket(), 2)];
            flows.iter().for_each(|(socket, _)| socket.set_nonblocking(true).unwrap());
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(3) {
                for (socket, port) in &flows {
                    // As much as the socket takes.
                    while socket.send_to(&[0; 1_472], ("10.3.0.2", *port)).is_ok() {}
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        })
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    tcpdump.end();
    for (name, port, mbit) in [("low", 1, 2.0), ("high", 2, 20.0)] {
        let class = up.class(name);
        let late = class["late_p99_s"].as_f64().unwrap();
        let (flow, rate) = (format!("dst 10.3.0.2:{port}"), format!("{mbit} Mbit/s"));
        let words =
            ["pacing", "report", capture.to_str().unwrap(), "--flow", &flow, "--rate", &rate, "--json"];
        let folder = pair.folder.path().join(name);
        let (code, out, error) = farpace(&[&words[..], &["--out", folder.to_str().unwrap()]].concat());
        assert_eq!(code, 0, "{error}");
        let report: Value = serde_json::from_str(&out).unwrap();
        let flow = &report["captures"][0]["flows"][0];
        let mean = flow["mean_bit_s"].as_f64().unwrap() / 1e6;
        let frames = flow["burstiness_at_rate"]["frames"].as_f64().unwrap();
        let told = format!("{name}: {mean} Mbit/s, {frames} frames, 1 % later than {late} s");
        // What is late leaves at once: the queue of an exact line grows by what a class sends in that time.
        let most = 2.1 + class["late_most_s"].as_f64().unwrap() * mbit * 1e6 / 8.0 / 1_518.0;
        // The first two may leave at once, and a mean of n frames is over the time of n - 1.
        let first = 1.0 + 2.5 / flow["packets"].as_f64().unwrap();
        assert!(mean < mbit * first && frames < most, "{told}");
        assert!(late > 0.002 || mean > mbit * 0.995, "{told}");
    }
    up.end();
}
