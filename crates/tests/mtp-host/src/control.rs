//! The control pipe of version 1.4.0: a second connection, on which the server replies when the run should stop.
//! Closing it also cancels the run.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use runtap_mtp_proto::host::{Connection, Reply};
use runtap_mtp_proto::{ControlKind, Message};

use crate::link::{CONNECT_TIMEOUT, Stream, connect_with_retry};
use crate::{Cancel, CancelReason, HostError};

#[derive(Debug, Default)]
struct ControlState {
    is_closing: bool,
    stream: Option<Stream>,
}

/// A connection to the control pipe, served by a background thread. Dropping the value closes the connection.
#[derive(Debug)]
pub(crate) struct Control {
    state: Arc<Mutex<ControlState>>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Connects in the background, for up to 30 s like the platform's own hosts.
    pub(crate) fn start(path: PathBuf, cancel: Cancel) -> Result<Self, HostError> {
        let state = Arc::<Mutex<ControlState>>::default();
        let own = Arc::clone(&state);
        let thread = thread::Builder::new().name("mtp-control".into());
        let thread = thread.spawn(move || listen(&path, &own, &cancel));
        let thread = thread.map_err(|error| HostError::Thread(Arc::new(error)))?;
        Ok(Self { state, thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_closing = true;
        if let Some(stream) = &state.stream {
            // Fails only if the connection is already closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(path: &Path, state: &Mutex<ControlState>, cancel: &Cancel) {
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a control pipe, a run can still be canceled in other ways.
    let Ok(mut stream) = connect_with_retry(path, CONNECT_TIMEOUT, &mut || lock().is_closing) else { return };
    let Ok(own) = stream.try_clone() else { return };
    let mut guard = lock();
    guard.stream = Some(own);
    let mut is_closing = guard.is_closing;
    drop(guard);
    while !is_closing {
        let command = wait(&mut stream);
        is_closing = lock().is_closing;
        match command {
            // No more commands follow.
            Ok(ControlKind::CLOSE_CHANNEL) => return,
            Ok(ControlKind::CANCEL_SESSION) | Err(()) if !is_closing => {
                return cancel.request(CancelReason::Server);
            }
            // A command of a newer server.
            Ok(_) => {}
            Err(()) => return,
        }
    }
}

/// Sends a request and waits for the reply.
fn wait(stream: &mut Stream) -> Result<ControlKind, ()> {
    let mut connection = Connection::control();
    let frame = connection.request(&Message::WaitForServerControl).map_err(drop)?;
    stream.write_all(&frame).map_err(drop)?;
    let mut buffer = [0; 256];
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Err(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(()),
        };
        match connection.handle_bytes(buffer.get(..count).unwrap_or_default()) {
            Ok(Some(Reply::Control(control))) => return control.kind.ok_or(()),
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return Err(()),
        }
    }
}
