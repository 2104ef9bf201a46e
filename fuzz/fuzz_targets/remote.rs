//! Any bytes as input of either side of the handshake between two runtap processes, and as the list of a router (first
//! byte: chunk size; second: the receiver, and the progress of the handshake): no panic, no peer is authenticated, and
//! chunk sizes do not matter.
#![no_main]

use std::net::SocketAddr;

use runtap_transport::remote::{
    ClientHandshake, Handshake, HandshakeError, RemoteProcess, Request, RouterHandshake, Token,
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [chunk, how, said @ ..] = input else { return };
    let chunk = usize::from(*chunk).max(1);
    let began = how & 1 == 1;
    match how / 2 % 3 {
        0 => assert_eq!(router(said, chunk, began), router(said, said.len().max(1), began)),
        1 => assert_eq!(client(said, chunk, began), client(said, said.len().max(1), began)),
        _ => {
            if let Ok(list) = RemoteProcess::decode(said) {
                assert!(list.len() <= said.len());
                assert_eq!(RemoteProcess::decode(&RemoteProcess::encode(&list)).as_ref(), Ok(&list));
            }
        }
    }
});

fn token() -> Token {
    Token::new(b"correct horse battery staple").expect("long enough")
}

fn at() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9000))
}

fn router(said: &[u8], chunk: usize, began: bool) -> HandshakeError {
    let mut router = RouterHandshake::new(token(), [2; 32], [at()]);
    if began {
        router.handle_bytes(
            &ClientHandshake::new(token(), [1; 32], at(), Request::List).poll_transmit().expect("hello"),
        );
    }
    said.chunks(chunk).for_each(|part| router.handle_bytes(part));
    assert!(router.wanted() <= 128);
    router.handle_eof();
    router.poll_event().expect("one outcome").expect_err("the peer has sent no proof")
}

fn client(said: &[u8], chunk: usize, began: bool) -> HandshakeError {
    let mut client = ClientHandshake::new(token(), [1; 32], at(), Request::Open { pid: 1, started: 2 });
    if began {
        client.handle_bytes(&[b"RUNTAP-R\x02\0", &[2; 32][..]].concat());
    }
    said.chunks(chunk).for_each(|part| client.handle_bytes(part));
    assert!(client.wanted() <= runtap_transport::remote::MAX_ANSWER + 32);
    client.handle_eof();
    client.poll_event().expect("one outcome").expect_err("the peer has sent no proof")
}
