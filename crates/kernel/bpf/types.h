/* The kernel's types, as far as our programs read them. The loader finds the fields by name in the BTF of the kernel that
 * runs (CO-RE), so that order, offsets and what is left out do not matter.
 */
#ifndef FARPACE_TYPES_H
#define FARPACE_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef signed char __s8;
typedef signed short __s16;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* Values of the kernel's interface to user space (linux/bpf.h). */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_LPM_TRIE 11
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_ANY 0
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

enum {
	AF_INET = 2,
	AF_INET6 = 10,
};

/* include/net/tcp.h and include/net/sock.h. */
enum {
	TCP_CA_Open = 0,
	TCP_CA_Disorder = 1,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

enum {
	CA_ACK_ECE = 1 << 2,
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	ICSK_ACK_NOW = 1 << 4,
	TCP_INFINITE_SSTHRESH = 0x7fffffff,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct ns_common {
	u32 inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
};

struct sock {
	struct sock_common __sk_common;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_options_received {
	u32 rcv_tsval;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 max_window;
	u32 snd_wnd;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 lost;
	u32 delivered;
	u32 total_retrans;
	u32 srtt_us;
	u32 mdev_us;
	u32 rttvar_us;
	u64 bytes_acked;
	u64 bytes_sent;
	u32 data_segs_out;
	struct tcp_options_received rx_opt;
	u8 is_cwnd_limited : 1;
	struct minmax rtt_min;
};

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

/* Members that we set; the loader finds the others and leaves them zero. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	char name[16];
};

#endif
