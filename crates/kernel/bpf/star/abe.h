/* Available bandwidth estimation in the careful form, with the time-sliding window. crates/tcp/src/cc/abe.rs. */
#ifndef FARPACE_ABE_H
#define FARPACE_ABE_H

#include "../fixed.h"
#include "../sample.h"

#define MERGE (USEC_PER_SEC)

/* Zero has measured nothing. */
struct abe {
	/* BW, bytes a second. */
	u64 bw;
	/* Arrival of the last ACK that gave a sample, nanoseconds. */
	u64 last;
	/* Segments delivered since. */
	u32 pending;
	/* Microseconds. */
	u32 handshake;
	u32 rtt_min;
	u32 unused;
};

static __always_inline void abe_note_rtt(struct abe *a, u32 rtt)
{
	if (rtt && (!a->rtt_min || rtt < a->rtt_min))
		a->rtt_min = rtt;
}

/* The handshake took `rtt`. */
static __always_inline void abe_on_established(struct abe *a, u32 rtt)
{
	a->handshake = rtt;
	abe_note_rtt(a, rtt);
}

/* Something was acknowledged or SACKed. */
static __always_inline void abe_on_acked(struct abe *a, const struct fp_ack *ack)
{
	u64 interval, bytes, sample, rtt;

	abe_note_rtt(a, ack->rtt ? ack->rtt : ack->min_rtt);
	if (!ack->delivered)
		return;
	a->pending += ack->delivered;
	if (a->last)
		interval = less(ack->now, a->last);
	else
		interval = max64(a->handshake, ack->rtt) * 1000;
	/* What comes closer together than this is one sample: with the next. */
	if (a->bw && interval < max64(MERGE, ack->mss * (NSEC_PER_SEC / 4) / a->bw))
		return;
	if (!interval)
		return;
	bytes = (u64)a->pending * ack->mss;
	a->pending = 0;
	sample = min64(rate_over(bytes, interval), MAX_RATE);
	a->last = ack->now;
	/* A sender without data measures itself. */
	if (!ack->cwnd_limited && sample < a->bw)
		return;
	if (!a->bw) {
		a->bw = max64(sample, 1);
		return;
	}
	rtt = ack->srtt < MAX_RTT ? ack->srtt : MAX_RTT;
	a->bw = max64((rtt * a->bw + bytes * USEC_PER_SEC) / max64(interval / 1000 + rtt, 1), 1);
}

/* BW · RTTmin / MSS, segments; zero before the first sample. */
static __always_inline u64 abe_window(const struct abe *a, u32 mss)
{
	return segments_in(a->bw, a->rtt_min, mss);
}

#endif
