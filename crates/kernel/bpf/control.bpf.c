/* The congestion controls farpace and TCP-STAR as tcp_congestion_ops: what the kernel tells, in the terms of the controls,
 * and what they decide, in the kernel's fields.
 */
#include "types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

#include "farpace/control.h"
#include "star/control.h"
#include "maps.h"
#include "socket.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Below this rate, in bytes a second, a segment leaves alone; above it in pairs, of which each is worth an ACK. */
#define PAIRS_FROM (1200000 / 8)
/* What may leave as a burst, segments (RFC 6928). */
#define INITIAL_WINDOW 10
/* The send buffer holds so many windows: one in flight, one to be sent again, one to be written meanwhile. */
#define SEND_BUFFER_WINDOWS 3

static __always_inline struct connection *connection_of(struct sock *sk)
{
	return bpf_sk_storage_get(&fp_connections, sk, NULL, 0);
}

static __always_inline void set_cwnd(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = clamp64(cwnd, 1, max64(tp->snd_cwnd_clamp, 1));
}

#define HALF_STATE 768

/* A connection comes under our control: after the handshake, or when a program asks for it later. */
static __always_inline struct connection *begin(struct sock *sk, enum kind kind)
{
	struct connection *c = bpf_sk_storage_get(&fp_connections, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	u32 zero = 0;
	struct counters *count = bpf_map_lookup_elem(&fp_counters, &zero);
	u64 id = count ? __sync_fetch_and_add(&count->connections, 1) + 1 : 1;
	u8 asks;

	if (!c) {
		if (count)
			__sync_fetch_and_add(&count->without_state, 1);
		return NULL;
	}
	/* What the handshake has agreed on stands there already. */
	asks = c->asks;
	/* clang makes stores of at most 1,024 bytes, and would make one of both calls. */
	_Static_assert(sizeof(*c) <= 2 * HALF_STATE, "HALF_STATE");
	__builtin_memset(c, 0, HALF_STATE);
	asm volatile("" ::: "memory");
	__builtin_memset((char *)c + HALF_STATE, 0, sizeof(*c) - HALF_STATE);
	c->asks = asks;
	c->id = id;
	c->kind = kind;
	c->delivered = tcp_sk(sk)->delivered;
	c->lost = tcp_sk(sk)->lost;
	return c;
}

/* A row for this ACK, if somebody reads them. */
static __always_inline void trace_ack(struct sock *sk, const struct connection *c, u64 now)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 zero = 0;
	struct config *on = bpf_map_lookup_elem(&fp_config, &zero);
	struct trace_row *row;

	if (!on || !on->trace)
		return;
	row = bpf_ringbuf_reserve(&fp_trace, sizeof(*row), 0);
	if (!row) {
		struct counters *count = bpf_map_lookup_elem(&fp_counters, &zero);

		if (count)
			__sync_fetch_and_add(&count->trace_lost, 1);
		return;
	}
	__builtin_memset(row, 0, sizeof(*row));
	row->time = now;
	row->id = c->id;
	addresses_of(sk, &row->addresses);
	row->bandwidth = bandwidth_of(c);
	row->pacing_rate = sk->sk_pacing_rate;
	row->ack = tp->snd_una;
	row->snd_nxt = tp->snd_nxt;
	row->rcv_nxt = tp->rcv_nxt;
	row->cwnd = tp->snd_cwnd;
	row->ssthresh = tp->snd_ssthresh;
	row->packets_out = tp->packets_out;
	row->lost_out = tp->lost_out;
	row->sacked_out = tp->sacked_out;
	row->retrans_out = tp->retrans_out;
	row->srtt_us = tp->srtt_us >> 3;
	row->rttvar_us = tp->rttvar_us >> 2;
	row->rto_us = tp->inet_conn.icsk_rto;
	row->snd_wnd = tp->snd_wnd;
	row->kind = c->kind;
	row->phase = c->kind == KIND_FARPACE ? c->farpace.phase : 0;
	row->ca_state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	bpf_ringbuf_submit(row, 0);
}

/* farpace */

static __always_inline void pace(struct sock *sk, const struct farpace *f)
{
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = min64(farpace_pacing(f), sk->sk_max_pacing_rate);
}

