//! Sessions: negotiation, the stream, and the stop with all its failures. Time is simulated where it matters.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use runtap_diag::{
    Backlog, Buffering, Command, Error, ErrorReply, EventFilter, Hresult, Reply, Request, Session,
    SessionForm, Timeouts,
};
use tokio::{
    io::AsyncWriteExt,
    sync::{Notify, oneshot},
    time::{Instant, sleep},
};

use crate::support::{ID, Peer, Runtime, closed, kind, ok, read_request, sample_config};

fn stream_bytes(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

async fn read_all(session: &mut Session) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = session.next_chunk().await.unwrap() {
        all.extend_from_slice(&chunk);
    }
    all
}

#[tokio::test]
async fn the_newest_supported_command_is_used_and_losses_are_reported() {
    let mut config = sample_config();
    config.providers[0].filter = Some(EventFilter::only([1]));
    config.buffering = Buffering::Block;
    config.rundown_keyword = 0x10;
    config.stackwalk = false;
    for (tried, newest) in SessionForm::NEWEST_FIRST.into_iter().enumerate() {
        let peer = Peer::new(move |_, mut stream| async move {
            let request = read_request(&mut stream).await.unwrap();
            let Request::CollectTracing { form, .. } = &request else { panic!("{request:?}") };
            if *form > newest {
                stream
                    .write_all(&ErrorReply::from(Hresult::UNKNOWN_COMMAND).to_bytes().unwrap())
                    .await
                    .unwrap();
                // Some runtimes leave the socket open after an error.
                closed(&mut stream).await;
            } else {
                stream.write_all(&ok(&request, &Reply::SessionStarted(ID))).await.unwrap();
            }
        });
        let mut session = peer.client().start_session(&config).await.unwrap();
        assert_eq!(session.form(), newest);
        assert_eq!(session.command(), newest.command());
        assert_eq!(session.downgrades(), config.downgrades(newest));
        assert_eq!(session.id(), ID);
        assert_eq!(peer.connections(), tried + 1);
        assert_eq!(read_all(&mut session).await, b"");
    }
}

#[tokio::test]
async fn other_rejections_are_not_retried() {
    for (hresult, command, connections) in [
        (Hresult::UNKNOWN_COMMAND, Command::COLLECT_TRACING, 6),
        (Hresult::BAD_ENCODING, Command::COLLECT_TRACING6, 1),
        (Hresult::E_FAIL, Command::COLLECT_TRACING6, 1),
    ] {
        let peer = Peer::answering(ErrorReply::from(hresult).to_bytes().unwrap());
        let error = peer.client().start_session(&sample_config()).await.unwrap_err();
        assert!(matches!(&error, Error::Refused { command: c, .. } if *c == command), "{error}");
        assert_eq!(error.hresult(), Some(hresult));
        assert_eq!(peer.connections(), connections);
    }
}

#[tokio::test]
async fn the_stream_is_complete_from_its_first_byte() {
    for len in [0, 1, 16 * 1024, 3_000_000] {
        let bytes = stream_bytes(len);
        let runtime = Runtime::new(bytes.clone(), Vec::new());
        let mut session = runtime.peer.client().start_session(&sample_config()).await.unwrap();
        let stopping = session.stop();
        assert!(read_all(&mut session).await == bytes, "{len}");
        stopping.await.unwrap();
        assert_eq!(session.received(), len as u64);
    }
}

