//! Where one row meets one column: a folder of its own and the thread that moves bytes.

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

/// The event loop of all rows, on a thread of its own: sessions are drained while a row waits for a program.
#[derive(Debug)]
pub(crate) struct Driver {
    handle: Handle,
    /// Dropped with the driver, which ends the thread.
    _running: oneshot::Sender<()>,
}

impl Driver {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (tell, told) = mpsc::channel();
        let (running, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("driver".to_owned()).spawn(move || {
            // Nobody waits any more: then nobody needs it.
            let _ = tell.send(runtime.handle().clone());
            // Ends with an error when the sender is dropped: that is the signal.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { handle: told.recv()?, _running: running })
    }
}

/// What a row gets.
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

    /// What must not take for ever.
    pub(crate) fn run_limited<F: Future>(&self, future: F) -> anyhow::Result<F::Output> {
        self.run(async { timeout(LIMIT, future).await }).context("nothing came within a minute")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file's path as a runtime is told it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.file(name).to_string_lossy().into_owned()
    }

    /// A fresh process that runs.
    pub(crate) fn target(&self) -> Result<Target<'_>, Stop> {
        Target::running(self)
    }

    /// A fresh process that waits at its startup and has dialled a port of ours. A runtime that can't do that is a
    /// [`NO_PORT`](crate::cell::NO_PORT).
    pub(crate) fn suspended(&self) -> Result<Target<'_>, Stop> {
        Target::on_port(self)
    }
}
