/* Probes: for one round trip the window is a few segments less, or more. crates/tcp/src/cc/farpace/probe.rs. */
#ifndef FARPACE_PROBE_H
#define FARPACE_PROBE_H

#include "state.h"

#define DIPS 30
#define SOON 4
#define RISES 5
#define OTHERS 2
#define MOST_OF 4
#define FALLS_OF 4
#define RISEN_OF 4
#define SHOWS 4
#define LARGE(x) ((x) * 3 / 2)

/* What has kept the window from growing was perhaps no queue: a rise is to tell, some round trips from now. */
static __always_inline void probe_expect_room(struct farpace *f)
{
	f->room = farpace_alpha(f);
	f->since_probe = 0;
}

/* By how much the window should be moved now; 0: not at all. `rises`: upwards. */
static __always_inline u64 probe_due(struct farpace *f, bool *rises)
{
	u64 alpha = farpace_alpha(f), own = f->path.owns[0], most = f->w / MOST_OF, shows;
	bool large = own > LARGE(alpha) && path_is_steady(&f->path);

	*rises = false;
	if (f->since_dip >= DIPS || (large && f->since_probe >= SOON)) {
		f->since_dip = 0;
		return f->w > 2 * alpha ? min64(own + OTHERS * alpha, most) : 0;
	}
	if (f->since_probe < RISES || f->calm)
		return 0;
	*rises = true;
	shows = part_of_window(f->w, movement_part(&f->path, SHOWS, PART / MOST_OF));
	if (shows * 2 < alpha && !f->room)
		return 0;
	return min64(max64(max64(alpha, shows), f->room), most);
}

/* The path has become as long as a round trip of `rtt` with the window `w`. */
static __always_inline void farpace_adopt_path(struct farpace *f, u32 rtt, u64 w)
{
	u32 base = path_base(&f->path);

	f->w = clamp64(w * rtt / (base ? base : 1), w, w * 3 / 2);
	path_adopt(&f->path, rtt);
	f->limit = 0;
	f->probing = 0;
}

/* A round trip is over. True: a probe is under way, and the window is its business. */
__noinline int farpace_probe(struct farpace *f, u32 limited)
{
	u64 expected, alpha, own, moved, by;
	u32 rtt;
	bool rises;

	if (!f)
		return 0;
	if (f->since_dip < ~0U)
		f->since_dip++;
	if (f->since_probe < ~0U)
		f->since_probe++;
	rtt = f->path.latest;
	if (!rtt)
		return 0;
	if (!f->probing) {
		by = limited ? probe_due(f, &rises) : 0;
		if (!by)
			return 0;
		f->probing = 1;
		f->probe_age = 0;
		f->probe_rises = rises;
		f->probe_w = f->w;
		f->probe_by = by;
		f->probe_rtt = rtt;
		f->w = rises ? f->w + by : less(f->w, by);
		f->path.disturbed = AFTER_PROBE;
		return 1;
	}
	if (!f->probe_age) {
		f->probe_age = 1;
		f->w = f->probe_w;
		return 1;
	}
	f->probing = 0;
	f->since_probe = 0;
	/* Sixteenths of a microsecond. */
	expected = min64(f->probe_by, MAX_WINDOW / 4) * f->probe_rtt / max64(f->probe_w / 16, 1);
	if (f->probe_rises) {
		u64 noise = min64(f->path.movement >> 3, expected * 2 / 5);

		moved = less(rtt, f->probe_rtt) * 16;
		if (moved > max64(expected / RISEN_OF, noise)) {
			f->room = 0;
			return 0;
		}
		f->w = f->probe_w + f->probe_by;
		f->room = f->probe_by * 2;
		/* The next one at once, and twice as far. */
		f->since_probe = RISES;
		return 1;
	}
	alpha = farpace_alpha(f);
	own = f->path.owns[0];
	moved = less(f->probe_rtt, rtt) * 16;
	if (own * 2 <= alpha * 3 || moved > expected / FALLS_OF) {
		f->room = 0;
		return 0;
	}
	if (!path_is_steady(&f->path) || path_may_be_others(&f->path) || path_has_grown(&f->path)) {
		path_suspect_others(&f->path);
		return 0;
	}
	farpace_adopt_path(f, rtt, f->probe_w);
	return 0;
}

#endif
