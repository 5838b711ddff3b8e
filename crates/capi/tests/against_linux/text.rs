//! Programs as text: a line a step, with its time in ms. `#` begins a comment.
//!
//! ```text
//! switch tcp_sack 0
//! congestion reno
//! quiet 500
//! 0 s0 socket
//! 0.2 s0 bind 5001
//! 0.4 s0 listen 8
//! 10 in c0 S seq 0 win 65535 mss 1460 sackok ts 100 raw 0 wscale 7
//! 40 s1 accept s0
//! 50 s1 wait recv 1000
//! 60 icmp c0 3 4 mtu 1200 seq 1
//! ```

use super::program::*;
use std::fmt::{self, Display, Write};

const LETTERS: [(u16, char); 9] = [
    (SYN, 'S'),
    (FIN, 'F'),
    (RST, 'R'),
    (PSH, 'P'),
    (URG, 'U'),
    (ECE, 'E'),
    (CWR, 'W'),
    (AE, 'A'),
    (ACK, '.'),
];

/// `flags` as letters.
pub fn letters(flags: u16) -> String {
    let all: String = LETTERS.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, c)| *c).collect();
    if all.is_empty() { "-".into() } else { all }
}

impl Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.switches {
            writeln!(f, "switch {name} {value}")?;
        }
        writeln!(f, "congestion {}", self.congestion)?;
        writeln!(f, "quiet {}", self.quiet)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = format!("{}.{:03}", self.at / 1000, self.at % 1000);
        let ms = ms.trim_end_matches('0').trim_end_matches('.');
        match &self.what {
            Action::Call(c) => write!(f, "{ms} {c}"),
            Action::Segment(s) => write!(f, "{ms} in {s}"),
            Action::Icmp(i) => {
                write!(f, "{ms} icmp c{} {} {} mtu {} seq {}", i.conn, i.kind, i.code, i.mtu, i.seq)
            }
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{} {}", self.slot, if self.blocking { "wait " } else { "" })?;
        match &self.op {
            Op::Socket => write!(f, "socket"),
            Op::Bind(port) => write!(f, "bind {port}"),
            Op::Listen(n) => write!(f, "listen {n}"),
            Op::Accept(from) => write!(f, "accept s{from}"),
            Op::Connect(c) => write!(f, "connect c{c}"),
            Op::Send(n, flags) => write!(f, "send {n}{flags}"),
            Op::Recv(n, flags) => write!(f, "recv {n}{flags}"),
            Op::Shutdown(How::Read) => write!(f, "shutdown read"),
            Op::Shutdown(How::Write) => write!(f, "shutdown write"),
            Op::Shutdown(How::Both) => write!(f, "shutdown both"),
            Op::Close => write!(f, "close"),
            Op::Set(o, Value::Int(n)) => write!(f, "set {} {n}", o.name),
            Op::Set(o, Value::Linger(on, n)) => write!(f, "set {} {on} {n}", o.name),
            Op::Set(o, Value::Millis(n)) => write!(f, "set {} {n}", o.name),
            Op::Set(o, Value::Name(n)) => write!(f, "set {} {n}", o.name),
            Op::Get(o) => write!(f, "get {}", o.name),
            Op::Poll => write!(f, "poll"),
            Op::Info => write!(f, "info"),
            Op::Ioctl(Ioctl::InQueue) => write!(f, "inq"),
            Op::Ioctl(Ioctl::OutQueue) => write!(f, "outq"),
            Op::Ioctl(Ioctl::OutQueueUnsent) => write!(f, "outqnsd"),
            Op::LocalName => write!(f, "getsockname"),
            Op::PeerName => write!(f, "getpeername"),
        }
    }
}

const MESSAGE_FLAGS: [(i32, &str); 7] = [
    (nix::libc::MSG_OOB, "oob"),
    (nix::libc::MSG_PEEK, "peek"),
    (nix::libc::MSG_WAITALL, "waitall"),
    (nix::libc::MSG_DONTWAIT, "dontwait"),
    (nix::libc::MSG_EOR, "eor"),
    (nix::libc::MSG_MORE, "more"),
    (nix::libc::MSG_TRUNC, "trunc"),
];

