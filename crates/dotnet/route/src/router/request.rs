//! Reads and validates a client's request, within limits, before it is forwarded.
//!
//! At most one message is kept, and only as much of it as has been received. Requests that are rejected here crash or confuse real
//! runtimes; the answers are those of healthy runtimes.

use runtap_diag_proto::server::{Event, Server};
use runtap_diag_proto::tap::{Piece, Side, Tap};
use runtap_diag_proto::{HEADER_LEN, Header, Request};
use runtap_wire::Reader;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::link::Link;

/// The request of a client.
pub(crate) enum ReceivedRequest {
    /// A valid request: the received bytes, and their meaning.
    Request(Box<ForwardableRequest>),
    /// A request that must not be forwarded: the answer, and the reason.
    Refused(Vec<u8>, String),
    /// The client has sent nothing.
    Silent,
}

/// A request that can be forwarded.
pub(crate) struct ForwardableRequest {
    pub(crate) piece: Piece,
    pub(crate) request: Request,
    /// The parser, which has processed the request and will process the reply.
    pub(crate) tap: Tap,
}

/// Reads the request. The caller must set a time limit.
pub(crate) async fn read(link: &mut Link) -> ReceivedRequest {
    let mut bytes = Vec::new();
    loop {
        // Do not allocate a buffer for a client that sends nothing.
        if !matches!(link.readable().await, Ok(true)) {
            return ended(&bytes);
        }
        let wanted = wanted(&bytes).saturating_sub(bytes.len());
        match read_some(link, &mut bytes, wanted).await {
            Some(0) | None => return ended(&bytes),
            Some(_) => {}
        }
        if bytes.len() >= wanted_at_last(&bytes) {
            return judge(&bytes, false);
        }
    }
}

/// Returns the number of bytes to read: first the header, then the length in it.
fn wanted(bytes: &[u8]) -> usize {
    match Header::decode(&mut Reader::new(bytes)) {
        Ok(header) => usize::from(header.size).max(HEADER_LEN),
        Err(_incomplete) => HEADER_LEN,
    }
}

/// Returns the complete length of the message, as far as known. Nothing more is read of an invalid one.
fn wanted_at_last(bytes: &[u8]) -> usize {
    match Header::decode(&mut Reader::new(bytes)) {
        Ok(header) if header.magic == runtap_diag_proto::MAGIC => usize::from(header.size),
        Ok(_other) => HEADER_LEN,
        Err(_incomplete) => usize::MAX,
    }
}

/// Reads at most `room` bytes and appends them.
async fn read_some(link: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>, room: usize) -> Option<usize> {
    link.take(room as u64).read_buf(into).await.ok()
}

/// Handles the end of the client's data.
fn ended(bytes: &[u8]) -> ReceivedRequest {
    if bytes.is_empty() { ReceivedRequest::Silent } else { judge(bytes, true) }
}

/// Validates the received data, which is all there is.
fn judge(bytes: &[u8], ended: bool) -> ReceivedRequest {
    let mut server = Server::new();
    server.handle_bytes(bytes);
    if ended {
        server.handle_eof();
    }
    match server.poll_event() {
        Some(Event::Request(request)) => {
            let mut tap = Tap::new();
            tap.handle_bytes(Side::Client, bytes);
            match tap.poll_transmit() {
                Some(piece) => ReceivedRequest::Request(Box::new(ForwardableRequest { piece, request, tap })),
                None => ReceivedRequest::Silent,
            }
        }
        Some(Event::Rejected(error)) => {
            let why = format!("{error} (answered with {})", error.hresult());
            ReceivedRequest::Refused(server.poll_transmit().unwrap_or_default(), why)
        }
        _ => ReceivedRequest::Silent,
    }
}

#[cfg(test)]
mod tests {
    use runtap_diag_proto::{Command, ErrorReply, Hresult, InfoForm, SessionId};
    use runtap_transport::Stream;
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn asked(chunks: &[&[u8]], closes: bool) -> ReceivedRequest {
        let (ours, mut theirs) = Stream::pair().unwrap();
        let reading = tokio::spawn(async move { read(&mut Link::Local(ours)).await });
        for chunk in chunks {
            theirs.write_all(chunk).await.unwrap();
            tokio::task::yield_now().await;
        }
        if closes {
            theirs.shutdown().await.unwrap();
        }
        let asked = reading.await.unwrap();
        drop(theirs);
        asked
    }

    #[tokio::test]
    async fn a_request_is_forwarded_unchanged() {
        for request in [
            Request::ProcessInfo(InfoForm::ProcessInfo2),
            Request::StopTracing(SessionId(7)),
            Request::ApplyStartupHook { path: "/hook.dll".into() },
        ] {
            let mut bytes = request.to_bytes().unwrap();
            // Runtimes ignore that field, but it is forwarded.
            bytes[18] = 9;
            let one_by_one: Vec<&[u8]> = bytes.chunks(1).collect();
            let and_more = [&bytes[..], b"more"].concat();
            for chunks in [&[&bytes[..]][..], &one_by_one, &[&and_more]] {
                let ReceivedRequest::Request(question) = asked(chunks, false).await else {
                    panic!("{request:?}")
                };
                assert_eq!(question.piece.bytes(), bytes);
                assert_eq!(question.request, request);
            }
        }
    }

    #[tokio::test]
    async fn requests_that_crash_a_runtime_are_answered() {
        let message = |command: Command, payload: &[u8]| {
            let size = u16::try_from(HEADER_LEN + payload.len()).unwrap().to_le_bytes();
            let [set, id] = command.0.to_be_bytes();
            [b"DOTNET_IPC_V1\0", &size[..], &[set, id, 0, 0], payload].concat()
        };
        let wrong_magic = [b"DOTNET_IPC_V2\0", &message(Command(0x0400), b"")[14..]].concat();
        let too_short = [b"DOTNET_IPC_V1\0\x13\0", &[4, 0, 0, 0][..]].concat();
        for (bytes, hresult) in [
            (message(Command(0x0202), b""), Hresult::BAD_ENCODING),
            (message(Command(0x0101), b""), Hresult::BAD_ENCODING),
            (message(Command(0x0403), b"\x01"), Hresult::BAD_ENCODING),
            (message(Command(0x0405), b""), Hresult::BAD_ENCODING),
            (message(Command(0x0407), b""), Hresult::BAD_ENCODING),
            (message(Command(0x0301), b""), Hresult::BAD_ENCODING),
            (message(Command(0x0302), b""), Hresult::BAD_ENCODING),
            (message(Command(0x0400), b"payload"), Hresult::BAD_ENCODING),
            (message(Command(0x0901), b""), Hresult::UNKNOWN_COMMAND),
            (wrong_magic, Hresult::UNKNOWN_MAGIC),
            (too_short, Hresult::BAD_ENCODING),
        ] {
            let ReceivedRequest::Refused(answer, _) = asked(&[&bytes], false).await else {
                panic!("{bytes:x?}")
            };
            assert_eq!(answer, ErrorReply::from(hresult).to_bytes().unwrap(), "{bytes:x?}");
        }
    }

    #[tokio::test]
    async fn truncated_requests_are_answered_and_silence_is_not() {
        let bytes = Request::StopTracing(SessionId(7)).to_bytes().unwrap();
        for cut in 1..bytes.len() {
            let ReceivedRequest::Refused(answer, _) = asked(&[&bytes[..cut]], true).await else {
                panic!("{cut}")
            };
            assert_eq!(answer, ErrorReply::from(Hresult::BAD_ENCODING).to_bytes().unwrap());
        }
        assert!(matches!(asked(&[], true).await, ReceivedRequest::Silent));
    }
}
