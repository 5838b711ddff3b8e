//! The match of a `tc` filter: selectors of u32, keys of flower.

use super::units;
use super::words::{TcError, Words};
use crate::pacing::{ClassFilter, Protocol};
use farpace_path::Prefix;

/// The address family of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    All,
    V4,
    V6,
}

/// The match of a filter, while it is parsed.
pub(super) struct Selector {
    pub family: Family,
    protocol: Option<Protocol>,
    src: Option<Prefix>,
    dst: Option<Prefix>,
    src_port: Option<u16>,
    dst_port: Option<u16>,
    dscp: Option<u8>,
}

const U32_KEYS: [&str; 7] = ["src", "dst", "sport", "dport", "protocol", "tos", "dsfield"];
const FLOWER_KEYS: [&str; 8] =
    ["dst_ip", "src_ip", "ip_proto", "dst_port", "src_port", "ip_tos", "classid", "flowid"];

impl Selector {
    pub fn new(family: Family) -> Self {
        let (protocol, src, dst, src_port, dst_port, dscp) = (None, None, None, None, None, None);
        Selector { family, protocol, src, dst, src_port, dst_port, dscp }
    }

    /// The filter, without class and priority.
    pub fn filter(&self) -> ClassFilter {
        let Selector { family: _, protocol, src, dst, src_port, dst_port, dscp } = *self;
        ClassFilter { class: String::new(), priority: 0, protocol, src, dst, src_port, dst_port, dscp }
    }

    /// One selector of u32, after `match`.
    pub fn match_u32(&mut self, words: &mut Words<'_>) -> Result<(), TcError> {
        match words.next("ip or ip6")? {
            "ip" if self.family == Family::V6 => {
                return Err(words.error("the filter is of protocol ipv6: expected `match ip6`"));
            }
            "ip" => {}
            "ip6" if self.family == Family::V4 => {
                return Err(words.error("the filter is of protocol ip: expected `match ip`"));
            }
            "ip6" => self.family = Family::V6,
            // Matches any packet.
            "u32" if words.take("0") && words.take("0") => {
                if words.take("at") {
                    words.next("an offset, like 0")?;
                }
                return Ok(());
            }
            "u32" | "u16" | "u8" | "mark" | "ether" | "icmp" => {
                return Err(words
                    .not_here("filters match addresses, ports, protocol and DSCP; any packet is `u32 0 0`"));
            }
            tcp @ ("tcp" | "udp") => {
                let number = if tcp == "tcp" { 6 } else { 17 };
                return Err(words
                    .not_here(&format!("write `match ip protocol {number} 0xff match ip dport 80 0xffff`")));
            }
            _ => return Err(words.unknown(&["ip", "ip6"])),
        }
        match words.next("what to match, like dst")? {
            "src" => self.address(true, words),
            "dst" => self.address(false, words),
            "sport" => {
                let port = port(words)?;
                masked(0xffff, "port ranges are not supported", words)?;
                words.once(&mut self.src_port, port, "sport")
            }
            "dport" => {
                let port = port(words)?;
                masked(0xffff, "port ranges are not supported", words)?;
                words.once(&mut self.dst_port, port, "dport")
            }
            "protocol" => {
                let protocol = words.value("a protocol, like 6", protocol)?;
                masked(0xff, "protocol masks are not supported", words)?;
                words.once(&mut self.protocol, protocol, "protocol")
            }
            "tos" | "dsfield" | "priority" => {
                let byte = words.value("a number, like 0xb8", |text| units::number(text, 0xff))?;
                masked(0xfc, "filters match the DSCP only, not the two ECN bits", words)?;
                self.dscp(byte, words)
            }
            "precedence" | "ihl" | "nofrag" | "firstfrag" | "df" | "mf" | "icmp_type" | "icmp_code"
            | "flowlabel" => Err(words.not_here("filters match addresses, ports, protocol and DSCP")),
            _ => Err(words.unknown(&U32_KEYS)),
        }
    }

