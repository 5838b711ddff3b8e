/* Classes of a device and the filters that lead to them. The layouts stand in crates/kernel/src/classes.rs too. */
#ifndef FARPACE_CLASSES_H
#define FARPACE_CLASSES_H

#include "departure.h"
#include "key.h"

/* Most shapes of filters: one search in the table for each. */
#define MAX_KERNEL_SHAPES 64
/* Bins of lateness: the first is below 1 us, each of the others twice as wide, the last without an end. */
#define LATE_BINS 24
#define CLASS_NAME_LEN 64

struct bpf_spin_lock {
	u32 val;
};

struct class {
	struct bpf_spin_lock lock;
	/* The class of htb that holds its packets; 0: departure times do. */
	u32 handle;
	/* Bits a second of layer 2; 0: it is not paced. */
	u64 rate;
	/* Longest time that its packets wait, nanoseconds, the last one's own time included. */
	u64 limit;
	struct departures departures;
	u64 packets;
	/* Of layer 2. */
	u64 bytes;
	u64 limit_drops;
	u64 horizon_drops;
	/* Packets that are cut into several frames later. */
	u64 super_segments;
	char name[CLASS_NAME_LEN];
	/* Frames that have left, how late together and at most, in nanoseconds, and how many in each bin. */
	u64 left;
	u64 late;
	u64 latest;
	u64 bins[LATE_BINS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct class);
} fp_classes SEC(".maps");

/* Which bits filters of a shape ask for. */
struct shape {
	struct filter_key mask;
	/* The rank of its first filter. */
	u32 first;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_KERNEL_SHAPES);
	__type(key, u32);
	__type(value, struct shape);
} fp_shapes SEC(".maps");

struct filter {
	/* What the bits are. */
	struct filter_key key;
	u32 shape;
	u32 unused;
};

struct filter_class {
	u32 rank;
	u32 class;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct filter);
	__type(value, struct filter_class);
} fp_filters SEC(".maps");

/* What does not change. */
struct device {
	u64 horizon;
	/* The network namespace and the number of the device in it. */
	u32 namespace;
	u32 index;
	u32 shapes;
	/* The class of packets that no filter matches. */
	u32 fallback;
	char name[16];
};

#endif
