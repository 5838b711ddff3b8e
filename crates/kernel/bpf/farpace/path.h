/* Round trips: how long the empty path is, and whose queue there is. crates/tcp/src/cc/farpace/path.rs, function by
 * function; the reasons are there.
 */
#ifndef FARPACE_PATH_H
#define FARPACE_PATH_H

#include "../fixed.h"

#define HALF_OF_BASE_WINDOW (300 * NSEC_PER_SEC)
#define ENOUGH_SAMPLES 8
#define MAX_SAMPLES 64
/* STEP is a hundredth, FLAT a two-hundredth of the base. */
#define STEP_OF 100
#define FLAT_OF 200
/* A step is at least a third of what the round trip has more than the base. */
#define STEP_SHARE_OF 3
/* A queue grows by less than four fifths of itself in two round trips. */
#define GROWTH_SHARE(x) ((x) * 4 / 5)
/* A queue that does not follow the window: CREEP is 1.05. */
#define CREEP(x) ((x) * 21 / 20)
#define FALL_OF 4
#define FALL_MOVEMENTS 4
/* A window that came down tells whether a queue is its own if that would be shorter by a third of it. */
#define TOLD_OF 3
/* Before a step of the path this connection has no more than so many alphas in the queue. */
#define BEFORE_STEP 2
#define FLAT_ROUNDS 4
/* FOREIGN: a twentieth of the base, and four times alpha. CERTAINLY_FOREIGN: a quarter. */
#define FOREIGN_OF 20
#define FOREIGN_ALPHAS 4
#define CERTAINLY_FOREIGN_OF 4
#define FOREIGN_ROUNDS 10
#define FOREIGN_TIME (NSEC_PER_SEC / 2)
#define QUIET 8
#define NOISE_OF 1000
/* Movements are 1/256 us. */
#define MOVEMENT_BITS 8
/* One movement counts as at most so many times the mean, or one part of so many of the base. */
#define MAX_BEND 4
#define MAX_BEND_OF 16
#define MOVES_OF 8
#define STEADY 3
#define STEADY_OF 200
#define AFTER_PROBE 5
#define YIELDS_OF 4
#define FORGETS 64
#define FILLING_OF 50
#define FILLING_SAMPLES 8
#define FILLING_TIME_OF 16

/* A queue shows if it is so many times what round trips move by. */
#define SHOWN 4

#define MIN_ALPHA (3 * SEG)
#define ALPHA_SHARE_OF 200
#define MAX_ALPHA (300 * SEG)

enum queue { QUEUE_EMPTY, QUEUE_OWN, QUEUE_FOREIGN };

/* Zero is an empty one. Round trips are microseconds, none is 0. */
struct path {
	u32 samples[MAX_SAMPLES];
	u32 count;
	u32 stride;
	u32 passed;
	u32 latest;
	u32 current;
	u32 before;
	u64 since;
	/* When the first of the samples in a row that were high came. */
	u64 high_since;
	/* Segments, the newest first. */
	u64 windows[5];
	u64 owns[4];
	u32 flat[FLAT_ROUNDS + 1];
	u32 flat_count;
	u32 high;
	u32 foreign;
	u8 provisional;
	u8 competing;
	/* Round trips since the last median. */
	u16 rounds;
	/* Round trips without a long queue since others had one. */
	u32 quiet;
	/* Round trips until movements are those of the path again. */
	u32 disturbed;
	/* The newest first; 0: none. */
	u32 medians[4];
	u64 movement;
	/* The window before others had their queue, segments, and since when it is there. */
	u64 before_others;
	u64 others_since;
	/* The longest queue of others, which is forgotten slowly. */
	u32 longest;
	/* The largest rise of round trips, from one to the next but one, since others had no queue. */
	u32 steepest;
	/* From where on the window has come down in a queue. */
	u64 reference_w;
	u64 reference_since;
	u32 reference_rtt;
	/* The same as `steepest` without what a window that grew explains. */
	u32 step;
	/* The window before the path itself became longer, segments; 0: it has not. */
	u64 longer;
	/* The window has since come down for another reason than the queue, or was not in use. */
	u8 reference_disturbed;
	u8 unused_reference[7];
};

/* Segments to keep in the queue where each pair has an ACK of its own. */
static __always_inline u64 least_alpha(u64 w)
{
	return clamp64(w / ALPHA_SHARE_OF, MIN_ALPHA, MAX_ALPHA);
}

/* The empty path's round trip; zero before the first. */
static __always_inline u32 path_base(const struct path *p)
{
	if (p->current && p->before)
		return p->current < p->before ? p->current : p->before;
	return p->current ? p->current : p->before;
}

