//! A stream that the taker reads itself: equal bytes and ends.

use std::{io::Write, sync::mpsc, thread, time::Duration};

use runtap_diag::{Backlog, Chunks, Direct, Reply, Request, Timeouts};
use tokio::task::spawn_blocking;

use crate::support::{ID, Peer, Runtime, ok, read_request, sample_config};

fn stream_bytes(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

fn all_of(mut direct: Direct) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = direct.blocking_next().unwrap() {
        all.extend_from_slice(&chunk);
    }
    all
}

/// Reads all chunks on a separate thread.
async fn read_all(chunks: Chunks) -> Vec<u8> {
    spawn_blocking(move || all_of(chunks.direct())).await.unwrap()
}

#[tokio::test]
async fn the_stream_is_complete_from_its_first_byte() {
    for backlog in [Backlog::default(), Backlog::small(), Backlog::default().by_a_task()] {
        for (before, after) in [(0, 0), (1, 0), (3_000_000, 1), (1000, 20_000_000)] {
            let (before, after) = (stream_bytes(before), stream_bytes(after));
            let runtime = Runtime::new(before.clone(), after.clone());
            let client = runtime.peer.client().with_backlog(backlog);
            let session = client.start_session(&sample_config()).await.unwrap();
            let (control, chunks) = session.split();
            let stopping = control.stop();
            assert!(read_all(chunks).await == [before, after].concat(), "{backlog:?}");
            stopping.await.unwrap();
        }
    }
}

/// Bytes that the session's thread has read come first, and then that thread stops reading.
#[tokio::test]
async fn the_stream_is_handed_over() {
    let (tell, wait) = mpsc::channel();
    let peer = Peer::new(move |_, mut stream| {
        let tell = tell.clone();
        async move {
            let request = read_request(&mut stream).await.unwrap();
            let Request::CollectTracing { .. } = request else { return };
            let answer = ok(&request, &Reply::SessionStarted(ID));
            let mut stream = stream.into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            stream.write_all(&answer).unwrap();
            tell.send(stream).unwrap();
        }
    });
    let session = peer.client().start_session(&sample_config()).await.unwrap();
    let mut stream = spawn_blocking(move || wait.recv().unwrap()).await.unwrap();
    let (control, chunks) = session.split();
    stream.write_all(&[1; 100]).unwrap();
    while control.received() < 100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (took, taken) = tokio::sync::oneshot::channel();
    let taker = spawn_blocking(move || {
        let mut direct = chunks.direct();
        let first = direct.blocking_next().unwrap().unwrap().to_vec();
        took.send(()).unwrap();
        // These bytes come from the waiting thread, which then exits.
        let second = direct.blocking_next().unwrap().unwrap().to_vec();
        (first, second, direct)
    });
    taken.await.unwrap();
    stream.write_all(&[2; 100]).unwrap();
    let (first, second, mut direct) = taker.await.unwrap();
    assert_eq!((first, second), (vec![1; 100], vec![2; 100]));
    // Nothing is read until the taker requests it.
    stream.write_all(&[3; 100]).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(control.received(), 200);
    let third = direct.blocking_next().unwrap().unwrap().to_vec();
    assert_eq!((third, control.received()), (vec![3; 100], 300));
}

/// A slow disk does not count as silence of the runtime.
#[tokio::test]
async fn a_busy_taker_does_not_make_a_stop_time_out() {
    let runtime = Runtime::new(stream_bytes(1000), stream_bytes(5_000_000));
    let limit = Duration::from_secs(3);
    let mut timeouts = Timeouts::default();
    timeouts.stop = limit;
    let client = runtime.peer.client().with_timeouts(timeouts);
    let (control, chunks) = client.start_session(&sample_config()).await.unwrap().split();
    let stopping = control.stop();
    let taker = spawn_blocking(move || {
        let mut direct = chunks.direct();
        let mut len = 0;
        for n in 0.. {
            let Some(chunk) = direct.blocking_next().unwrap() else { break };
            len += chunk.len();
            if n == 5 {
                thread::sleep(limit * 4 / 3);
            }
        }
        len
    });
    stopping.await.unwrap();
    assert_eq!(taker.await.unwrap(), 5_001_000);
}

#[tokio::test]
async fn a_waiting_taker_is_woken_at_the_end() {
    for wait in [0, 50] {
        let runtime = Runtime::new(b"abc".to_vec(), Vec::new());
        let session = runtime.peer.client().start_session(&sample_config()).await.unwrap();
        let (control, chunks) = session.split();
        let taker = spawn_blocking(move || all_of(chunks.direct()));
        tokio::time::sleep(Duration::from_millis(wait)).await;
        drop(control);
        assert_eq!(taker.await.unwrap(), b"abc");
    }
}
