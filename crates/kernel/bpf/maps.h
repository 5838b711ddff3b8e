/* Maps that the programs share, and the rows that user space reads from them. The layouts of `config`, `status_row` and
 * `trace_row` stand in crates/kernel/src/rows.rs too; its tests hold both against each other.
 */
#ifndef FARPACE_MAPS_H
#define FARPACE_MAPS_H

#include "farpace/state.h"
#include "star/abe.h"
#include "star/control.h"

enum kind { KIND_FARPACE = 1, KIND_STAR = 2 };

/* What we know of a connection under our control. */
struct connection {
	/* Counted from 1 over all connections since the programs were loaded; 0: never initialised. */
	u64 id;
	/* tp->delivered and tp->lost at the last ACK. */
	u32 delivered;
	u32 lost;
	u8 kind;
	/* The ACK at hand echoes a congestion mark. */
	u8 ece;
	/* An ACK request came with the segment at hand. */
	u8 ack_now;
	/* The peer answers ACK requests. */
	u8 asks;
	u8 unused[4];
	union {
		struct farpace farpace;
		struct star star;
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} fp_connections SEC(".maps");

struct config {
	/* One row for each ACK goes to `trace`. */
	u32 trace;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct config);
} fp_config SEC(".maps");

struct counters {
	/* Connections that began under our control. */
	u64 connections;
	/* Of them, those without memory for their state: their window stays. */
	u64 without_state;
	/* Rows of the trace that did not fit. */
	u64 trace_lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} fp_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} fp_trace SEC(".maps");

struct addresses {
	/* Network order; IPv4 in the first word. */
	u32 local[4];
	u32 remote[4];
	u16 local_port;
	u16 remote_port;
	u16 family;
	u16 unused;
	/* The number of the network namespace. */
	u32 namespace;
	u32 unused2;
};

/* One connection. */
struct status_row {
	u64 id;
	struct addresses addresses;
	u64 pacing_rate;
	u64 bytes_acked;
	u64 bandwidth;
	u64 delivered;
	u32 cwnd;
	u32 ssthresh;
	u32 in_flight;
	u32 mss;
	u32 srtt_us;
	u32 min_rtt_us;
	u32 base_rtt_us;
	u32 retransmissions;
	u32 lost;
	u32 data_segments;
	u8 kind;
	u8 phase;
	u8 ca_state;
	u8 tcp_state;
	u32 unused;
};

/* One ACK. */
struct trace_row {
	u64 time;
	u64 id;
	struct addresses addresses;
	u64 bandwidth;
	u64 pacing_rate;
	u32 ack;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 cwnd;
	u32 ssthresh;
	u32 packets_out;
	u32 lost_out;
	u32 sacked_out;
	u32 retrans_out;
	u32 srtt_us;
	u32 rttvar_us;
	u32 rto_us;
	u32 snd_wnd;
	u8 kind;
	u8 phase;
	u8 ca_state;
	u8 unused;
};

#endif