#[tokio::test]
async fn the_stop_is_answered_while_the_stream_is_drained() {
    // More than all buffers together: without draining, neither side could continue.
    let (before, after) = (stream_bytes(100_000), stream_bytes(30_000_000));
    let runtime = Runtime::new(before.clone(), after.clone());
    let mut session = runtime.peer.client().start_session(&sample_config()).await.unwrap();
    let mut stopping = session.stop();
    let mut outcome = None;
    let mut all = Vec::new();
    loop {
        tokio::select! {
            chunk = session.next_chunk() => match chunk.unwrap() {
                Some(chunk) => all.extend_from_slice(&chunk),
                None => break,
            },
            result = &mut stopping, if outcome.is_none() => outcome = Some(result),
        }
    }
    match outcome {
        Some(result) => result.unwrap(),
        None => stopping.await.unwrap(),
    }
    assert!(all == [before, after].concat());
    assert_eq!(runtime.stops(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_is_no_silence() {
    let runtime = Runtime::new(Vec::new(), stream_bytes(20_000_000));
    let client = runtime.peer.client().with_timeouts(Timeouts::all(Duration::from_secs(1)));
    // Its clock is that of this test.
    let client = client.with_backlog(Backlog::default().by_a_task());
    let mut session = client.start_session(&sample_config()).await.unwrap();
    let stopping = session.stop();
    // Nothing is taken for much longer than the limit.
    sleep(Duration::from_secs(30)).await;
    assert!(session.received() >= 8 << 20, "{}", session.received());
    assert!(session.received() < 10 << 20, "{}", session.received());
    assert_eq!(read_all(&mut session).await.len(), 20_000_000);
    stopping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_makes_no_progress_ends() {
    let peer = Peer::new(|_, mut stream| async move {
        let request = read_request(&mut stream).await.unwrap();
        if let Request::CollectTracing { .. } = request {
            stream.write_all(&ok(&request, &Reply::SessionStarted(ID))).await.unwrap();
            // Ten bytes, one every 40 s, then nothing.
            for _ in 0..10 {
                sleep(Duration::from_secs(40)).await;
                stream.write_all(b"x").await.unwrap();
            }
        }
        closed(&mut stream).await;
    });
    let client = peer.client().with_backlog(Backlog::default().by_a_task());
    let session = client.start_session(&sample_config()).await.unwrap();
    let began = Instant::now();
    let error = session.stop().await.unwrap_err();
    assert_eq!(kind(&error), "busy", "{error}");
    let waited = began.elapsed().as_secs();
    assert!((459..=461).contains(&waited), "ten bytes 40 s apart and a minute of silence, not {waited} s");
}

/// A peer that confirms each stop at once, and sends `after` repeatedly, or keeps the stream open.
fn confirming(after: &[u8]) -> Peer {
    let after = Arc::<[u8]>::from(after);
    Peer::new(move |_, mut stream| {
        let after = Arc::clone(&after);
        async move {
            let request = read_request(&mut stream).await.unwrap();
            let Request::CollectTracing { .. } = request else {
                stream.write_all(&ok(&request, &Reply::SessionStopped(ID))).await.unwrap();
                return;
            };
            stream.write_all(&ok(&request, &Reply::SessionStarted(ID))).await.unwrap();
            if after.is_empty() {
                closed(&mut stream).await;
                return;
            }
            // Until it is not read any more.
            while stream.write_all(&after).await.is_ok() {}
        }
    })
}

#[tokio::test]
async fn a_stream_that_continues_after_a_confirmed_stop_is_ended() {
    let peer = confirming(&stream_bytes(1 << 16));
    for backlog in [Backlog::default(), Backlog::default().by_a_task()] {
        let mut session = peer.client().with_backlog(backlog).start_session(&sample_config()).await.unwrap();
        let before = session.received();
        session.stop().await.unwrap();
        let confirmed = session.received();
        let error = loop {
            match session.next_chunk().await {
                Ok(chunk) => assert!(chunk.is_some(), "it has no end"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("continues to send"), "{error}");
        // The confirmation came between two checks.
        let [most, least] = [before, confirmed].map(|count| session.received() - count);
        assert!(most >= 64 << 20 && least < 80 << 20, "{most} {least}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_stays_open_after_its_stop_was_confirmed_is_ended() {
    let peer = confirming(b"");
    let client = peer.client().with_backlog(Backlog::default().by_a_task());
    let mut session = client.start_session(&sample_config()).await.unwrap();
    let began = Instant::now();
    session.stop().await.unwrap();
    let error = session.next_chunk().await.unwrap_err().to_string();
    assert!(error.contains("nor closed the connection"), "{error}");
    assert!((60..=62).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert!(session.next_chunk().await.unwrap().is_none());
}

/// A peer that sends a part of the rest every ten seconds after it has confirmed the stop, `parts` times.
fn lingering(part: usize, parts: usize) -> Peer {
    let stopped = Arc::new(Notify::new());
    Peer::new(move |_, mut stream| {
        let stopped = Arc::clone(&stopped);
        async move {
            let request = read_request(&mut stream).await.unwrap();
            let Request::CollectTracing { .. } = request else {
                stream.write_all(&ok(&request, &Reply::SessionStopped(ID))).await.unwrap();
                stopped.notify_one();
                return;
            };
            stream.write_all(&ok(&request, &Reply::SessionStarted(ID))).await.unwrap();
            stopped.notified().await;
            for _ in 0..parts {
                sleep(Duration::from_secs(10)).await;
                if stream.write_all(&vec![7; part]).await.is_err() {
                    return;
                }
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_continues_slowly_after_a_confirmed_stop_is_ended() {
    let peer = lingering(100, usize::MAX);
    let client = peer.client().with_backlog(Backlog::default().by_a_task());
    let mut session = client.start_session(&sample_config()).await.unwrap();
    let began = Instant::now();
    session.stop().await.unwrap();
    let error = loop {
        match session.next_chunk().await {
            Ok(chunk) => assert!(chunk.is_some(), "it has no end"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("continues to send: 600 bytes in 60 s"), "{error}");
    assert!((60..=62).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

/// What a slow connection holds takes its time, and so does a taker that is busy.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_slow_connection_is_not_truncated() {
    let part = 4 << 20;
    let peer = lingering(part, 15);
    let client = peer.client().with_backlog(Backlog::default().by_a_task());
    let mut session = client.start_session(&sample_config()).await.unwrap();
    let began = Instant::now();
    session.stop().await.unwrap();
    let mut received = 0;
    while let Some(chunk) = session.next_chunk().await.unwrap() {
        received += chunk.len();
        if received < part {
            sleep(Duration::from_mins(5)).await;
        }
    }
    assert_eq!(received, 15 * part);
    assert!(began.elapsed() > Duration::from_mins(7), "{:?}", began.elapsed());
}

/// The stream is read by its taker, which waits for the socket itself.
#[tokio::test]
async fn a_direct_reader_sees_the_end_of_an_open_stream() {
    let peer = confirming(b"");
    let client = peer.client().with_timeouts(Timeouts::all(Duration::from_millis(200)));
    let session = client.start_session(&sample_config()).await.unwrap();
    let (control, chunks) = session.split();
    let taker = tokio::task::spawn_blocking(move || chunks.direct().blocking_next());
    control.stop().await.unwrap();
    let error = taker.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("nor closed the connection"), "{error}");
}

#[tokio::test]
async fn a_session_is_stopped_only_once() {
    let runtime = Runtime::new(b"abc".to_vec(), b"def".to_vec());
    let mut session = runtime.peer.client().start_session(&sample_config()).await.unwrap();
    let first = session.stop();
    let second = session.stop().await.unwrap_err();
    assert_eq!(kind(&second), "stop requested");
    assert_eq!(read_all(&mut session).await, b"abcdef");
    first.await.unwrap();
    assert_eq!(kind(&session.stop().await.unwrap_err()), "stop requested");
    assert_eq!(runtime.stops(), 1);
}

#[tokio::test]
async fn a_stop_continues_when_it_is_not_awaited() {
    let runtime = Runtime::new(b"abc".to_vec(), b"def".to_vec());
    let mut session = runtime.peer.client().start_session(&sample_config()).await.unwrap();
    drop(session.stop());
    assert_eq!(read_all(&mut session).await, b"abcdef");
    assert_eq!(runtime.stops(), 1);
}

#[tokio::test]
async fn a_session_that_ended_is_not_stopped() {
    let peer = Peer::new(|_, mut stream| async move {
        let request = read_request(&mut stream).await.unwrap();
        let reply = match request {
            Request::CollectTracing { .. } => Reply::SessionStarted(ID),
            Request::StopTracing(id) => Reply::SessionStopped(id),
            _ => Reply::Resumed,
        };
        stream.write_all(&ok(&request, &reply)).await.unwrap();
    });
    let client = peer.client();
    let mut session = client.start_session(&sample_config()).await.unwrap();
    assert_eq!(read_all(&mut session).await, b"");
    session.stop().await.unwrap();
    // A stop would have been accepted before this.
    client.resume().await.unwrap();
    assert_eq!(peer.connections(), 2, "its id may be a stranger's by now");
}

#[tokio::test]
async fn a_stop_that_was_not_sent_can_be_retried() {
    let runtime = Runtime::new(b"abc".to_vec(), b"def".to_vec());
    let mut session = runtime.peer.client().start_session(&sample_config()).await.unwrap();
    let path = runtime.peer.path();
    let hidden = path.with_extension("hidden");
    std::fs::rename(&path, &hidden).unwrap();
    assert_eq!(kind(&session.stop().await.unwrap_err()), "not there");
    std::fs::rename(&hidden, &path).unwrap();
    let stopping = session.stop();
    assert_eq!(read_all(&mut session).await, b"abcdef");
    stopping.await.unwrap();
    assert_eq!(runtime.stops(), 1);
}

#[tokio::test]
async fn a_rejected_stop_is_reported() {
    let peer = Peer::new(|_, mut stream| async move {
        let request = read_request(&mut stream).await.unwrap();
        if let Request::CollectTracing { .. } = request {
            stream.write_all(&ok(&request, &Reply::SessionStarted(ID))).await.unwrap();
            closed(&mut stream).await;
        } else {
            stream.write_all(&ErrorReply::from(Hresult::E_FAIL).to_bytes().unwrap()).await.unwrap();
        }
    });
    let session = peer.client().start_session(&sample_config()).await.unwrap();
    assert_eq!(session.stop().await.unwrap_err().hresult(), Some(Hresult::E_FAIL));
}

#[tokio::test]
async fn dropping_a_session_closes_its_connection_and_sends_nothing() {
    let gone = Arc::new(Notify::new());
    let notify = Arc::clone(&gone);
    let peer = Peer::new(move |_, mut stream| {
        let notify = Arc::clone(&notify);
        async move {
            let request = read_request(&mut stream).await.unwrap();
            stream.write_all(&ok(&request, &Reply::SessionStarted(ID))).await.unwrap();
            closed(&mut stream).await;
            notify.notify_one();
        }
    });
    let session = peer.client().start_session(&sample_config()).await.unwrap();
    drop(session);
    gone.notified().await;
    assert_eq!(peer.connections(), 1);
}

#[tokio::test]
async fn chunks_outlive_their_session() {
    let runtime = Runtime::new(b"abc".to_vec(), Vec::new());
    let mut session = runtime.peer.client().start_session(&sample_config()).await.unwrap();
    let chunk = session.next_chunk().await.unwrap().unwrap();
    drop(session);
    assert_eq!(&*chunk, b"abc");
}

#[tokio::test]
async fn bytes_from_before_a_crash_are_kept() {
    let (kill, killed) = oneshot::channel::<()>();
    let killed = Mutex::new(Some(killed));
    let peer = Peer::new(move |_, mut stream| {
        let killed = killed.lock().unwrap().take();
        async move {
            let request = read_request(&mut stream).await.unwrap();
            stream.write_all(&ok(&request, &Reply::SessionStarted(ID))).await.unwrap();
            stream.write_all(b"half a blo").await.unwrap();
            let _ = killed.unwrap().await;
        }
    });
    let mut session = peer.client().start_session(&sample_config()).await.unwrap();
    assert_eq!(&*session.next_chunk().await.unwrap().unwrap(), b"half a blo");
    kill.send(()).unwrap();
    assert!(session.next_chunk().await.unwrap().is_none());
}
