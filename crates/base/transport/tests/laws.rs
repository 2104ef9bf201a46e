//! The handshake's laws: golden bytes, any chunks, any cut, any changed bit; lists that come back.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};

use proptest::prelude::*;
use runtap_transport::remote::{
    ClientHandshake, Handshake, HandshakeError, MAX_LISTED, MAX_TEXT, Nonce, Refusal, RemoteProcess, Request,
    RouterHandshake, Token,
};

const CLIENT: Nonce = [0x11; 32];
const ROUTER: Nonce = [0x22; 32];

const AT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)), 9000);

fn token(text: &str) -> Token {
    Token::new(text.as_bytes()).unwrap()
}

fn ours() -> Token {
    token("correct horse battery staple")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// What passes in one handshake: hello, challenge, ask, answer.
fn exchange(request: Request, outcome: Result<&[u8], &Refusal>) -> [Vec<u8>; 4] {
    let mut client = ClientHandshake::new(ours(), CLIENT, AT, request);
    let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
    let hello = client.poll_transmit().unwrap();
    router.handle_bytes(&hello);
    let challenge = router.poll_transmit().unwrap();
    client.handle_bytes(&challenge);
    let ask = client.poll_transmit().unwrap();
    router.handle_bytes(&ask);
    assert_eq!(router.poll_event(), Some(Ok(request)));
    router.answer(outcome);
    let answer = router.poll_transmit().unwrap();
    client.handle_bytes(&answer);
    let expected = outcome.map(<[u8]>::to_vec).map_err(|refusal| HandshakeError::Refused(refusal.clone()));
    assert_eq!(client.poll_event(), Some(expected));
    assert_eq!((client.wanted(), router.wanted()), (0, 0));
    [hello, challenge, ask, answer]
}

/// Computed by another implementation of HMAC-SHA-256 too: docs/remote.md has the recipe.
#[test]
fn golden_bytes() {
    let [hello, challenge, ask, answer] = exchange(Request::Open { pid: 42, started: 7 }, Ok(&[]));
    let (eleven, twenty_two) = ("11".repeat(32), "22".repeat(32));
    assert_eq!(hex(&hello), format!("52554e5441502d5202000200{eleven}"));
    assert_eq!(hex(&challenge), format!("52554e5441502d520200{twenty_two}"));
    let (request, address) = ("0d00022a0000000700000000000000", "00000000000000000000ffff0a0000072823");
    let proof = "732adb23f38e9b4594ec37e52dbfdddfcbb8f0792c5b8774da0eb3d2a04b0404";
    assert_eq!(hex(&ask), format!("{request}{address}{proof}"));
    assert_eq!(hex(&answer), "00000000000010a0515318d00b51076c12b2fb38395593d3ed752917c5a3381804d8b3b36c5c");
    let [.., ask, answer] = exchange(Request::List, Err(&Refusal::NoProcess("gone".into())));
    assert!(hex(&ask).starts_with("010001"));
    assert!(hex(&answer).starts_with("030004000000676f6e65"));
}

#[test]
fn every_refusal_comes_through() {
    for refusal in [
        Refusal::Malformed,
        Refusal::NoProcess("process 1 has ended".into()),
        Refusal::Failed("é".into()),
        Refusal::Elsewhere("there".into()),
        Refusal::Other(99),
    ] {
        exchange(Request::List, Err(&refusal));
    }
}

#[test]
fn another_token_is_refused_by_both() {
    let mut client = ClientHandshake::new(token("another-token-of-the-client"), CLIENT, AT, Request::List);
    let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
    router.handle_bytes(&client.poll_transmit().unwrap());
    client.handle_bytes(&router.poll_transmit().unwrap());
    router.handle_bytes(&client.poll_transmit().unwrap());
    let refused = HandshakeError::Refused(Refusal::Unauthenticated);
    assert_eq!(router.poll_event(), Some(Err(refused.clone())));
    assert_eq!(router.poll_transmit(), None, "that is for the caller to send, late");
    client.handle_bytes(&RouterHandshake::refusal(&refused));
    assert_eq!(client.poll_event(), Some(Err(refused)));
}

#[test]
fn a_proof_is_of_one_connection_and_of_one_side() {
    let [hello, _, ask, _] = exchange(Request::List, Ok(b"list"));
    // The same words, to a router that has made another random number.
    let mut router = RouterHandshake::new(ours(), [0x33; 32], [AT]);
    router.handle_bytes(&[hello, ask.clone()].concat());
    assert_eq!(router.poll_event(), Some(Err(HandshakeError::Refused(Refusal::Unauthenticated))));
    // What the client has proven is no proof of the router.
    let mut client = ClientHandshake::new(ours(), CLIENT, AT, Request::List);
    let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
    router.handle_bytes(&client.poll_transmit().unwrap());
    client.handle_bytes(&router.poll_transmit().unwrap());
    client.handle_bytes(&[&[0; 6], &ask[3..]].concat());
    assert_eq!(client.poll_event(), Some(Err(HandshakeError::Unproven)));
}

/// A peer at another address forwards the bytes of both sides unchanged.
#[test]
fn what_is_passed_on_to_another_router_is_refused_by_both() {
    let there: SocketAddr = "10.0.0.8:9000".parse().unwrap();
    let run = |reached: &str, addresses: &[SocketAddr]| {
        let mut client = ClientHandshake::new(ours(), CLIENT, reached.parse().unwrap(), Request::List);
        let mut router = RouterHandshake::new(ours(), ROUTER, addresses.iter().copied());
        router.handle_bytes(&client.poll_transmit().unwrap());
        client.handle_bytes(&router.poll_transmit().unwrap());
        router.handle_bytes(&client.poll_transmit().unwrap());
        let outcome = router.poll_event().unwrap();
        if outcome.is_ok() {
            router.answer(Ok(b"list"));
        }
        assert!(router.has_answered(), "with a proof");
        client.handle_bytes(&router.poll_transmit().unwrap());
        (outcome.is_ok(), client.poll_event().unwrap())
    };
    assert_eq!(run("10.0.0.8:9000", &[AT, there]), (true, Ok(b"list".to_vec())));
    let why = "the client has connected to 10.0.0.8:9000, not 10.0.0.7:9000";
    let refused = HandshakeError::Refused(Refusal::Elsewhere(why.to_owned()));
    assert_eq!(run("10.0.0.8:9000", &[AT]), (false, Err(refused)));
    assert!(!run("10.0.0.7:9001", &[AT]).0);
    // Written in another way; a tunnel's ends, which are both loopback.
    assert!(run("[::ffff:10.0.0.7]:9000", &[AT]).0);
    assert!(run("[::1]:9000", &["127.0.0.2:9000".parse().unwrap()]).0);
    assert!(!run("127.0.0.1:9000", &[AT]).0);
}

#[test]
fn versions_are_told_apart() {
    let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
    let mut hello = ClientHandshake::new(ours(), CLIENT, AT, Request::List).poll_transmit().unwrap();
    (hello[8], hello[10]) = (3, 4);
    router.handle_bytes(&hello);
    let Some(Err(error @ HandshakeError::Version)) = router.poll_event() else { panic!() };
    let mut client = ClientHandshake::new(ours(), CLIENT, AT, Request::List);
    client.handle_bytes(&RouterHandshake::refusal(&error));
    assert_eq!(client.poll_event(), Some(Err(HandshakeError::Version)));
    // Ranges of versions in which the version of this crate is the newest, or the oldest.
    for (oldest, newest) in [(2, 9), (0, 2)] {
        let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
        (hello[8], hello[10]) = (oldest, newest);
        router.handle_bytes(&hello);
        assert!(router.poll_transmit().is_some() && router.poll_event().is_none());
    }
}

#[test]
fn a_cut_is_told_where_it_is() {
    let [hello, challenge, ask, answer] = exchange(Request::List, Ok(b"list"));
    let (to_router, to_client) = ([hello, ask].concat(), [challenge, answer].concat());
    for cut in 0..to_router.len() {
        let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
        router.handle_bytes(&to_router[..cut]);
        assert!(router.poll_event().is_none() && router.wanted() > 0);
        router.handle_eof();
        assert_eq!(router.poll_event(), Some(Err(HandshakeError::Closed { received: cut as u64 })));
    }
    for cut in 0..to_client.len() {
        let mut client = ClientHandshake::new(ours(), CLIENT, AT, Request::List);
        client.handle_bytes(&to_client[..cut]);
        assert!(client.poll_event().is_none() && client.wanted() > 0);
        client.handle_eof();
        assert_eq!(client.poll_event(), Some(Err(HandshakeError::Closed { received: cut as u64 })));
    }
}

/// Neither side accepts a message that was changed on the way.
#[test]
fn a_changed_bit_is_noticed() {
    let [hello, challenge, ask, answer] = exchange(Request::Open { pid: 1, started: 2 }, Ok(b"list"));
    let (to_router, to_client) = ([hello, ask].concat(), [challenge, answer].concat());
    for at in 0..to_router.len() * 8 {
        let mut changed = to_router.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
        router.handle_bytes(&changed);
        assert!(!matches!(router.poll_event(), Some(Ok(_))), "bit {at}");
    }
    for at in 0..to_client.len() * 8 {
        let mut changed = to_client.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let mut client = ClientHandshake::new(ours(), CLIENT, AT, Request::Open { pid: 1, started: 2 });
        client.handle_bytes(&changed);
        assert!(!matches!(client.poll_event(), Some(Ok(_))), "bit {at}");
    }
}

fn listed() -> impl Strategy<Value = RemoteProcess> {
    let text = ".{0,20}";
    (any::<u32>(), any::<u64>(), any::<Option<bool>>(), [text, text, text, text, text]).prop_map(
        |(pid, started, suspended, [name, command_line, runtime_version, arch, user])| RemoteProcess {
            pid,
            started,
            suspended,
            name,
            command_line,
            runtime_version,
            arch,
            user,
        },
    )
}

proptest! {
    #[test]
    fn lists_come_back(list in prop::collection::vec(listed(), 0..20)) {
        let bytes = RemoteProcess::encode(&list);
        prop_assert_eq!(RemoteProcess::decode(&bytes).unwrap(), list);
        for cut in 0..bytes.len() {
            prop_assert!(RemoteProcess::decode(&bytes[..cut]).unwrap_err().is_incomplete());
        }
    }

    #[test]
    fn chunks_make_no_difference(sizes in prop::collection::vec(1usize..60, 1..60)) {
        let [hello, challenge, ask, answer] = exchange(Request::Open { pid: 42, started: 7 }, Ok(b"list"));
        let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
        let mut client = ClientHandshake::new(ours(), CLIENT, AT, Request::Open { pid: 42, started: 7 });
        let (to_router, to_client) = ([hello, ask].concat(), [challenge, answer].concat());
        let (mut up, mut down) = (&to_router[..], &to_client[..]);
        for size in sizes.into_iter().cycle() {
            let (now, later) = up.split_at(size.min(up.len()));
            router.handle_bytes(now);
            up = later;
            let (now, later) = down.split_at(size.min(down.len()));
            client.handle_bytes(now);
            down = later;
            if up.is_empty() && down.is_empty() {
                break;
            }
        }
        prop_assert_eq!(router.poll_event(), Some(Ok(Request::Open { pid: 42, started: 7 })));
        prop_assert_eq!(client.poll_event(), Some(Ok(b"list".to_vec())));
    }

    #[test]
    fn anything_is_taken_within_bounds(bytes in prop::collection::vec(any::<u8>(), 0..300), begin: bool) {
        let [hello, challenge, ..] = exchange(Request::List, Ok(&[]));
        let mut router = RouterHandshake::new(ours(), ROUTER, [AT]);
        let mut client = ClientHandshake::new(ours(), CLIENT, AT, Request::List);
        if begin {
            router.handle_bytes(&hello);
            client.handle_bytes(&challenge);
        }
        router.handle_bytes(&bytes);
        client.handle_bytes(&bytes);
        prop_assert!(router.wanted() <= 2 + 64 + 32 && client.wanted() <= runtap_transport::remote::MAX_ANSWER + 32);
        prop_assert!(!matches!(router.poll_event(), Some(Ok(_))) && !matches!(client.poll_event(), Some(Ok(_))));
        let _ = RemoteProcess::decode(&bytes);
    }
}

#[test]
fn what_is_too_long_is_left_out() {
    let long = RemoteProcess { name: "é".repeat(MAX_TEXT), ..RemoteProcess::default() };
    let back = RemoteProcess::decode(&RemoteProcess::encode(std::slice::from_ref(&long))).unwrap();
    assert_eq!(back[0].name.len(), MAX_TEXT);
    let many = vec![long; MAX_LISTED + 1];
    let bytes = RemoteProcess::encode(&many);
    assert!(
        bytes.len() <= runtap_transport::remote::MAX_ANSWER
            && RemoteProcess::decode(&bytes).unwrap().len() < MAX_LISTED
    );
    assert_eq!(
        RemoteProcess::decode(&RemoteProcess::encode(&vec![RemoteProcess::default(); MAX_LISTED + 1]))
            .unwrap()
            .len(),
        MAX_LISTED
    );
    // And a list that claims more than it may have.
    RemoteProcess::decode(&[0xff, 0xff]).unwrap_err();
}
