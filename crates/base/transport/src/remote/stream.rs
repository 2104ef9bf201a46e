//! Drives a handshake over a stream. Reads not a byte of what follows it. Time-outs are the caller's.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::remote::error::HandshakeError;
use crate::remote::message::Nonce;

/// Bytes read at a time.
const CHUNK: usize = 4096;

/// One side of a handshake.
pub trait Handshake {
    /// What comes of it.
    type Event;

    /// How many bytes are to be read next. What comes beyond them is not the handshake's.
    fn wanted(&self) -> usize;

    /// Takes bytes, no more than are [`wanted`](Self::wanted): further ones are ignored.
    fn handle_bytes(&mut self, bytes: &[u8]);

    /// The other side has hung up.
    fn handle_eof(&mut self);

    /// What is to be written.
    fn poll_transmit(&mut self) -> Option<Vec<u8>>;

    /// What has come of it, once.
    fn poll_event(&mut self) -> Option<Result<Self::Event, HandshakeError>>;
}

/// Goes on until something has come of it. What is to be written after that is the caller's to
/// [poll](Handshake::poll_transmit) for.
///
/// # Errors
/// Those of the stream; what the handshake says is in the value.
pub async fn drive<H: Handshake>(
    handshake: &mut H,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<Result<H::Event, HandshakeError>> {
    let mut buffer = [0; CHUNK];
    loop {
        while let Some(bytes) = handshake.poll_transmit() {
            stream.write_all(&bytes).await?;
        }
        if let Some(event) = handshake.poll_event() {
            return Ok(event);
        }
        let room = handshake.wanted().min(CHUNK);
        match stream.read(buffer.get_mut(..room).unwrap_or_default()).await? {
            0 => handshake.handle_eof(),
            n => handshake.handle_bytes(buffer.get(..n).unwrap_or_default()),
        }
    }
}

/// A random number for one connection, from the system.
///
/// # Errors
/// The system has none.
pub fn nonce() -> io::Result<Nonce> {
    let mut nonce = Nonce::default();
    runtap_os::random(&mut nonce)?;
    Ok(nonce)
}
