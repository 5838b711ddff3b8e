//! The measure of all: the kernel at both ends of a veth pair between two namespaces.

use crate::ends;
use crate::meter::{Measure, Way};
use anyhow::{Context, ensure};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

pub fn with_offloads(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    between(way, seconds, true)
}

pub fn plain(way: Way, seconds: f64) -> anyhow::Result<Measure> {
    between(way, seconds, false)
}

/// Runs `ip`, or another tool, in the namespace of this thread.
pub fn tool(command: &str) -> anyhow::Result<()> {
    let mut words = command.split_whitespace();
    let name = words.next().context("no command")?;
    let output = Command::new(name).args(words).output().with_context(|| format!("cannot run {name}"))?;
    ensure!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// Moves this thread to a network namespace of its own.
pub fn own_namespace() -> anyhow::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("no network namespace (are you root?)")
}

fn between(way: Way, seconds: f64, offloads: bool) -> anyhow::Result<Measure> {
    pair(
        offloads,
        move |stream| match way {
            // The other end decides when it is over.
            Way::Out => drop(ends::read(stream, 1e9)),
            Way::In => drop(ends::write(stream, 1e9)),
        },
        |stream| match way {
            Way::Out => ends::write(stream, seconds),
            Way::In => ends::read(stream, seconds),
        },
    )
}

/// Questions and answers.
pub fn latency(questions: usize) -> anyhow::Result<Vec<f64>> {
    pair(true, |stream| drop(ends::answer(stream)), |stream| ends::ask(stream, questions))
}

/// A connection between two namespaces: `theirs` at the end that was opened, `ours` at the end that opens.
fn pair<R>(
    offloads: bool,
    theirs: impl FnOnce(TcpStream) + Send + 'static,
    ours: impl FnOnce(TcpStream) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    own_namespace()?;
    let (tell, hear) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    // The far end: a thread with another namespace, known to `ip` by its thread id.
    let far = std::thread::spawn(move || -> anyhow::Result<()> {
        own_namespace()?;
        tell.send(nix::unistd::gettid())?;
        let _ = ended.recv(); // the pair has been made
        tool(&format!("ip address add {FAR}/24 dev far"))?;
        tool("ip link set dev far up")?;
        if !offloads {
            tool("ethtool -K far tso off gso off gro off")?;
        }
        let listener = TcpListener::bind((FAR, 5001))?;
        // Connections have what their listener has.
        setsockopt(&listener, TcpCongestion, &OsString::from(ends::CONGESTION))
            .context("cubic in the kernel")?;
        tell.send(nix::unistd::gettid())?;
        let (stream, _) = listener.accept()?;
        theirs(stream);
        Ok(())
    });
    let id = hear.recv().context("the far end has not begun")?;
    tool(&format!("ip link add near type veth peer name far netns {id}"))?;
    tool(&format!("ip address add {NEAR}/24 dev near"))?;
    tool("ip link set dev near up")?;
    if !offloads {
        tool("ethtool -K near tso off gso off gro off")?;
    }
    end.send(())?;
    if hear.recv().is_err() {
        return match far.join() {
            Ok(Err(error)) => Err(error),
            _ => anyhow::bail!("the far end has ended"),
        };
    }
    let stream = ends::connect(FAR)?;
    let result = ours(stream);
    let _ = far.join();
    result
}