impl Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = MESSAGE_FLAGS.iter().filter(|(bit, _)| self.0 & bit != 0);
        set.into_iter().try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

impl Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{} {} seq {} len {}", self.conn, letters(self.flags), self.seq, self.len)?;
        if self.flags & ACK != 0 || self.ack != 0 {
            write!(f, " ack {}", self.ack)?;
        }
        write!(f, " win {}", self.window)?;
        let mut rest = String::new();
        if self.urgent != 0 {
            write!(rest, " urg {}", self.urgent)?;
        }
        if let Some(mss) = self.mss {
            write!(rest, " mss {mss}")?;
        }
        if self.sackok {
            write!(rest, " sackok")?;
        }
        if let Some((value, echo)) = self.ts {
            write!(rest, " ts {value} ")?;
            match echo {
                Echo::Age(ms) => write!(rest, "age {ms}")?,
                Echo::Of(seq, n) => write!(rest, "of {seq} {n}")?,
                Echo::Raw(n) => write!(rest, "raw {n}")?,
                Echo::Off(n) => write!(rest, "off {n}")?,
            }
        }
        if let Some(shift) = self.wscale {
            write!(rest, " wscale {shift}")?;
        }
        for (from, to) in &self.sack {
            write!(rest, " sack {from} {to}")?;
        }
        if self.ecn != 0 {
            write!(rest, " ecn {}", self.ecn)?;
        }
        f.write_str(&rest)
    }
}

/// The words of a line.
struct Words<'a>(std::iter::Peekable<std::str::SplitAsciiWhitespace<'a>>);

impl<'a> Words<'a> {
    fn word(&mut self) -> Result<&'a str, String> {
        self.0.next().ok_or_else(|| "something is missing at the end".to_owned())
    }
    fn number<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("`{word}` is no number of this kind"))
    }
    fn name(&mut self, letter: char) -> Result<u8, String> {
        let word = self.word()?;
        let number = word.strip_prefix(letter).and_then(|n| n.parse().ok());
        number.ok_or_else(|| format!("`{word}` is not {letter} and a number"))
    }
    fn flags(&mut self) -> Result<Flags, String> {
        let mut flags = 0;
        for word in self.0.by_ref() {
            let (bit, _) =
                MESSAGE_FLAGS.iter().find(|(_, name)| *name == word).ok_or(format!("what is `{word}`?"))?;
            flags |= bit;
        }
        Ok(Flags(flags))
    }
}

/// Reads a program.
///
/// # Errors
/// The line, and what is wrong with it.
pub fn parse(text: &str) -> Result<Program, String> {
    let mut program = Program { congestion: "cubic".into(), quiet: 300, ..Program::default() };
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        if !line.trim().is_empty() {
            parse_line(line, &mut program).map_err(|why| format!("line {}: {why}: {line}", n + 1))?;
        }
    }
    Ok(program)
}

fn parse_line(line: &str, program: &mut Program) -> Result<(), String> {
    let mut words = Words(line.split_ascii_whitespace().peekable());
    let first = words.word()?;
    match first {
        "switch" => {
            let name = words.word()?.to_owned();
            let value = words.0.collect::<Vec<_>>().join(" ");
            program.switches.insert(name, value);
            return Ok(());
        }
        "congestion" => {
            program.congestion = words.word()?.to_owned();
            return Ok(());
        }
        "quiet" => {
            program.quiet = words.number()?;
            return Ok(());
        }
        _ => {}
    }
    let ms: f64 = first.parse().map_err(|_| format!("`{first}` is no time"))?;
    let at = (ms * 1000.0).round() as u64;
    let kind = *words.0.peek().ok_or("what happens?")?;
    let what = match kind {
        "in" => {
            words.word()?;
            Action::Segment(segment(&mut words)?)
        }
        "icmp" => {
            words.word()?;
            let (conn, kind, code) = (words.name('c')?, words.number()?, words.number()?);
            let mut icmp = Icmp { conn, kind, code, mtu: 0, seq: 1 };
            while let Ok(word) = words.word() {
                match word {
                    "mtu" => icmp.mtu = words.number()?,
                    "seq" => icmp.seq = words.number()?,
                    other => return Err(format!("what is `{other}`?")),
                }
            }
            Action::Icmp(icmp)
        }
        _ => Action::Call(call(&mut words)?),
    };
    program.steps.push(Step { at, what });
    Ok(())
}

