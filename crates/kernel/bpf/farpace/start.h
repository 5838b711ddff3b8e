/* The start: a train, longer trains at half of the rate that it said, half of it for a round trip, all of it. Where the
 * ACKs of the train came bunched, on from there. Where it says nothing, slow start, with further trains meanwhile.
 * crates/tcp/src/cc/farpace/start.rs.
 */
#ifndef FARPACE_START_H
#define FARPACE_START_H

#include "state.h"
#include "steady.h"

#define MAX_TRAINS 4
/* ARRIVES is 0.4. */
#define ARRIVES(x) ((x) * 2 / 5)
#define DOUBLED 2
/* BEYOND is 1.25, BEYOND_TOGETHER 1.5. */
#define BEYOND_LESS_ONE(x) ((x) / 4)
#define BEYOND_TOGETHER_LESS_ONE(x) ((x) / 2)
#define MAX_BEYOND 2
#define MAX_TOGETHER (4 * SEG)
#define SETTLING_ROUNDS 2

/* The receiver tells of many segments at once. */
static __always_inline bool farpace_tells_together(const struct farpace *f)
{
	return f->aggregation.together > MAX_TOGETHER;
}

/* Segments by which the window grows beyond an uncertain rate. */
static __always_inline u64 farpace_growth_beyond(const struct farpace *f, u64 delivered)
{
	return farpace_tells_together(f) ? BEYOND_TOGETHER_LESS_ONE(delivered) : BEYOND_LESS_ONE(delivered);
}

/* The start is over: the window is what was delivered. */
static __always_inline void farpace_settle(struct farpace *f)
{
	f->bandwidth = max64(f->bandwidth, f->round.bandwidth);
	farpace_cut_to_delivered(f, MIN_CWND);
	if (f->phase == PHASE_RAMP) {
		/* Measured while it grew; at half the rate the path was not full. */
		f->w = max64(f->w, DRAIN(f->half));
		f->limit = 0;
	}
	farpace_enter(f, PHASE_STEADY, false);
}

/* The start is over, because there is a queue. */
static __always_inline void farpace_settle_by_queue(struct farpace *f)
{
	farpace_settle(f);
	f->limit_by_queue = 1;
	f->settling = SETTLING_ROUNDS;
}

/* As much of half the rate as a train of the present length can vouch for. */
static __always_inline void farpace_jump(struct farpace *f, u64 rate)
{
	u64 half = farpace_holds(f, rate / 2);
	u64 most = min64(f->w * MAX_JUMP, MAX_WINDOW);

	f->rate = rate;
	if (half > most * DOUBLED) {
		f->w = most;
		farpace_enter(f, PHASE_TRAINS, false);
		return;
	}
	f->w = max64(min64(half, most), f->w);
	f->half = f->w;
	farpace_enter(f, PHASE_RAMP, false);
}

/* The train has arrived, or what it says is no use. */
static __always_inline void farpace_on_train(struct farpace *f, u32 delivered)
{
	u64 rate = train_rate(&f->train);

	/* In the median a flight has waited for half of itself. MIN_WAITED is 0.45. */
	if (segments_in(rate, f->path.latest, f->mss) < f->w * 9 / 20)
		rate = 0;
	if (rate) {
		farpace_jump(f, rate);
	} else if (f->trains < MAX_TRAINS || !f->train.limited) {
		/* What programs say to each other before the data is no train. */
		f->trains += f->train.limited;
		train_after(&f->train, delivered);
	} else {
		farpace_enter(f, PHASE_DOUBLE, false);
	}
}

/* A train that was sent on the word of a rate has arrived at another, bytes a second. */
static __always_inline void farpace_on_arrival(struct farpace *f, u64 arrived, u32 delivered)
{
	u64 rate = arrived >= ARRIVES(f->rate) ? f->rate : arrived;

	if (rate && farpace_holds(f, rate) <= f->w) {
		/* The train itself was more than the path holds. */
		f->round.bandwidth = rate;
		f->bandwidth = rate;
		farpace_settle(f);
	} else if (rate)
		farpace_jump(f, rate);
	else
		farpace_enter(f, PHASE_DOUBLE, true);
	f->next_delivered = delivered;
}

/* An ACK of a train at half of the rate. */
static __always_inline void farpace_on_paced(struct farpace *f, const struct fp_ack *ack)
{
	u64 arrived = 0;

	if (f->started && ack->has_rate && paced_on_ack(&f->paced, ack, &arrived))
		farpace_on_arrival(f, arrived, ack->total_delivered);
}

/* A round trip has passed, and the window has not held back what is missing of the train. What the receiver's window has
 * let through tells a rate as well. A program that sends little tells none: the next flight is a train again.
 */
