//! The two files of a pair.

use super::peer_file::PeerFile;
use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farpace_live::device::udp_tunnel::SecretKey;
use farpace_live::{MAX_TUNNEL_PATHS, write_private};
use farpace_path::Prefix;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The UDP port of the first path, unless another is said; the others have the next ones.
pub const FIRST_PORT: u16 = 51_820;
/// Characters of the name of a site at most.
const MAX_NAME: usize = 32;

/// A site, and what is behind its gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteWords {
    /// What it is called.
    pub name: String,
    /// The networks behind its gateway.
    pub prefixes: Vec<Prefix>,
}

impl FromStr for SiteWords {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, prefixes) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is not SITE=PREFIX, as in branch=10.1.0.0/16"))?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_word) {
            return Err(format!(
                "`{name}` cannot be the name of a site: letters, digits, - and _, up to {MAX_NAME}"
            ));
        }
        let prefixes = prefixes.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Ok(SiteWords { name: name.to_owned(), prefixes })
    }
}

/// Where a site is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteEndpoint {
    /// What it is called.
    pub site: String,
    /// Its address, or a name.
    pub host: String,
}

/// A pair whose files are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairPlan {
    /// A site.
    pub site: SiteWords,
    /// The other one.
    pub peer: SiteWords,
    /// Where they are reached; once for all paths, or once for each.
    pub endpoints: Vec<SiteEndpoint>,
    /// Paths between both.
    pub paths: u8,
    /// UDP port of the first path; the others have the next ones.
    pub port: u16,
}

impl FromStr for SiteEndpoint {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (site, host) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is not SITE=HOST, as in hq=198.51.100.7"))?;
        let is_name = |host: &str| {
            !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
        };
        if host.parse::<IpAddr>().is_err() && !is_name(host) {
            return Err(format!("`{host}` is neither an address nor a name; the port is said by --port"));
        }
        Ok(SiteEndpoint { site: site.to_owned(), host: host.to_owned() })
    }
}

