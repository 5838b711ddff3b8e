//! One stream under TLS 1.3, whose ends know each other by raw public keys (RFC 7250): for paths that carry
//! no UDP.

use super::{SecureStream, Service, Ticket};
use crate::TransferProbe;
use farpace_transfer::FramedStream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, DistinguishedName,
    Error, ServerConfig, ServerConnection, SignatureScheme,
};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An Ed25519 private key in PKCS #8 (RFC 8410 §7) before its seed.
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// Bytes that are read and written at once.
const ROOM: usize = 64 << 10;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The key with this seed, for TLS.
fn certified(seed: &[u8; 32]) -> Result<CertifiedKey, Error> {
    let der = [&PKCS8[..], seed].concat();
    let key = any_eddsa_type(&PrivatePkcs8KeyDer::from(der))?;
    let public = key.public_key().ok_or(Error::General("a key without its public half".into()))?;
    Ok(CertifiedKey::new(vec![CertificateDer::from(public.as_ref().to_vec())], key))
}

/// The public key of this seed, as TLS sends it.
///
/// # Errors
/// It is no key.
pub fn public_key(seed: &[u8; 32]) -> Result<Vec<u8>, Error> {
    Ok(certified(seed)?.cert.first().map(|key| key.as_ref().to_vec()).unwrap_or_default())
}

/// Whom to believe at the other end.
#[derive(Debug)]
enum PinnedKey {
    /// Who has the key that the ticket says.
    Ticket(Ticket),
    /// Whoever has a ticket.
    Bearer(Vec<u8>),
}

impl PinnedKey {
    fn check(&self, key: &[u8]) -> Result<(), Error> {
        let right = match self {
            PinnedKey::Ticket(ticket) => ticket.is_tls_key(key),
            // Public keys are no secrets: nothing is learned from how long this takes.
            PinnedKey::Bearer(bearer) => bearer == key,
        };
        match right {
            true => Ok(()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }
}

/// What both kinds of verifiers do alike: signatures of TLS 1.3 by raw Ed25519 keys, and nothing else.
macro_rules! raw_key_methods {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.3 alone".into()))
        }
        fn verify_tls13_signature(
            &self,
            message: &[u8],
            key: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let all = provider().signature_verification_algorithms;
            verify_tls13_signature_with_raw_key(
                message,
                &SubjectPublicKeyInfoDer::from(key.as_ref()),
                signed,
                &all,
            )
        }
        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }
        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for PinnedKey {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(key).map(|()| ServerCertVerified::assertion())
    }
    raw_key_methods!();
}

impl ClientCertVerifier for PinnedKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(key).map(|()| ClientCertVerified::assertion())
    }
    raw_key_methods!();
}

fn failed(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The end that comes.
#[derive(Clone)]
pub struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    /// Whoever has `ticket`, for one service.
    ///
    /// # Errors
    /// Keys are none.
    pub fn new(ticket: &Ticket, service: Service) -> Result<Self, Error> {
        let bearer = AlwaysResolvesClientRawPublicKeys::new(Arc::new(certified(&ticket.bearer())?));
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(PinnedKey::Ticket(ticket.clone())))
            .with_client_cert_resolver(Arc::new(bearer));
        config.alpn_protocols = vec![service.protocol().to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(TlsClient(Arc::new(config)))
    }
    /// Does the handshake over a fresh connection, which may have timeouts set.
    ///
    /// # Errors
    /// The connection breaks, or the other end does not have the keys of the ticket.
    pub fn shake(&self, mut tcp: TcpStream) -> io::Result<(SecureStream, Service)> {
        let name = ServerName::try_from("farpace.invalid").map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut tls = ClientConnection::new(self.0.clone(), name).map_err(failed)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp)?;
        }
        // What the server says to our key comes after the handshake; the first answer of the service shows
        // it.
        let service = service_of(tls.alpn_protocol()).ok_or(io::ErrorKind::InvalidData)?;
        Ok((channel(tls.into(), tcp)?, service))
    }
}

/// The end that waits.
#[derive(Clone)]
pub struct TlsServer(Arc<ServerConfig>);

