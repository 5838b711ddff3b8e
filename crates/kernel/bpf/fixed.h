/* Fixed-point arithmetic for the congestion controls. BPF has 64-bit integers, and neither floating point nor signed
 * division.
 *
 *   segments   u64, in units of 1/4096 segment; at most MAX_WINDOW
 *   rates      u64, bytes a second; at most MAX_RATE
 *   times      u32, microseconds, for round trips, at most MAX_RTT; u64, nanoseconds, for points in time
 *   parts      u32, in units of 2^-24
 *
 * The limits keep every product of the algorithms below 2^64. The types u8 to u64, s64 and bool come from the file that
 * includes this one: types.h for BPF, user/types.h for the tests in user space.
 */
#ifndef FARPACE_FIXED_H
#define FARPACE_FIXED_H

#define SEG_BITS 12
#define SEG (1ULL << SEG_BITS)
/* 2^22 segments: 6 GB of segments of 1448 bytes. */
#define MAX_WINDOW (1ULL << (22 + SEG_BITS))
/* 137 GB/s. */
#define MAX_RATE (1ULL << 37)
/* 67 s. */
#define MAX_RTT (1U << 26)
#define PART_BITS 24
#define PART (1U << PART_BITS)
/* A number of thousandths as a part, to the nearest: six losses of twenty are three tenths. */
#define THOUSANDTHS(n) ((u32)(((u64)(n) * PART + 500) / 1000))
#define NSEC_PER_SEC 1000000000ULL
#define USEC_PER_SEC 1000000ULL

static __always_inline u64 min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static __always_inline u64 max64(u64 a, u64 b)
{
	return a > b ? a : b;
}

static __always_inline u64 clamp64(u64 x, u64 low, u64 high)
{
	return max64(low, min64(x, high));
}

/* a - b, at least 0. */
static __always_inline u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* Sequence order of counters that wrap: a >= b. */
static __always_inline bool at_least(u32 a, u32 b)
{
	return (u32)(a - b) < (1U << 31);
}

/* The rate of `bytes` in `ns` nanoseconds, bytes a second. */
static __always_inline u64 rate_over(u64 bytes, u64 ns)
{
	bytes = min64(bytes, 1ULL << 44);
	if (ns < 1000 * USEC_PER_SEC || bytes < 1ULL << 34)
		return min64(bytes, 1ULL << 34) * NSEC_PER_SEC / (ns ? ns : 1);
	return bytes * USEC_PER_SEC / (ns / 1000);
}

/* The square root of less than 2^48, rounded down. Without branches, which the verifier would follow all. */
static __always_inline u32 square_root(u64 x)
{
	u64 root = 0;

	for (int bit = 23; bit >= 0; bit--) {
		u64 next = root | (1ULL << bit);
		u64 fits = (next * next - x - 1) >> 63;

		root |= fits << bit;
	}
	return root;
}

/* The cube root of less than 2^60, rounded down. */
static __always_inline u32 cube_root(u64 x)
{
	u64 root = 0;

	for (int bit = 19; bit >= 0; bit--) {
		u64 next = root | (1ULL << bit);
		u64 fits = (next * next * next - x - 1) >> 63;

		root |= fits << bit;
	}
	return root;
}

/* Segments that `rate` delivers in `us` microseconds. */
static __always_inline u64 segments_in(u64 rate, u32 us, u32 mss)
{
	u64 held = min64(rate, MAX_RATE) * (us < MAX_RTT ? us : MAX_RTT) / (mss ? mss : 1);

	/* `held`: millionths of segments. */
	if (held >= MAX_WINDOW / SEG * USEC_PER_SEC)
		return MAX_WINDOW;
	return held * SEG / USEC_PER_SEC;
}

/* The rate at which `segments` leave in `us` microseconds, bytes a second. */
static __always_inline u64 rate_of(u64 segments, u32 us, u32 mss)
{
	u64 bytes = min64(segments, MAX_WINDOW) * (mss & 0xffff) >> SEG_BITS;

	return bytes * USEC_PER_SEC / (us ? us : 1);
}

#endif
