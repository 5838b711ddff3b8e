/* Is this loss congestion? crates/tcp/src/cc/farpace/loss.rs. */
#ifndef FARPACE_LOSS_H
#define FARPACE_LOSS_H

#include "../fixed.h"

#define MIN_SAMPLE 20
#define DEVIATIONS 3
#define MARGIN THOUSANDTHS(10)
#define LOSS_LAG 2
#define MAX_LEARNED 32
/* MEMORY is 1/32. */
#define MEMORY_OF 32
/* EXCESS_MEMORY is 1/8. */
#define EXCESS_MEMORY_OF 8
#define MAX_DISPERSION 64
#define MAX_USUAL THOUSANDTHS(300)
#define MIN_EXPLAINED 2
#define MIN_LOSSES 3
#define MIN_EXPECTED 12
#define MAX_TEST_ROUNDS 16
/* Losses are counted in 1/256 segment, and the squares of differences in 1/65536. */
#define LOSS_BITS 8
#define MIN_SINGLES (1U << 2 * LOSS_BITS)
/* More losses in a sample than these count as these. */
#define MAX_COUNT (1U << 22)

enum loss_verdict { LOSS_USUAL, LOSS_WAITS, LOSS_CONGESTION, LOSS_PERSISTENT, LOSS_LEARNED, LOSS_POLICED };

enum loss_stage { LOSS_NO_TEST, LOSS_SAME, LOSS_DELIVERED, LOSS_LOWER };

/* A round trip's losses, and what tells whose they are. */
struct loss_sample {
	u32 lost;
	u32 delivered;
	/* There was no queue. */
	u32 empty;
	/* There was none, or no more than this connection keeps there. */
	u32 is_short;
	/* Segments wait in a short queue, whoever sent them. */
	u32 queued;
	/* The part of what was sent that exceeded the delivery rate, if the window was in use. */
	u32 excess;
	/* The window was in use. */
	u32 limited;
};

/* What the path usually loses. */
struct loss_judge {
	/* Decaying sums: squares of differences to the mean, and what they would be if losses came one by one; in
	 * the units of squares. */
	u64 squares;
	u64 singles;
	/* Losses beyond the usual, in units of 2^-24 segment. */
	u64 beyond;
	/* The part that is lost in the mean, and the samples that it is a mean of. */
	u32 usual;
	u32 samples;
	/* Segments that it was learned from. */
	u32 seen;
	u32 lost;
	u32 total;
	u32 among;
	/* A test: losses, of so many segments, before the window came down and after. */
	u32 before_lost;
	u32 before_total;
	u32 after_lost;
	u32 after_total;
	/* What gave rise to the test. */
	u32 trigger_lost;
	u32 trigger_total;
	/* The part that seems to exceed the delivery rate when no more than usual is lost. */
	u32 usual_excess;
	/* A policer was found: the part that was lost before, and the losses since, at windows that it let pass, in
	 * 1/256 segment. */
	u32 policer_part;
	u32 policer_lost;
	u32 policer_total;
	u8 stage;
	u8 lag;
	u8 rounds;
	u8 explained;
	u8 after_overflow;
	u8 policer_lag;
	u8 policer_known;
	u8 policer_rounds;
	/* The window came down in a short queue when the test began: that the loss has ended does not make it a burst. */
	u8 came_down;
	/* A short queue has shown while the test was under way: it is no policer. */
	u8 queued;
	u8 unused[6];
};

/* `lost` of `total` as a part. */
static __always_inline u32 part_of(u32 lost, u32 total)
{
	return min64((u64)lost * PART / (total ? total : 1), PART);
}

/* False: it is too much all the same. */
static __always_inline bool loss_learn(struct loss_judge *l, u32 lost, u32 delivered)
{
	u32 part = part_of(lost, lost + delivered);

	if (part > MAX_USUAL)
		return false;
	l->usual = part;
	l->samples = 0;
	l->seen = min64((u64)lost + delivered, MAX_COUNT);
	return true;
}

