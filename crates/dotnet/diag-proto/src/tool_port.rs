//! How people tell a tool where a port is: `--diagnostic-port ADDRESS[,connect|listen]`. The other end of
//! [`diagnostic_ports`](crate::diagnostic_ports), with a grammar of its own: the one of Microsoft's client library.
//!
//! ```text
//! ADDRESS[,MODE]      MODE = connect | listen (in any case), listen if there is none
//!
//! /tmp/p   p   uds:p   uds:/tmp/p   uds:///tmp/p   uds://host/tmp/p   file:///tmp/p      the socket /tmp/p, or p
//! \\.\pipe\p   namedpipe:p   namedpipe://./pipe/p   namedpipe:/pipe/p                    the pipe p
//! ```
//!
//! Everything else is an error here, where a runtime would take it for an address. One difference: Microsoft's library
//! writes `%20` for a blank in a path, and so on, and then looks for that file; here a path stays as it is. A path with a
//! comma can't be told in either. Owns no sockets.

use thiserror::Error;

/// A port as a tool was told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolPort<'a> {
    /// Who is there first.
    pub mode: PortMode,
    /// What it is.
    pub transport: Transport,
    /// The path of the socket, or the name of the pipe without `\\.\pipe\`. Not empty.
    pub address: &'a str,
}

/// Who is at a port first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PortMode {
    /// A runtime listens, and the tool dials.
    Connect,
    /// The tool listens, and runtimes dial in.
    #[default]
    Listen,
}

/// What a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A Unix domain socket.
    Socket,
    /// A named pipe of Windows.
    Pipe,
}

impl Transport {
    /// What an address without a scheme is on this system.
    pub const NATIVE: Self = if cfg!(windows) { Self::Pipe } else { Self::Socket };
}

/// What is not a port.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PortError {
    /// Nothing before the comma, or behind the scheme.
    #[error("there is no address")]
    NoAddress,
    /// Another scheme.
    #[error("'{scheme}:' is no kind of port: uds, namedpipe and file are")]
    Scheme {
        /// What stands before the colon.
        scheme: String,
    },
    /// Something else behind the comma.
    #[error("'{mode}' is no mode: connect and listen are")]
    Mode {
        /// What stands there.
        mode: String,
    },
    /// More than one comma.
    #[error("an address and a mode are all there can be: '{rest}' is too much")]
    TooMuch {
        /// From the second comma on.
        rest: String,
    },
}

impl<'a> ToolPort<'a> {
    /// Reads the argument; an address without a scheme is of the `native` transport.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &'a str, native: Transport) -> Result<Self, PortError> {
        let (address, mode) = match text.split_once(',') {
            None => (text, PortMode::default()),
            Some((address, mode)) => (address, parse_mode(mode)?),
        };
        let (transport, address) = resolve(address, native)?;
        if address.is_empty() {
            return Err(PortError::NoAddress);
        }
        Ok(Self { mode, transport, address })
    }
}

fn parse_mode(text: &str) -> Result<PortMode, PortError> {
    if let Some((mode, rest)) = text.split_once(',') {
        parse_mode(mode)?;
        return Err(PortError::TooMuch { rest: format!(",{rest}") });
    }
    if text.eq_ignore_ascii_case("connect") {
        Ok(PortMode::Connect)
    } else if text.eq_ignore_ascii_case("listen") {
        Ok(PortMode::Listen)
    } else {
        Err(PortError::Mode { mode: text.to_owned() })
    }
}

const PIPE_ROOT: &str = r"\\.\pipe\";

fn resolve(address: &str, native: Transport) -> Result<(Transport, &str), PortError> {
    if let Some(name) = strip_prefix(address, PIPE_ROOT) {
        return Ok((Transport::Pipe, name));
    }
    let Some((scheme, rest)) = split_scheme(address) else { return Ok((native, address)) };
    let transport = if scheme.eq_ignore_ascii_case("uds") {
        Transport::Socket
    } else if scheme.eq_ignore_ascii_case("namedpipe") {
        Transport::Pipe
    } else if scheme.eq_ignore_ascii_case("file") {
        native
    } else {
        return Err(PortError::Scheme { scheme: scheme.to_owned() });
    };
    // Between two slashes and the next one stands a host, which has no meaning here.
    let path = match rest.strip_prefix("//") {
        Some(host) => host.find('/').and_then(|at| host.get(at..)).unwrap_or_default(),
        None => rest,
    };
    if transport == Transport::Socket {
        return Ok((transport, path));
    }
    let name = strip_prefix(path, "/pipe/").or_else(|| path.strip_prefix('/')).unwrap_or(path);
    Ok((transport, name))
}