    /// One key of flower.
    pub fn match_flower(&mut self, key: &str, words: &mut Words<'_>) -> Result<(), TcError> {
        match key {
            "src_ip" => self.address(true, words),
            "dst_ip" => self.address(false, words),
            "src_port" => {
                let port = port(words)?;
                words.once(&mut self.src_port, port, "src_port")
            }
            "dst_port" => {
                let port = port(words)?;
                words.once(&mut self.dst_port, port, "dst_port")
            }
            "ip_proto" => {
                let protocol = words.value("tcp, udp or a number", protocol)?;
                words.once(&mut self.protocol, protocol, "ip_proto")
            }
            "ip_tos" => {
                let word = words.next("a number and a mask, like 0xb8/0xfc")?;
                let wrong = |problem: String| words.error(problem);
                let (byte, mask) = word.split_once('/').unwrap_or((word, "ff"));
                // Hexadecimal, as in `tc`.
                let byte = units::mask(byte)
                    .map_err(|_| wrong(format!("`{word}` is not a number and a mask, like 0xb8/0xfc")))?;
                if units::mask(mask).map_err(wrong)? != 0xfc {
                    return Err(wrong(
                        "filters match the DSCP only, not the two ECN bits: expected the mask 0xfc, like \
                         0xb8/0xfc"
                            .to_owned(),
                    ));
                }
                self.dscp(byte, words)
            }
            "eth_type" | "indev" | "vlan_id" | "vlan_prio" | "vlan_ethtype" | "cvlan_id" | "dst_mac"
            | "src_mac" | "tcp_flags" | "ip_ttl" | "ip_flags" | "type" | "code" | "ct_state"
            | "enc_key_id" | "mpls_label" | "arp_tip" | "arp_sip" | "hw_tc" | "verbose" => {
                Err(words.not_here("filters match addresses, ports, protocol and DSCP"))
            }
            _ => Err(words.unknown(&FLOWER_KEYS)),
        }
    }

    /// Reads an address or a prefix of the family of the filter.
    fn address(&mut self, src: bool, words: &mut Words<'_>) -> Result<(), TcError> {
        let mut net: Option<Prefix> = None;
        let expected = "an address, like 192.168.2.0/24";
        if matches!(words.peek(), Some("any" | "all" | "default")) {
            words.next(expected)?;
        } else {
            net = Some(words.parse(expected)?);
        }
        if let Some(net) = net {
            let family = if net.net().is_ipv4() { Family::V4 } else { Family::V6 };
            if self.family != Family::All && self.family != family {
                let name = if family == Family::V4 { "IPv4" } else { "IPv6" };
                return Err(words.error(format!("{net} is {name}, and the filter is not")));
            }
            self.family = family;
            let (field, name) = if src { (&mut self.src, "src") } else { (&mut self.dst, "dst") };
            words.once(field, net, name)?;
        }
        if words.peek() == Some("at") {
            words.next("")?;
            return Err(words.not_here("the position of addresses is known"));
        }
        Ok(())
    }

    fn dscp(&mut self, byte: u16, words: &Words<'_>) -> Result<(), TcError> {
        if byte & !0xfc != 0 {
            return Err(words.error(format!("{byte:#x} has bits outside of the mask 0xfc")));
        }
        words.once(&mut self.dscp, (byte >> 2) as u8, "the DSCP")
    }
}

fn port(words: &mut Words<'_>) -> Result<u16, TcError> {
    words.value("a port, like 80", |text| match text.split_once('-') {
        Some((first, _)) if !first.is_empty() => {
            Err(format!("`{text}`: port ranges are not supported: a filter has one port"))
        }
        _ => units::number(text, u16::MAX).map_err(|problem| format!("{problem}: expected a port")),
    })
}

/// Reads the mask, which must be `mask`.
fn masked(mask: u16, why: &str, words: &mut Words<'_>) -> Result<(), TcError> {
    let found = words.value(&format!("the mask {mask:#x}"), units::mask)?;
    match found == mask {
        true => Ok(()),
        false => Err(words.error(format!("{why}: expected the mask {mask:#x}"))),
    }
}

/// A protocol by number, or by name as in flower.
fn protocol(text: &str) -> Result<Protocol, String> {
    text.parse()
        .or_else(|error: String| units::number(text, 0xff).map(|n| Protocol::new(n as u8)).map_err(|_| error))
}
