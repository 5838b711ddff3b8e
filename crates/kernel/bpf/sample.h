/* What an ACK brought: the fields of AckSample (crates/tcp/src/cc/mod.rs) that the controls use. */
#ifndef FARPACE_SAMPLE_H
#define FARPACE_SAMPLE_H

struct fp_ack {
	/* Arrival, nanoseconds. */
	u64 now;
	/* Delivery rate, bytes a second; 0: none. */
	u64 rate;
	/* Segments newly acknowledged; acknowledged or SACKed; found lost; in flight now. */
	u32 acked;
	u32 delivered;
	u32 lost;
	u32 in_flight;
	/* Round trip of the newest segment that arrived, of the rate sample, and the smoothed one, microseconds; 0: none. */
	u32 rtt;
	u32 rate_rtt;
	u32 min_rtt;
	u32 srtt;
	/* Segments delivered over the connection when the newest that arrived was sent, and now. They wrap. */
	u32 prior_delivered;
	u32 total_delivered;
	u32 mss;
	/* The peer's largest window, bytes. */
	u32 max_window;
	/* The peer's clock when it sent the ACK (TSval). */
	u32 peer_clock;
	u8 has_rate;
	u8 cwnd_limited;
	u8 ece;
	u8 has_peer_clock;
	/* The line was empty for a while, because the program had sent nothing. */
	u8 app_limited;
	u8 unused[3];
};

#endif