/// Makes both files in `folder`, for their user alone, with the name of the site that each is for. Existing
/// files are replaced with `force` alone.
///
/// # Errors
/// Words that contradict each other, a file that is there, or one that cannot be written.
pub fn write_pair<'a>(plan: &'a PairPlan, folder: &Path, force: bool) -> Result<[(&'a str, PathBuf); 2]> {
    let texts = texts(plan)?;
    let path = |name: &str| folder.join(format!("{name}.conf"));
    if let Some((name, _)) = texts.iter().find(|(name, _)| path(name).exists() && !force) {
        bail!("{} is there already: --force replaces it, and its keys are lost", path(name).display());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, text) in &texts {
        let path = path(name);
        write_private(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let (a, b) = (&plan.site.name, &plan.peer.name);
    Ok([(a, path(b)), (b, path(a))])
}

/// The names of both files and their texts, with new keys: each is about the site that it is named after.
///
/// # Errors
/// Words that contradict each other, or no random numbers.
fn texts(args: &PairPlan) -> Result<[(String, String); 2]> {
    let (a, b) = (&args.site, &args.peer);
    ensure!(a.name != b.name, "both sites are called {}", a.name);
    ensure!(
        (1..=MAX_TUNNEL_PATHS).contains(&args.paths.into()),
        "--paths {}: 1 to {MAX_TUNNEL_PATHS}",
        args.paths
    );
    ensure!(
        args.port > 0 && args.port.checked_add(args.paths.into()).is_some(),
        "--port {}: there are not as many ports above it as paths",
        args.port
    );
    let hosts = |site: &SiteWords| -> Result<Vec<&str>> {
        let hosts: Vec<_> =
            args.endpoints.iter().filter(|end| end.site == site.name).map(|end| &*end.host).collect();
        ensure!(
            hosts.len() <= 1 || hosts.len() == usize::from(args.paths),
            "{} endpoints of {} for {} paths: say one for all, or one for each",
            hosts.len(),
            site.name,
            args.paths
        );
        Ok(hosts)
    };
    if let Some(other) = args.endpoints.iter().find(|end| ![&a.name, &b.name].contains(&&end.site)) {
        bail!("--endpoint {}=...: the sites are {} and {}", other.site, a.name, b.name);
    }
    let (at_a, at_b) = (hosts(a)?, hosts(b)?);
    let preshared = STANDARD.encode(SecretKey::generate().context("no random numbers")?.to_bytes());
    let mut keys: Vec<[SecretKey; 2]> = Vec::new();
    while keys.len() < args.paths.into() {
        let pair = [(); 2].map(|()| SecretKey::generate());
        let [Ok(own), Ok(other)] = pair else { bail!("no random numbers") };
        if own.public().inner_address() != other.public().inner_address() {
            keys.push([own, other]);
        }
    }
    let text = |here: usize| {
        let (own, peer) = if here == 0 { (a, b) } else { (b, a) };
        let (own_hosts, peer_hosts) = if here == 0 { (&at_a, &at_b) } else { (&at_b, &at_a) };
        let list = |site: &SiteWords| {
            site.prefixes.iter().map(|prefix| format!("\"{prefix}\"")).collect::<Vec<_>>().join(", ")
        };
        let mut text = format!(
            "\
# What the gateway of {own} knows of its peer {peer}. Made by `farpace gateway keys`; keep it secret.
# farpace gateway up --lan IF --peer {peer}.conf --via IF ...
site = \"{own}\"
peer = \"{peer}\"
prefixes = [{}]
peer_prefixes = [{}]
preshared_key = \"{preshared}\"
# mtu = 1420            # found out, unless it is said
",
            list(own),
            list(peer),
            own = own.name,
            peer = peer.name
        );
        for (number, pair) in keys.iter().enumerate() {
            let port = usize::from(args.port) + number;
            let host = |hosts: &[&str]| hosts.get(number).or(hosts.first()).map(|host| (*host).to_owned());
            text += &format!(
                "\n[[path]]\nprivate_key = \"{}\"\npeer_public_key = \"{}\"\n",
                STANDARD.encode(pair[here].to_bytes()),
                pair[1 - here].public()
            );
            if host(own_hosts).is_some() {
                text += &format!("listen_port = {port}\n");
            }
            if let Some(host) = host(peer_hosts) {
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                text += &format!("endpoint = \"{host}:{port}\"\n");
            }
        }
        text
    };
    let texts = [(b.name.clone(), text(0)), (a.name.clone(), text(1))];
    for (name, text) in &texts {
        PeerFile::parse(text).with_context(|| format!("{name}.conf"))?;
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sites, `--endpoint SITE=HOST` and `--paths N`.
    fn args(words: &[&str]) -> PairPlan {
        let after = |option: &str| {
            words.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1]).collect::<Vec<_>>()
        };
        PairPlan {
            site: words[0].parse().unwrap(),
            peer: words[1].parse().unwrap(),
            endpoints: after("--endpoint").iter().map(|word| word.parse().unwrap()).collect(),
            paths: after("--paths").first().map_or(1, |word| word.parse().unwrap()),
            port: FIRST_PORT,
        }
    }

    // Breaks: the two files of a pair do not fit together, or a gateway does not take them.
    #[test]
    fn both_files_fit_together() {
        let words = ["a=10.1.0.0/16,fd01::/64", "b=0.0.0.0/0", "--endpoint", "b=2001:db8::1", "--paths", "3"];
        let [(at_a, of_b), (at_b, of_a)] = texts(&args(&words)).unwrap();
        assert_eq!((at_a.as_str(), at_b.as_str()), ("b", "a"));
        let (near, far) = (PeerFile::parse(&of_b).unwrap(), PeerFile::parse(&of_a).unwrap());
        assert_eq!((near.prefixes.clone(), near.peer_prefixes.clone()), (far.peer_prefixes, far.prefixes));
        assert_eq!((near.site, near.peer), (far.peer, far.site));
        assert!(near.preshared_key == far.preshared_key);
        let inside = |[own, peer]: [std::net::Ipv4Addr; 2]| [peer, own];
        let ends = PeerFile::parse(&of_b).unwrap().addresses();
        assert_eq!(ends.map(inside), PeerFile::parse(&of_a).unwrap().addresses());
        for (number, (own, other)) in (0..).zip(near.paths.iter().zip(&far.paths)) {
            assert_eq!(own.private_key.public(), other.peer_public_key);
            assert_eq!(own.peer_public_key, other.private_key.public());
            assert_eq!(own.endpoint.clone().unwrap(), format!("[2001:db8::1]:{}", FIRST_PORT + number));
            assert_eq!((other.listen_port, &other.endpoint), (Some(FIRST_PORT + number), &None));
            assert_eq!((own.keepalive(), other.keepalive()), (Some(25), None));
        }
    }

    // Breaks: contradicting words make files that cannot work.
    #[test]
    fn contradictions_are_told() {
        for (words, says) in [
            (vec!["a=10.1.0.0/16", "a=10.2.0.0/16", "--endpoint", "a=h"], "both sites are called"),
            (vec!["a=10.1.0.0/16", "b=10.2.0.0/16", "--endpoint", "c=h"], "the sites are a and b"),
            (vec!["a=10.1.0.0/16", "b=10.1.0.0/16", "--endpoint", "a=h"], "behind both"),
            (vec!["a=10.1.0.0/16", "b=10.2.0.0/16", "--endpoint", "a=h", "--paths", "9"], "1 to 8"),
            (
                vec![
                    "a=10.1.0.0/16",
                    "b=10.2.0.0/16",
                    "--endpoint",
                    "a=h",
                    "--endpoint",
                    "a=i",
                    "--paths",
                    "3",
                ],
                "one for each",
            ),
        ] {
            let error = format!("{:#}", texts(&args(&words)).unwrap_err());
            assert!(error.contains(says), "{words:?}: {error}");
        }
    }

    // Breaks: a mistake in a file is told without its line, or with a key.
    #[test]
    fn mistakes_are_told_without_keys() {
        let [(_, text), _] = texts(&args(&["a=10.1.0.0/16", "b=10.2.0.0/16", "--endpoint", "b=h"])).unwrap();
        let secret = text.split("private_key = \"").nth(1).unwrap().split('"').next().unwrap();
        let line = |word: &str| text.lines().position(|line| line.starts_with(word)).unwrap() + 1;
        for (wrong, says) in [
            (text.replace(secret, &secret[1..]), format!("line {}: not a key", line("private_key"))),
            (text.replace("private_key", "private"), format!("line {}: unknown field", line("private_key"))),
            (text.replace("site =", "port ="), format!("line {}: unknown field", line("site"))),
            (
                text.replace("endpoint = \"h:51820\"", &format!("listen_port = \"{secret}\"")),
                "expected u16".into(),
            ),
            (text.replace("\"10.1.0.0/16\"", ""), "prefixes is empty".into()),
            (text.replace("endpoint = \"h:51820\"", ""), "neither endpoint nor listen_port".into()),
            (text.replace("# mtu = 1420", "mtu = 100"), "1280 to 9000".into()),
        ] {
            let error = format!("{:#}", PeerFile::parse(&wrong).unwrap_err());
            assert!(error.contains(&says) && !error.contains(&secret[1..]), "{says}: {error}");
        }
    }
}
