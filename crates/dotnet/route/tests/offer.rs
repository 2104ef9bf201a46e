//! A router that offers all runtimes, and peers that have not proven that they have the token: which ones are disconnected, and
//! which ones are answered.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use runtap_route::router::{Limits, Notice, Offer};
use runtap_testkit::eventually;
use runtap_transport::remote::{ClientHandshake, Handshake, HandshakeError, Refusal, Request, Token};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

const TOKEN: &[u8] = b"correct horse battery staple";
/// No process has this id.
const NOBODY: Request = Request::Open { pid: u32::MAX, started: 1 };

struct Running {
    address: SocketAddr,
    notices: Arc<Mutex<Vec<Notice>>>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Running {
    fn start(silent: usize) -> Self {
        let notices = Arc::<Mutex<Vec<Notice>>>::default();
        let ((tell, ready), (stop, stopped)) = (mpsc::channel(), oneshot::channel::<()>());
        let told = Arc::clone(&notices);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut limits = Limits::default();
                (limits.silent, limits.connections) = (silent, silent * 4);
                let any = "127.0.0.1:0".parse().unwrap();
                let offer = Offer::bind(&[any], Token::new(TOKEN).unwrap()).await.unwrap();
                let offer = offer.limits(limits).on_notice(move |it| told.lock().unwrap().push(it.clone()));
                tell.send(offer.address().unwrap()).unwrap();
                offer.run(async { stopped.await.unwrap() }).await;
            });
        });
        Self { address: ready.recv().unwrap(), notices, stop, thread }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        // Only protects against hangs.
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream
    }

    /// Sends a greeting and reads the answer.
    fn greet(&self, token: &[u8]) -> (TcpStream, ClientHandshake) {
        let mut stream = self.connect();
        let mut client = ClientHandshake::new(Token::new(token).unwrap(), [7; 32], self.address, NOBODY);
        stream.write_all(&client.poll_transmit().unwrap()).unwrap();
        let mut challenge = vec![0; client.wanted()];
        stream.read_exact(&mut challenge).unwrap();
        client.handle_bytes(&challenge);
        (stream, client)
    }

    fn unproven(&self) -> usize {
        let notices = self.notices.lock().unwrap();
        notices.iter().filter(|notice| matches!(notice, Notice::Unproven { .. })).count()
    }

    fn end(self) {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

/// Sends a request and reads the answer, with the token.
fn is_answered((mut stream, mut client): (TcpStream, ClientHandshake)) {
    stream.write_all(&client.poll_transmit().unwrap()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let mut rest = &answer[..];
    while !rest.is_empty() {
        let wanted = client.wanted();
        assert!(wanted > 0 && wanted <= rest.len(), "more than one answer: {answer:x?}");
        client.handle_bytes(&rest[..wanted]);
        rest = &rest[wanted..];
    }
    let outcome = client.poll_event();
    let Some(Err(HandshakeError::Refused(Refusal::NoProcess(_)))) = outcome else { panic!("{outcome:?}") };
}

#[test]
fn silent_peers_do_not_displace_peers_that_have_greeted() {
    let router = Running::start(8);
    let early = router.greet(TOKEN);
    let flood: Vec<TcpStream> = (0..100).map(|_| router.connect()).collect();
    // A later peer is served, too, which shows that all silent peers were accepted.
    is_answered(router.greet(TOKEN));
    is_answered(early);
    drop(flood);
    router.end();
}

/// A greeting is cheap and needs no token.
#[test]
fn peers_that_have_greeted_do_not_lock_out_others() {
    let router = Running::start(8);
    let mut crowd: Vec<_> = (0..32).map(|_| router.greet(b"a guess, and a wrong one")).collect();
    is_answered(router.greet(TOKEN));
    // However many times they connect again.
    for _ in 0..3 {
        crowd.extend((0..8).map(|_| router.greet(b"a guess, and a wrong one")));
        is_answered(router.greet(TOKEN));
    }
    drop(crowd);
    router.end();
}

#[test]
fn peers_with_a_wrong_proof_do_not_occupy_places() {
    let router = Running::start(4);
    let early = router.greet(TOKEN);
    let mut guesses = Vec::new();
    for n in 1..=20 {
        let (mut stream, mut client) = router.greet(b"a guess, and a wrong one");
        stream.write_all(&client.poll_transmit().unwrap()).unwrap();
        eventually("a guess that was looked at", || (router.unproven() >= n).then_some(()));
        guesses.push(stream);
    }
    is_answered(early);
    router.end();
}

/// HMAC-SHA-256, as specified in docs/remote.md.
fn hmac(parts: &[&[u8]]) -> [u8; 32] {
    let pad = |with: u8| -> Vec<u8> {
        (0..64).map(|at| TOKEN.get(at).copied().unwrap_or_default() ^ with).collect()
    };
    let mut inner = Sha256::new_with_prefix(pad(0x36));
    for part in parts {
        inner.update(part);
    }
    Sha256::new_with_prefix(pad(0x5c)).chain_update(inner.finalize()).finalize().into()
}

#[test]
fn a_request_of_a_later_version_is_answered_once() {
    let router = Running::start(8);
    let mut stream = router.connect();
    let hello = [&b"RUNTAP-R"[..], &[2, 0, 2, 0], &[7; 32]].concat();
    stream.write_all(&hello).unwrap();
    let mut challenge = [0; 42];
    stream.read_exact(&mut challenge).unwrap();
    let address = [&[0; 10][..], &[0xff; 2], &[127, 0, 0, 1], &router.address.port().to_le_bytes()].concat();
    let request = [&[1, 0, 99][..], &address].concat();
    let proof = hmac(&[b"runtap remote 2: client\0", &hello, &challenge, &request]);
    let ask = [&request[..], &proof].concat();
    stream.write_all(&ask).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let refused = [2, 0, 0, 0, 0, 0];
    let proof = hmac(&[b"runtap remote 2: router\0", &hello, &challenge, &ask, &refused]);
    assert_eq!(answer, [&refused[..], &proof].concat());
    // It has the token, so it was not rejected.
    assert_eq!(router.unproven(), 0);
    router.end();
}
