/* The state of the congestion control farpace. crates/tcp/src/cc/farpace/mod.rs has the same fields. */
#ifndef FARPACE_STATE_H
#define FARPACE_STATE_H

#include "aggregation.h"
#include "loss.h"
#include "path.h"
#include "share.h"
#include "train.h"
#include "way_back.h"

/* A twentieth less than what was delivered: DRAIN is 0.95. */
#define DRAIN(x) ((x) * 19 / 20)
#define MAX_TOGETHER_OF 2
#define JITTER 3
#define MAX_JITTER_OF 6
#define MIN_CWND (4 * SEG)
#define MIN_WINDOW (SEG / 2)
/* PACE is 1.1. */
#define PACE(x) ((x) * 11 / 10)
#define MISSING (1000 * SEG)
/* No limit: the first flight is meant to be a burst. */
#define BURST (~0ULL)

enum phase {
	PHASE_TRAIN,
	PHASE_TRAINS,
	PHASE_RAMP,
	PHASE_BEYOND,
	PHASE_DOUBLE,
	PHASE_STEADY,
};

/* What a round trip brought. */
struct round {
	u64 bandwidth;
	u32 delivered;
	u32 lost;
	u8 limited;
	u8 marked;
	u8 unused[6];
};

/* Zero is one that knows nothing of its path. */
struct farpace {
	/* The window that the model wants, and the one in force, segments. */
	u64 w;
	u64 cwnd;
	/* Trains, Ramp: what the train said; Ramp: the window at half of it. Beyond: the window from which on it doubles. */
	u64 rate;
	u64 half;
	u64 beyond;
	struct aggregation aggregation;
	/* The window that was too much last; 0: not known. */
	u64 limit;
	u64 bandwidth;
	u64 best;
	/* Before the last reduction. */
	u64 before_w;
	u64 before_cwnd;
	struct round round;
	struct path path;
	struct train train;
	/* Trains: the one under way. */
	struct paced paced;
	struct loss_judge loss;
	struct share share;
	struct way_back way_back;
	/* The window before a cut whose effect is awaited; 0: there is none. */
	u64 probed;
	/* The probe under way. */
	u64 probe_w;
	u64 probe_by;
	u32 probe_rtt;
	u8 probing;
	u8 probe_age;
	u8 probe_rises;
	u8 unused_probe;
	u64 room;
	u32 since_dip;
	u32 since_probe;
	/* The latest round trip, without what its ACK has waited for. */
	u32 rtt;
	/* PacketRounds. */
	u32 next_delivered;
	u32 srtt;
	u32 mss;
	/* Segments in flight. */
	u32 flight;
	u32 trains;
	u32 calm;
	u32 timeouts;
	u8 phase;
	/* Trains: a train is under way. Ramp: ACKs of the half come. Double: what the first burst lost is no longer counted. */
	u8 started;
	/* A queue told the limit, and not losses. */
	u8 limit_by_queue;
	/* Round trips that still tell of what was sent before a queue ended the start. */
	u8 settling;
	/* A queue, or losses, have shown that the window is no smaller than what the path holds. */
	u8 was_full;
	u8 unused[3];
};

/* So many times the movement of round trips as a part of the empty path's, at most `most`. */
static __always_inline u64 movement_part(const struct path *p, u32 times, u32 most)
{
	u32 base = path_base(p);

	return min64((times * p->movement << (PART_BITS - MOVEMENT_BITS)) / (base ? base : 1), most);
}

static __always_inline u64 part_of_window(u64 w, u64 part)
{
	return min64(w, MAX_WINDOW) * part >> PART_BITS;
}

/* Segments to keep in the queue. */
static __always_inline u64 farpace_alpha(const struct farpace *f)
{
	u64 jitter = part_of_window(f->w, movement_part(&f->path, JITTER, PART / MAX_JITTER_OF));

	return max64(max64(least_alpha(f->w), min64(f->aggregation.together + SEG, f->w / MAX_TOGETHER_OF)), jitter);
}

/* Segments that the empty path holds at so many bytes a second. */
static __always_inline u64 farpace_holds(const struct farpace *f, u64 rate)
{
	return segments_in(rate, path_base(&f->path), f->mss);
}

/* The window that brings so many bytes a second: what the empty path holds, what waits to be told by the next
 * ACK, and what ACKs tell of that wait on their way back. */
static __always_inline u64 farpace_window_for(const struct farpace *f, u64 rate)
{
	u32 wait = f->share.policed ? 0 : way_back_wait(&f->way_back);

	return farpace_holds(f, rate) + segments_in(rate, wait, f->mss) + f->aggregation.together;
}

/* The window that the model wants is less than keeps ACKs coming: the pacing rate is the limit. */
static __always_inline bool farpace_is_paced(const struct farpace *f)
{
	return f->phase == PHASE_STEADY && f->w < MIN_CWND;
}

static __always_inline void farpace_enter(struct farpace *f, enum phase phase, bool started)
{
	f->phase = phase;
	f->started = started;
}

#endif