fn call(words: &mut Words<'_>) -> Result<Call, String> {
    let slot = words.name('s')?;
    let mut word = words.word()?;
    let blocking = word == "wait";
    if blocking {
        word = words.word()?;
    }
    let op = match word {
        "socket" => Op::Socket,
        "bind" => Op::Bind(words.number()?),
        "listen" => Op::Listen(words.number()?),
        "accept" => Op::Accept(words.name('s')?),
        "connect" => Op::Connect(words.name('c')?),
        "send" => Op::Send(words.number()?, words.flags()?),
        "recv" => Op::Recv(words.number()?, words.flags()?),
        "shutdown" => Op::Shutdown(match words.word()? {
            "read" => How::Read,
            "write" => How::Write,
            "both" => How::Both,
            other => return Err(format!("what is `{other}`?")),
        }),
        "close" => Op::Close,
        "set" | "get" => {
            let name = words.word()?;
            let option = named(name).ok_or(format!("`{name}` is no option here"))?;
            if word == "get" {
                Op::Get(option)
            } else {
                let value = match option.form {
                    Form::Int => Value::Int(words.number()?),
                    Form::Linger => Value::Linger(words.number()?, words.number()?),
                    Form::Timeval => Value::Millis(words.number()?),
                    Form::Name => Value::Name(words.word()?.to_owned()),
                };
                Op::Set(option, value)
            }
        }
        "poll" => Op::Poll,
        "info" => Op::Info,
        "inq" => Op::Ioctl(Ioctl::InQueue),
        "outq" => Op::Ioctl(Ioctl::OutQueue),
        "outqnsd" => Op::Ioctl(Ioctl::OutQueueUnsent),
        "getsockname" => Op::LocalName,
        "getpeername" => Op::PeerName,
        other => return Err(format!("what is `{other}`?")),
    };
    Ok(Call { slot, blocking, op })
}

fn segment(words: &mut Words<'_>) -> Result<Segment, String> {
    let conn = words.name('c')?;
    let mut s = Segment { conn, ..Segment::default() };
    for letter in words.word()?.chars().filter(|c| *c != '-') {
        let (bit, _) = LETTERS.iter().find(|(_, c)| *c == letter).ok_or(format!("no flag `{letter}`"))?;
        s.flags |= bit;
    }
    while let Ok(word) = words.word() {
        match word {
            "seq" => s.seq = words.number()?,
            "ack" => s.ack = words.number()?,
            "len" => s.len = words.number()?,
            "win" => s.window = words.number()?,
            "urg" => s.urgent = words.number()?,
            "mss" => s.mss = Some(words.number()?),
            "wscale" => s.wscale = Some(words.number()?),
            "sackok" => s.sackok = true,
            "sack" => s.sack.push((words.number()?, words.number()?)),
            "ecn" => s.ecn = words.number()?,
            "ts" => {
                let value = words.number()?;
                let echo = match words.word()? {
                    "age" => Echo::Age(words.number()?),
                    "of" => Echo::Of(words.number()?, words.number()?),
                    "raw" => Echo::Raw(words.number()?),
                    "off" => Echo::Off(words.number()?),
                    other => return Err(format!("what is `{other}`?")),
                };
                s.ts = Some((value, echo));
            }
            other => return Err(format!("what is `{other}`?")),
        }
    }
    Ok(s)
}
