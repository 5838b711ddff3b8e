/* How many segments the ACKs tell of at once. crates/tcp/src/cc/farpace/aggregation.rs. */
#ifndef FARPACE_AGGREGATION_H
#define FARPACE_AGGREGATION_H

#include "../fixed.h"

/* ACKs are one bunch where the time between them is so many times shorter than the path needs for the later one. */
#define BUNCH_OF_ACKS 8
/* Where the rate is not known, ACKs that come within 10 us are one bunch. */
#define TOGETHER 10000
/* Of what was told at once one part of so many is forgotten in a round trip. */
#define TOGETHER_FORGET_OF 8
/* 16 s: what comes later is another bunch at any rate. */
#define MAX_GAP (16 * NSEC_PER_SEC)

struct aggregation {
	u64 last;
	/* Whole segments: the bunch under way, those that were over in this round trip, and the sum of their squares. */
	u32 bunch;
	u32 told;
	u64 squares;
	/* Segments that were told at once in the last round trips. */
	u64 together;
};

/* An ACK that tells of `delivered` segments, on a path that has carried `rate` bytes a second; 0: not known. */
static __always_inline void aggregation_on_ack(struct aggregation *a, u64 now, u32 delivered, u64 rate, u32 mss)
{
	u64 gap = min64(less(now, a->last), MAX_GAP), needed;

	if (!delivered)
		return;
	/* Nanoseconds that the path needs for what the ACK tells. */
	needed = rate ? min64((u64)delivered * mss, 1ULL << 34) * NSEC_PER_SEC / rate : TOGETHER * BUNCH_OF_ACKS;
	if (gap * BUNCH_OF_ACKS >= needed) {
		a->told += a->bunch;
		a->squares += (u64)a->bunch * a->bunch;
		a->bunch = 0;
	}
	a->bunch += delivered;
	a->last = now;
}

/* A round trip is over. */
static __always_inline void aggregation_end_round(struct aggregation *a)
{
	if (a->told)
		/* After a loss each segment has an ACK of its own, whatever the receiver does otherwise. */
		a->together = max64(a->together - a->together / TOGETHER_FORGET_OF, a->squares * SEG / a->told);
	a->told = 0;
	a->squares = 0;
}

#endif
