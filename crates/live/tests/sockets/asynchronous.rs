//! Asynchronous tasks.

use crate::pair::{A, B, pattern, stacks};
use farpace_live::socket::SocketOptions;
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};

/// Breaks: one thread serves a hundred simultaneous asynchronous connections, with all bytes intact.
#[test]
fn tasks_share_one_thread() {
    let (a, b) = stacks();
    let at = SocketAddr::new(B, 7);
    let listener = b.listen(at, &SocketOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept_async().await.unwrap();
                tokio::spawn(async move {
                    let (mut read, mut write) = split(stream);
                    copy(&mut read, &mut write).await.unwrap();
                    write.shutdown().await.unwrap();
                });
            }
        });
        let mut clients = Vec::new();
        for n in 0..100 {
            let a = a.clone();
            clients.push(tokio::spawn(async move {
                let stream = a.connect_async(at, &SocketOptions::default()).await.unwrap();
                let data = pattern(30_000 + n);
                let (mut read, mut write) = split(stream);
                let mut got = Vec::new();
                let (sent, received) = tokio::join!(
                    async {
                        write.write_all(&data).await?;
                        write.shutdown().await
                    },
                    read.read_to_end(&mut got)
                );
                sent.unwrap();
                received.unwrap();
                assert!(got == data);
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
        let nobody = a.connect_async(SocketAddr::new(B, 8), &SocketOptions::default()).await;
        assert_eq!(nobody.err().unwrap().kind(), ErrorKind::ConnectionRefused);
        let (here, there) = (a.bind_udp((A, 0)).unwrap(), b.bind_udp((B, 9)).unwrap());
        here.send_to_async(b"hello", there.local_addr()).await.unwrap();
        let mut buffer = [0; 9];
        assert_eq!(there.recv_from_async(&mut buffer).await.unwrap(), (5, here.local_addr()));
    });
}
