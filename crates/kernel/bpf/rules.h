/* What holds for connections to a destination. The layout stands in crates/kernel/src/policy.rs too. */
#ifndef FARPACE_RULES_H
#define FARPACE_RULES_H

#define MAX_RULES 4096

/* A prefix of the peer's address. IPv4 is ::ffff:0:0/96. */
struct destination {
	u32 bits;
	u8 address[16];
};

/* Zero in a field: as the kernel has it. */
struct rule {
	/* Bytes a second. */
	u64 max_rate;
	/* enum kind; 0: the connection keeps its control. */
	u32 control;
	/* Microseconds. */
	u32 rto_min;
	u32 delack_max;
	/* Milliseconds. */
	u32 rto_max;
	/* Segments. */
	u32 initial_window;
	u32 initial_receive_window;
	u32 ack_requests;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_RULES);
	__type(key, struct destination);
	__type(value, struct rule);
} fp_rules SEC(".maps");

struct policy_counters {
	u64 connections;
	/* Settings that the kernel has refused. */
	u64 refused;
	/* Handshakes in which both ends agreed on ACK requests. */
	u64 agreed;
	/* Segments that asked, and those that came and asked. */
	u64 asked;
	u64 answered;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct policy_counters);
} fp_policy SEC(".maps");

#endif
