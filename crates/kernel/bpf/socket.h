/* Reading the kernel's sockets. */
#ifndef FARPACE_SOCKET_H
#define FARPACE_SOCKET_H

#include "maps.h"

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline u32 in_flight(const struct tcp_sock *tp)
{
	return less(tp->packets_out + tp->retrans_out, (u64)tp->sacked_out + tp->lost_out);
}

static __always_inline void addresses_of(const struct sock *sk, struct addresses *a)
{
	a->family = sk->__sk_common.skc_family;
	a->local_port = sk->__sk_common.skc_num;
	a->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	a->namespace = sk->__sk_common.skc_net.net->ns.inum;
	if (a->family == AF_INET6) {
		a->local[0] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[0];
		a->local[1] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[1];
		a->local[2] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[2];
		a->local[3] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3];
		a->remote[0] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[0];
		a->remote[1] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[1];
		a->remote[2] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[2];
		a->remote[3] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[3];
	} else {
		a->local[0] = sk->__sk_common.skc_rcv_saddr;
		a->remote[0] = sk->__sk_common.skc_daddr;
	}
}

static __always_inline u64 bandwidth_of(const struct connection *c)
{
	return c->kind == KIND_FARPACE ? c->farpace.bandwidth : c->star.abe.bw;
}

#endif
