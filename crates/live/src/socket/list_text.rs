//! Sockets in the words of `ss -tuni` (iproute2, misc/ss.c).

use super::list::SocketRow;
use super::posix::TcpInfo;

/// ssthresh while there is none: TCP_INFINITE_SSTHRESH.
const INFINITE: u32 = 0x7fff_ffff;
/// Bits of tcpi_options.
const OPTIONS: [(u8, &str); 3] = [(1, "ts"), (2, "sack"), (8, "ecn")];
const WINDOW_SCALE: u8 = 4;

/// A line for each socket, and one about its connection. `mixed`: each begins with its protocol.
pub fn list_text(rows: &[SocketRow], mixed: bool) -> String {
    let ends = |row: &SocketRow| {
        let peer = row.peer.map_or("*:*".to_owned(), |peer| peer.to_string());
        let (state, local) = (row.state.clone(), row.local.to_string());
        [row.protocol.name().to_owned(), state, row.recv_q.to_string(), row.send_q.to_string(), local, peer]
    };
    let head = ["Netid", "State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port"];
    let lines: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(rows.iter().map(ends)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4, 5].map(width);
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(widths).skip(usize::from(!mixed));
        let cells: Vec<_> = cells.map(|(cell, width)| format!("{cell:width$}")).collect();
        text += cells.join(" ").trim_end();
        text.push('\n');
        let Some(row) = n.checked_sub(1).and_then(|n| rows.get(n)) else { continue };
        if let Some(info) = row.info.as_ref().filter(|_| row.peer.is_some()) {
            text += &format!("\t {}\n", words(row, info));
        } else if row.dropped > 0 {
            text += &format!("\t dropped:{}\n", row.dropped);
        }
    }
    text
}

fn millis(micros: u32) -> String {
    let text = format!("{:.3}", f64::from(micros) / 1e3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bits a second, of bytes a second, as ss writes them.
fn rate(bytes: u64) -> String {
    format!("{}bps", bytes.saturating_mul(8))
}

/// A count, which ss leaves out if it is zero.
fn say(all: &mut Vec<String>, name: &str, value: u32) {
    if value > 0 {
        all.push(format!("{name}:{value}"));
    }
}

/// What ss says of a connection.
fn words(row: &SocketRow, i: &TcpInfo) -> String {
    let mut all: Vec<String> = Vec::new();
    let options = OPTIONS.iter().filter(|(bit, _)| i.options & bit != 0);
    all.extend(options.map(|(_, name)| (*name).to_owned()));
    all.extend(row.congestion.clone());
    if i.options & WINDOW_SCALE != 0 {
        all.push(format!("wscale:{},{}", i.wscale & 0xf, i.wscale >> 4));
    }
    say(&mut all, "backoff", i.backoff.into());
    all.push(format!("rto:{}", millis(i.rto)));
    if i.rtt > 0 {
        all.push(format!("rtt:{}/{}", millis(i.rtt), millis(i.rttvar)));
    }
    if i.ato > 0 {
        all.push(format!("ato:{}", millis(i.ato)));
    }
    all.push(format!("mss:{}", i.snd_mss));
    counts(i, &mut all);
    if i.rtt > 0 && i.snd_mss > 0 {
        let window = u64::from(i.snd_cwnd) * u64::from(i.snd_mss);
        all.push(format!("send {}", rate(window.saturating_mul(1_000_000) / u64::from(i.rtt))));
    }
    say(&mut all, "lastsnd", i.last_data_sent);
    say(&mut all, "lastrcv", i.last_data_recv);
    say(&mut all, "lastack", i.last_ack_recv);
    if i.pacing_rate != u64::MAX {
        all.push(format!("pacing_rate {}", rate(i.pacing_rate)));
    }
    if i.delivery_rate > 0 {
        all.push(format!("delivery_rate {}", rate(i.delivery_rate)));
    }
    if i.delivered > 0 {
        all.push(format!("delivered:{}", i.delivered));
    }
    if i.flags & 1 != 0 {
        all.push("app_limited".to_owned());
    }
    for (name, time) in
        [("busy", i.busy_time), ("rwnd_limited", i.rwnd_limited), ("sndbuf_limited", i.sndbuf_limited)]
    {
        if time > 0 {
            all.push(format!("{name}:{}ms", time / 1000));
        }
    }
    rest(i, &mut all);
    let acks = &row.acks;
    if acks.asked > 0 {
        all.push(format!("ack_requests:{}/{}", acks.asked, acks.confirmed));
    }
    if acks.requests > 0 {
        all.push(format!("ack_answers:{}/{}", acks.requests, acks.confirmations));
    }
    if let Some(limit) = row.limit.as_ref().filter(|limit| *limit != "nothing") {
        all.push(format!("limit:{}", limit.replace(' ', "_")));
    }
    all.join(" ")
}

fn counts(i: &TcpInfo, all: &mut Vec<String>) {
    let ssthresh = if i.snd_ssthresh < INFINITE { i.snd_ssthresh } else { 0 };
    let values = [
        ("pmtu", u64::from(i.pmtu)),
        ("rcvmss", i.rcv_mss.into()),
        ("advmss", i.advmss.into()),
        ("cwnd", i.snd_cwnd.into()),
        ("ssthresh", ssthresh.into()),
        ("bytes_sent", i.bytes_sent),
        ("bytes_retrans", i.bytes_retrans),
        ("bytes_acked", i.bytes_acked),
        ("bytes_received", i.bytes_received),
        ("segs_out", i.segs_out.into()),
        ("segs_in", i.segs_in.into()),
        ("data_segs_out", i.data_segs_out.into()),
        ("data_segs_in", i.data_segs_in.into()),
    ];
    all.extend(values.iter().filter(|(_, value)| *value > 0).map(|(name, value)| format!("{name}:{value}")));
}

fn rest(i: &TcpInfo, all: &mut Vec<String>) {
    say(all, "unacked", i.unacked);
    if i.retrans > 0 || i.total_retrans > 0 {
        all.push(format!("retrans:{}/{}", i.retrans, i.total_retrans));
    }
    say(all, "lost", i.lost);
    say(all, "sacked", i.sacked);
    say(all, "dsack_dups", i.dsack_dups);
    if i.reordering > 0 && i.reordering != 3 {
        say(all, "reordering", i.reordering);
    }
    say(all, "reord_seen", i.reord_seen);
    if i.rcv_rtt > 0 {
        all.push(format!("rcv_rtt:{}", millis(i.rcv_rtt)));
    }
    say(all, "rcv_space", i.rcv_space);
    say(all, "rcv_ssthresh", i.rcv_ssthresh);
    say(all, "notsent", i.notsent_bytes);
    if i.min_rtt > 0 {
        all.push(format!("minrtt:{}", millis(i.min_rtt)));
    }
    say(all, "rcv_ooopack", i.rcv_ooopack);
    say(all, "snd_wnd", i.snd_wnd);
    say(all, "rcv_wnd", i.rcv_wnd);
}
