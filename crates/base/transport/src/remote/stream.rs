//! Runs a handshake over a stream, without reading data that follows it. The caller is responsible for time-outs.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::remote::error::HandshakeError;
use crate::remote::message::Nonce;

/// Maximum number of bytes per read.
const CHUNK: usize = 4096;

/// One side of a handshake.
pub trait Handshake {
    /// The result of a successful handshake.
    type Event;

    /// Returns how many bytes to read next. Bytes after that do not belong to the handshake.
    fn wanted(&self) -> usize;

    /// Processes received bytes, at most as many as are [`wanted`](Self::wanted). Further bytes are ignored.
    fn handle_bytes(&mut self, bytes: &[u8]);

    /// Processes the end of the stream.
    fn handle_eof(&mut self);

    /// Returns bytes to send. `None` if there are none.
    fn poll_transmit(&mut self) -> Option<Vec<u8>>;

    /// Returns the result, once. `None` if the handshake is not complete.
    fn poll_event(&mut self) -> Option<Result<Self::Event, HandshakeError>>;
}

/// Runs a handshake until it has a result. Afterwards the caller must send what
/// [`poll_transmit`](Handshake::poll_transmit) returns.
///
/// # Errors
/// If reading or writing fails. The result of the handshake is in the value.
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

/// Returns a random number for a connection.
///
/// # Errors
/// If the operating system provides no random numbers.
pub fn nonce() -> io::Result<Nonce> {
    let mut nonce = Nonce::default();
    runtap_os::random(&mut nonce)?;
    Ok(nonce)
}