/* Variance of the number of losses in that of losses that come one by one, in 1/256. */
static __always_inline u64 loss_dispersion(const struct loss_judge *l)
{
	u64 ratio;

	if (!l->singles)
		return 1 << LOSS_BITS;
	if (l->squares < 1ULL << 55)
		ratio = (l->squares << LOSS_BITS) / l->singles;
	else
		ratio = l->squares / ((l->singles >> LOSS_BITS) + 1);
	return clamp64(ratio, 1 << LOSS_BITS, MAX_DISPERSION << LOSS_BITS);
}

/* The part that a path may lose that has shown so little: one loss more than none, and one in all that was seen. */
static __always_inline u64 loss_at_least(const struct loss_judge *l, u32 n)
{
	u64 least = PART / 4 / (n ? n : 1);

	return max64(l->usual, l->seen ? max64(least, PART / l->seen) : least);
}

/* The losses among `n` segments that chance makes beyond the mean, where the part `p` is lost, in units of
 * 2^-24 segment. */
static __always_inline u64 loss_chance(const struct loss_judge *l, u64 p, u32 n)
{
	/* Below 2^22 in 1/65536 segment; variance below 2^44. */
	u64 singles = p * (PART - min64(p, PART)) >> PART_BITS;
	u64 variance = (singles * n >> LOSS_BITS) * loss_dispersion(l) >> LOSS_BITS;

	/* In units of 2^-16; the root has 2^-8. */
	return DEVIATIONS * (u64)square_root(min64(variance << 8, (1ULL << 48) - 1)) << (PART_BITS - 12);
}

__noinline int loss_learn_sample(struct loss_judge *l, u32 lost, u32 n)
{
	u64 difference, mean, part;

	if (!l || !n)
		return 0;
	lost = min64(lost, MAX_COUNT);
	n = min64(n, MAX_COUNT);
	part = part_of(lost, n);
	l->seen = min64((u64)l->seen + n, MAX_COUNT);
	if (l->samples < MAX_LEARNED)
		l->samples++;
	if (part >= l->usual)
		l->usual += (part - l->usual) / l->samples;
	else
		l->usual -= (l->usual - part) / l->samples;
	/* Where nothing is lost, what is known of losses is not forgotten. */
	if (!lost && l->singles <= MIN_SINGLES)
		return 0;
	/* In 1/256 segment, below 2^30. */
	mean = (u64)l->usual * n >> (PART_BITS - LOSS_BITS);
	difference = (u64)lost << LOSS_BITS;
	difference = difference > mean ? difference - mean : mean - difference;
	difference *= difference;
	l->squares = l->squares - l->squares / MEMORY_OF + difference / MEMORY_OF;
	l->singles = l->singles - l->singles / MEMORY_OF +
		     ((u64)lost * (PART - part) >> (PART_BITS - 2 * LOSS_BITS)) / MEMORY_OF;
	return 0;
}

/* The window comes down far, to see whether that changes the loss. */
static __always_inline int loss_lower(struct loss_judge *l, u32 lost, u32 total)
{
	l->explained = 0;
	l->stage = LOSS_LOWER;
	l->lag = LOSS_LAG;
	l->rounds = 0;
	l->before_lost = l->trigger_lost = lost;
	l->before_total = l->trigger_total = total;
	l->after_lost = 0;
	l->after_total = 0;
	return LOSS_PERSISTENT;
}