SEC("struct_ops")
void BPF_PROG(farpace_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = begin(sk, KIND_FARPACE);

	if (!c)
		return;
	farpace_begin(&c->farpace, tp->snd_cwnd, tp->mss_cache);
	c->farpace.srtt = tp->srtt_us >> 3;
	c->farpace.next_delivered = tp->delivered;
	c->farpace.train.from = tp->delivered;
	/* A program may ask for this control later: a window that has grown must not leave as a burst. */
	if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		farpace_enter(&c->farpace, PHASE_STEADY, false);
	else if (tp->snd_cwnd > INITIAL_WINDOW)
		farpace_enter(&c->farpace, PHASE_DOUBLE, true);
	pace(sk, &c->farpace);
}

static __always_inline void farpace_control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	struct fp_ack ack = {};
	long rtt = rs->rtt_us, interval = rs->interval_us;

	if (!c || c->kind != KIND_FARPACE)
		return;
	ack.now = bpf_ktime_get_ns();
	ack.mss = tp->mss_cache;
	ack.delivered = rs->acked_sacked;
	ack.lost = tp->lost - c->lost;
	ack.in_flight = in_flight(tp);
	ack.srtt = tp->srtt_us >> 3;
	if (rtt > 0)
		ack.rtt = ack.rate_rtt = min64(rtt, MAX_RTT);
	ack.total_delivered = tp->delivered;
	if (rs->delivered >= 0 && ack.delivered) {
		ack.has_rate = 1;
		ack.prior_delivered = rs->prior_delivered;
		if (interval > 0)
			ack.rate = (u64)rs->delivered * ack.mss * USEC_PER_SEC / interval;
	}
	ack.app_limited = rs->is_app_limited;
	ack.cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	ack.ece = c->ece;
	ack.peer_clock = tp->rx_opt.rcv_tsval;
	ack.has_peer_clock = ack.peer_clock != 0;
	c->ece = 0;
	c->lost = tp->lost;
	c->farpace.mss = ack.mss ? ack.mss : 1;
	farpace_on_ack(&c->farpace, &ack);
	set_cwnd(tp, farpace_window(&c->farpace));
	pace(sk, &c->farpace);
	trace_ack(sk, c, ack.now);
}

SEC("struct_ops")
void BPF_PROG(farpace_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	farpace_control(sk, rs);
}

/* Before Linux 6.10. */
SEC("struct_ops")
void BPF_PROG(farpace_cong_control2, struct sock *sk, const struct rate_sample *rs)
{
	farpace_control(sk, rs);
}

SEC("struct_ops")
u32 BPF_PROG(farpace_ssthresh, struct sock *sk)
{
	struct connection *c = connection_of(sk);

	if (c && c->kind == KIND_FARPACE)
		farpace_on_cut(&c->farpace);
	/* The threshold means nothing here. */
	return max64(tcp_sk(sk)->snd_ssthresh, 2);
}

SEC("struct_ops")
u32 BPF_PROG(farpace_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);

	if (!c || c->kind != KIND_FARPACE)
		return tp->snd_cwnd;
	farpace_on_undo(&c->farpace);
	return max64(tp->snd_cwnd, farpace_window(&c->farpace));
}

SEC("struct_ops")
void BPF_PROG(farpace_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);

	if (!c || c->kind != KIND_FARPACE || new_state != TCP_CA_Loss)
		return;
	farpace_on_timeout(&c->farpace);
	/* A timeout marks all segments; that says nothing of the path. */
	c->lost = tp->lost;
	pace(sk, &c->farpace);
}

/* Any control. */
SEC("struct_ops")
void BPF_PROG(note_ack, struct sock *sk, u32 flags)
{
	struct connection *c = connection_of(sk);

	if (!c)
		return;
	c->ece = !!(flags & CA_ACK_ECE);
	if (c->ack_now) {
		c->ack_now = 0;
		tcp_sk(sk)->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
	}
}

SEC("struct_ops")
u32 BPF_PROG(farpace_min_tso_segs, struct sock *sk)
{
	return sk->sk_pacing_rate < PAIRS_FROM ? 1 : 2;
}

