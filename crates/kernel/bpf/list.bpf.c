/* Lists the connections of a network namespace that are under our control, for `farpace kernel status`.
 * It walks the sockets and not the map of their state: that iterator could write into the map, and some
 * kernels forbid tracing programs that can write.
 */
#include "types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "maps.h"
#include "socket.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("iter/tcp")
int list_connections(struct bpf_iter__tcp *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct sock_common *common = ctx->sk_common;
	struct connection *c;
	struct tcp_sock *tp;
	struct sock *sk;
	struct status_row row = {};

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	sk = (struct sock *)tp;
	c = bpf_sk_storage_get(&fp_connections, sk, NULL, 0);
	if (!c || !c->id)
		return 0;
	row.id = c->id;
	addresses_of(sk, &row.addresses);
	row.pacing_rate = sk->sk_pacing_rate;
	row.bytes_acked = tp->bytes_acked;
	row.bandwidth = bandwidth_of(c);
	row.delivered = tp->delivered;
	row.cwnd = tp->snd_cwnd;
	row.ssthresh = tp->snd_ssthresh;
	row.in_flight = in_flight(tp);
	row.mss = tp->mss_cache;
	row.srtt_us = tp->srtt_us >> 3;
	row.min_rtt_us = tp->rtt_min.s[0].v;
	row.base_rtt_us = c->kind == KIND_FARPACE ? path_base(&c->farpace.path) : c->star.abe.rtt_min;
	row.retransmissions = tp->total_retrans;
	row.lost = tp->lost;
	row.data_segments = tp->data_segs_out;
	row.kind = c->kind;
	row.phase = c->kind == KIND_FARPACE ? c->farpace.phase : 0;
	row.ca_state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	row.tcp_state = sk->__sk_common.skc_state;
	bpf_seq_write(seq, &row, sizeof(row));
	return 0;
}