impl TlsServer {
    /// The end with this seed, for whoever has `ticket`.
    ///
    /// # Errors
    /// Keys are none.
    pub fn new(seed: &[u8; 32], ticket: &Ticket, services: &[Service]) -> Result<Self, Error> {
        let bearer = PinnedKey::Bearer(public_key(&ticket.bearer())?);
        let own = AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified(seed)?));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::new(bearer))
            .with_cert_resolver(Arc::new(own));
        config.alpn_protocols = services.iter().map(|service| service.protocol().to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(TlsServer(Arc::new(config)))
    }
    /// A stream whose handshake is done when it is first read from: what strangers send costs the thread that
    /// reads.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn later(&self, tcp: TcpStream) -> io::Result<SecureStream> {
        channel(ServerConnection::new(self.0.clone()).map_err(failed)?.into(), tcp)
    }
    /// Does the handshake, and says which service is wanted.
    ///
    /// # Errors
    /// The connection breaks, or the other end has no ticket.
    pub fn shake(&self, mut tcp: TcpStream) -> io::Result<(SecureStream, Service)> {
        let mut tls = ServerConnection::new(self.0.clone()).map_err(failed)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp)?;
        }
        let service = service_of(tls.alpn_protocol()).ok_or(io::ErrorKind::InvalidData)?;
        Ok((channel(tls.into(), tcp)?, service))
    }
}

fn service_of(protocol: Option<&[u8]>) -> Option<Service> {
    Service::ALL.into_iter().find(|service| Some(service.protocol()) == protocol)
}

fn channel(tls: Connection, tcp: TcpStream) -> io::Result<SecureStream> {
    let _ = tcp.set_nodelay(true);
    let peer = tcp.peer_addr().map_or("?".to_owned(), |peer| {
        std::net::SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string()
    });
    let probe = TransferProbe::Kernel(tcp.try_clone()?);
    let shared = Arc::new(TlsState { tls: Mutex::new(tls), tcp, out: Mutex::new(Vec::new()) });
    let (closer, finisher) = (shared.clone(), shared.clone());
    let reader = TlsReader { shared: shared.clone(), room: vec![0; ROOM], from: 0, to: 0 };
    let close = move || drop(closer.tcp.shutdown(Shutdown::Both));
    let finish = move || {
        finisher.tls().send_close_notify();
        let _ = finisher.flush(|_| Ok(0));
    };
    let line = FramedStream {
        reader: Box::new(reader),
        writer: Box::new(TlsWriter(shared)),
        close: Box::new(close),
    };
    Ok(SecureStream { line, finish: Box::new(finish), peer, probe })
}

struct TlsState {
    tls: Mutex<Connection>,
    tcp: TcpStream,
    /// Held while what TLS made is written, so that it leaves in its order.
    out: Mutex<Vec<u8>>,
}

impl TlsState {
    fn tls(&self) -> MutexGuard<'_, Connection> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Does `work`, then writes all that TLS has to say. The reader never waits for this, so neither end
    /// waits for ever.
    fn flush(&self, work: impl FnOnce(&mut Connection) -> io::Result<usize>) -> io::Result<usize> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.clear();
        let done = {
            let mut tls = self.tls();
            let done = work(&mut tls)?;
            while tls.wants_write() {
                tls.write_tls(&mut *out)?;
            }
            done
        };
        (&self.tcp).write_all(&out)?;
        Ok(done)
    }
}

struct TlsReader {
    shared: Arc<TlsState>,
    room: Vec<u8>,
    /// What was read and TLS has not taken yet.
    from: usize,
    to: usize,
}