/* A sample while a test is under way. */
__noinline int loss_go_on(struct loss_judge *l, u32 lost, u32 n, const struct loss_sample *sample)
{
	/* Losses before in those of so many segments as after, and losses after, both times `before_total`. */
	u64 expected, left, least;
	bool is_long, is_enough;
	u32 part, stage;
	bool empty, is_short;

	if (!l || !sample)
		return LOSS_USUAL;
	empty = sample->empty;
	is_short = sample->is_short;
	stage = l->stage;
	l->queued |= !!sample->queued;
	if (l->lag) {
		l->lag--;
		l->before_lost += lost;
		l->before_total += n;
		return stage == LOSS_DELIVERED ? LOSS_USUAL : LOSS_WAITS;
	}
	l->rounds++;
	l->after_lost += lost;
	l->after_total += n;
	expected = (u64)l->before_lost * l->after_total;
	left = (u64)l->after_lost * l->before_total;
	part = part_of(l->after_lost, l->after_total);
	l->stage = LOSS_NO_TEST;
	if (stage != LOSS_LOWER) {
		if (left * 2 < expected || part <= l->usual) {
			if (stage == LOSS_SAME) {
				l->explained = 0;
				if (!l->came_down) {
					/* It was a burst. */
					loss_learn_sample(l, l->before_lost, l->before_total);
					loss_learn_sample(l, l->after_lost, l->after_total);
				}
			}
			return LOSS_USUAL;
		}
		if (!is_short && stage == LOSS_SAME)
			return LOSS_CONGESTION;
		if (!empty || l->queued || l->after_lost < MIN_LOSSES)
			return LOSS_USUAL;
		/* A sample that was chosen for its losses says too much of what the path loses. */
		return loss_lower(l, l->before_lost - l->trigger_lost + l->after_lost,
				  l->before_total - l->trigger_total + l->after_total);
	}
	is_long = l->rounds >= MAX_TEST_ROUNDS;
	least = MIN_EXPECTED * (is_long ? 1 << LOSS_BITS : loss_dispersion(l));
	is_enough = expected >= (least * l->before_total >> LOSS_BITS);
	if (!is_enough && !is_long && left * 2 < expected) {
		l->stage = LOSS_LOWER;
		return LOSS_WAITS;
	}
	if ((is_enough && left * 4 <= expected) || part > MAX_USUAL) {
		/* What the lower window loses is the path's. */
		if (part <= MAX_USUAL) {
			loss_learn_sample(l, l->after_lost, l->after_total);
			l->usual = part;
		}
		l->policer_known = 1;
		l->policer_part = part_of(l->before_lost, l->before_total);
		l->policer_lag = LOSS_LAG;
		l->policer_rounds = 0;
		l->policer_lost = l->policer_total = 0;
		/* The next time it takes less to see it. */
		l->explained = MIN_EXPLAINED - 1;
		return LOSS_POLICED;
	}
	loss_learn_sample(l, l->before_lost, l->before_total);
	loss_learn_sample(l, l->after_lost, l->after_total);
	if (left * 2 >= expected)
		l->usual = part;
	return LOSS_LEARNED;
}

/* What a round trip's losses mean. */
__noinline int loss_verdict(struct loss_judge *l, const struct loss_sample *sample)
{
	u64 usual, all, chance;
	u32 lost, n;
	bool explained, empty;

	if (!l || !sample)
		return LOSS_USUAL;
	l->lost += sample->lost;
	l->total += sample->lost + sample->delivered;
	if (l->total < MIN_SAMPLE)
		return l->stage ? LOSS_WAITS : LOSS_USUAL;
	lost = min64(l->lost, MAX_COUNT);
	n = min64(l->total, MAX_COUNT);
	l->lost = 0;
	l->total = 0;
	if (l->stage)
		return loss_go_on(l, lost, n, sample);
	usual = (u64)l->usual * n;
	all = (u64)lost << PART_BITS;
	l->beyond = less(l->beyond + all, usual + (u64)MARGIN * n);
	l->among = l->beyond ? min64(l->among + n, MAX_COUNT) : 0;
	n = n ? n : 1;
	chance = loss_chance(l, loss_at_least(l, l->among), l->among ? l->among : 1);
	if (l->beyond <= chance && all <= (u64)MAX_USUAL * n) {
		if (sample->limited && all <= usual) {
			if (sample->excess >= l->usual_excess)
				l->usual_excess += (sample->excess - l->usual_excess) / EXCESS_MEMORY_OF;
			else
				l->usual_excess -= (l->usual_excess - sample->excess) / EXCESS_MEMORY_OF;
		}
		if ((sample->empty && !sample->queued) || all <= usual)
			loss_learn_sample(l, lost, n);
		return LOSS_USUAL;
	}
	l->beyond = 0;
	l->among = 0;
	explained = 2 * less(sample->excess, l->usual_excess) * n >= all;
	empty = sample->empty && !sample->queued;
	l->explained = explained && empty ? l->explained + 1 : 0;
	if (l->explained >= MIN_EXPLAINED && lost >= MIN_LOSSES)
		return loss_lower(l, lost, n);
	loss_lower(l, lost, n);
	l->explained = explained && empty;
	l->came_down = !sample->is_short && sample->queued;
	l->queued = !!sample->queued;
	l->stage = explained ? LOSS_DELIVERED : LOSS_SAME;
	return explained || !sample->is_short ? LOSS_CONGESTION : LOSS_WAITS;
}

