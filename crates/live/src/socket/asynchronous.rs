//! The sockets for asynchronous tasks (feature `tokio`). They need no tokio runtime: the driver wakes the
//! tasks.
//!
//! One task at a time may wait per direction of a stream, per listener, and per direction of a UDP socket.

use super::datagram::LiveUdpSocket;
use super::listener::LiveListener;
use super::options::SocketOptions;
use super::shared::IoDirection;
use super::stack::Stack;
use super::stream::Stream;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

fn would_block<T>(result: &io::Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let read = self.pipe().try_read(&mut [IoSliceMut::new(into.initialize_unfilled())]);
            if !would_block(&read) {
                return Poll::Ready(read.map(|read| into.advance(read)));
            }
            ready!(self.pipe().shared.poll(IoDirection::In, cx));
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let written = self.pipe().try_write(bytes);
            if !would_block(&written) {
                return Poll::Ready(written);
            }
            ready!(self.pipe().shared.poll(IoDirection::Out, cx));
        }
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    /// Sends a FIN after the written data.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe().finish();
        Poll::Ready(Ok(()))
    }
}

impl Stack {
    /// Opens a connection; ready when it is established. Dropping the future aborts it.
    ///
    /// # Errors
    /// As [`connect`](Stack::connect).
    pub async fn connect_async(&self, to: SocketAddr, options: &SocketOptions) -> io::Result<Stream> {
        let stream = self.begin_connect(to, options)?;
        poll_fn(|cx| stream.pipe().shared.poll(IoDirection::Out, cx)).await;
        stream.take_error().map_or(Ok(stream), Err)
    }
}

impl LiveListener {
    /// Accepts the next connection, with the address of its peer.
    ///
    /// # Errors
    /// The stack has ended.
    pub async fn accept_async(&self) -> io::Result<(Stream, SocketAddr)> {
        loop {
            if let Some(accepted) = self.try_accept()? {
                return Ok(accepted);
            }
            poll_fn(|cx| self.shared().poll(IoDirection::In, cx)).await;
        }
    }
}

impl LiveUdpSocket {
    /// Receives the next datagram, with the address of its sender. The part that does not fit into `buffer`
    /// is discarded.
    ///
    /// # Errors
    /// The stack has ended.
    pub async fn recv_from_async(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.set_nonblocking(true);
        loop {
            let received = self.recv_from(buffer);
            if !would_block(&received) {
                return received;
            }
            poll_fn(|cx| self.shared().poll(IoDirection::In, cx)).await;
        }
    }
    /// Sends a datagram.
    ///
    /// # Errors
    /// As [`send_to`](LiveUdpSocket::send_to).
    pub async fn send_to_async(&self, payload: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.set_nonblocking(true);
        loop {
            let sent = self.send_to(payload, to);
            if !would_block(&sent) {
                return sent;
            }
            poll_fn(|cx| self.shared().poll(IoDirection::Out, cx)).await;
        }
    }
}
