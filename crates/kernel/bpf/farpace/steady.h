/* After the start: following the queue, and coming down. crates/tcp/src/cc/farpace/steady.rs. */
#ifndef FARPACE_STEADY_H
#define FARPACE_STEADY_H

#include "probe.h"
#include "state.h"

#define CALM_ROUNDS 2
#define LIMIT_ROUNDS 5
#define YIELDING 1
#define MAX_GROWTH_OF 4
#define BETA_MARK(x) ((x) * 17 / 20)

/* All of the rate that the train said makes no queue: the path may hold many times as much. */
static __always_inline void farpace_start_again(struct farpace *f)
{
	f->beyond = f->w;
	f->calm = 0;
	farpace_enter(f, PHASE_BEYOND, true);
}

/* When a queue ended the start, the rate was that of a window a round trip ago. */
static __always_inline void farpace_settle_at(struct farpace *f, u64 bandwidth)
{
	if (!f->settling)
		return;
	f->limit = max64(f->limit, farpace_window_for(f, bandwidth));
	f->w = max64(f->w, DRAIN(f->limit));
}

/* `least`: the window that is left at least. */
static __always_inline void farpace_cut_to_delivered(struct farpace *f, u64 least)
{
	f->was_full = 1;
	if (f->bandwidth) {
		f->limit = min64(farpace_window_for(f, f->bandwidth), f->w);
		f->limit_by_queue = 0;
		f->w = min64(f->w, max64(DRAIN(f->limit), least));
	}
	f->calm = 0;
}

/* alpha, or more where there is no queue: twice as much each round trip, but at most `most`; and up to a limit that a
 * queue has told there is room. */
static __always_inline u64 farpace_hasty_alpha(const struct farpace *f, u64 alpha, u64 most, bool empty)
{
	u64 known = f->limit_by_queue && empty ? less(f->limit, f->w) : 0;
	u32 shift = f->calm > CALM_ROUNDS ? f->calm - CALM_ROUNDS : 0;

	/* Not where the limit was found last. */
	if (f->w * 10 >= f->limit * 9 && f->w * 10 < f->limit * 11)
		shift = 0;
	if (shift > 30)
		shift = 30;
	return alpha > most >> shift ? most : min64(max64(alpha << shift, known), most);
}

static __always_inline void farpace_toward(struct farpace *f, u64 target)
{
	if (target >= f->w)
		/* A few segments grow by a part of themselves, too. */
		f->w += min64(target - f->w, f->w / MAX_GROWTH_OF) / 2;
	else
		f->w -= (f->w - target) / 2;
}

/* What a round trip lost, with what tells whose losses they are. */
static __always_inline void farpace_loss_sample(const struct farpace *f, const struct round *round, u32 queue,
						struct loss_sample *sample)
{
	u32 base = path_base(&f->path), rtt;
	u64 sent = max64(path_window_before(&f->path), SEG);
	u64 through;

	sample->lost = round->lost;
	sample->delivered = round->delivered;
	sample->limited = round->limited;
	sample->empty = queue == QUEUE_EMPTY;
	sample->is_short = sample->empty || (queue == QUEUE_OWN && f->path.owns[0] <= farpace_alpha(f));
	sample->queued = path_is_queue_short(&f->path, f->best, f->mss);
	/* What ACKs wait on their way back is in flight, too. Without a queue round trips are longer by jitter
	 * alone. */
	rtt = sample->empty ? f->srtt : base + less(f->srtt, f->path.latest);
	through = segments_in(round->bandwidth, rtt, f->mss);
	/* A round trip that tells no rate tells no excess. */
	sample->excess = round->bandwidth && through < sent ? ((sent - through) << PART_BITS) / sent : 0;
}

/* Beside others that know of congestion by losses alone. */
static __always_inline void farpace_share_losses(struct farpace *f, u64 now, const struct round *round)
{
	bool high = path_is_queue_high(&f->path) && path_is_queue_long(&f->path);
	bool overflows = loss_is_overflow(&f->loss, round->lost, round->delivered, high) || round->marked;
	bool below = share_is_below_policer(&f->share, f->w);

	f->calm = 0;
	f->probing = 0;
	f->probed = 0;
	if (f->share.policed && loss_is_no_policer(&f->loss, below || !overflows, round->lost, round->delivered)) {
		f->w = max64(f->w, f->share.policed_at);
		share_end(&f->share);
		return;
	}
	if (overflows) {
		f->w = share_cut(&f->share, now, f->w,
				 path_is_queue_high(&f->path) || (f->share.policed && !below));
		share_doubt_policer(&f->share, below);
	} else if (round->limited) {
		f->w = share_grow(&f->share, now, f->path.latest, f->w);
	}
}

