/* What filters look at, of a packet: the key of crates/link/src/pacing/classifier/key.rs, bit by bit.
 *
 * Who includes this file defines `frame` and `load(frame, at, to, len)`, which copies bytes of the frame and is zero if they
 * are there.
 */
#ifndef FARPACE_KEY_H
#define FARPACE_KEY_H

struct filter_key {
	/* The lower half first; an IPv4 address is in the low 32 bits. */
	u64 dst[2];
	u64 src[2];
	u64 rest;
};

/* Places in `rest`; the destination port is at its bottom. */
#define KEY_SRC_PORT 16
#define KEY_PROTOCOL 32
#define KEY_DSCP 40
#define KEY_IP (1ULL << 48)
#define KEY_V4 (1ULL << 49)
#define KEY_V6 (1ULL << 50)
#define KEY_PORTS (1ULL << 51)

#define ETHER_IPV4 0x0800
#define ETHER_IPV6 0x86dd
#define ETHER_VLAN 0x8100
#define ETHER_SERVICE_VLAN 0x88a8
#define MAX_TAGS 2

#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

#define IPV4_LEN 20
#define IPV6_LEN 40
#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define DESTINATION_OPTIONS 60
/* Extension headers that are walked. */
#define MAX_EXTENSIONS 8
#define MAX_EXTENSIONS_LEN 64

static __always_inline u32 be16(const u8 *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

static __always_inline u64 be32(const u8 *bytes)
{
	return (u64)be16(bytes) << 16 | be16(bytes + 2);
}

static __always_inline u64 be64(const u8 *bytes)
{
	return be32(bytes) << 32 | be32(bytes + 4);
}

/* The ports at `at`, of a whole TCP segment or UDP datagram. */
static __always_inline void ports_of(frame *f, u32 at, u8 protocol, struct filter_key *key)
{
	u8 ports[4];

	if ((protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP) || load(f, at, ports, sizeof(ports)))
		return;
	key->rest |= KEY_PORTS | (u64)be16(ports) << KEY_SRC_PORT | be16(ports + 2);
}

static __always_inline void key_of_ipv4(frame *f, u32 at, struct filter_key *key)
{
	u8 ip[IPV4_LEN];

	if (load(f, at, ip, sizeof(ip)) || ip[0] >> 4 != 4 || (ip[0] & 15) < 5)
		return;
	key->src[0] = be32(ip + 12);
	key->dst[0] = be32(ip + 16);
	key->rest = KEY_IP | KEY_V4 | (u64)ip[9] << KEY_PROTOCOL | (u64)(ip[1] >> 2) << KEY_DSCP;
	/* More fragments, or not the first. */
	if (!(be16(ip + 6) & 0x3fff))
		ports_of(f, at + (ip[0] & 15) * 4, ip[9], key);
}

static __always_inline bool is_extension(u8 protocol)
{
	return protocol == HOP_BY_HOP || protocol == ROUTING || protocol == FRAGMENT || protocol == DESTINATION_OPTIONS;
}

static __always_inline void key_of_ipv6(frame *f, u32 at, struct filter_key *key)
{
	u8 ip[IPV6_LEN], head[4], last;
	u8 protocol, is_fragment = 0;
	u32 len = 0, this;

	if (load(f, at, ip, sizeof(ip)) || ip[0] >> 4 != 6)
		return;
	protocol = ip[6];
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		if (!is_extension(protocol) || load(f, at + IPV6_LEN + len, head, sizeof(head)))
			break;
		this = protocol == FRAGMENT ? 8 : 8 + 8 * head[1];
		/* It must be there as a whole. */
		if (len + this > MAX_EXTENSIONS_LEN || load(f, at + IPV6_LEN + len + this - 1, &last, 1))
			break;
		len += this;
		if (protocol == FRAGMENT && be16(head + 2) & 0xfff9) {
			/* Behind the header of a part is no other. */
			protocol = head[0];
			is_fragment = 1;
			break;
		}
		protocol = head[0];
	}
	key->src[1] = be64(ip + 8);
	key->src[0] = be64(ip + 16);
	key->dst[1] = be64(ip + 24);
	key->dst[0] = be64(ip + 32);
	key->rest = KEY_IP | KEY_V6 | (u64)protocol << KEY_PROTOCOL |
		    (u64)((ip[0] & 15) << 2 | ip[1] >> 6) << KEY_DSCP;
	if (!is_fragment)
		ports_of(f, at + IPV6_LEN + len, protocol, key);
}

/* The key of a frame; all zero if it is no IP. */
static __always_inline void key_of(frame *f, struct filter_key *key)
{
	u32 at = 12, type;
	u8 bytes[2];

	for (int tags = 0;; tags++) {
		if (load(f, at, bytes, sizeof(bytes)))
			return;
		type = be16(bytes);
		at += 2;
		if (tags == MAX_TAGS || (type != ETHER_VLAN && type != ETHER_SERVICE_VLAN))
			break;
		at += 2;
	}
	if (type == ETHER_IPV4)
		key_of_ipv4(f, at, key);
	else if (type == ETHER_IPV6)
		key_of_ipv6(f, at, key);
}

#endif
