//! Diagnostic Ports where runtimes can't dial in yet: on Windows, where a port is a named pipe that the tool makes.
//!
//! Everything that a port would give has no value here, and binding one says why. So whoever has ports in what they do
//! compiles, and gets this error where a port is asked for.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};

use runtap_diag_proto::diagnostic_ports::{self, DiagnosticPort};
use runtap_transport::{BindError, Endpoint, Exposure, Peer};
use uuid::Uuid;

use crate::{Client, Error};

/// A port on which runtimes dial in: there is none.
#[derive(Debug)]
pub struct Port(Infallible);

/// A runtime that has dialled in: there is none.
#[derive(Debug, Clone)]
pub struct Runtime(Infallible);

/// Those who dial in and are no kin: there are none.
#[derive(Debug)]
pub struct Visitors(Infallible);

/// Somebody who has dialled in and is no kin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visitor {
    /// Who it is, as the system says.
    pub peer: Peer,
    /// Whether the port is for everybody.
    pub was_let_in: bool,
}

impl Port {
    /// Fails: it can't be done here.
    ///
    /// # Errors
    /// Always.
    pub fn bind(path: impl Into<PathBuf>) -> Result<Self, BindError> {
        let reason = "listening for runtimes is not supported on Windows yet";
        let source = io::Error::new(io::ErrorKind::Unsupported, reason);
        Err(BindError::Io { path: path.into(), source })
    }

    /// Fails: it can't be done here.
    ///
    /// # Errors
    /// Always.
    pub fn bind_for_everybody(path: impl Into<PathBuf>) -> Result<Self, BindError> {
        Self::bind(path)
    }

    /// What other users can do to its name.
    pub fn exposure(&self) -> Exposure {
        match self.0 {}
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        match self.0 {}
    }

    /// Where runtimes dial in.
    pub fn endpoint(&self) -> &Endpoint {
        match self.0 {}
    }

    /// The next runtime.
    #[allow(clippy::unused_async, clippy::needless_pass_by_ref_mut, reason = "the same as elsewhere")]
    pub async fn accept(&mut self) -> Runtime {
        match self.0 {}
    }

    /// Those who dial in and are no kin.
    pub fn visitors(&self) -> Visitors {
        match self.0 {}
    }

    /// Lets everybody go on who dials in.
    #[allow(clippy::unused_async, clippy::needless_pass_by_ref_mut, reason = "the same as elsewhere")]
    pub async fn resume_all(
        &mut self,
        _until: impl Future<Output = ()>,
        _told: impl FnMut(&Runtime, Result<(), Error>),
    ) {
        match self.0 {}
    }
}

impl Visitors {
    /// The next one.
    #[allow(clippy::unused_async, reason = "the same as elsewhere")]
    pub async fn next(&self) -> Visitor {
        match self.0 {}
    }
}

impl Runtime {
    /// Its process id, as it says.
    pub fn process_id(&self) -> u64 {
        match self.0 {}
    }

    /// Identifies this run of this runtime.
    pub fn cookie(&self) -> Uuid {
        match self.0 {}
    }

    /// Who dialled.
    pub fn peer(&self) -> Peer {
        match self.0 {}
    }

    /// Whether it is one of ours.
    pub fn is_kin(&self) -> bool {
        match self.0 {}
    }

    /// Whether it calls itself otherwise than the system does.
    pub fn claims_another_id(&self) -> Option<bool> {
        match self.0 {}
    }

    /// Asks it.
    pub fn client(&self) -> Client {
        match self.0 {}
    }

    /// Whether its process has ended.
    pub fn has_ended(&self) -> bool {
        match self.0 {}
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// None.
    #[allow(clippy::unused_async, reason = "the same as elsewhere")]
    pub async fn resume(&self) -> Result<(), Error> {
        match self.0 {}
    }
}

/// The ports of a value of `DOTNET_DiagnosticPorts` for which a runtime waits.
pub fn awaited(value: &[u8]) -> impl Iterator<Item = DiagnosticPort<'_>> {
    diagnostic_ports::parse(value).filter(|port| !port.listen && port.is_waited_for())
}