impl Read for TlsReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let (mut answers, mut progress) = (false, false);
            {
                let mut tls = self.shared.tls();
                match tls.reader().read(into) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // The connection ended without a word of TLS: somebody cut it. Each service has an end of
                    // its own.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                    other => return other,
                }
                let mut pending = self.room.get(self.from..self.to).unwrap_or_default();
                if !pending.is_empty() {
                    progress = true;
                    self.from += tls.read_tls(&mut pending)?;
                    let processed = tls.process_new_packets();
                    answers = tls.wants_write();
                    if let Err(error) = processed {
                        drop(tls);
                        // The other end is told why.
                        let _ = self.shared.flush(|_| Ok(0));
                        return Err(failed(error));
                    }
                }
            }
            if answers {
                self.shared.flush(|_| Ok(0))?;
            }
            // What was processed may have become bytes for us.
            if progress {
                continue;
            }
            match (&self.shared.tcp).read(&mut self.room) {
                Ok(0) => return Ok(0),
                Ok(n) => (self.from, self.to) = (0, n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

struct TlsWriter(Arc<TlsState>);

impl Write for TlsWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = bytes.get(..ROOM).unwrap_or(bytes);
        let written = self.0.flush(|tls| tls.writer().write(part))?;
        // Before the handshake is done a limit applies.
        if written == 0 && !part.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "written before the handshake was done"));
        }
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::TicketIdentity;
    use super::*;
    use std::net::TcpListener;

    fn ticket(identity: &TicketIdentity) -> Ticket {
        identity.ticket(Vec::new(), &public_key(&identity.tls()).unwrap())
    }

    type End = io::Result<(SecureStream, Service)>;

    /// Both ends of a stream, or why there is none.
    fn pair(server: &TlsServer, client: &TlsClient) -> (End, End) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            let near = scope.spawn(|| client.shake(TcpStream::connect(at).unwrap()));
            let far = server.shake(listener.accept().unwrap().0);
            (near.join().unwrap(), far)
        })
    }

    /// Breaks: bytes change under TLS, its ends wait for each other, or the service is another.
    #[test]
    fn bytes_pass_in_both_directions_at_once() {
        let identity = TicketIdentity::generate().unwrap();
        let ticket = ticket(&identity);
        let server = TlsServer::new(&identity.tls(), &ticket, &Service::ALL).unwrap();
        let client = TlsClient::new(&ticket, Service::Perf).unwrap();
        let (near, far) = pair(&server, &client);
        let ((near, _), (far, service)) = (near.unwrap(), far.unwrap());
        assert_eq!(service, Service::Perf);
        let data: Vec<u8> = (0..4_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::thread::scope(|scope| {
            let data = &data;
            for SecureStream { line, finish, .. } in [near, far] {
                let FramedStream { mut reader, mut writer, .. } = line;
                scope.spawn(move || {
                    writer.write_all(data).unwrap();
                    finish();
                });
                scope.spawn(move || {
                    let mut all = Vec::new();
                    reader.read_to_end(&mut all).unwrap();
                    assert!(all == *data, "{} B", all.len());
                });
            }
        });
    }

    /// Breaks: a few bytes wait inside of TLS until more come, so that both ends wait for each other.
    #[test]
    fn a_question_is_answered_at_once() {
        let identity = TicketIdentity::generate().unwrap();
        let ticket = ticket(&identity);
        let server = TlsServer::new(&identity.tls(), &ticket, &[Service::Transfer]).unwrap();
        let client = TlsClient::new(&ticket, Service::Transfer).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Its handshake is done by the first read.
                let FramedStream { mut reader, mut writer, .. } =
                    server.later(listener.accept().unwrap().0).unwrap().line;
                for _ in 0..100 {
                    let mut byte = [0];
                    reader.read_exact(&mut byte).unwrap();
                    writer.write_all(&byte).unwrap();
                }
            });
            let FramedStream { mut reader, mut writer, .. } =
                client.shake(TcpStream::connect(at).unwrap()).unwrap().0.line;
            for n in 0..100 {
                let mut byte = [0];
                writer.write_all(&[n]).unwrap();
                reader.read_exact(&mut byte).unwrap();
                assert_eq!(byte, [n]);
            }
        });
    }

    /// Breaks: whoever has no ticket, or another one, is let in; or somebody in the middle is taken for the
    /// receiver.
    #[test]
    fn only_the_ticket_opens_it() {
        let (identity, other) = (TicketIdentity::generate().unwrap(), TicketIdentity::generate().unwrap());
        let right = ticket(&identity);
        let server = TlsServer::new(&identity.tls(), &right, &[Service::Transfer]).unwrap();
        // Another ticket: the client sees the wrong key at once.
        let (near, far) = pair(&server, &TlsClient::new(&ticket(&other), Service::Transfer).unwrap());
        assert!(near.is_err() && far.is_err());
        // Somebody who knows the public key but not the secret.
        let stolen = other.ticket(Vec::new(), &public_key(&identity.tls()).unwrap());
        let (_, far) = pair(&server, &TlsClient::new(&stolen, Service::Transfer).unwrap());
        assert!(far.is_err());
        // A man in the middle with a key of his own.
        let middle = TlsServer::new(&other.tls(), &right, &[Service::Transfer]).unwrap();
        let (near, _) = pair(&middle, &TlsClient::new(&right, Service::Transfer).unwrap());
        assert!(near.is_err());
        // A service that is not there.
        let (near, far) = pair(&server, &TlsClient::new(&right, Service::Forward).unwrap());
        assert!(near.is_err() && far.is_err());
        assert!(pair(&server, &TlsClient::new(&right, Service::Transfer).unwrap()).1.is_ok());
    }
}
