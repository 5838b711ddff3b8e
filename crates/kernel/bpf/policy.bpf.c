/* Which connections are under which control, and what else holds for them, by the peer's address: a sockops program of a
 * control group. It also carries ACK requests (docs/acks.md, form `safe`): an option in SYN, SYN-ACK and the first ACK says
 * that this end answers them; an option on a data segment asks.
 */
#include "types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "maps.h"
#include "rules.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Values of the kernel's interface to user space. */
#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_RTO_MAX_MS 44
#define TCP_BPF_IW 1001
#define TCP_BPF_DELACK_MAX 1003
#define TCP_BPF_RTO_MIN 1004

#define OP_RWND_INIT 2
#define OP_CONNECT 3
#define OP_ACTIVE_ESTABLISHED 4
#define OP_PASSIVE_ESTABLISHED 5
#define OP_LISTEN 11
#define OP_PARSE_OPTIONS 13
#define OP_OPTIONS_LENGTH 14
#define OP_WRITE_OPTIONS 15

#define CALL_PARSE_UNKNOWN (1 << 5)
#define CALL_WRITE (1 << 6)

#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_ACK 0x10
/* BPF_LOAD_HDR_OPT_TCP_SYN */
#define OPTION_OF_SYN 1

/* The experimental option with the number of ACK requests (crates/tcp/src/solicit). */
#define OPTION_KIND 254
#define OPTION_NUMBER_HIGH 0xcd
#define OPTION_NUMBER_LOW 0x1a
#define OPTION_BYTES 5
/* The fifth byte: version 1, may ask and can answer; or a request. */
#define AGREES 0x13
#define ASKS 0x01

struct bpf_sock_ops {
	u32 op;
	union {
		u32 args[4];
		u32 reply;
		u32 replylong[4];
	};
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 is_fullsock;
	u32 snd_cwnd;
	u32 srtt_us;
	u32 bpf_sock_ops_cb_flags;
	u32 state;
	u32 rtt_min;
	u32 snd_ssthresh;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
	u32 mss_cache;
	u32 ecn_flags;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 packets_out;
	u32 retrans_out;
	u32 total_retrans;
	u32 segs_in;
	u32 data_segs_in;
	u32 segs_out;
	u32 data_segs_out;
	u32 lost_out;
	u32 sacked_out;
	u32 sk_txhash;
	u64 bytes_received;
	u64 bytes_acked;
	union {
		struct bpf_sock *sk;
		u64 unused_sk;
	};
	union {
		void *skb_data;
		u64 unused_data;
	};
	union {
		void *skb_data_end;
		u64 unused_end;
	};
	u32 skb_len;
	u32 skb_tcp_flags;
};

static __always_inline struct policy_counters *counters_of_policy(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&fp_policy, &zero);
}

static __always_inline struct rule *rule_for(struct bpf_sock_ops *ctx)
{
	struct destination to = { .bits = 128 };
	u32 *words = (u32 *)to.address;

	if (ctx->family == AF_INET) {
		words[2] = bpf_htonl(0xffff);
		words[3] = ctx->remote_ip4;
		/* Else the compiler joins the loads of both branches, and the verifier does not take their address. */
		asm volatile("" : : "r"(words[3]) : "memory");
	} else if (ctx->family == AF_INET6) {
		words[0] = ctx->remote_ip6[0];
		words[1] = ctx->remote_ip6[1];
		words[2] = ctx->remote_ip6[2];
		words[3] = ctx->remote_ip6[3];
		asm volatile("" : : : "memory");
	} else {
		return NULL;
	}
	return bpf_map_lookup_elem(&fp_rules, &to);
}

static __always_inline void set(struct bpf_sock_ops *ctx, int level, int option, u32 value)
{
	struct policy_counters *count;

	if (!value || !bpf_setsockopt(ctx, level, option, &value, sizeof(value)))
		return;
	count = counters_of_policy();
	if (count)
		__sync_fetch_and_add(&count->refused, 1);
}

static __always_inline void set_control(struct bpf_sock_ops *ctx, u32 control)
{
	char farpace[] = "farpace", star[] = "star";
	long refused = 0;
	struct policy_counters *count;

	if (control == KIND_FARPACE)
		refused = bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, farpace, sizeof(farpace));
	else if (control == KIND_STAR)
		refused = bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, star, sizeof(star));
	count = refused ? counters_of_policy() : NULL;
	if (count)
		__sync_fetch_and_add(&count->refused, 1);
}

/* The connection is established: what the rule says holds from now on. */
static __always_inline void apply(struct bpf_sock_ops *ctx, const struct rule *rule)
{
	struct policy_counters *count = counters_of_policy();
	u64 most = rule->max_rate;

	if (count)
		__sync_fetch_and_add(&count->connections, 1);
	set(ctx, SOL_TCP, TCP_BPF_IW, rule->initial_window);
	set_control(ctx, rule->control);
	set(ctx, SOL_TCP, TCP_BPF_RTO_MIN, rule->rto_min);
	set(ctx, SOL_TCP, TCP_RTO_MAX_MS, rule->rto_max);
	set(ctx, SOL_TCP, TCP_BPF_DELACK_MAX, rule->delack_max);
	/* The kernel takes four bytes or eight here; four do up to 34 Gbit/s. */
	set(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, most > 0xfffffffe ? 0xfffffffe : most);
}

