/* What ACKs wait on their way back, by the peer's timestamps. crates/tcp/src/cc/farpace/way_back.rs. */
#ifndef FARPACE_WAY_BACK_H
#define FARPACE_WAY_BACK_H

#include "../fixed.h"

#define TICK 1000U
#define KNOWN_AFTER (NSEC_PER_SEC * 3 / 20)
#define TICKS_PACE 2
#define NOTHING TICK
#define NOTHING_OF 256

struct way_back {
	u64 first;
	u32 said;
	u32 least;
	u8 has_first;
	u8 has_least;
	u8 unused[6];
};

/* The round trip without what the ACK has waited for. */
static __always_inline u32 without_queue(struct way_back *b, u64 now, u32 stamp, u32 rtt, u32 base)
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

#endif
