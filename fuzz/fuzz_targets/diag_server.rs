//! Any bytes as a request: no panic, one answer for any chunk size (first byte), and an accepted request keeps its
//! meaning when it is encoded again.
#![no_main]

use runtap_diag_proto::server::{Event, Server};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((chunk, bytes)) = input.split_first() else { return };
    let event = serve(bytes, bytes.len());
    assert_eq!(serve(bytes, usize::from(*chunk)), event);
    if let Event::Request(request) = &event
        && let Ok(again) = request.to_bytes()
    {
        assert_eq!(serve(&again, again.len()), event);
    }
});

fn serve(bytes: &[u8], chunk: usize) -> Event {
    let mut server = Server::with_user_events();
    bytes.chunks(chunk.max(1)).for_each(|part| server.handle_bytes(part));
    server.handle_descriptor();
    server.handle_eof();
    server.poll_event().expect("one event")
}
