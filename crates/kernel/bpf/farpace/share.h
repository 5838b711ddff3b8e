/* Sharing a queue, or a policer, with connections that know of congestion by losses alone. crates/tcp/src/cc/farpace/share.rs.
 */
#ifndef FARPACE_SHARE_H
#define FARPACE_SHARE_H

#include "../fixed.h"

/* BETA is 0.7. RENO is 3 (1 - BETA) / (1 + BETA). */
#define BETA(x) ((x) * 7 / 10)
#define RENO (SEG * 9 / 17)
#define STAYS (4 * NSEC_PER_SEC)
#define COMES_BACK 2
#define MAX_POLICED 4
#define MAX_BELOW 4
#define SHARE_MIN_CWND (4 * SEG)
#define SHARE_MIN_WINDOW (SEG / 2)
/* 524 s: the cube stays below 2^60. */
#define MAX_MS (1ULL << 19)

struct share {
	/* When the window was cut last, or began to grow, and when others showed last. */
	u64 cut;
	u64 seen;
	u64 w_max;
	u64 w_est;
	u64 w_prior;
	/* The window that was too much for the policer. */
	u64 policed_at;
	/* Milliseconds. */
	u32 k;
	/* Others are known of. */
	u32 known;
	/* Times that a policer was found, without one that was none in between. */
	u32 policed;
	/* Losses in a row at windows that the policer let pass. */
	u32 below;
};

static __always_inline bool share_holds(const struct share *s, u64 now)
{
	return s->known && less(now, s->seen) < max64(STAYS, COMES_BACK * (u64)s->k * 1000000) << (s->policed & 7);
}

static __always_inline u64 share_show(struct share *s, u64 now, u64 w, u64 before)
{
	if (!share_holds(s, now)) {
		w = max64(w, BETA(before));
		s->cut = now;
		s->w_max = s->w_est = s->w_prior = w;
		s->k = 0;
		s->known = 1;
		s->policed = 0;
		s->policed_at = 0;
		s->below = 0;
	}
	s->seen = now;
	return w;
}

/* `shown`: that shows that others are there still. */
static __always_inline u64 share_cut(struct share *s, u64 now, u64 w, bool shown)
{
	u64 w_max = s->known && w < s->w_max ? w * 17 / 20 : w;
	/* What is in flight without the lost segment, in whole segments. */
	u64 whole = BETA(less(w >> SEG_BITS, 1)) << SEG_BITS;
	u64 least = min64(w, SHARE_MIN_CWND);
	u64 left = max64(whole, s->policed ? max64(BETA(least), SHARE_MIN_WINDOW) : least);

	/* The cube of K in ms is 2.5e9 (w_max - left). */
	s->k = cube_root(min64(less(w_max, left), MAX_WINDOW) * 625000000 / 1024);
	s->cut = now;
	if (shown)
		s->seen = now;
	s->w_max = w_max;
	s->w_est = left;
	s->w_prior = w;
	s->known = 1;
	return left;
}

/* What is lost at the window `w` is a policer's. */
static __always_inline u64 share_police(struct share *s, u64 now, u64 w)
{
	if (s->policed < MAX_POLICED)
		s->policed++;
	s->policed_at = w;
	s->below = 0;
	return share_cut(s, now, w, true);
}

/* A policer was found, and it let the window `w` pass. */
static __always_inline bool share_is_below_policer(const struct share *s, u64 w)
{
	return s->policed && w <= BETA(s->policed_at);
}

/* Something was lost, `below` what the policer let pass or not. So many times in a row, and it is found again or it
 * is none. */
static __always_inline void share_doubt_policer(struct share *s, bool below)
{
	s->below = below ? s->below + 1 : 0;
	if (s->below >= MAX_BELOW)
		s->known = 0;
}

/* There are no others, and there is no policer. */
static __always_inline void share_end(struct share *s)
{
	*s = (struct share){};
}

static __always_inline u64 share_grow(struct share *s, u64 now, u32 rtt, u64 w)
{
	u64 t, d, cube, cubic, step;

	if (!s->known)
		return w;
	/* Below the least window of CUBIC a segment a round trip would be a large part of all. */
	step = (s->w_est >= s->w_prior ? SEG : RENO) * min64(w, SHARE_MIN_CWND) / SHARE_MIN_CWND;
	s->w_est = min64(s->w_est + step, MAX_WINDOW);
	t = (less(now, s->cut) / 1000 + rtt) / 1000;
	d = min64(t > s->k ? t - s->k : s->k - t, MAX_MS);
	/* 0.4 segments a cubic second. */
	cube = d * d * d / 1000000 * 16384 / 10000;
	cubic = t > s->k ? s->w_max + cube : less(s->w_max, cube);
	cubic = min64(cubic, w * 3 / 2);
	return max64(max64(cubic, s->w_est), w);
}

#endif
