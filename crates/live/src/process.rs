//! What a process asks of the system for itself.

/// Lets sleeps of this thread end when they are to, not up to 50 us later.
pub fn sharpen_timers() {
    // Without it sleeps are longer, no more.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Leaves the terminal: its end does not end this process. Nothing happens to a process that leads others.
pub fn leave_terminal() {
    let _ = nix::unistd::setsid();
}
