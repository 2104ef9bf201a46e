//! A runtime that streams given bytes in every session and supports nothing else.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";

/// Serves a runtime on a socket, on a new thread: `stream` writes the stream of each session, and all other commands
/// are rejected. The stream ends when `stream` drops its argument.
///
/// # Panics
/// If the socket cannot be created.
pub fn serve(socket: &Path, stream: impl Fn(UnixStream) -> io::Result<()> + Send + Sync + 'static) {
    let listener = UnixListener::bind(socket).expect("a socket");
    let stream = Arc::new(stream);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // Each on a thread, because commands arrive during sessions. Disconnected clients are ignored.
            let stream = Arc::clone(&stream);
            thread::spawn(move || answer(client, &*stream));
        }
    });
}

fn answer(mut client: UnixStream, stream: &dyn Fn(UnixStream) -> io::Result<()>) -> io::Result<()> {
    let mut header = [0; 20];
    client.read_exact(&mut header)?;
    let mut payload = vec![0; usize::from(u16::from_le_bytes([header[14], header[15]])).saturating_sub(20)];
    client.read_exact(&mut payload)?;
    // The command set of sessions; its first command stops one.
    let starts = header[16] == 2 && header[17] > 1;
    let (size, id, answer) = if starts {
        (28_u8, 0, 1_u64.to_le_bytes().to_vec())
    } else {
        (24, 0xff, 0x8013_1385_u32.to_le_bytes().to_vec())
    };
    client.write_all(&[&MAGIC[..], &[size, 0, 0xff, id, 0, 0], &answer].concat())?;
    if starts { stream(client) } else { Ok(()) }
}

/// Writes `bytes` in pieces of irregular sizes, like a runtime: mostly a few bytes, sometimes as much as a socket
/// buffer, with occasional pauses. The pieces depend only on `seed`.
///
/// # Errors
/// If writing fails.
pub fn in_odd_pieces(mut bytes: &[u8], seed: u64, w: &mut impl Write) -> io::Result<()> {
    let mut random = seed;
    while !bytes.is_empty() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let dice = usize::try_from(random >> 40).unwrap_or_default();
        let size = match dice % 16 {
            0 => dice % 300_000,
            1..4 => dice % 5_000,
            _ => dice % 9,
        };
        if dice % 97 == 0 {
            thread::sleep(Duration::from_millis(2));
        }
        let (piece, rest) = bytes.split_at((size + 1).min(bytes.len()));
        w.write_all(piece)?;
        bytes = rest;
    }
    Ok(())
}
