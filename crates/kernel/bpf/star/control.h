/* TCP-STAR in the robust form, in integers. crates/tcp/src/cc/star.rs, function by function. */
#ifndef FARPACE_STAR_H
#define FARPACE_STAR_H

#include "abe.h"

/* cwnd_reno grows by 1/cwnd_reno: it needs more bits behind the point. */
#define RENO_BITS 32
#define RENO_SEG (1ULL << RENO_BITS)
/* Segments of one ACK that count. */
#define MAX_STEP (1U << 21)
/* The window is at most so many times what was measured. */
#define CAP 2

/* Zero is one that has not begun. */
struct star {
	struct abe abe;
	/* cwnd_reno. */
	u64 reno;
	u64 before_reno;
	/* Whole segments. */
	u32 before_cwnd;
	u32 initial;
};

static __always_inline void star_begin(struct star *s, u32 cwnd)
{
	if (!s->initial) {
		s->initial = cwnd ? cwnd : 1;
		s->reno = (u64)s->initial << RENO_BITS;
	}
}

/* An ACK that may raise the window; returns the new one, whole segments. */
__noinline u32 star_on_ack(struct star *s, const struct fp_ack *ack, u32 cwnd, u32 ssthresh)
{
	u64 most, measured, reno, wanted;

	if (!s || !ack || !ack->acked)
		return cwnd;
	star_begin(s, cwnd);
	most = max64(ack->max_window / (ack->mss ? ack->mss : 1), 1);
	reno = s->reno;
	if (ack->cwnd_limited) {
		u64 acked = min64(ack->acked, min64(reno / RENO_SEG, MAX_STEP));

		if (reno < (u64)ssthresh << RENO_BITS)
			reno += acked << RENO_BITS;
		else
			/* In units of 2^-42 over units of 2^-10. */
			reno += (acked << 42) / (max64(reno, RENO_SEG) >> 22);
		/* A window that the peer does not have is not counted up for later. */
		reno = min64(reno, min64(most, MAX_WINDOW >> SEG_BITS) << RENO_BITS);
		s->reno = reno;
	}
	measured = abe_window(&s->abe, ack->mss);
	reno >>= RENO_BITS - SEG_BITS;
	wanted = min64(reno + measured, max64(CAP * measured, reno));
	wanted = max64(min64(wanted / SEG, most), 1);
	if (!ack->cwnd_limited)
		wanted = min64(wanted, cwnd);
	return wanted;
}

/* The threshold after a loss or a mark, whole segments. */
static __always_inline u32 star_ssthresh(struct star *s, u32 cwnd, u32 mss, bool marked)
{
	u64 measured = max64(abe_window(&s->abe, mss) / SEG, 2);

	star_begin(s, cwnd);
	s->before_cwnd = cwnd;
	s->before_reno = s->reno;
	s->reno = max64(s->reno / 2, RENO_SEG);
	/* A mark says what a loss does not: that there is a queue. */
	return marked ? min64(measured, max64(cwnd / 2, 2)) : measured;
}

/* A retransmission timeout: it begins again at the first window. */
static __always_inline u32 star_on_timeout(struct star *s)
{
	s->reno = (u64)(s->initial ? s->initial : 1) << RENO_BITS;
	return s->initial ? s->initial : 1;
}

/* The last reduction was a mistake; returns the window to go back to. */
static __always_inline u32 star_on_undo(struct star *s, u32 cwnd)
{
	s->reno = max64(s->reno, s->before_reno);
	return cwnd > s->before_cwnd ? cwnd : s->before_cwnd;
}

#endif
