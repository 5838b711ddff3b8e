/* Is this loss congestion? crates/tcp/src/cc/farpace/loss.rs. */
#ifndef FARPACE_LOSS_H
#define FARPACE_LOSS_H

#include "../fixed.h"

#define FEW_SEGMENTS 20
#define DEVIATIONS 3
#define MARGIN THOUSANDTHS(10)
#define LAG 2
#define LEARN_UP 16
#define LEARN_DOWN 4
#define TOO_MUCH THOUSANDTHS(300)
#define NO_CHANCE 2

enum loss_verdict { LOSS_USUAL, LOSS_CONGESTION, LOSS_LEARNED, LOSS_CONFIRMED };

/* What the path usually loses. */
struct loss_judge {
	u32 usual;
	u32 lost;
	u32 total;
	/* After a cut: round trips until its effect is seen, and one more; 0: there was none. */
	u32 looking;
	/* What was lost before it. */
	u32 before;
};

/* `lost` of `total` as a part. */
static __always_inline u32 part_of(u32 lost, u32 total)
{
	return (u64)lost * PART / (total ? total : 1);
}

/* False: it is too much all the same. */
static __always_inline bool loss_learn(struct loss_judge *l, u32 lost, u32 delivered)
{
	u32 part = part_of(lost, lost + delivered);

	if (part > TOO_MUCH)
		return false;
	l->usual = part;
	return true;
}

/* What a round trip's losses mean. */
__noinline int loss_verdict(struct loss_judge *l, u32 lost, u32 delivered, u32 empty)
{
	u32 part, n, limit;
	u64 p;

	if (!l)
		return LOSS_USUAL;
	l->lost += lost;
	l->total += lost + delivered;
	if (l->total < FEW_SEGMENTS)
		return LOSS_USUAL;
	n = l->total;
	part = part_of(l->lost, n);
	l->lost = 0;
	l->total = 0;
	if (l->looking > 1) {
		l->looking--;
		return LOSS_USUAL;
	}
	if (l->looking == 1) {
		l->looking = 0;
		if (empty && part <= TOO_MUCH) {
			l->usual = part;
			return part >= l->before / 2 ? LOSS_LEARNED : LOSS_CONFIRMED;
		}
	}
	p = max64(l->usual, PART / 4 / n);
	/* The product has units of 2^-48, its root of 2^-24. */
	limit = min64(l->usual + DEVIATIONS * (u64)square_root(p * (PART - min64(p, PART)) / n) + MARGIN, TOO_MUCH);
	if (part > limit) {
		l->looking = LAG + 1;
		l->before = part;
		return LOSS_CONGESTION;
	}
	if (part <= l->usual)
		l->usual -= (l->usual - part) / LEARN_DOWN;
	else if (empty)
		l->usual += (part - l->usual) / LEARN_UP;
	return LOSS_USUAL;
}

/* The same, where only a reason to come down counts. */
static __always_inline bool loss_is_congestion(struct loss_judge *l, u32 lost, u32 delivered, u32 empty)
{
	return loss_verdict(l, lost, delivered, empty) == LOSS_CONGESTION;
}

/* A round trip's losses beside others that keep the queue filled. True: the window has to come down. */
static __always_inline bool loss_is_overflow(struct loss_judge *l, u32 lost, u32 delivered)
{
	bool overflow;

	l->lost = 0;
	l->total = 0;
	if (l->looking) {
		l->looking--;
		return false;
	}
	overflow = lost && (u64)lost * PART > NO_CHANCE * (u64)l->usual * ((u64)lost + delivered);
	l->looking = overflow;
	return overflow;
}

#endif
