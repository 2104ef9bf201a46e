//! The environment of one cell: its own directory and the thread that runs the event loop.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::cell::Stop;
use crate::column::Column;
use crate::target::{LIMIT, Target};

/// The event loop of all rows, on its own thread: sessions are drained while a row waits for a program.
#[derive(Debug)]
pub(crate) struct Driver {
    handle: Handle,
    /// Dropped with the driver, which stops the thread.
    _running: oneshot::Sender<()>,
}

impl Driver {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (sender, receiver) = mpsc::channel();
        let (running, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("driver".to_owned()).spawn(move || {
            // If the receiver is gone, the handle is not needed.
            let _ = sender.send(runtime.handle().clone());
            // Fails when the sender is dropped, which is the signal to stop.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { handle: receiver.recv()?, _running: running })
    }
}

/// The environment in which a row runs.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    pub(crate) column: &'a Column,
    driver: &'a Driver,
    folder: TempDir,
}

impl<'a> Room<'a> {
    pub(crate) fn new(column: &'a Column, driver: &'a Driver) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("conformance").tempdir()?;
        Ok(Self { column, driver, folder })
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.driver.handle.block_on(future)
    }

    /// Runs a future with a time limit.
    pub(crate) fn run_limited<F: Future>(&self, future: F) -> anyhow::Result<F::Output> {
        self.run(async { timeout(LIMIT, future).await }).context("nothing came within a minute")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path of a file as a string for a runtime.
    pub(crate) fn path(&self, name: &str) -> String {
        self.file(name).to_string_lossy().into_owned()
    }

    /// Starts a fresh process.
    pub(crate) fn target(&self) -> Result<Target<'_>, Stop> {
        Target::running(self)
    }

    /// Starts a fresh process that waits at its startup and has connected to a port of this program. The cell of a
    /// runtime that can't do that is [`NO_PORT`](crate::cell::NO_PORT).
    pub(crate) fn suspended(&self) -> Result<Target<'_>, Stop> {
        Target::suspended_on_port(self)
    }
}
