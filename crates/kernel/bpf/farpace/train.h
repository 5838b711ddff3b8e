/* What the first flight tells, and trains at a chosen rate. crates/tcp/src/cc/farpace/train.rs. */
#ifndef FARPACE_TRAIN_H
#define FARPACE_TRAIN_H

#include "../fixed.h"
#include "../sample.h"

#define ENOUGH_INTERVALS 4
#define NEEDED_INTERVALS 2
#define MAX_JUMP 16
#define BUNCHED 2
/* ACKs are one bunch where the time between them is so many times shorter than that between bunches. */
#define BUNCH 8
/* An ACK of one segment that comes so many times later than any before was delayed by the receiver. */
#define DELAYED 8
/* Segments of a train that was cut short that tell its rate. */
#define MIN_TOLD 8

/* The ACKs of a flight. */
struct train {
	/* Bytes told at the end of each interval, and its nanoseconds. */
	u64 told[ENOUGH_INTERVALS];
	u64 gaps[ENOUGH_INTERVALS];
	u64 first;
	u64 last;
	/* Bytes told by all ACKs but the first. */
	u64 after_first;
	u32 from;
	u32 until;
	u32 count;
	u8 has_until;
	/* The window held data back. */
	u8 limited;
	u8 unused[2];
};

/* A train that leaves at a chosen rate. */
struct paced {
	u64 first;
	u32 until;
	/* Segments told by all ACKs but the first. */
	u32 told;
	/* Microseconds from the first ACK to the last one. */
	u32 last;
	/* The longest time without an ACK, from when on, and segments told until then. */
	u32 pause;
	u32 paused;
	u32 told_before;
};

/* The flight that leaves when this much has been delivered. */
static __always_inline void train_after(struct train *t, u32 delivered)
{
	__builtin_memset(t, 0, sizeof(*t));
	t->from = delivered;
}

/* Puts ACKs together that came as one bunch. */
static __always_inline void train_add_interval(struct train *t, u64 told, u64 gap)
{
	u32 count = t->count, last = count - 1;

	if (!count || count > ENOUGH_INTERVALS) {
		if (!gap)
			return;
		t->told[0] = told;
		t->gaps[0] = gap;
		t->count = 1;
	} else if (last < ENOUGH_INTERVALS && gap * BUNCH < t->gaps[last]) {
		t->told[last] += told;
		t->gaps[last] += gap;
	} else if (!last && t->gaps[0] * BUNCH < gap) {
		/* What came before was one bunch. */
		t->told[0] = told;
		t->gaps[0] = gap;
	} else if (count < ENOUGH_INTERVALS) {
		t->told[count] = told;
		t->gaps[count] = gap;
		t->count = count + 1;
	}
}

/* The receiver has waited for a second segment: the flight had an odd number, and this is its end. */
static __always_inline bool train_is_delayed(const struct train *t, u32 delivered, u64 gap)
{
	u64 longest = 0;

	for (u32 i = 0; i < ENOUGH_INTERVALS; i++)
		if (i < t->count)
			longest = max64(longest, t->gaps[i]);
	return delivered <= 1 && t->count && gap > longest * DELAYED;
}

/* An ACK; true when there is enough of them, it is the last, or the next flight answers already. */
static __always_inline bool train_on_ack(struct train *t, const struct fp_ack *ack)
{
	if (!ack->has_rate || !ack->delivered || !at_least(ack->prior_delivered, t->from))
		return false;
	if (t->has_until && at_least(ack->prior_delivered, t->until))
		return true;
	if (!t->has_until) {
		t->has_until = 1;
		t->until = ack->total_delivered;
	}
	t->limited |= ack->cwnd_limited;
	if (t->last) {
		u64 told = (u64)ack->delivered * ack->mss;
		u64 gap = less(ack->now, t->last);

		if (train_is_delayed(t, ack->delivered, gap))
			return t->count >= NEEDED_INTERVALS;
		t->after_first += told;
		train_add_interval(t, told, gap);
	}
	if (!t->first)
		t->first = ack->now;
	t->last = ack->now;
	/* Nothing more of this flight comes: the next one need not be waited for. */
	return t->count >= ENOUGH_INTERVALS || !ack->in_flight;
}

/* The rate in bytes a second; 0 if the ACKs were too few. */
__noinline u64 train_rate(struct train *t)
{
	u64 rates[ENOUGH_INTERVALS], median, whole;
	u32 count, below;

	if (!t)
		return 0;
	count = t->count;
	if (count < NEEDED_INTERVALS || count > ENOUGH_INTERVALS)
		return 0;
	for (u32 i = 0; i < ENOUGH_INTERVALS; i++)
		rates[i] = rate_over(t->told[i], t->gaps[i]);
	/* The upper median: of 2 to 4 values the one that count / 2 others are not above. */
	median = 0;
	for (u32 i = 0; i < ENOUGH_INTERVALS; i++) {
		if (i >= count)
			break;
		below = 0;
		for (u32 j = 0; j < ENOUGH_INTERVALS; j++)
			if (j < count &&
			    (rates[j] < rates[i] || (rates[j] == rates[i] && j < i)))
				below++;
		if (below == count / 2)
			median = rates[i];
	}
	whole = rate_over(t->after_first, less(t->last, t->first));
	return min64(median, whole * BUNCHED);
}

/* Something else than the line made the distances of the ACKs. */
__noinline int train_is_uneven(struct train *t)
{
	u64 least = ~0ULL, most = 0, rate;

	if (!t)
		return 0;
	for (u32 i = 0; i < ENOUGH_INTERVALS; i++) {
		if (i >= t->count)
			break;
		rate = rate_over(t->told[i], t->gaps[i]);
		least = min64(least, rate);
		most = max64(most, rate);
	}
	/* MAX_UNEVENNESS is 1.5. */
	return t->count && most > least + least / 2;
}

/* A train of `length` segments, whose first ACK has come. */
static __always_inline void paced_begins(struct paced *t, u64 now, u32 delivered, u64 length)
{
	__builtin_memset(t, 0, sizeof(*t));
	t->first = now;
	/* It is judged after seven eighths: the last few ACKs may be delayed. */
	t->until = delivered + (u32)(length * 7 / 8 / SEG);
}

/* An ACK of the train. True when the train has arrived; then `rate` is its bytes a second. */
static __always_inline bool paced_on_ack(struct paced *t, const struct fp_ack *ack, u64 *rate)
{
	u64 time = less(ack->now, t->first);
	u32 now = min64(time / 1000, MAX_RTT);

	if (ack->delivered) {
		if (now - t->last > t->pause) {
			t->pause = now - t->last;
			t->paused = t->last;
			t->told_before = t->told;
		}
		t->last = now;
		t->told += ack->delivered;
	}
	if (!at_least(ack->total_delivered, t->until))
		return false;
	*rate = time ? rate_over((u64)t->told * ack->mss, time) : 0;
	return true;
}

/* Bytes a second of a train that was cut short, when ACKs of the next flight come; 0: they were too few. */
static __always_inline u64 paced_so_far(const struct paced *t, u32 mss)
{
	bool idle = t->pause * 4 >= t->last;
	u32 time = idle ? t->paused : t->last, told = idle ? t->told_before : t->told;

	/* IDLE_PART is 0.25: the line was idle until the next flight came. */
	return time && told >= MIN_TOLD ? rate_over((u64)told * mss, (u64)time * 1000) : 0;
}

#endif