/* Every second sample goes, the first stays. */
__noinline int path_thin(struct path *p)
{
	if (!p)
		return 0;
	for (u32 i = 0; i < MAX_SAMPLES / 2; i++)
		p->samples[i] = p->samples[2 * i];
	p->count = MAX_SAMPLES / 2;
	p->stride = p->stride * 2 + 1;
	return 0;
}

/* A round trip was measured. */
static __always_inline void path_sample(struct path *p, u32 rtt)
{
	u32 at;

	p->passed++;
	if (p->passed <= p->stride)
		return;
	p->passed = 0;
	if (p->count >= MAX_SAMPLES)
		path_thin(p);
	at = p->count;
	if (at < MAX_SAMPLES) {
		p->samples[at] = rtt < MAX_RTT ? rtt : MAX_RTT;
		p->count = at + 1;
	}
}

/* The lower median of the samples; 0: there are none. Sorts them. */
__noinline u32 path_median(struct path *p)
{
	u32 count, middle;

	if (!p)
		return 0;
	count = p->count;
	if (count == 0 || count > MAX_SAMPLES)
		return 0;
	for (u32 i = 1; i < MAX_SAMPLES; i++) {
		u32 sample, j;

		if (i >= count)
			break;
		sample = p->samples[i];
		for (j = i; j > 0 && j < MAX_SAMPLES; j--) {
			u32 other = p->samples[j - 1];

			if (other <= sample)
				break;
			p->samples[j] = other;
		}
		if (j < MAX_SAMPLES)
			p->samples[j] = sample;
	}
	middle = (count - 1) / 2;
	return middle < MAX_SAMPLES ? p->samples[middle] : 0;
}

/* Others have the queue that is there, or it looks like that for some round trips. */
static __always_inline bool path_may_be_others(const struct path *p)
{
	return p->competing || p->foreign >= FOREIGN_ROUNDS - 2;
}

/* The window with which that was sent of which the last round trip has told, segments. */
static __always_inline u64 path_window_before(const struct path *p)
{
	return p->windows[1] ? p->windows[1] : p->windows[0];
}

/* The queue is at least half as long as the longest one of others. */
static __always_inline bool path_is_queue_high(const struct path *p)
{
	return p->longest && less(p->latest, path_base(p)) * 2 >= p->longest;
}

/* The queue is as long as one that others keep filled, at least. */
static __always_inline bool path_is_queue_long(const struct path *p)
{
	return less(p->latest, path_base(p)) * (u64)FOREIGN_OF >= path_base(p);
}

/* Segments wait in a short queue, whoever sent them: the last round trip was longer than the empty path's by more than
 * noise, and by more than a part of a segment takes at `best` bytes a second. */
static __always_inline bool path_is_queue_short(const struct path *p, u64 best, u32 mss)
{
	u32 base = path_base(p);
	u64 excess = less(p->latest, base);

	return excess * STEP_OF >= base && excess << MOVEMENT_BITS >= SHOWN * p->movement &&
	       segments_in(best, excess, mss) >= SEG / 2 && !path_is_queue_long(p);
}

/* The last round trips differ by no more than they usually move. */
static __always_inline bool path_is_steady(const struct path *p)
{
	u32 most = p->medians[0], least = p->medians[0];

	for (int i = 1; i < 4; i++) {
		if (p->medians[i] > most)
			most = p->medians[i];
		if (p->medians[i] < least)
			least = p->medians[i];
	}
	return least && most - least <= max64(STEADY * p->movement >> MOVEMENT_BITS, path_base(p) / STEADY_OF);
}

/* The path is as long as its last round trip. */
static __always_inline void path_adopt(struct path *p, u32 rtt)
{
	p->current = rtt;
	p->before = 0;
	p->flat_count = 0;
	p->reference_w = 0;
	p->reference_rtt = 0;
	p->reference_disturbed = 0;
	p->foreign = 0;
	p->owns[0] = 0;
	p->owns[1] = 0;
	p->owns[2] = 0;
	p->owns[3] = 0;
}

/* Round trips have become much longer, and no step of the path has done that. */
static __always_inline bool path_has_grown(const struct path *p)
{
	u64 base = path_base(p);
	u64 excess = less(p->medians[0], base);

	return excess * CERTAINLY_FOREIGN_OF >= base && p->steepest < GROWTH_SHARE(excess);
}

static __always_inline void path_suspect_others(struct path *p)
{
	if (p->foreign < FOREIGN_ROUNDS / 2)
		p->foreign = FOREIGN_ROUNDS / 2;
}

