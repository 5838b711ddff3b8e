//! Profile `linux`, in virtual time, through the library's interface for C.
//!
//! Inputs come when they came to the kernel. A timer of the kernel fires late, by the grain of its wheel, so
//! ours fire when the kernel's did if that is within the grain: else a race between a timer and the next
//! input would make two different programs of one.

use super::calls::{Congestion, Host, Library, Outcome, Place, Sockets, Table, call};
use super::kernel::{LOCAL, Record};
use super::peer::{Peer, Sent};
use super::program::{Action, Call, Op, Program};
use nix::libc::{c_int, c_short, c_void};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Virtual time of the beginning.
const EPOCH: i64 = 5_000_000_000;
const MS: i64 = 1_000_000;
/// What follows an input within this time answers it.
const ANSWER: i64 = 300_000;
/// Ticks of the kernel's timers.
pub const TICK: i64 = 4 * MS;
/// What the machine adds to that.
const LATE: i64 = 3 * MS;
/// A timer that is set for so long is that of compressed SACKs, of high resolution. Those of the wheel are
/// set for two ticks at least, or for the next one.
const FINE: RangeInclusive<i64> = MS / 10..=3 * MS / 2;
/// How late the kernel may let such a timer be.
const FINE_GRAIN: i64 = MS / 2;

/// What is done with the timers of ours that come due shortly before an input, if the kernel shows nothing:
/// by turns, the timer fires before the input, or (a bit that is set) the input comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Races {
    pub waits: u32,
    /// So many there were.
    pub met: u32,
    /// When the timer of the last one was due.
    due: i64,
}

impl Races {
    pub fn of(waits: u32) -> Self {
        Races { waits, ..Races::default() }
    }
    /// Does the timer that is due wait? One that waited for an input waits for those behind it, too.
    fn next(&mut self, due: i64) -> bool {
        if self.met == 0 || due != self.due {
            (self.met, self.due) = (self.met + 1, due);
        }
        self.waits.checked_shr(self.met - 1).unwrap_or(0) & 1 != 0
    }
}

/// The words of farpace for the switches of a program.
fn settings(program: &Program) -> String {
    let mut words = String::from("linux send_buffer=4194304");
    for (name, value) in &program.switches {
        let word = match name.as_str() {
            "tcp_sack" => "sack",
            "tcp_timestamps" => "timestamps",
            "tcp_window_scaling" => "window_scale",
            other => panic!("there is no word for {other}"),
        };
        words += &format!(" {word}={}", if value == "0" { "off" } else { "on" });
    }
    words
}

/// A host and its peer.
pub struct Ours {
    sockets: Arc<Sockets>,
    table: Table,
    place: Place,
    peer: Peer,
    /// Calls that wait, by the number of their step.
    waiting: Vec<(usize, Arc<Turn>, JoinHandle<Outcome>)>,
    pub record: Record,
    now: i64,
    /// An input came so much later than the library was told, because a timer had to wait for it.
    behind: i64,
    /// When the timer of high resolution is due that the last input set.
    fine: Option<i64>,
    host: Arc<Host>,
    /// When it begins.
    epoch: i64,
}

impl Ours {
    /// `phase`: of the clock of timestamps when the program begins, in nanoseconds.
    pub fn new(library: Library, seed: u64, program: &Program, phase: i64) -> Self {
        let host = Arc::new(library.host(LOCAL, seed, &settings(program), wait));
        Ours {
            sockets: Arc::default(),
            table: host.table(),
            place: Place { remote: REMOTE, shift: 0, congestion: Congestion::named(&program.congestion) },
            peer: Peer::new(LOCAL, REMOTE, 0),
            waiting: Vec::new(),
            record: Record::default(),
            now: 0,
            behind: 0,
            fine: None,
            host,
            epoch: EPOCH + phase,
        }
    }

    fn clock(&self) -> u64 {
        (self.now + self.epoch) as u64
    }

    /// When it wants to be called next, from the beginning.
    pub fn deadline(&self) -> i64 {
        i64::try_from(self.host.deadline()).map_or(i64::MAX, |at| at - self.epoch)
    }

