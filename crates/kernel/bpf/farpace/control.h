/* The congestion control farpace, in integers. crates/tcp/src/cc/farpace/mod.rs, function by function; what each part is
 * for, and why, is there. tests/differential.rs holds both against each other.
 */
#ifndef FARPACE_CONTROL_H
#define FARPACE_CONTROL_H

#include "start.h"
#include "state.h"
#include "steady.h"

/* The first window, segments. */
static __always_inline void farpace_begin(struct farpace *f, u32 cwnd, u32 mss)
{
	f->mss = mss ? mss : 1;
	if (!f->w) {
		f->w = min64((u64)cwnd * SEG, MAX_WINDOW);
		f->cwnd = f->w;
	}
}

/* The window in force, whole segments. */
static __always_inline u32 farpace_window(const struct farpace *f)
{
	return max64(f->cwnd / SEG, 1);
}

static __always_inline void farpace_end_round(struct farpace *f, const struct fp_ack *ack)
{
	struct round round = f->round;
	u64 before;
	u32 queue;

	__builtin_memset(&f->round, 0, sizeof(f->round));
	if (round.bandwidth)
		f->bandwidth = round.bandwidth;
	before = f->best;
	f->best = max64(before, round.bandwidth);
	aggregation_end_round(&f->aggregation);
	way_back_end_round(&f->way_back);
	/* After a timeout less is in force than is wanted. */
	queue = path_end_round(&f->path, ack->now, min64(f->w, f->cwnd), farpace_alpha(f), f->best * 256 / f->mss);
	if (f->phase == PHASE_STEADY) {
		farpace_follow(f, &round, queue, ack->now);
		f->settling -= f->settling > 0;
	} else
		farpace_start_round(f, ack, &round, queue, before);
	f->w = clamp64(f->w, MIN_WINDOW, MAX_WINDOW);
}

/* What the line is known to carry, bytes a second; 0: not known. The rate of a window that grows is not that of the
 * line. */
static __always_inline u64 farpace_known_rate(const struct farpace *f)
{
	u64 shown = max64(f->best, f->round.bandwidth);

	if (f->phase == PHASE_TRAIN)
		return 0;
	return f->phase == PHASE_TRAINS || f->phase == PHASE_RAMP ? max64(shown, f->rate) : shown;
}

/* An ACK. */
__noinline int farpace_on_ack(struct farpace *f, const struct fp_ack *ack)
{
	u32 rtt;

	if (!f || !ack)
		return 0;
	f->srtt = ack->srtt;
	rtt = ack->has_rate && ack->rate_rtt ? ack->rate_rtt : ack->rtt;
	if (rtt && ack->has_peer_clock)
		rtt = without_queue(&f->way_back, ack->now, ack->peer_clock, rtt, path_base(&f->path));
	f->rtt = rtt;
	if (rtt)
		path_sample(&f->path, rtt);
	if (ack->has_rate)
		f->round.bandwidth = max64(f->round.bandwidth, min64(ack->rate, MAX_RATE));
	f->flight = ack->in_flight;
	aggregation_on_ack(&f->aggregation, ack->now, ack->delivered, farpace_known_rate(f), f->mss);
	f->round.delivered += ack->delivered;
	f->round.lost += ack->lost;
	/* A window that a timeout holds below the one wanted says nothing of that one. */
	f->round.limited |= (ack->cwnd_limited || (farpace_is_paced(f) && !(ack->has_rate && ack->app_limited))) &&
			    f->cwnd >= f->w;
	f->round.marked |= ack->ece;
	if (ack->delivered)
		f->timeouts = 0;
	if (f->phase == PHASE_TRAIN && train_on_ack(&f->train, ack)) {
		path_end_round(&f->path, ack->now, f->w, farpace_alpha(f), 0);
		farpace_on_train(f, ack->total_delivered);
		f->next_delivered = ack->total_delivered;
	}
	farpace_open(f, ack);
	if (ack->has_rate && at_least(ack->prior_delivered, f->next_delivered)) {
		f->next_delivered = ack->total_delivered;
		farpace_end_round(f, ack);
	}
	if (f->phase != PHASE_STEADY)
		f->cwnd = f->w;
	else if (ack->delivered)
		/* After a timeout the window opens again by what arrives, from a quarter of what it was. */
		f->cwnd = max64(f->cwnd + (u64)ack->delivered * SEG, f->w / 4);
	f->cwnd = min64(f->cwnd, max64(f->w, MIN_CWND));
	return 0;
}

/* The window is about to be reduced. */
static __always_inline void farpace_on_cut(struct farpace *f)
{
	f->before_w = f->w;
	f->before_cwnd = f->cwnd;
}

/* A retransmission timeout. */
static __always_inline void farpace_on_timeout(struct farpace *f)
{
	f->timeouts++;
	farpace_enter(f, PHASE_STEADY, false);
	f->was_full = 1;
	f->probing = 0;
	f->probed = 0;
	f->loss.stage = LOSS_NO_TEST;
	path_ignore_window(&f->path);
	f->cwnd = SEG;
}

/* The last reduction was a mistake. */
static __always_inline void farpace_on_undo(struct farpace *f)
{
	f->w = max64(f->w, f->before_w);
	f->cwnd = min64(max64(f->cwnd, f->before_cwnd), max64(f->w, MIN_CWND));
}

/* The rate at which segments leave, bytes a second. */
static __always_inline u64 farpace_pacing(const struct farpace *f)
{
	u64 window, fast, known;

	if (f->phase == PHASE_TRAIN || !f->srtt)
		return BURST;
	if (f->phase == PHASE_TRAINS)
		return max64(f->rate / 2, 1);
	if (farpace_is_paced(f))
		return max64(rate_of(min64(f->cwnd, f->w), f->srtt, f->mss), 1);
	window = rate_of(max64(f->cwnd, SEG), f->srtt, f->mss);
	fast = max64(PACE(window), 1);
	if (f->phase == PHASE_DOUBLE || f->phase == PHASE_BEYOND || (u64)f->flight * SEG + MISSING >= f->cwnd)
		return fast;
	known = f->phase == PHASE_RAMP ? f->rate : f->best;
	return clamp64(known, max64(window, 1), fast);
}

#endif
