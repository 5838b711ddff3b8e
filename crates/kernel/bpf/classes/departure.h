/* When the next frame of a class leaves: earliest departure time, to the byte.
 *
 * Times are nanoseconds of the monotonic clock, rates bits a second of layer 2 (frames with their check sequences, padded to
 * 64 bytes), as `farpace pacing` counts them. A frame of n bytes takes 8 * 10^9 * n / rate nanoseconds of its class; what
 * division leaves over is carried, so that a rate holds to the byte over any time.
 */
#ifndef FARPACE_DEPARTURE_H
#define FARPACE_DEPARTURE_H

/* What a rate of 1 bit/s takes for a byte, nanoseconds. */
#define NS_OF_BYTE 8000000000ULL
/* The frame check sequence, which no frame in memory has. */
#define FCS 4
/* The shortest frame, with its check sequence. */
#define SHORTEST_FRAME 64
/* Longest frame or super-segment that is counted, bytes: longer ones count as this. */
#define MAX_FRAME (1U << 24)
/* No limit for the time that a frame waits. */
#define NO_LIMIT (~0ULL)

struct departures {
	/* When the next frame may leave. */
	u64 next;
	/* What is carried, in 1/rate nanoseconds. */
	u64 rest;
};

enum verdict { LEAVES, BEYOND_LIMIT, BEYOND_HORIZON };

/* Bytes of layer 2 of a frame of `len` bytes in memory. */
static __always_inline u32 layer_2(u32 len)
{
	return len + FCS > SHORTEST_FRAME ? len + FCS : SHORTEST_FRAME;
}

/* Bytes of layer 2 of a super-segment that is cut into `segments` frames: `len` bytes in memory with one header, `whole` with
 * all of them. The last frame may be a short one.
 */
static __always_inline u64 layer_2_of(u32 len, u32 whole, u32 segments, u32 segment_size)
{
	u32 headers, header, last;

	if (segments < 2 || whole < len)
		return layer_2(len);
	headers = whole - len;
	header = headers / (segments - 1);
	/* All but the last have the payload of a whole segment. */
	last = whole - (segments - 1) * (header + segment_size);
	/* Lengths that do not agree: nothing is padded. */
	if (last > header + segment_size)
		return whole + (u64)segments * FCS;
	return (u64)(segments - 1) * layer_2(header + segment_size) + layer_2(last);
}

/* The next frame of a class, of `bytes` of layer 2: when it may leave, in `at`. A frame that would have left later than `limit`
 * after now, its own time included, does not fit the queue, unless nothing waits; one that would begin later than `horizon`
 * after now never leaves either. Neither takes any time of the class.
 */
static __always_inline enum verdict depart(struct departures *d, u64 rate, u64 now, u64 bytes, u64 limit, u64 horizon,
					   u64 *at)
{
	u64 start = d->next, rest = d->rest, time;

	if (bytes > MAX_FRAME)
		bytes = MAX_FRAME;
	if (start <= now) {
		/* Its time had come with nothing to send: nothing is made up for. */
		if (start < now)
			rest = 0;
		start = now;
	}
	time = bytes * NS_OF_BYTE + rest;
	if (start > now) {
		if (limit != NO_LIMIT && start - now + time / rate > limit)
			return BEYOND_LIMIT;
		if (start - now > horizon)
			return BEYOND_HORIZON;
	}
	*at = start;
	d->next = start + time / rate;
	d->rest = time % rate;
	return LEAVES;
}

#endif
