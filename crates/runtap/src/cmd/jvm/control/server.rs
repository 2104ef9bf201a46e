//! Who listens at the control socket.
//!
//! Each client has a task of its own; what an order takes is taken by a thread of its own, so that neither a client that says
//! nothing or reads nothing, nor an agent that reads nothing, keeps anybody else waiting. The socket has mode 0600, and the
//! kernel is asked who has connected: only our own user and root are let in.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog::hq::Hq;
use runtap_record::Stops;
use runtap_transport::{Listener, Stream};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::super::hq::watch::Watch;
use super::answer::refusal;
use super::{Order, carry_out};

/// Clients at a time.
const CLIENTS: usize = 64;
/// The longest line.
const LINE: u64 = 4096;
/// How long a client may say nothing.
const SILENCE: Duration = Duration::from_mins(1);
/// How long it may leave an answer unread.
const UNREAD: Duration = Duration::from_secs(10);

/// What orders are about.
#[derive(Debug, Clone)]
pub(in crate::cmd::jvm) struct Context {
    pub(in crate::cmd::jvm) hq: Arc<Hq>,
    pub(in crate::cmd::jvm) watch: Arc<Watch>,
    pub(in crate::cmd::jvm) stops: Stops,
}

/// Serves clients until it is dropped.
pub(in crate::cmd::jvm) async fn serve(listener: Listener, context: Context) {
    let room = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Out of descriptors, mostly: that passes.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else {
            // It fits into the empty buffer of the socket.
            let _ = timeout(Duration::from_millis(50), stream.write_all(&refusal("too many clients"))).await;
            continue;
        };
        let context = context.clone();
        tokio::spawn(async move {
            // What is wrong with a client is its own business.
            let _ = talk(stream, &context).await;
            drop(place);
        });
    }
}

async fn talk(stream: Stream, context: &Context) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = timeout(SILENCE, (&mut stream).take(LINE).read_until(b'\n', &mut line)).await;
        let is_whole = line.ends_with(b"\n");
        let answer = match read {
            Err(_) => refusal("nothing was said for a minute"),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(0)) => return Ok(()),
            Ok(_) if !is_whole && line.len() as u64 == LINE => refusal("the line is too long"),
            // A last line needs no end.
            Ok(_) => match String::from_utf8_lossy(&line).parse::<Order>() {
                Ok(order) => answer(order, context).await?,
                Err(error) => refusal(&error),
            },
        };
        timeout(UNREAD, stream.write_all(&answer)).await.map_err(io::Error::other)??;
        if !is_whole {
            return Ok(());
        }
    }
}

async fn answer(order: Order, context: &Context) -> io::Result<Vec<u8>> {
    let quits = order == Order::Quit;
    let worker = context.clone();
    let answer = tokio::task::spawn_blocking(move || carry_out(&order, &worker.hq, &worker.watch)).await?;
    if quits {
        context.stops.stop();
    }
    Ok(answer)
}