    /// Notes what was sent until now.
    fn hear(&mut self) {
        while let Some((packet, left)) = self.host.output(self.clock()) {
            let heard = self.peer.heard(&packet, self.now + self.behind);
            let left = left as i64 - self.epoch;
            self.record.sent.extend(heard.map(|sent| Sent { left, ..sent }));
        }
    }

    /// Time is `now`; takes what is sent, and lets calls go on that can.
    pub fn at(&mut self, now: i64) {
        self.now = self.now.max(now);
        self.host.oversleep(self.clock());
        loop {
            self.hear();
            let before = self.record.sent.len();
            self.resume();
            self.hear();
            if self.record.sent.len() == before {
                return;
            }
        }
    }

    /// Each call that waits looks once more.
    fn resume(&mut self) {
        for (step, turn, thread) in std::mem::take(&mut self.waiting) {
            turn.run();
            if turn.is_over() {
                let outcome = thread.join().expect("the call returns");
                self.record.results.insert(step, (outcome, self.now + self.behind));
            } else {
                self.waiting.push((step, turn, thread));
            }
        }
    }

    /// Does step `n` now.
    pub fn input(&mut self, n: usize, what: &Action) {
        self.record.times.push(self.now + self.behind);
        match what {
            Action::Segment(segment) => {
                let packet = self.peer.packet(segment, self.now);
                self.host.input(&packet, self.clock());
            }
            Action::Icmp(icmp) => {
                let packet = self.peer.icmp(icmp);
                self.host.input(&packet, self.clock());
            }
            Action::Call(c) => self.call(n, c),
        }
        self.at(self.now);
    }

    fn call(&mut self, n: usize, c: &Call) {
        // The host knows the time only from these.
        self.hear();
        let (table, sockets, place) = (self.table, self.sockets.clone(), self.place);
        if !c.blocking || c.op == Op::Socket {
            let outcome = call(&table, &sockets, place, c.slot, c.blocking, &c.op);
            self.record.results.insert(n, (outcome, self.now + self.behind));
            return;
        }
        let turn = Arc::new(Turn::default());
        let (its, slot, op) = (turn.clone(), c.slot, c.op.clone());
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
            its.wait_for_turn();
            TURN.set(Some(its.clone()));
            let outcome = call(&table, &sockets, place, slot, true, &op);
            its.end();
            outcome
        });
        self.waiting.push((n, turn, thread.expect("a thread")));
    }

    /// It is over: calls that wait are told so.
    pub fn finish(&mut self, end: i64) {
        self.record.end = end;
        for (_, turn, thread) in self.waiting.drain(..) {
            turn.give_up();
            _ = thread.join();
        }
        self.sockets.abort_all(&self.table);
        while self.host.output(self.clock()).is_some() {}
    }
}

/// Whose turn it is: that of the driver, or of a call in a thread of its own.
#[derive(Default)]
struct Turn {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: bool,
    over: bool,
    given_up: bool,
}

thread_local! {
    static TURN: RefCell<Option<Arc<Turn>>> = const { RefCell::new(None) };
}

impl Turn {
    /// The driver lets the call run until it waits again, or returns.
    fn run(&self) {
        let mut state = self.state.lock().expect("no panic");
        state.running = true;
        self.changed.notify_all();
        while state.running {
            state = self.changed.wait(state).expect("no panic");
        }
    }
    fn wait_for_turn(&self) -> bool {
        let mut state = self.state.lock().expect("no panic");
        while !state.running {
            state = self.changed.wait(state).expect("no panic");
        }
        state.given_up
    }
    fn hand_back(&self, over: bool) {
        let mut state = self.state.lock().expect("no panic");
        (state.running, state.over) = (false, over);
        self.changed.notify_all();
    }
    fn end(&self) {
        self.hand_back(true);
    }
    fn is_over(&self) -> bool {
        self.state.lock().expect("no panic").over
    }
    fn give_up(&self) {
        self.state.lock().expect("no panic").given_up = true;
        while !self.is_over() {
            self.run();
        }
    }
}

