/* Byte-exact pacing classes on a device: a filter at its egress that tells each packet when to leave (skb->tstamp), and counts
 * how late it has left. What holds packets back until then is the queueing discipline: fq, or htb where there is no fq.
 */
#include "types.h"

#include <bpf/bpf_helpers.h>

#define ACT_CONTINUE -1
#define ACT_SHOT 2

/* What a filter sees of a packet (linux/bpf.h). */
struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
	u64 sk;
	u32 gso_size;
};

typedef struct __sk_buff frame;

static __always_inline long load(frame *skb, u32 at, void *to, u32 len)
{
	return bpf_skb_load_bytes(skb, at, to, len);
}

#include "classes/maps.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

const volatile struct device device = {};

/* The class of a packet: that of the first filter that matches it. */
static __always_inline u32 class_of(struct __sk_buff *skb)
{
	struct filter_key key = {};
	u32 best = ~0U, class = device.fallback;

	if (!device.shapes)
		return class;
	key_of(skb, &key);
	for (u32 i = 0; i < MAX_KERNEL_SHAPES && i < device.shapes; i++) {
		u32 place = i;
		struct shape *shape = bpf_map_lookup_elem(&fp_shapes, &place);
		struct filter filter = { .shape = i };
		struct filter_class *found;

		/* Nothing that follows is earlier. */
		if (!shape || shape->first >= best)
			break;
		filter.key.dst[0] = key.dst[0] & shape->mask.dst[0];
		filter.key.dst[1] = key.dst[1] & shape->mask.dst[1];
		filter.key.src[0] = key.src[0] & shape->mask.src[0];
		filter.key.src[1] = key.src[1] & shape->mask.src[1];
		filter.key.rest = key.rest & shape->mask.rest;
		found = bpf_map_lookup_elem(&fp_filters, &filter);
		if (found && found->rank < best) {
			best = found->rank;
			class = found->class;
		}
	}
	return class;
}

SEC("tc")
int fp_classify(struct __sk_buff *skb)
{
	u32 class = class_of(skb), segments = skb->gso_segs, tag = skb->vlan_present ? 4 : 0;
	struct class *c = bpf_map_lookup_elem(&fp_classes, &class);
	u64 now = bpf_ktime_get_ns(), own = skb->tstamp, at = 0, bytes;
	enum verdict verdict = LEAVES;
	u32 handle;
	u64 rate;

	if (!c)
		return ACT_CONTINUE;
	bytes = skb->gso_size ? layer_2_of(skb->len + tag, skb->wire_len + tag * segments, segments, skb->gso_size) :
				layer_2(skb->len + tag);
	handle = c->handle;
	rate = c->rate;
	bpf_spin_lock(&c->lock);
	if (rate)
		verdict = depart(&c->departures, rate, now, bytes, c->limit, device.horizon, &at);
	if (verdict == LEAVES) {
		c->packets++;
		c->bytes += bytes;
		c->super_segments += segments > 1;
	} else if (verdict == BEYOND_LIMIT) {
		c->limit_drops++;
	} else {
		c->horizon_drops++;
	}
	bpf_spin_unlock(&c->lock);
	if (verdict != LEAVES)
		return ACT_SHOT;
	if (handle)
		skb->priority = handle;
	skb->tc_index = rate ? class + 1 : 0;
	if (rate)
		/* A connection may want it to leave later still; a time of another clock is none. */
		skb->tstamp = own > at && own - at <= device.horizon ? own : at;
	return ACT_CONTINUE;
}

static __always_inline u32 bin_of(u64 late)
{
	u64 us = late / 1000;
	u32 bin = 0;

	for (u32 i = 0; i < LATE_BINS - 1; i++) {
		if (us) {
			us >>= 1;
			bin++;
		}
	}
	return bin;
}

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct sk_buff {
	s64 tstamp;
	u16 tc_index;
};

#pragma clang attribute pop

/* The driver gets a frame. */
SEC("tp_btf/net_dev_start_xmit")
int fp_left(u64 *ctx)
{
	const struct sk_buff *skb = (const void *)ctx[0];
	const struct net_device *dev = (const void *)ctx[1];
	u64 now, late;
	u32 class, bin;
	struct class *c;

	if (!skb->tc_index || dev->ifindex != (int)device.index || dev->nd_net.net->ns.inum != device.namespace)
		return 0;
	class = skb->tc_index - 1;
	c = bpf_map_lookup_elem(&fp_classes, &class);
	if (!c)
		return 0;
	now = bpf_ktime_get_ns();
	late = now > (u64)skb->tstamp ? now - skb->tstamp : 0;
	__sync_fetch_and_add(&c->left, 1);
	__sync_fetch_and_add(&c->late, late);
	bin = bin_of(late);
	if (bin < LATE_BINS)
		__sync_fetch_and_add(&c->bins[bin], 1);
	/* Two processors at once may lose the lesser of two. */
	if (late > c->latest)
		c->latest = late;
	return 0;
}