static __always_inline void farpace_on_short_train(struct farpace *f, const struct fp_ack *ack,
						   const struct round *round)
{
	u64 arrived = ack->app_limited ? 0 : paced_so_far(&f->paced, f->mss);

	if (arrived) {
		farpace_on_arrival(f, arrived, ack->total_delivered);
		return;
	}
	f->w = max64(min64(f->w, max64(round->delivered, f->flight) * SEG), MIN_CWND);
	train_after(&f->train, ack->total_delivered);
	farpace_enter(f, PHASE_TRAIN, false);
}

/* An ACK of the start. */
__noinline int farpace_open(struct farpace *f, const struct fp_ack *ack)
{
	u64 delivered;

	if (!f || !ack)
		return 0;
	delivered = (u64)ack->delivered * SEG;
	if ((f->phase == PHASE_TRAIN && !f->trains) || f->phase == PHASE_STEADY)
		return 0;
	if ((f->phase == PHASE_RAMP || f->phase == PHASE_TRAINS) && !f->started)
		return 0;
	/* A train that leaves faster than the line makes a queue of its own. Its arrival tells more than that queue. */
	if (f->phase == PHASE_TRAINS)
		farpace_on_paced(f, ack);
	else if (f->rtt && path_is_filling(&f->path, ack->now, f->rtt, f->w, farpace_alpha(f)))
		farpace_settle_by_queue(f);
	else if (f->phase == PHASE_RAMP)
		f->w = min64(f->w + delivered, max64(farpace_holds(f, f->rate), f->w));
	else if (ack->cwnd_limited)
		f->w = min64(f->w + (f->phase == PHASE_BEYOND ? farpace_growth_beyond(f, delivered) : delivered), MAX_WINDOW);
	return 0;
}

/* A round trip of slow start, or of what resembles it, is over; `before`: the highest rate of those before. */
static __always_inline void farpace_judge_growth(struct farpace *f, const struct round *round, u32 queue, u64 before)
{
	/* MAX_GROWTH_LOSS is 0.1 of all, MIN_RATE_GROWTH 1.25. */
	bool few = (u64)round->lost * 9 <= round->delivered;
	bool grows = few && round->bandwidth >= before + before / 4;
	struct loss_sample sample;

	farpace_loss_sample(f, round, queue, &sample);
	if (round->marked || (!grows && loss_is_congestion(&f->loss, &sample)))
		farpace_settle(f);
	else if (f->phase == PHASE_BEYOND && f->w >= f->beyond)
		farpace_enter(f, PHASE_DOUBLE, true);
}

/* A round trip of the start is over; `before`: the highest rate of those before, bytes a second. */
__noinline int farpace_start_round(struct farpace *f, const struct fp_ack *ack, const struct round *round, u32 queue,
				   u64 before)
{
	bool empty = queue == QUEUE_EMPTY;

	if (!f || !ack || !round)
		return 0;
	switch (f->phase) {
	case PHASE_TRAINS:
		if (round->marked) {
			farpace_settle(f);
		} else if (!f->started) {
			paced_begins(&f->paced, ack->now, ack->has_rate ? ack->total_delivered : 0, f->w);
			f->started = 1;
		} else if (empty && loss_learn(&f->loss, round->lost, round->delivered)) {
			/* Not all of the train has arrived, or has been sent. */
			farpace_enter(f, PHASE_DOUBLE, true);
		} else if (!round->limited && !round->lost && ack->has_rate) {
			farpace_on_short_train(f, ack, round);
		} else {
			farpace_settle(f);
		}
		break;
	case PHASE_RAMP:
		if (!f->started) {
			f->started = 1;
		} else if (!empty) {
			farpace_settle_by_queue(f);
		} else if (!loss_learn(&f->loss, round->lost, round->delivered) || round->marked) {
			/* What half the rate loses, without a queue, is what the path loses. */
			farpace_settle(f);
		} else if (f->w >= farpace_holds(f, f->rate) &&
			   (train_is_uneven(&f->train) || farpace_tells_together(f))) {
			f->beyond = f->w * MAX_BEYOND;
			farpace_enter(f, PHASE_BEYOND, true);
		} else if (f->w >= farpace_holds(f, f->rate)) {
			if (least_alpha(f->w) >= MAX_ALPHA)
				f->limit = f->w;
			farpace_enter(f, PHASE_STEADY, false);
		}
		break;
	case PHASE_BEYOND:
		if (!empty && f->path.owns[0] > farpace_alpha(f))
			farpace_settle_by_queue(f);
		else
			farpace_judge_growth(f, round, queue, before);
		break;
	case PHASE_TRAIN:
		if (f->trains)
			farpace_judge_growth(f, round, queue, before);
		break;
	case PHASE_DOUBLE:
		if (f->started)
			farpace_judge_growth(f, round, queue, before);
		else
			f->started = 1;
		break;
	}
	return 0;
}

#endif
