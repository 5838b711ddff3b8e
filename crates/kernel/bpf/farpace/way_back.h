/* What ACKs wait on their way back, by the peer's timestamps. crates/tcp/src/cc/farpace/way_back.rs. */
#ifndef FARPACE_WAY_BACK_H
#define FARPACE_WAY_BACK_H

#include "../fixed.h"

#define TICK 1000U
#define KNOWN_AFTER (NSEC_PER_SEC * 3 / 20)
#define TICKS_PACE 2
#define NOTHING TICK
#define NOTHING_OF 256
#define WAIT_ROUNDS 8

struct way_back {
	u64 first;
	u32 said;
	u32 least;
	u8 has_first;
	u8 has_least;
	u8 unused[2];
	/* ACKs of this round trip, and what they have waited in all, microseconds. */
	u32 acks;
	u64 waited;
	/* The mean of each of the last round trips. */
	u32 waits[WAIT_ROUNDS];
};

static __always_inline u32 way_back_data_rtt(struct way_back *b, u64 now, u32 stamp, u32 rtt, u32 base)
{
	u32 back = (u32)(now / 1000) - stamp * TICK, small = NOTHING + base / NOTHING_OF, ahead;
	u64 told, ours;
	u32 data;

	if (!b->has_first) {
		b->has_first = 1;
		b->first = now;
		b->said = stamp;
	}
	ahead = b->has_least ? back - b->least : 0;
	if (!b->has_least || ahead > ~0U / 2 || !base || rtt <= base + small / 2) {
		b->has_least = 1;
		b->least = back;
		return rtt;
	}
	told = (u64)(u32)(stamp - b->said) * TICK;
	ours = less(now, b->first) / 1000;
	if (less(now, b->first) < KNOWN_AFTER || told * TICKS_PACE < ours || told > ours * TICKS_PACE || ahead <= small)
		return rtt;
	/* A queue of data that is shorter than what can be measured is none. */
	data = less(rtt, ahead);
	return data <= base + small ? (base < rtt ? base : rtt) : data;
}

/* The round trip without what the ACK has waited for. */
static __always_inline u32 without_queue(struct way_back *b, u64 now, u32 stamp, u32 rtt, u32 base)
{
	u32 data = way_back_data_rtt(b, now, stamp, rtt, base);

	b->waited += less(rtt, data);
	b->acks++;
	return data;
}

/* A round trip is over. */
static __always_inline void way_back_end_round(struct way_back *b)
{
	u32 mean;

	if (!b->acks)
		return;
	mean = b->waited / b->acks;
	for (u32 i = WAIT_ROUNDS - 1; i > 0; i--)
		b->waits[i] = b->waits[i - 1];
	b->waits[0] = mean;
	b->acks = 0;
	b->waited = 0;
}

/* What each ACK waits: the least mean of the last round trips. */
static __always_inline u32 way_back_wait(const struct way_back *b)
{
	u32 wait = b->waits[0];

	for (u32 i = 1; i < WAIT_ROUNDS; i++)
		if (b->waits[i] < wait)
			wait = b->waits[i];
	return wait;
}

#endif
