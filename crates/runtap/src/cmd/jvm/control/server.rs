//! The server of the control socket.
//!
//! Each client has its own task, and each command runs on its own thread, so that neither an idle client nor an agent that does
//! not read delays other clients. The socket has mode 0600, and the peer's credentials are checked: only the current user and
//! root may connect.

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
use super::{ControlCommand, execute};

/// The maximum number of concurrent clients.
const MAX_CLIENTS: usize = 64;
/// The maximum length of a line, in bytes.
const MAX_LINE: u64 = 4096;
/// The time after which an idle client is disconnected.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The time-out for writing an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of the collector that commands act on.
#[derive(Debug, Clone)]
pub(in crate::cmd::jvm) struct Context {
    pub(in crate::cmd::jvm) hq: Arc<Hq>,
    pub(in crate::cmd::jvm) watch: Arc<Watch>,
    pub(in crate::cmd::jvm) stops: Stops,
}

/// Serves clients until the future is dropped.
pub(in crate::cmd::jvm) async fn serve(listener: Listener, context: Context) {
    let permits = Arc::new(Semaphore::new(MAX_CLIENTS));
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Usually the process has no free descriptors; retry later.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            // The message fits into the socket's empty buffer, so this rarely waits.
            let _ = timeout(Duration::from_millis(50), stream.write_all(&refusal("too many clients"))).await;
            continue;
        };
        let context = context.clone();
        tokio::spawn(async move {
            // An error affects this client only.
            let _ = serve_client(stream, &context).await;
            drop(permit);
        });
    }
}

async fn serve_client(stream: Stream, context: &Context) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = timeout(IDLE_TIMEOUT, (&mut stream).take(MAX_LINE).read_until(b'\n', &mut line)).await;
        let is_complete = line.ends_with(b"\n");
        let answer = match read {
            Err(_) => refusal("nothing was said for a minute"),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(0)) => return Ok(()),
            Ok(_) if !is_complete && line.len() as u64 == MAX_LINE => refusal("the line is too long"),
            // The last line needs no line feed.
            Ok(_) => match String::from_utf8_lossy(&line).parse::<ControlCommand>() {
                Ok(command) => answer(command, context).await?,
                Err(error) => refusal(&error),
            },
        };
        timeout(WRITE_TIMEOUT, stream.write_all(&answer)).await.map_err(io::Error::other)??;
        if !is_complete {
            return Ok(());
        }
    }
}

async fn answer(command: ControlCommand, context: &Context) -> io::Result<Vec<u8>> {
    let is_quit = command == ControlCommand::Quit;
    let worker = context.clone();
    let answer = tokio::task::spawn_blocking(move || execute(&command, &worker.hq, &worker.watch)).await?;
    if is_quit {
        context.stops.stop();
    }
    Ok(answer)
}
