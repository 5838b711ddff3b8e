//! Releases sockets whose descriptors a program has closed with close(2), and answers other processes.

use crate::home::Home;
use crate::links::LinkEvent;
use crate::share::requests::answer;
use crate::table;
use nix::errno::Errno;
use std::sync::Arc;

/// Reaps in a thread until the stack is gone. A host that the program drives has no thread: its driver calls
/// [`reap`].
pub fn start(home: &Arc<Home>) -> nix::Result<()> {
    let weak = Arc::downgrade(home);
    // Once a second it checks whether the stack is still in use.
    let reaper = std::thread::Builder::new().name("farpace-reaper".to_owned());
    let begun = reaper.spawn(move || {
        while let Some(home) = weak.upgrade() {
            reap(&home, 1000);
        }
    });
    begun.map_err(|_| Errno::EAGAIN).map(drop)
}

/// Handles what happened at the descriptors of a stack, and waits for it at most this time.
pub fn reap(home: &Arc<Home>, milliseconds: u16) {
    home.links.wait(milliseconds, |event| match (event, home.server()) {
        (LinkEvent::Socket(inode), _) => table::check_closed(inode),
        (LinkEvent::Rendezvous, Some(server)) => {
            server.admit(|channel| home.links.notice_channel(channel));
        }
        (LinkEvent::Channel(channel), Some(server)) => {
            server.serve(channel, |op, request, subject| answer(home, op, request, subject));
        }
        // Only a server has these watched.
        (LinkEvent::Rendezvous | LinkEvent::Channel(_), None) => {}
    });
}

/// True if another process uses the stack, after this one has closed all its sockets.
pub fn is_used(home: &Arc<Home>) -> bool {
    let Some(server) = home.server() else { return false };
    // A thread that waits in a socket keeps it open, so another process must exist too.
    (server.channels() > 0 || table::sockets_of(home) > 0) && !server.is_left()
}