static __always_inline void want_options(struct bpf_sock_ops *ctx, u32 flags)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | flags);
}

static __always_inline void want_no_writing(struct bpf_sock_ops *ctx)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~CALL_WRITE);
}

/* The peer's option in the segment at hand, or in the SYN that is being answered: its fifth byte; 0: there is none. */
static __always_inline u8 option_in(struct bpf_sock_ops *ctx, u64 where)
{
	u8 option[OPTION_BYTES] = { OPTION_KIND, 4, OPTION_NUMBER_HIGH, OPTION_NUMBER_LOW };

	return bpf_load_hdr_opt(ctx, option, sizeof(option), where) == OPTION_BYTES ? option[4] : 0;
}

static __always_inline struct connection *connection_of(struct bpf_sock_ops *ctx, u64 create)
{
	struct bpf_sock *sk = ctx->sk;

	return sk ? bpf_sk_storage_get(&fp_connections, sk, NULL, create) : NULL;
}

/* The handshake is over. Without the option in it nobody asks. */
static __always_inline void agree(struct bpf_sock_ops *ctx)
{
	struct policy_counters *count;
	u8 option = option_in(ctx, 0);
	struct connection *c = option ? connection_of(ctx, BPF_SK_STORAGE_GET_F_CREATE) : NULL;

	if (!c) {
		want_no_writing(ctx);
		return;
	}
	c->asks = 1;
	/* Where the ACK that ends the handshake was lost, a segment that asks ends it. */
	c->ack_now = option == ASKS;
	want_options(ctx, CALL_WRITE | CALL_PARSE_UNKNOWN);
	count = counters_of_policy();
	if (count)
		__sync_fetch_and_add(&count->agreed, 1);
}

/* An ACK request came: in_ack_event of the same segment answers it. */
static __always_inline void on_option(struct bpf_sock_ops *ctx)
{
	struct policy_counters *count;
	struct connection *c = connection_of(ctx, 0);

	if (!c || option_in(ctx, 0) != ASKS)
		return;
	c->ack_now = 1;
	count = counters_of_policy();
	if (count)
		__sync_fetch_and_add(&count->answered, 1);
}

/* Whether the segment at hand gets an option: its fifth byte, or 0. */
static __always_inline u8 option_out(struct bpf_sock_ops *ctx)
{
	struct connection *c;

	if (ctx->skb_tcp_flags & TCP_FLAG_SYN)
		return !(ctx->skb_tcp_flags & TCP_FLAG_ACK) || option_in(ctx, OPTION_OF_SYN) ? AGREES : 0;
	c = connection_of(ctx, 0);
	if (!c || !c->asks)
		return 0;
	/* The peer's kernel shows its program the ACK that ends the handshake, and not the SYN. */
	if (!ctx->data_segs_out && !ctx->data_segs_in)
		return AGREES;
	/* As long as the path is not known, each ACK tells something. */
	if (c->kind == KIND_FARPACE && c->farpace.phase != PHASE_STEADY)
		return ASKS;
	return 0;
}

static __always_inline void reserve(struct bpf_sock_ops *ctx)
{
	if (option_out(ctx))
		bpf_reserve_hdr_opt(ctx, OPTION_BYTES, 0);
	else if (!(ctx->skb_tcp_flags & TCP_FLAG_SYN) && ctx->data_segs_out > 0)
		/* The start is over. */
		want_no_writing(ctx);
}

static __always_inline void write(struct bpf_sock_ops *ctx)
{
	u8 what = option_out(ctx);
	u8 option[OPTION_BYTES] = { OPTION_KIND, OPTION_BYTES, OPTION_NUMBER_HIGH, OPTION_NUMBER_LOW, what };
	struct policy_counters *count = what == ASKS ? counters_of_policy() : NULL;

	if (what && !bpf_store_hdr_opt(ctx, option, sizeof(option), 0) && count)
		__sync_fetch_and_add(&count->asked, 1);
}

SEC("sockops")
int policy(struct bpf_sock_ops *ctx)
{
	struct rule *rule;
	u32 asks;

	switch (ctx->op) {
	case OP_LISTEN:
		/* Whoever connects may ask for ACKs; who it is, is not known yet. */
		rule = rule_for(ctx);
		if (rule && rule->ack_requests)
			want_options(ctx, CALL_WRITE | CALL_PARSE_UNKNOWN);
		break;
	case OP_PARSE_OPTIONS:
		on_option(ctx);
		break;
	case OP_OPTIONS_LENGTH:
		reserve(ctx);
		break;
	case OP_WRITE_OPTIONS:
		write(ctx);
		break;
	case OP_RWND_INIT:
		rule = rule_for(ctx);
		ctx->reply = rule && rule->initial_receive_window ? (int)rule->initial_receive_window : -1;
		return 1;
	case OP_CONNECT:
	case OP_ACTIVE_ESTABLISHED:
	case OP_PASSIVE_ESTABLISHED:
		rule = rule_for(ctx);
		if (!rule)
			break;
		asks = rule->ack_requests;
		if (ctx->op == OP_CONNECT) {
			if (asks)
				want_options(ctx, CALL_WRITE | CALL_PARSE_UNKNOWN);
			break;
		}
		if (asks)
			agree(ctx);
		apply(ctx, rule);
		break;
	}
	return 1;
}
