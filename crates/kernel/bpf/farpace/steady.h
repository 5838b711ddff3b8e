/* After the start: following the queue, and coming down. crates/tcp/src/cc/farpace/steady.rs. */
#ifndef FARPACE_STEADY_H
#define FARPACE_STEADY_H

#include "state.h"

#define CALM_ROUNDS 2
#define YIELDING 1
#define MAX_GROWTH_OF 4
#define BETA(x) ((x) * 7 / 10)
#define BETA_MARK(x) ((x) * 17 / 20)
#define COMPETE_OF 25
/* COMPETE_TIME is 100 ms. RENO is 3 (1 - BETA) / (1 + BETA). */
#define COMPETE_TIME (USEC_PER_SEC / 10)
#define RENO (SEG * 9 / 17)

static __always_inline void farpace_cut_to_delivered(struct farpace *f)
{
	if (f->bandwidth) {
		f->limit = min64(farpace_holds(f, f->bandwidth), f->w);
		f->w = max64(min64(f->w, DRAIN(f->limit)), MIN_WINDOW);
	}
	f->calm = 0;
}

/* alpha, or more where there is no queue: twice as much each round trip, but at most `most`. */
static __always_inline u64 farpace_hasty_alpha(const struct farpace *f, u64 alpha, u64 most)
{
	u32 shift = f->calm > CALM_ROUNDS ? f->calm - CALM_ROUNDS : 0;

	/* Not where the limit was found last. */
	if (f->w * 10 >= f->limit * 9 && f->w * 10 < f->limit * 11)
		shift = 0;
	if (shift > 30)
		shift = 30;
	return alpha > most >> shift ? most : alpha << shift;
}

static __always_inline void farpace_toward(struct farpace *f, u64 target)
{
	if (target >= f->w)
		f->w += (target - f->w) / 2;
	else
		f->w -= (f->w - target) / 2;
}

/* A round trip is over. */
__noinline int farpace_follow(struct farpace *f, const struct round *round, u32 queue)
{
	bool congested;
	u64 alpha, most;
	u32 longer;

	if (!f || !round)
		return 0;
	if (queue == QUEUE_FOREIGN) {
		u64 rtt = f->path.latest && f->path.latest < COMPETE_TIME ? f->path.latest : COMPETE_TIME;

		f->calm = 0;
		if (loss_is_overflow(&f->loss, round->lost, round->delivered) || round->marked)
			f->w = BETA(f->w);
		else if (round->limited)
			f->w += max64(f->w * rtt / (COMPETE_OF * COMPETE_TIME), RENO);
		return 0;
	}
	congested = loss_is_congestion(&f->loss, round->lost, round->delivered, queue == QUEUE_EMPTY);
	if (round->marked) {
		f->w = BETA_MARK(f->w);
		f->calm = 0;
		return 0;
	}
	if (congested) {
		farpace_cut_to_delivered(f);
		return 0;
	}
	if (!f->path.latest)
		return 0;
	alpha = farpace_alpha(f);
	longer = f->calm + 1;
	if (queue == QUEUE_EMPTY)
		f->calm = longer < 1000 ? longer : 1000;
	else if (path_yields(&f->path, alpha))
		f->calm = longer < CALM_ROUNDS + YIELDING ? longer : CALM_ROUNDS + YIELDING;
	else
		f->calm = 0;
	if (!round->limited) {
		/* A window that is not used says nothing, and is no reason for a queue. */
		f->calm = 0;
		return 0;
	}
	most = max64(f->w / MAX_GROWTH_OF, MIN_ALPHA);
	alpha = farpace_hasty_alpha(f, alpha, most);
	farpace_toward(f, f->w * path_base(&f->path) / f->path.latest + alpha);
	return 0;
}

#endif