/* Learns from a median how much they move. */
static __always_inline void path_watch(struct path *p, u32 rtt)
{
	u64 ends, middle, bend;

	p->medians[3] = p->medians[2];
	p->medians[2] = p->medians[1];
	p->medians[1] = p->medians[0];
	p->medians[0] = rtt;
	if (p->disturbed)
		p->disturbed--;
	if (!p->medians[2] || p->disturbed)
		return;
	ends = (u64)p->medians[0] + p->medians[2];
	middle = 2 * (u64)p->medians[1];
	bend = (ends > middle ? ends - middle : middle - ends) << MOVEMENT_BITS >> 1;
	bend = min64(bend, max64(p->movement * MAX_BEND, ((u64)path_base(p) << MOVEMENT_BITS) / MAX_BEND_OF));
	p->movement = p->movement - p->movement / MOVES_OF + bend / MOVES_OF;
}

/* The window has grown for some round trips, and the queue has not. */
static __always_inline bool path_yields(const struct path *p, u64 alpha)
{
	u64 newer = p->windows[1], older = p->windows[4];
	u64 queue = p->owns[0], before = p->owns[3];
	u64 grown = less(newer, older);

	return older > 0 && grown >= least_alpha(newer) && less(queue, before) * YIELDS_OF < grown &&
	       max64(queue, before) <= alpha;
}

/* A single round trip; true if it and those before show that the queue fills. */
static __always_inline bool path_is_filling(struct path *p, u64 now, u32 rtt, u64 w, u64 alpha)
{
	u64 base = path_base(p);
	u64 excess = less(rtt, base);
	bool high = excess * FILLING_OF > base && w * excess > 2 * alpha * base;

	p->high = high ? p->high + 1 : 0;
	if (p->high <= 1)
		p->high_since = now;
	return p->high >= FILLING_SAMPLES && less(now, p->high_since) >= base * 1000 / FILLING_TIME_OF;
}

/* The path itself has become longer: a step, and then nothing moves. `previous` is 0 where no step can be seen. */
static __always_inline bool path_is_longer(struct path *p, u32 rtt, u32 previous, u64 scatter)
{
	u64 base = path_base(p);
	u64 step = less(rtt, previous);

	if (previous && step * STEP_OF * PART > base * (PART + STEP_OF * scatter) &&
	    step * STEP_SHARE_OF > less(rtt, base)) {
		p->flat[0] = rtt;
		p->flat_count = 1;
	} else if (p->flat_count) {
		u64 moved = p->flat[0] > rtt ? p->flat[0] - rtt : rtt - p->flat[0];
		u32 at = p->flat_count;

		if (moved * FLAT_OF > base) {
			p->flat_count = 0;
		} else if (at <= FLAT_ROUNDS) {
			p->flat[at] = rtt;
			p->flat_count = at + 1;
		}
	}
	return p->flat_count > FLAT_ROUNDS;
}

/* The window has come down to half, and the round trip has not followed. */
static __always_inline bool path_is_unmoved(struct path *p, u64 now, u32 rtt, u64 base)
{
	u64 w = p->windows[1], before = p->reference_w, longest = p->reference_rtt;
	u64 expected;

	if (rtt > CREEP(longest) || w > before) {
		p->reference_w = w;
		p->reference_rtt = rtt;
		p->reference_since = now;
		p->reference_disturbed = 0;
		return false;
	}
	expected = less(longest, max64(longest * w / (before ? before : 1), base));
	return w <= before / 2 && less(longest, rtt) * FALL_OF <= expected &&
	       expected << MOVEMENT_BITS >= FALL_MOVEMENTS * p->movement &&
	       less(now, p->reference_since) >= FOREIGN_TIME;
}

/* Whether round trips follow the window says nothing now. */
static __always_inline void path_ignore_window(struct path *p)
{
	p->reference_disturbed = 1;
}

/* The round trip has grown in one step, and not followed the window, which came down because of that alone. */
static __always_inline bool path_is_stepped(const struct path *p, u32 rtt, u64 alpha, u64 base)
{
	u64 w = p->windows[1], before = p->reference_w, longest = p->reference_rtt;
	u64 excess = less(rtt, base), apart, expected;

	if (p->reference_disturbed || path_may_be_others(p) || w > before || rtt > CREEP(longest))
		return false;
	expected = less(longest, max64(longest * w / (before ? before : 1), base));
	apart = rtt > longest ? rtt - longest : longest - rtt;
	return p->step >= GROWTH_SHARE(excess) && less(excess, p->step) * w <= BEFORE_STEP * alpha * rtt &&
	       apart * FALL_OF <= expected && expected * TOLD_OF >= excess &&
	       expected << MOVEMENT_BITS >= FALL_MOVEMENTS * p->movement;
}