/* Toward the window that keeps alpha in the queue. */
static __always_inline void farpace_follow_queue(struct farpace *f, const struct round *round, u32 queue)
{
	u64 alpha, most;
	u32 longer;

	if (!f->path.latest)
		return;
	alpha = farpace_alpha(f);
	longer = f->calm + 1;
	if (queue == QUEUE_EMPTY) {
		f->calm = longer < 1000 ? longer : 1000;
	} else if (path_yields(&f->path, alpha)) {
		f->calm = longer < CALM_ROUNDS + YIELDING ? longer : CALM_ROUNDS + YIELDING;
	} else {
		/* It may be round trips that vary, and no queue. */
		if (f->calm > CALM_ROUNDS)
			probe_expect_room(f);
		if (f->limit_by_queue && !f->settling)
			f->limit = min64(f->limit, f->w);
		f->calm = 0;
	}
	if (f->limit_by_queue && f->calm >= LIMIT_ROUNDS)
		f->limit = 0;
	if (!f->was_full && round->limited && f->calm > CALM_ROUNDS) {
		farpace_start_again(f);
		return;
	}
	if (round->limited) {
		most = max64(f->w / MAX_GROWTH_OF, MIN_ALPHA);
		alpha = farpace_hasty_alpha(f, alpha, most, queue == QUEUE_EMPTY);
		farpace_toward(f, f->w * path_base(&f->path) / f->path.latest + alpha);
	} else {
		/* A window that is not used says nothing, and is no reason for a queue. */
		f->calm = 0;
	}
	farpace_settle_at(f, round->bandwidth);
}

/* A round trip is over. */
__noinline int farpace_follow(struct farpace *f, const struct round *round, u32 queue, u64 now)
{
	struct loss_sample sample;
	int verdict;

	if (!f || !round)
		return 0;
	if (queue == QUEUE_FOREIGN)
		f->w = share_show(&f->share, now, f->w, f->path.before_others);
	if (share_holds(&f->share, now)) {
		path_ignore_window(&f->path);
		farpace_share_losses(f, now, round);
		return 0;
	}
	farpace_loss_sample(f, round, queue, &sample);
	verdict = loss_verdict(&f->loss, &sample);
	if ((verdict != LOSS_USUAL && verdict != LOSS_WAITS) || round->marked || !round->limited)
		path_ignore_window(&f->path);
	f->was_full |= queue != QUEUE_EMPTY || round->marked || verdict == LOSS_PERSISTENT;
	if (round->marked) {
		f->w = max64(BETA_MARK(f->w), min64(f->w, MIN_CWND));
		f->calm = 0;
		return 0;
	}
	switch (verdict) {
	case LOSS_CONGESTION:
		/* Who shares a short queue with others must not be driven out of it. */
		farpace_cut_to_delivered(f, path_is_queue_long(&f->path) ? MIN_CWND : MIN_WINDOW);
		farpace_settle_at(f, round->bandwidth);
		f->probing = 0;
		/* It may have been the path's loss. */
		probe_expect_room(f);
		return 0;
	case LOSS_PERSISTENT:
		/* What a window shows that is well below tells a policer's loss from the path's. */
		f->probed = f->w;
		f->w = max64(BETA(min64(f->w, max64(farpace_window_for(f, f->bandwidth), MIN_WINDOW))), MIN_WINDOW);
		f->probing = 0;
		f->calm = 0;
		return 0;
	case LOSS_LEARNED:
		f->w = max64(f->w, f->probed);
		f->probed = 0;
		f->share.policed = 0;
		return 0;
	case LOSS_POLICED:
		f->w = share_police(&f->share, now, max64(f->w, f->probed));
		f->probed = 0;
		return 0;
	case LOSS_WAITS:
		f->calm = 0;
		return 0;
	default:
		if (f->path.longer && f->path.latest)
			farpace_adopt_path(f, f->path.latest, max64(f->w, f->path.longer));
		else if (!farpace_probe(f, round->limited))
			farpace_follow_queue(f, round, queue);
		return 0;
	}
}

#endif
