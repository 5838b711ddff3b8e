//! A path of UDP in the hand of the test: what it loses, holds, repeats and changes.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What becomes of one datagram: what is sent on in its place.
pub type Rule = Box<dyn FnMut(&[u8]) -> Vec<Vec<u8>> + Send>;

/// Stands between a client and a server. Datagrams from the server go through as they are.
pub struct Relay {
    pub at: SocketAddr,
    pub seen: Arc<Mutex<Vec<Vec<u8>>>>,
    rule: Arc<Mutex<Rule>>,
    /// A new socket towards the server: the client's address changes, as behind a translator that forgot it.
    rebind: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

impl Relay {
    /// A path to `server` on which nothing happens yet.
    pub fn to(server: SocketAddr) -> Relay {
        let front = socket();
        let at = front.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let rule: Arc<Mutex<Rule>> = Arc::new(Mutex::new(Box::new(|datagram| vec![datagram.to_vec()])));
        let (rebind, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let shared = (seen.clone(), rule.clone(), rebind.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let (seen, rule, rebind, stop) = shared;
            let mut back = socket();
            let mut client = None;
            let mut room = vec![0; 65_536];
            while !stop.load(Ordering::Relaxed) {
                let mut idle = true;
                if rebind.swap(false, Ordering::Relaxed) {
                    back = socket();
                }
                while let Ok((len, from)) = front.recv_from(&mut room) {
                    (client, idle) = (Some(from), false);
                    let mut seen = seen.lock().unwrap();
                    if seen.len() < 10_000 {
                        seen.push(room[..len].to_vec());
                    }
                    for datagram in (rule.lock().unwrap())(&room[..len]) {
                        let _ = back.send_to(&datagram, server);
                    }
                }
                while let Ok((len, _)) = back.recv_from(&mut room) {
                    idle = false;
                    if let Some(client) = client {
                        let _ = front.send_to(&room[..len], client);
                    }
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        });
        Relay { at, seen, rule, rebind, stop, thread: Some(thread) }
    }
    pub fn rule(&self, rule: impl FnMut(&[u8]) -> Vec<Vec<u8>> + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }
    pub fn rebind(&self) {
        self.rebind.store(true, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