SEC("struct_ops")
u32 BPF_PROG(farpace_sndbuf_expand, struct sock *sk)
{
	return SEND_BUFFER_WINDOWS;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops farpace = {
	.init = (void *)farpace_init,
	.cong_control = (void *)farpace_cong_control,
	.ssthresh = (void *)farpace_ssthresh,
	.undo_cwnd = (void *)farpace_undo_cwnd,
	.set_state = (void *)farpace_set_state,
	.in_ack_event = (void *)note_ack,
	.min_tso_segs = (void *)farpace_min_tso_segs,
	.sndbuf_expand = (void *)farpace_sndbuf_expand,
	.name = "farpace",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops farpace2 = {
	.init = (void *)farpace_init,
	.cong_control = (void *)farpace_cong_control2,
	.ssthresh = (void *)farpace_ssthresh,
	.undo_cwnd = (void *)farpace_undo_cwnd,
	.set_state = (void *)farpace_set_state,
	.in_ack_event = (void *)note_ack,
	.min_tso_segs = (void *)farpace_min_tso_segs,
	.sndbuf_expand = (void *)farpace_sndbuf_expand,
	.name = "farpace",
};

/* TCP-STAR */

SEC("struct_ops")
void BPF_PROG(star_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = begin(sk, KIND_STAR);

	if (!c)
		return;
	star_begin(&c->star, tp->snd_cwnd);
	abe_on_established(&c->star.abe, tp->srtt_us >> 3);
}

static __always_inline void star_ack(const struct tcp_sock *tp, struct fp_ack *ack)
{
	ack->now = bpf_ktime_get_ns();
	ack->mss = tp->mss_cache;
	ack->srtt = tp->srtt_us >> 3;
	ack->min_rtt = tp->rtt_min.s[0].v;
	ack->max_window = tp->max_window;
	ack->cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

SEC("struct_ops")
void BPF_PROG(star_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	struct fp_ack ack = {};
	s32 rtt = sample->rtt_us;

	if (!c || c->kind != KIND_STAR)
		return;
	star_ack(tp, &ack);
	ack.delivered = tp->delivered - c->delivered;
	c->delivered = tp->delivered;
	if (rtt > 0)
		ack.rtt = min64(rtt, MAX_RTT);
	abe_on_acked(&c->star.abe, &ack);
	trace_ack(sk, c, ack.now);
}

SEC("struct_ops")
void BPF_PROG(star_cong_avoid, struct sock *sk, u32 ack_seq, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);
	struct fp_ack ack = {};

	if (!c || c->kind != KIND_STAR)
		return;
	star_ack(tp, &ack);
	ack.acked = acked;
	set_cwnd(tp, star_on_ack(&c->star, &ack, tp->snd_cwnd, tp->snd_ssthresh));
}

SEC("struct_ops")
u32 BPF_PROG(star_ssthresh_op, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);

	if (!c || c->kind != KIND_STAR)
		return max64(tp->snd_cwnd / 2, 2);
	return star_ssthresh(&c->star, tp->snd_cwnd, tp->mss_cache, c->ece && !tp->lost_out);
}

SEC("struct_ops")
u32 BPF_PROG(star_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct connection *c = connection_of(sk);

	if (!c || c->kind != KIND_STAR)
		return tp->snd_cwnd;
	return star_on_undo(&c->star, tp->snd_cwnd);
}

SEC("struct_ops")
void BPF_PROG(star_set_state, struct sock *sk, u8 new_state)
{
	struct connection *c = connection_of(sk);

	if (c && c->kind == KIND_STAR && new_state == TCP_CA_Loss)
		set_cwnd(tcp_sk(sk), star_on_timeout(&c->star));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops star = {
	.init = (void *)star_init,
	.pkts_acked = (void *)star_pkts_acked,
	.cong_avoid = (void *)star_cong_avoid,
	.ssthresh = (void *)star_ssthresh_op,
	.undo_cwnd = (void *)star_undo_cwnd,
	.set_state = (void *)star_set_state,
	.in_ack_event = (void *)note_ack,
	.name = "star",
};