/// A call has to wait: the driver goes on.
extern "C" fn wait(_: *mut c_void, _: c_int, _: c_short) -> c_int {
    let Some(turn) = TURN.with_borrow(Clone::clone) else { return 1 };
    turn.hand_back(false);
    c_int::from(turn.wait_for_turn())
}

/// How late a timer of the kernel may be that was set at most so long ago.
pub fn grain(span: i64) -> i64 {
    let wheel = match span / TICK {
        ..64 => TICK,
        64..512 => 8 * TICK,
        512..4096 => 64 * TICK,
        _ => 512 * TICK,
    };
    wheel + TICK + LATE
}

/// Nothing is sent because of it.
fn only_looks(action: &Action) -> bool {
    let Action::Call(call) = action else { return false };
    matches!(call.op, Op::Info | Op::Get(_) | Op::Poll | Op::Ioctl(_) | Op::LocalName | Op::PeerName)
}

/// When the kernel sent something by itself.
fn spontaneous(program: &Program, kernel: &Record) -> VecDeque<i64> {
    let changes = |n: &usize| !program.steps.get(*n).is_some_and(|step| only_looks(&step.what));
    let mut inputs: Vec<i64> =
        kernel.times.iter().enumerate().filter(|(n, _)| changes(n)).map(|(_, at)| *at).collect();
    inputs.extend(kernel.results.iter().filter(|(n, _)| changes(n)).map(|(_, (_, at))| *at));
    inputs.sort_unstable();
    let by_itself = |at: &i64| {
        let n = inputs.partition_point(|input| input <= at);
        n == 0 || at - inputs[n - 1] > ANSWER
    };
    let mut times: VecDeque<i64> = kernel.sent.iter().map(|s| s.at).filter(by_itself).collect();
    times.make_contiguous().sort_unstable();
    times
}

/// Plays `program` as it was played to the kernel.
pub fn run(library: Library, program: &Program, kernel: &Record, races: &mut Races, phase: i64) -> Record {
    let mut ours = Ours::new(library, 1, program, phase);
    let mut guide = spontaneous(program, kernel);
    for (n, step) in program.steps.iter().enumerate() {
        let at = kernel.times.get(n).copied().unwrap_or(step.at as i64 * 1000).max(ours.now);
        let told = advance(&mut ours, at, &mut guide, Some(races));
        ours.behind = at - told;
        if at > told {
            ours.record.behind.insert(n, at - told);
        }
        ours.at(told);
        let before = ours.deadline();
        ours.input(n, &step.what);
        ours.behind = 0;
        let due = ours.deadline();
        // What is due sooner than before was set by this input.
        if due < before {
            ours.fine = Some(due).filter(|due| FINE.contains(&(due - told)));
        }
    }
    advance(&mut ours, kernel.end, &mut guide, None);
    ours.finish(kernel.end);
    ours.record
}

/// Fires the timers until `to`; gives the time for the input that comes then. It is earlier if a timer that
/// is due has to wait for the input.
fn advance(ours: &mut Ours, to: i64, guide: &mut VecDeque<i64>, mut races: Option<&mut Races>) -> i64 {
    // A timer that shows nothing and sets another at once: both of the kernel's are late.
    let mut hidden = (0, 0);
    loop {
        let due = ours.deadline();
        if due > to {
            return to;
        }
        let grain = match ours.fine {
            Some(fine) if fine == due => FINE_GRAIN,
            _ => grain(due) + if due - hidden.1 < MS { hidden.0 } else { 0 },
        };
        while guide.front().is_some_and(|at| *at < due - TICK) {
            guide.pop_front();
        }
        let fires = match guide.front() {
            Some(&at) if at <= due + grain => at.max(due),
            _ if due + grain > to && races.as_mut().is_some_and(|races| races.next(due)) => i64::MAX,
            _ => due,
        };
        if fires > to && due > ours.now {
            return due - 1;
        }
        if guide.front() == Some(&fires) {
            // All that leaves at once is one event.
            guide.pop_front();
        }
        let before = ours.record.sent.len();
        ours.at(fires.min(to));
        hidden = if ours.record.sent.len() == before { (grain, fires.min(to)) } else { (0, 0) };
    }
}
