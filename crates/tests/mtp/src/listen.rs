//! Listeners for applications: a pipe or an HTTP port.

use std::ffi::OsString;
use std::time::Instant;

use runtap_transport::naming::port_address;

use crate::http::Http;
use crate::pipe::Pipe;

/// The transport between runtap and applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// A local socket: supported by version 1.7 of the platform and later.
    #[default]
    Pipe,
    /// HTTP requests to a loopback port: supported by version 2.4 of the platform and later. There is no control pipe:
    /// processes are requested to stop by a signal.
    Http,
}

/// The listener for one application. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) enum Listener {
    Pipe(Pipe),
    Http(Http),
}

impl Listener {
    /// Returns the command-line options with the address of the listener.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        match self {
            Self::Pipe(pipe) => vec!["--dotnet-test-pipe".into(), port_address(pipe.path()).into()],
            Self::Http(http) => http.arguments(),
        }
    }

    /// Accepts connections that were already requested, and no others, after the application has exited.
    pub(crate) fn stop_accepting(&mut self) {
        match self {
            Self::Pipe(pipe) => pipe.stop_accepting(),
            // Only the application has the token.
            Self::Http(http) => http.has_ended(),
        }
    }

    /// Returns whether all accepted connections were served to their end.
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_idle(),
            Self::Http(http) => http.is_idle(),
        }
    }

    /// Returns the number of rejected connections.
    pub(crate) fn rejected(&self) -> u64 {
        match self {
            Self::Pipe(pipe) => pipe.rejected(),
            // Any process can connect, even without the token.
            Self::Http(_) => 0,
        }
    }

    /// Closes all connections, and waits until `deadline` for their threads.
    pub(crate) fn close(&mut self, deadline: Instant) {
        match self {
            Self::Pipe(pipe) => pipe.close_now(deadline),
            Self::Http(http) => http.shut(),
        }
    }
}