/* A round trip's losses where a policer was found. `passes`: its window is one that the policer let pass. True:
 * about as much is lost there as before it was found, so it was chance, and the path loses that.
 */
__noinline int loss_is_no_policer(struct loss_judge *l, u32 passes, u32 lost, u32 delivered)
{
	u64 expected, least = (u64)MIN_EXPECTED << LOSS_BITS, seen;
	u32 n;

	if (!l || !l->policer_known)
		return 0;
	if (!passes || l->policer_lag) {
		l->policer_lag = passes ? l->policer_lag - 1 : LOSS_LAG;
		return 0;
	}
	lost = min64(lost, MAX_COUNT);
	n = lost + min64(delivered, MAX_COUNT);
	l->policer_lost = min64(l->policer_lost + ((u64)lost << LOSS_BITS), 1U << 31);
	l->policer_total = min64(l->policer_total + ((u64)n << LOSS_BITS), 1U << 31);
	if (l->policer_rounds < 255)
		l->policer_rounds++;
	expected = (u64)l->policer_part * l->policer_total >> PART_BITS;
	seen = l->policer_lost;
	/* Others that come to a policer make it lose much for a few round trips. */
	if (expected < least || l->policer_rounds < MAX_TEST_ROUNDS)
		return 0;
	if (seen * 2 < expected || seen >= expected * 2) {
		l->policer_rounds /= 2;
		l->policer_lost /= 2;
		l->policer_total /= 2;
		return 0;
	}
	l->policer_known = 0;
	l->explained = 0;
	lost = l->policer_lost >> LOSS_BITS;
	n = l->policer_total >> LOSS_BITS;
	loss_learn_sample(l, lost, n);
	l->usual = part_of(l->policer_lost, l->policer_total);
	return 1;
}

/* The same, where only a reason to come down counts. */
static __always_inline bool loss_is_congestion(struct loss_judge *l, const struct loss_sample *sample)
{
	int verdict = loss_verdict(l, sample);

	return verdict == LOSS_CONGESTION || verdict == LOSS_PERSISTENT || verdict == LOSS_POLICED;
}

/* A round trip's losses beside others that keep the queue filled. `high`: the queue was long, so that no loss is usual.
 * True: the window has to come down. */
static __always_inline bool loss_is_overflow(struct loss_judge *l, u32 lost, u32 delivered, bool high)
{
	u32 n = min64((u64)lost + delivered, MAX_COUNT);
	u64 all = (u64)min64(lost, MAX_COUNT) << PART_BITS;
	bool after = l->after_overflow;

	l->lost = 0;
	l->total = 0;
	l->stage = LOSS_NO_TEST;
	l->after_overflow = 0;
	if (after)
		return false;
	l->after_overflow = lost && (high || all > min64((u64)l->usual * n + loss_chance(l, l->usual, n),
							 (u64)MAX_USUAL * n));
	return l->after_overflow;
}

#endif