/// `scheme:rest`, if that is what it looks like: a path with a colon in it does not, nor does a drive.
fn split_scheme(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once(':')?;
    let mut letters = scheme.bytes();
    let sound = letters.next()?.is_ascii_alphabetic()
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (sound && scheme.len() > 1).then_some((scheme, rest))
}

/// Without regard to case, as names of pipes are compared.
fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn socket(address: &str, mode: PortMode) -> ToolPort<'_> {
        ToolPort { mode, transport: Transport::Socket, address }
    }

    #[test]
    fn sockets() {
        use PortMode::{Connect, Listen};
        for (text, address, mode) in [
            ("/tmp/p", "/tmp/p", Listen),
            ("/tmp/p,connect", "/tmp/p", Connect),
            ("/tmp/p,LISTEN", "/tmp/p", Listen),
            ("p,Connect", "p", Connect),
            ("~/p", "~/p", Listen),
            ("uds:p", "p", Listen),
            ("UDS:/tmp/p,connect", "/tmp/p", Connect),
            ("uds:///tmp/p", "/tmp/p", Listen),
            ("uds://host/tmp/p", "/tmp/p", Listen),
            ("file:///tmp/p", "/tmp/p", Listen),
            // No percent signs are made or resolved.
            ("/tmp/a b%20é", "/tmp/a b%20é", Listen),
            ("/tmp/a:b", "/tmp/a:b", Listen),
            ("./uds:p", "./uds:p", Listen),
        ] {
            assert_eq!(ToolPort::parse(text, Transport::Socket), Ok(socket(address, mode)), "{text}");
        }
    }

    #[test]
    fn pipes() {
        for (text, native) in [
            (r"\\.\pipe\p", Transport::Socket),
            (r"\\.\PIPE\p", Transport::Pipe),
            ("namedpipe:p", Transport::Socket),
            ("namedpipe://./pipe/p", Transport::Socket),
            ("namedpipe:/pipe/p", Transport::Pipe),
            ("namedpipe://authority/p", Transport::Pipe),
            ("namedpipe:///p", Transport::Pipe),
            ("p", Transport::Pipe),
        ] {
            let expected = ToolPort { mode: PortMode::Listen, transport: Transport::Pipe, address: "p" };
            assert_eq!(ToolPort::parse(text, native), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_port() {
        let why = |text| ToolPort::parse(text, Transport::Socket).unwrap_err().to_string();
        for text in ["", ",connect", "uds:", "uds://", "uds://host", "namedpipe:/pipe/", r"\\.\pipe\"] {
            assert_eq!(why(text), "there is no address", "{text}");
        }
        assert_eq!(why("/p,suspend"), "'suspend' is no mode: connect and listen are");
        assert_eq!(why("/p,"), "'' is no mode: connect and listen are");
        assert_eq!(why("/p, connect"), "' connect' is no mode: connect and listen are");
        assert_eq!(
            why("/p,connect,nosuspend"),
            "an address and a mode are all there can be: ',nosuspend' is too much"
        );
        assert_eq!(why("tcp://host:1"), "'tcp:' is no kind of port: uds, namedpipe and file are");
    }

    proptest! {
        #[test]
        fn a_path_is_told_as_it_is(path in "/[^,]{0,40}", connect: bool) {
            let (mode, text) = if connect {
                (PortMode::Connect, format!("{path},connect"))
            } else {
                (PortMode::Listen, path.clone())
            };
            prop_assert_eq!(ToolPort::parse(&text, Transport::Socket), Ok(socket(&path, mode)));
        }

        #[test]
        fn anything_is_a_port_or_an_error(text in "[a-z:/,.\\\\é ]{0,30}") {
            if let Ok(port) = ToolPort::parse(&text, Transport::Socket) {
                prop_assert!(!port.address.is_empty() && text.contains(port.address));
            }
        }
    }
}
