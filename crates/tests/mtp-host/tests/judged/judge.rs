//! A server that judges: its state machine decodes every message and checks every rule.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU32;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use runtap_mtp_host::{Batching, Exit, Host, Identity, Launch, Role};
use runtap_mtp_proto::server::{self, Event, Pipe, Settings};
use runtap_mtp_proto::{ControlKind, Message, TestState};
use tempfile::TempDir;

/// A server of one application, which breaks off a connection that sends two requests at a time.
pub(crate) struct Judge {
    pub(crate) folder: TempDir,
    pub(crate) application: Arc<Mutex<server::Application>>,
    pub(crate) events: mpsc::Receiver<Event>,
    /// The bytes of each connection that has ended.
    pub(crate) heard: mpsc::Receiver<Vec<u8>>,
    /// A message cancels the session, as soon as the application waits for cancellation.
    pub(crate) cancel: mpsc::Sender<()>,
}

impl Judge {
    pub(crate) fn new(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("control");
        let settings = Settings {
            control_pipe: settings.control_pipe.map(|_| control.to_str().unwrap().to_owned()),
            ..settings
        };
        let has_control = settings.control_pipe.is_some();
        let application = Arc::new(Mutex::new(server::Application::new(settings)));
        let (send, events) = mpsc::channel();
        let (hear, heard) = mpsc::channel();
        let (cancel, cancelled) = mpsc::channel();
        let cancelled = Arc::new(Mutex::new(cancelled));
        let serve = |path: &Path, pipe| serve(path, pipe, &application, &send, &hear, &cancelled);
        serve(&folder.path().join("data"), Pipe::Data);
        if has_control {
            serve(&control, Pipe::Control);
        }
        Self { folder, application, events, heard, cancel }
    }

    pub(crate) fn launch(&self, options: &[&str]) -> Launch {
        let pipe = self.folder.path().join("data");
        let words = options.iter().map(std::ffi::OsString::from);
        let server = ["--server", "dotnettestcli", "--dotnet-test-pipe"].map(std::ffi::OsString::from);
        Launch::parse(words.chain(server).chain([pipe.into()]), &[]).unwrap().unwrap()
    }

    pub(crate) fn connect(&self, options: &[&str]) -> Host {
        self.connect_as(options, &Role::TestHost { attempt: NonZeroU32::MIN }, Identity::this_program())
    }

    pub(crate) fn connect_as(&self, options: &[&str], role: &Role, identity: Identity) -> Host {
        // Results wait for others until the session ends: which message has which does not depend on the machine.
        let batching = Batching { delay: Duration::from_hours(1), ..Batching::default() };
        Host::connect(&self.launch(options), identity, role, batching).unwrap()
    }

    /// All that it has heard, once the application has ended with this code. No rule may be broken.
    #[track_caller]
    pub(crate) fn messages(self, exit: Exit) -> Vec<Message> {
        let end = self.application.lock().unwrap().handle_exit(Some(exit.0.into()));
        let broken: Vec<_> = end.violations().cloned().collect();
        assert_eq!(broken, [], "at the end");
        let mut messages = Vec::new();
        for event in self.events.try_iter() {
            match event {
                Event::Violation(violation) => panic!("{violation:?}"),
                Event::Message(message) => messages.push(message),
                _ => {}
            }
        }
        messages
    }
}

fn serve(
    path: &Path,
    pipe: Pipe,
    application: &Arc<Mutex<server::Application>>,
    send: &mpsc::Sender<Event>,
    hear: &mpsc::Sender<Vec<u8>>,
    cancelled: &Arc<Mutex<mpsc::Receiver<()>>>,
) {
    let listener = UnixListener::bind(path).unwrap();
    let (application, send, hear) = (Arc::clone(application), send.clone(), hear.clone());
    let cancelled = Arc::clone(cancelled);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (application, send, hear) = (Arc::clone(&application), send.clone(), hear.clone());
            let cancelled = Arc::clone(&cancelled);
            thread::spawn(move || {
                let bytes = talk(stream, pipe, &application, &send, &cancelled);
                // The test may have ended.
                let _ = hear.send(bytes);
            });
        }
    });
}

fn talk(
    mut stream: UnixStream,
    pipe: Pipe,
    application: &Mutex<server::Application>,
    send: &mpsc::Sender<Event>,
    cancelled: &Mutex<mpsc::Receiver<()>>,
) -> Vec<u8> {
    let mut heard = Vec::new();
    let mut connection = application.lock().unwrap().connect(pipe);
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = stream.read(&mut buffer) {
        if count == 0 {
            break;
        }
        heard.extend_from_slice(&buffer[..count]);
        let output = application.lock().unwrap().handle_bytes(&mut connection, &buffer[..count]);
        for event in output.events {
            let is_waiting = event == Event::ControlWaiting;
            let _ = send.send(event);
            if is_waiting && cancelled.lock().unwrap().recv().is_ok() {
                let answer = connection.control(ControlKind::CANCEL_SESSION).unwrap();
                stream.write_all(&answer).unwrap();
            }
        }
        if stream.write_all(&output.transmit).is_err() || output.close {
            break;
        }
    }
    for event in application.lock().unwrap().handle_close(&mut connection).events {
        let _ = send.send(event);
    }
    heard
}

/// A closure that only panics has a type that says nothing.
pub(crate) fn fails(text: &str) {
    panic!("{text}");
}

pub(crate) fn results(messages: &[Message]) -> Vec<(String, TestState)> {
    let mut all = Vec::new();
    for message in messages {
        let Message::TestResults(results) = message else { continue };
        let successful = results.successful.iter().flatten();
        all.extend(successful.map(|test| (test.uid.clone().unwrap(), test.state.unwrap())));
        let failed = results.failed.iter().flatten();
        all.extend(failed.map(|test| (test.uid.clone().unwrap(), test.state.unwrap())));
    }
    all
}
