//! Any bytes as a message of the two older protocols: no panic, one outcome for any chunk size (first byte), and an
//! accepted request keeps its meaning when it is encoded again.
#![no_main]

use runtap_diag_proto::legacy::{
    proposal,
    single_purpose::{self, Client, Server},
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((chunk, bytes)) = input.split_first() else { return };
    let chunk = usize::from(*chunk).max(1);
    let event = hear(bytes, bytes.len().max(1));
    assert_eq!(hear(bytes, chunk), event);
    if let proposal::Event::Message(message) = &event {
        assert_eq!(hear(&message.to_bytes().expect("it came in a message"), chunk), event);
    }

    let event = serve(bytes, bytes.len().max(1));
    assert_eq!(serve(bytes, chunk), event);
    if let single_purpose::Event::Request(request) = &event
        && let Ok(again) = request.to_bytes()
    {
        assert_eq!(serve(&again, chunk), event);
        let mut client = Client::new(request).expect("it was encoded");
        assert!(client.handle_bytes(bytes) <= 8);
    }
});

fn hear(bytes: &[u8], chunk: usize) -> proposal::Event {
    let mut server = proposal::Peer::server();
    bytes.chunks(chunk).for_each(|part| {
        server.handle_bytes(part);
    });
    server.handle_eof();
    server.poll_event().expect("one event")
}

fn serve(bytes: &[u8], chunk: usize) -> single_purpose::Event {
    let mut server = Server::new();
    bytes.chunks(chunk).for_each(|part| server.handle_bytes(part));
    server.handle_eof();
    server.poll_event().expect("one event")
}
