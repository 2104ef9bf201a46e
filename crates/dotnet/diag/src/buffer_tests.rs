//! The buffer with a stream in memory: order, limits, ends and reuse of memory.

use std::future::poll_fn;

use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

use super::*;

/// The default size.
const CHUNK: usize = 1 << 20;
const CHUNKS: usize = 8;

async fn take(buffer: &Buffer) -> Option<Chunk> {
    poll_fn(|cx| buffer.poll_take(cx)).await.unwrap()
}

fn fill_in_background(buffer: &Buffer, mut stream: DuplexStream) -> tokio::task::JoinHandle<()> {
    let buffer = buffer.clone();
    tokio::spawn(async move { while poll_fn(|cx| buffer.poll_fill(&mut stream, cx)).await.is_some() {} })
}

fn pattern(len: usize) -> Vec<u8> {
    (0..251).cycle().take(len).collect()
}

#[tokio::test]
async fn a_small_backlog_buffers_little_and_loses_nothing() {
    let small = Backlog::small();
    let limit = (small.chunks + 1) * small.chunk;
    let all = pattern(3 * limit + 7);
    let (mut near, far) = duplex(1000);
    let buffer = Buffer::starting_with(&[], small);
    fill_in_background(&buffer, far);
    let rest = all.clone();
    tokio::spawn(async move { near.write_all(&rest).await });
    // Until the buffer is full.
    while buffer.received() < limit as u64 {
        tokio::task::yield_now().await;
    }
    assert_eq!(buffer.received(), limit as u64);
    let mut got = Vec::new();
    while let Some(chunk) = take(&buffer).await {
        assert!(chunk.len() <= small.chunk);
        got.extend_from_slice(&chunk);
        drop(chunk);
        assert!(buffer.lock().free.len() <= small.kept);
    }
    assert!(got == all);
}

#[tokio::test]
async fn bytes_come_out_in_order_after_the_head() {
    let (mut near, far) = duplex(1000);
    let all = pattern(3 * CHUNK + 17);
    let buffer = Buffer::starting_with(&all[..5], Backlog::default());
    fill_in_background(&buffer, far);
    let rest = all[5..].to_vec();
    tokio::spawn(async move { near.write_all(&rest).await.unwrap() });
    let mut seen = Vec::new();
    while let Some(chunk) = take(&buffer).await {
        assert!(!chunk.is_empty() && chunk.len() <= CHUNK);
        seen.extend_from_slice(&chunk);
    }
    assert!(seen == all);
    assert_eq!(buffer.received(), all.len() as u64);
    assert!(buffer.has_ended());
    assert!(take(&buffer).await.is_none(), "the end stays the end");
}

#[tokio::test]
async fn untaken_bytes_are_bounded_and_not_lost() {
    let limit = (CHUNKS + 1) * CHUNK;
    let all = pattern(limit + 5 * CHUNK);
    let (mut near, far) = duplex(CHUNK);
    let buffer = Buffer::default();
    let filling = fill_in_background(&buffer, far);
    let sent = all.clone();
    let writing = tokio::spawn(async move { near.write_all(&sent).await.unwrap() });
    // Run all tasks until none can make progress.
    while !buffer.lock().stalled {
        tokio::task::yield_now().await;
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(buffer.received(), limit as u64);
    assert!(!writing.is_finished() && !filling.is_finished());
    let mut seen = Vec::new();
    while let Some(chunk) = take(&buffer).await {
        seen.extend_from_slice(&chunk);
    }
    assert!(seen == all);
}

#[tokio::test]
async fn small_pieces_do_not_use_up_the_buffer() {
    let (mut near, far) = duplex(64);
    let buffer = Buffer::default();
    fill_in_background(&buffer, far);
    // Many more pieces than chunks.
    for _ in 0..10 * CHUNKS {
        near.write_all(&[7; 60]).await.unwrap();
        tokio::task::yield_now().await;
    }
    drop(near);
    let chunk = take(&buffer).await.unwrap();
    assert_eq!(chunk.len(), 10 * CHUNKS * 60, "they are joined while they are not taken");
    assert!(take(&buffer).await.is_none());
}

#[tokio::test]
async fn memory_is_reused() {
    let (mut near, far) = duplex(64);
    let buffer = Buffer::default();
    fill_in_background(&buffer, far);
    let mut places = Vec::new();
    for _ in 0..20 {
        near.write_all(b"x").await.unwrap();
        let chunk = take(&buffer).await.unwrap();
        places.push(chunk.as_ptr());
    }
    places.sort_unstable();
    places.dedup();
    assert!(places.len() <= 2, "{} chunks for a stream that is taken at once", places.len());
    let held: Vec<_> = std::iter::repeat_with(|| Chunk {
        bytes: vec![0; 1].into_boxed_slice(),
        len: 1,
        buffer: buffer.clone(),
    })
    .take(100)
    .collect();
    drop(held);
    assert!(buffer.lock().free.len() <= CHUNKS);
}

#[tokio::test]
async fn an_error_comes_after_the_bytes_before_it() {
    let mut stream = failing_stream();
    let buffer = Buffer::default();
    while poll_fn(|cx| buffer.poll_fill(&mut stream, cx)).await.is_some() {}
    assert_eq!(&*take(&buffer).await.unwrap(), b"abc");
    let error = poll_fn(|cx| buffer.poll_take(cx)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(take(&buffer).await.is_none());
}

/// Returns three bytes, then fails.
fn failing_stream() -> impl AsyncRead + Unpin {
    struct Failing(bool);
    impl AsyncRead for Failing {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            space: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if std::mem::replace(&mut self.0, true) {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            space.put_slice(b"abc");
            Poll::Ready(Ok(()))
        }
    }
    Failing(false)
}
