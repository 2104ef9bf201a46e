//! The port that a tool is given on its command line: `--diagnostic-port ADDRESS[,connect|listen]`. The counterpart of
//! [`diagnostic_ports`](crate::diagnostic_ports), with the grammar of Microsoft's client library.
//!
//! ```text
//! ADDRESS[,MODE]      MODE = connect | listen (in any case); the default is listen
//!
//! /tmp/p   p   uds:p   uds:/tmp/p   uds:///tmp/p   uds://host/tmp/p   file:///tmp/p      the socket /tmp/p, or p
//! \\.\pipe\p   namedpipe:p   namedpipe://./pipe/p   namedpipe:/pipe/p                    the pipe p
//! ```
//!
//! Everything else is an error here; a runtime would use it as an address. One difference to Microsoft's library, which
//! percent-encodes paths (`%20` for a blank) and then looks for that file: here a path is used unchanged. Neither
//! supports a path with a comma. Opens no sockets.

use thiserror::Error;

/// A port as specified to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolPort<'a> {
    /// Which side listens.
    pub mode: PortMode,
    /// The kind of endpoint.
    pub transport: Transport,
    /// The path of the socket, or the name of the pipe without `\\.\pipe\`. Not empty.
    pub address: &'a str,
}

/// Which side of a port listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PortMode {
    /// A runtime listens, and the tool connects.
    Connect,
    /// The tool listens, and runtimes connect.
    #[default]
    Listen,
}

/// The kind of endpoint of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A Unix domain socket.
    Socket,
    /// A named pipe of Windows.
    Pipe,
}

impl Transport {
    /// The transport of an address without a scheme on this system.
    pub const NATIVE: Self = if cfg!(windows) { Self::Pipe } else { Self::Socket };
}

/// A reason why a text is not a port.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PortError {
    /// The address is empty.
    #[error("the address is missing")]
    NoAddress,
    /// An unknown scheme.
    #[error("'{scheme}:' is not a kind of port (expected uds, namedpipe or file)")]
    Scheme {
        /// The text before the colon.
        scheme: String,
    },
    /// An unknown mode.
    #[error("'{mode}' is not a mode (expected connect or listen)")]
    Mode {
        /// The text after the comma.
        mode: String,
    },
    /// More than one comma.
    #[error("unexpected '{rest}' after the mode")]
    TrailingText {
        /// The text from the second comma on.
        rest: String,
    },
}

impl<'a> ToolPort<'a> {
    /// Parses the argument. An address without a scheme uses the `native` transport.
    ///
    /// # Errors
    /// If the address is missing, the scheme or the mode is unknown, or text follows the mode.
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
        return Err(PortError::TrailingText { rest: format!(",{rest}") });
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
    // A host between `//` and the next slash has no meaning.
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

/// Splits `scheme:rest`. `None` for a path that contains a colon and for a drive letter.
fn split_scheme(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once(':')?;
    let mut letters = scheme.bytes();
    let sound = letters.next()?.is_ascii_alphabetic()
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (sound && scheme.len() > 1).then_some((scheme, rest))
}

/// Strips a prefix case-insensitively, as names of pipes are compared.
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
            // Percent signs are neither added nor resolved.
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
    fn invalid_ports_are_rejected() {
        let why = |text| ToolPort::parse(text, Transport::Socket).unwrap_err().to_string();
        for text in ["", ",connect", "uds:", "uds://", "uds://host", "namedpipe:/pipe/", r"\\.\pipe\"] {
            assert_eq!(why(text), "the address is missing", "{text}");
        }
        assert_eq!(why("/p,suspend"), "'suspend' is not a mode (expected connect or listen)");
        assert_eq!(why("/p,"), "'' is not a mode (expected connect or listen)");
        assert_eq!(why("/p, connect"), "' connect' is not a mode (expected connect or listen)");
        assert_eq!(why("/p,connect,nosuspend"), "unexpected ',nosuspend' after the mode");
        assert_eq!(why("tcp://host:1"), "'tcp:' is not a kind of port (expected uds, namedpipe or file)");
    }

    proptest! {
        #[test]
        fn paths_are_used_unchanged(path in "/[^,]{0,40}", connect: bool) {
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
