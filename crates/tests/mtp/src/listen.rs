//! How an application reaches us: by a pipe or by HTTP. The one place that knows both.

use std::ffi::OsString;
use std::time::Instant;

use runtap_transport::naming::port_address;

use crate::http::Http;
use crate::pipe::Pipe;

/// How applications send what they have to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// A local socket: every version of the platform from 1.7 on.
    #[default]
    Pipe,
    /// Requests to a port of this machine: version 2.4 and later. There is no control pipe: a process is asked to end by a
    /// signal.
    Http,
}

/// Where one application is listened to. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) enum Listener {
    Pipe(Pipe),
    Http(Http),
}

impl Listener {
    /// The options by which the application finds us.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        match self {
            Self::Pipe(pipe) => vec!["--dotnet-test-pipe".into(), port_address(pipe.path()).into()],
            Self::Http(http) => http.arguments(),
        }
    }

    /// The application has ended: accepts those that have dialled already, and nobody after them.
    pub(crate) fn stop_accepting(&mut self) {
        match self {
            Self::Pipe(pipe) => pipe.stop_accepting(),
            // Its token went with the application.
            Self::Http(http) => http.has_ended(),
        }
    }

    /// Whether all that was accepted was served to its end.
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_idle(),
            Self::Http(http) => http.is_idle(),
        }
    }

    /// How many connections there were too many.
    pub(crate) fn refused(&self) -> u64 {
        match self {
            Self::Pipe(pipe) => pipe.refused(),
            // Anybody can open one, with or without the token.
            Self::Http(_) => 0,
        }
    }

    /// Closes all connections, and waits until `deadline` for those who serve them.
    pub(crate) fn close(&mut self, deadline: Instant) {
        match self {
            Self::Pipe(pipe) => pipe.cut(deadline),
            Self::Http(http) => http.shut(),
        }
    }
}
