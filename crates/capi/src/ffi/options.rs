//! getsockopt(2) and setsockopt(2).

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::done;
use super::memory::{self, borrowed};
use crate::choices::Value;
use crate::info::TcpInfo;
use crate::socket::{State, errno};
use crate::table;
use nix::errno::Errno;
use nix::libc::{self, c_int, socklen_t};
use std::ffi::c_void;
use std::time::Duration;

/// Longest name of a congestion control.
const LONGEST_NAME: usize = 64;

fn decode(level: c_int, name: c_int, at: *const c_void, len: usize) -> nix::Result<Value> {
    let needs = |least: usize| if len < least { Err(Errno::EINVAL) } else { Ok(()) };
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) => {
            needs(size_of::<libc::timeval>())?;
            let time: libc::timeval = memory::read(at.cast())?;
            let seconds = u64::try_from(time.tv_sec).map_err(|_| Errno::EDOM)?;
            let micros = u64::try_from(time.tv_usec).ok().filter(|n| *n < 1_000_000).ok_or(Errno::EDOM)?;
            let time = Duration::from_secs(seconds) + Duration::from_micros(micros);
            Ok(Value::Time((!time.is_zero()).then_some(time)))
        }
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            needs(size_of::<libc::linger>())?;
            let linger: libc::linger = memory::read(at.cast())?;
            let time = Duration::from_secs(u64::try_from(linger.l_linger).map_err(|_| Errno::EINVAL)?);
            Ok(Value::Linger((linger.l_onoff != 0).then_some(time)))
        }
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
            let bytes = memory::bytes(at.cast(), len.min(LONGEST_NAME))?;
            let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            Ok(Value::Name(String::from_utf8_lossy(name).into_owned()))
        }
        _ => {
            needs(size_of::<c_int>())?;
            memory::read(at.cast()).map(Value::Int)
        }
    }
}

fn encode(value: &[u8], at: *mut c_void, len: *mut socklen_t) -> nix::Result<()> {
    let room = (memory::read(len)? as usize).min(value.len());
    memory::bytes_mut(at.cast(), room)?.copy_from_slice(&value[..room]);
    memory::write(len, room as socklen_t)
}

/// setsockopt(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        let value = decode(level, name, value, len as usize)?;
        let stream = socket.stream().ok();
        socket.choices().set(level, name, &value, stream.as_ref())
    })
}

/// getsockopt(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        let int = |n: c_int| encode(&n.to_ne_bytes(), value, len);
        let state = socket.state();
        let datagram = matches!(state, State::Unbound | State::Datagram(_));
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => return int(socket.take_error(borrowed(fd)?)),
            (libc::SOL_SOCKET, libc::SO_TYPE) => {
                return int(if datagram { libc::SOCK_DGRAM } else { libc::SOCK_STREAM });
            }
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => {
                return int(if socket.v6 { libc::AF_INET6 } else { libc::AF_INET });
            }
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => {
                return int(if datagram { libc::IPPROTO_UDP } else { libc::IPPROTO_TCP });
            }
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                return int(matches!(state, State::Listening(_)).into());
            }
            (libc::IPPROTO_TCP, libc::TCP_INFO) => {
                let info = match socket.stream() {
                    Ok(stream) => TcpInfo::of(&stream.inspect().map_err(|error| errno(&error))?),
                    // 7 is TCP_CLOSE, 10 is TCP_LISTEN.
                    Err(_) if matches!(state, State::Listening(_)) => {
                        TcpInfo { state: 10, ..TcpInfo::default() }
                    }
                    Err(_) => TcpInfo { state: 7, ..TcpInfo::default() },
                };
                return encode(memory::raw(&info), value, len);
            }
            _ => {}
        }
        let stream = socket.stream().ok();
        match socket.choices().get(level, name, stream.as_ref())? {
            Value::Int(n) => int(n),
            Value::Name(name) => {
                let mut bytes = name.into_bytes();
                bytes.resize(16, 0); // TCP_CA_NAME_MAX
                encode(&bytes, value, len)
            }
            Value::Time(time) => {
                let time = time.unwrap_or_default();
                let time = libc::timeval {
                    tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                    tv_usec: time.subsec_micros().into(),
                };
                encode(memory::raw(&time), value, len)
            }
            Value::Linger(linger) => {
                let seconds = linger.map_or(0, |time| time.as_secs().try_into().unwrap_or(c_int::MAX));
                let linger = libc::linger { l_onoff: linger.is_some().into(), l_linger: seconds };
                encode(memory::raw(&linger), value, len)
            }
        }
    })
}