/* `best`: the highest delivery rate, in 1/256 segments a second. `rounds`: as many round trips as the median is of. */
static __always_inline enum queue path_judge(struct path *p, u64 now, u32 rtt, u64 w, u64 alpha, u64 best,
					       u32 rounds)
{
	u64 base = path_base(p);
	u64 excess = less(rtt, base);
	u64 own = w * excess / (rtt ? rtt : 1);
	u64 told, earlier, explained;
	u32 rise, lower, step;
	bool large;

	p->owns[3] = p->owns[2];
	p->owns[2] = p->owns[1];
	p->owns[1] = p->owns[0];
	p->owns[0] = own;
	large = excess * best >= FOREIGN_ALPHAS * alpha / (SEG / 256) * USEC_PER_SEC ||
		excess * CERTAINLY_FOREIGN_OF >= base;
	if (excess * FOREIGN_OF < base || !large) {
		p->foreign = 0;
		p->reference_w = 0;
		p->reference_rtt = 0;
		p->reference_disturbed = 0;
		p->quiet++;
		if (p->competing && p->quiet < QUIET)
			return QUEUE_FOREIGN;
		p->competing = 0;
		return own <= alpha / 2 || excess * NOISE_OF <= base ? QUEUE_EMPTY : QUEUE_OWN;
	}
	/* A round trip in which the path changes has a median of before, of after, or between. */
	lower = p->medians[2] && p->medians[2] < p->medians[1] ? p->medians[2] : p->medians[1];
	rise = less(p->medians[0], lower);
	p->steepest = p->quiet || rise > p->steepest ? rise : p->steepest;
	told = p->windows[1];
	earlier = p->windows[3] ? min64(p->windows[3], p->windows[2]) : p->windows[2];
	explained = rtt * less(told, earlier) / max64(told, SEG);
	step = less(rise, explained);
	p->step = p->quiet || step > p->step ? step : p->step;
	if (p->quiet || !p->before_others) {
		u64 known = p->quiet < QUIET ? p->before_others : 0;

		p->before_others = max64(max64(p->windows[1], w), known);
	}
	p->quiet = 0;
	if (!p->foreign)
		p->others_since = now;
	if (own <= 2 * min64(alpha, max64(least_alpha(w), w / 8)))
		p->foreign += rounds;
	else if (!p->disturbed)
		p->foreign = 0;
	if (p->foreign >= FOREIGN_ROUNDS && less(now, p->others_since) >= FOREIGN_TIME)
		p->competing = 1;
	if (path_is_stepped(p, rtt, alpha, base))
		p->longer = p->reference_w;
	/* A path that has become longer does not follow the window, either. */
	if (path_is_unmoved(p, now, rtt, base) && path_has_grown(p))
		p->competing = 1;
	return p->competing ? QUEUE_FOREIGN : QUEUE_OWN;
}

/* The least of the round trips since the last step. */
static __always_inline u32 path_least_flat(const struct path *p)
{
	u32 least = p->flat[0];

	for (int i = 1; i <= FLAT_ROUNDS; i++)
		if (p->flat[i] < least)
			least = p->flat[i];
	return least;
}

/* A round trip is over; the window is `w`, and this connection wants to keep `alpha` in the queue. */
__noinline int path_end_round(struct path *p, u64 now, u64 w, u64 alpha, u64 best)
{
	bool grew = false, few;
	u32 rtt, previous, rounds;
	u64 scatter;

	if (!p)
		return QUEUE_OWN;
	w = min64(w, MAX_WINDOW);
	alpha = min64(alpha, MAX_WINDOW / 2);
	best = min64(best, 1ULL << 35);
	for (int i = 0; i < 3; i++)
		if (w > p->windows[i] + least_alpha(w))
			grew = true;
	for (int i = 4; i > 0; i--)
		p->windows[i] = p->windows[i - 1];
	p->windows[0] = w;
	p->rounds++;
	p->longer = 0;
	few = p->count < ENOUGH_SAMPLES;
	if (few && p->latest)
		return p->competing ? QUEUE_FOREIGN : QUEUE_OWN;
	p->stride = 0;
	p->passed = 0;
	if (p->provisional && !few)
		p->current = 0;
	p->provisional = few;
	rtt = path_median(p);
	p->count = 0;
	if (!rtt)
		return QUEUE_OWN;
	previous = p->latest;
	p->latest = rtt;
	path_watch(p, rtt);
	if (!p->current) {
		p->since = now;
	} else if (less(now, p->since) >= HALF_OF_BASE_WINDOW) {
		p->before = p->current;
		p->current = 0;
		p->since = now;
	}
	if (!p->current || rtt < p->current)
		p->current = rtt;
	scatter = less(alpha, least_alpha(w)) * PART / max64(w, SEG);
	if (!path_may_be_others(p) && path_is_longer(p, rtt, grew ? 0 : previous, scatter)) {
		p->current = path_least_flat(p);
		p->before = 0;
		p->since = now;
		p->flat_count = 0;
	}
	p->longest -= p->longest / FORGETS;
	if (p->competing)
		p->longest = max64(p->longest, less(rtt, path_base(p)));
	rounds = p->rounds;
	p->rounds = 0;
	return path_judge(p, now, rtt, w, alpha, best, rounds);
}

#endif
