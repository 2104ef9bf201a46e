//! The control pipe of version 1.4.0: a second connection, on which the server answers when it wants the run to end. To close
//! it is to want that, too.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use runtap_mtp_proto::host::{Connection, Reply};
use runtap_mtp_proto::{ControlKind, Message};

use crate::link::{PATIENCE, Stream, dial};
use crate::{Cancel, CancelReason, HostError};

#[derive(Debug, Default)]
struct State {
    is_closing: bool,
    stream: Option<Stream>,
}

/// A connection to the control pipe, in the background. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Control {
    state: Arc<Mutex<State>>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Connects in the background, for 30 s as the platform's own hosts do.
    pub(crate) fn start(path: PathBuf, cancel: Cancel) -> Result<Self, HostError> {
        let state = Arc::<Mutex<State>>::default();
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
            // It is gone then, which is as good.
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(path: &Path, state: &Mutex<State>, cancel: &Cancel) {
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a control pipe a run can still be ended in other ways.
    let Ok(mut stream) = dial(path, PATIENCE, &mut || lock().is_closing) else { return };
    let Ok(own) = stream.try_clone() else { return };
    let mut guard = lock();
    guard.stream = Some(own);
    let mut is_closing = guard.is_closing;
    drop(guard);
    while !is_closing {
        let wanted = wait(&mut stream);
        is_closing = lock().is_closing;
        match wanted {
            // It will not say anything any more.
            Ok(ControlKind::CLOSE_CHANNEL) => return,
            Ok(ControlKind::CANCEL_SESSION) | Err(()) if !is_closing => {
                return cancel.request(CancelReason::Server);
            }
            // What newer servers may want.
            Ok(_) => {}
            Err(()) => return,
        }
    }
}

/// Parks a request until the server answers.
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
