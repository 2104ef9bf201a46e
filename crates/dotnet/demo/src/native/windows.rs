//! How the program is told to end, on Windows: by its console, or by the end of its standard input where that is a pipe.
//! There is nothing else that a process could be asked by.

#[path = "places.rs"]
mod places;

use std::io::{self, IsTerminal, Read};
use std::process::{Child, Stdio};
use std::thread;

use tokio::signal::windows::{ctrl_break, ctrl_c};
use tokio::sync::oneshot;

pub(crate) use self::places::{at, samples};

/// A program that was started says by this variable that the end of its standard input is its own.
const TOLD_BY_STDIN: &str = "RUNTAP_DEMO_ENDS_WITH_STDIN";

/// Ready when the console has said so, or standard input has ended. Both are heard from now on.
pub(crate) fn told_to_end() -> io::Result<impl Future<Output = ()>> {
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
    if std::env::var_os(TOLD_BY_STDIN).is_none() || io::stdin().is_terminal() {
        return Ok(None);
    }
    let (tell, ended) = oneshot::channel();
    // It reads until the program ends, and nobody waits for it.
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut input = io::stdin().lock();
        let mut bytes = [0; 64];
        while matches!(input.read(&mut bytes), Ok(1..)) {}
        let _ = tell.send(());
    })?;
    Ok(Some(ended))
}

/// Ready when it is told to end, as by [`told_to_end`].
pub(crate) fn terminated() -> io::Result<impl Future<Output = ()>> {
    told_to_end()
}

/// What a program that is started reads: nothing, until it is told to end.
pub(crate) fn stdin() -> Stdio {
    Stdio::piped()
}

/// How a program learns that it is told by its standard input.
pub(crate) fn prepare(command: &mut std::process::Command) {
    command.env(TOLD_BY_STDIN, "1");
}

/// Tells a program that was started.
pub(crate) fn terminate(child: &mut Child) {
    drop(child.stdin.take());
}
