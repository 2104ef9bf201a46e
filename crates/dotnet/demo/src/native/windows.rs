//! Stops the program on Windows: by its console, or by the end of its standard input if that is a pipe. There is no other way to
//! request a process to stop.

#[path = "places.rs"]
mod places;

use std::io::{self, IsTerminal, Read};
use std::process::{Child, Stdio};
use std::thread;

use tokio::signal::windows::{ctrl_break, ctrl_c};
use tokio::sync::oneshot;

pub(crate) use self::places::{at, samples};

/// The variable that tells a child process to stop at the end of its standard input.
const STOP_AT_EOF: &str = "RUNTAP_DEMO_ENDS_WITH_STDIN";

/// Waits for a console event or the end of standard input, which are handled from now on.
pub(crate) fn stop_requested() -> io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut stop) = (ctrl_c()?, ctrl_break()?);
    let input = input_ended()?;
    Ok(async move {
        let ended = async {
            match input {
                Some(ended) => ended.await.unwrap_or_default(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = stop.recv() => {}
            () = ended => {}
        }
    })
}

fn input_ended() -> io::Result<Option<oneshot::Receiver<()>>> {
    if std::env::var_os(STOP_AT_EOF).is_none() || io::stdin().is_terminal() {
        return Ok(None);
    }
    let (tell, ended) = oneshot::channel();
    // The thread reads until the program exits, and is not joined.
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut input = io::stdin().lock();
        let mut bytes = [0; 64];
        while matches!(input.read(&mut bytes), Ok(1..)) {}
        let _ = tell.send(());
    })?;
    Ok(Some(ended))
}

/// Waits for a request to stop, as [`stop_requested`] does.
pub(crate) fn terminated() -> io::Result<impl Future<Output = ()>> {
    stop_requested()
}

/// Returns the standard input of a child process, which ends when it is requested to stop.
pub(crate) fn stdin() -> Stdio {
    Stdio::piped()
}

/// Prepares a command to be stopped by the end of its standard input.
pub(crate) fn prepare(command: &mut std::process::Command) {
    command.env(STOP_AT_EOF, "1");
}

/// Requests a child process to stop.
pub(crate) fn terminate(child: &mut Child) {
    drop(child.stdin.take());
}
