//! A TUN device with several queues, each with its own driver.

use crate::bytes_both_ways::{bring, driver, fetch};
use crate::netns::alone;
use farpace_live::device::{Tun, TunConfig};

/// Breaks: flows that are distributed over several threads keep their packets.
#[test]
fn flows_stay_with_their_queues() {
    alone(|| {
        let config =
            TunConfig { addresses: vec![("10.77.0.1".parse().unwrap(), 24)], ..TunConfig::new("fpq") };
        let queues = Tun::open_queues(&config, 2).unwrap();
        let drivers: Vec<_> = queues.into_iter().map(|tun| driver(&["10.77.0.2"], move || tun)).collect();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| fetch("10.77.0.2"));
                scope.spawn(|| bring("10.77.0.2"));
            }
        });
        let stats: Vec<_> = drivers
            .into_iter()
            .map(|(handle, thread)| {
                handle.stop();
                thread.join().unwrap().unwrap().devices[0]
            })
            .collect();
        let received: u64 = stats.iter().map(|device| device.bytes_received).sum();
        assert!(received > 300_000_000, "{stats:?}");
    });
}
