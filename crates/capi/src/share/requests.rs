//! The owner's side: the requests of other processes for its sockets.

use super::frame::{MAX_CONTROL, MAX_DATA, MAX_VALUE, Op, ShareFrame};
use super::server::ServerAnswer;
use crate::creation;
use crate::descriptor::acting;
use crate::ffi::identity;
use crate::home::Home;
use crate::socket::{CapiSocket, LocalBinding};
use crate::table;
use farpace_live::socket::posix::{self, AncillaryMessage, SendTo, encode_address};
use nix::errno::Errno;
use nix::sys::socket::SockFlag;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

fn small(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
fn millis(time: Option<std::time::Duration>) -> i64 {
    time.map_or(-1, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}

/// Performs a requested operation. `subject`: a descriptor of the socket that it is about.
pub fn answer(
    home: &Arc<Home>,
    op: Op,
    request: &ShareFrame<'_>,
    subject: Option<&OwnedFd>,
) -> nix::Result<ServerAnswer> {
    if op == Op::Socket {
        let inner = posix::PosixSocket::new(
            home.stack.clone(),
            request.int(0),
            request.int(1),
            request.int(2),
            home.options.clone(),
        )?;
        let user = creation::create(home.clone(), inner, SockFlag::SOCK_CLOEXEC)?.0;
        return Ok(ServerAnswer { descriptor: Some(user), ..ServerAnswer::default() });
    }
    let subject = subject.ok_or(Errno::EBADF)?;
    let inode = identity(subject.as_raw_fd()).ok_or(Errno::EBADF)?;
    let socket = table::of_file(inode).ok_or(Errno::EBADF)?;
    let CapiSocket::Here(local) = &*socket else { return Err(Errno::EBADF) };
    acting(inode, subject.as_raw_fd(), || act_on(&socket, local, op, request))
}

fn act_on(
    socket: &Arc<CapiSocket>,
    local: &LocalBinding,
    op: Op,
    request: &ShareFrame<'_>,
) -> nix::Result<ServerAnswer> {
    let inner = &local.inner;
    let name = request.name.unwrap_or_default();
    let nothing = |()| ServerAnswer::default();
    match op {
        Op::Socket => Err(Errno::EINVAL),
        Op::Know => Ok(ServerAnswer::number(inner.is_datagram())),
        Op::Bind => inner.bind(name).map(nothing),
        Op::Listen => inner.listen(request.int(0)).map(nothing),
        Op::Accept => {
            let (accepted, from) = inner.accept()?;
            let flags = SockFlag::from_bits_truncate(request.int(0)) | SockFlag::SOCK_CLOEXEC;
            let user = creation::create(local.home.clone(), accepted, flags)?.0;
            Ok(ServerAnswer {
                name: Some(encode_address(from)),
                descriptor: Some(user),
                ..ServerAnswer::default()
            })
        }
        Op::Connect => {
            let descriptor = creation::renew(local, socket, SockFlag::from_bits_truncate(request.int(0)))?;
            let error = inner.connect(name).map_or_else(|error| error as u32, |()| 0);
            Ok(ServerAnswer { error, descriptor, ..ServerAnswer::default() })
        }
        Op::Shutdown => inner.shutdown(request.int(0)).map(nothing),
        Op::Local => {
            Ok(ServerAnswer { name: Some(encode_address(inner.local())), ..ServerAnswer::default() })
        }
        Op::Peer => Ok(ServerAnswer { name: Some(encode_address(inner.peer()?)), ..ServerAnswer::default() }),
        Op::Available => inner.available().map(|n| ServerAnswer::number(small(n))),
        Op::Unacknowledged => {
            let (all, unsent) = inner.unacknowledged()?;
            Ok(ServerAnswer { numbers: [small(all), small(unsent), 0, 0], ..ServerAnswer::default() })
        }
        Op::AtMark => Ok(ServerAnswer::number(inner.is_at_mark())),
        Op::Receive => {
            let mut data = vec![0; usize::try_from(request.int(0)).unwrap_or(0).min(MAX_DATA)];
            let got = inner.receive(&mut [IoSliceMut::new(&mut data)], request.int(1))?;
            data.truncate(got.copied);
            Ok(ServerAnswer {
                error: 0,
                numbers: [small(got.len), got.flags.into(), small(inner.low_water()), 0],
                name: got.from.map(encode_address),
                control: AncillaryMessage::write_all(&got.control, MAX_CONTROL).0,
                data,
                descriptor: None,
            })
        }
        Op::Send => {
            let control = AncillaryMessage::read_all(request.control)?;
            let message = SendTo { to: request.name, control, flags: request.int(0) };
            let sent = inner.send(&[IoSlice::new(request.data)], &message)?;
            Ok(ServerAnswer::number(small(sent)))
        }
        Op::SetOption => {
            let value = (request.numbers[2] != 0).then_some(request.data);
            inner.set_option(request.int(0), request.int(1), value).map(nothing)
        }
        Op::Option => {
            let mut data = inner.option(request.int(0), request.int(1), request.int(2))?;
            data.truncate(MAX_VALUE);
            Ok(ServerAnswer { data, ..ServerAnswer::default() })
        }
        Op::TakeError => Ok(ServerAnswer::number(inner.take_error())),
        Op::State => {
            let ended = inner.readiness().read_ended || inner.is_over();
            let bits = i64::from(inner.is_connecting()) | i64::from(ended) << 1;
            let numbers = [
                bits,
                millis(inner.receive_timeout()),
                millis(inner.send_timeout()),
                small(inner.low_water()),
            ];
            Ok(ServerAnswer { numbers, ..ServerAnswer::default() })
        }
        Op::ReportOpen => Ok(ServerAnswer::number(inner.report_open())),
        Op::ForgetFailed => {
            inner.forget_failed();
            Ok(ServerAnswer::default())
        }
    }
}
