//! Parses `HOST:PORT` and `runtap://HOST:PORT[/PID|NAME]`, and rejects addresses that are not loopback addresses.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

/// A host and a port: `127.0.0.1:9000`, `localhost:9000`, `[::1]:9000`, `*:9000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    host: String,
    port: u16,
}

/// An error about an address.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The text is not a host and a port.
    #[error("'{0}' is not a HOST:PORT, such as 127.0.0.1:9000 or [::1]:9000")]
    Syntax(String),
    /// The text is not the address of a remote process.
    #[error("'{0}' is not an address of the form runtap://HOST:PORT[/PID|NAME]")]
    Remote(String),
    /// The host name cannot be resolved.
    #[error("cannot resolve host '{host}': {source}")]
    Unknown {
        /// The host name.
        host: String,
        /// The error.
        source: io::Error,
    },
    /// The address is not a loopback address, and connections to it are not protected.
    #[error(
        "{address} is not a loopback address: anyone who can connect to it would control the process, and traffic is not encrypted"
    )]
    Beyond {
        /// The address.
        address: SocketAddr,
    },
}

impl HostPort {
    /// Parses an address.
    ///
    /// # Errors
    /// [`AddressError::Syntax`].
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Syntax(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        // `parse` would accept a sign.
        let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        let port: u16 = port.and_then(|port| port.parse().ok()).ok_or_else(wrong)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(wrong)?,
            // An IPv6 address without brackets is ambiguous.
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c == '/') {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }

    /// Returns the host name, or the IP address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Resolves the host to at least one address. Fails if one is not a loopback address, unless `beyond_loopback` is
    /// set.
    ///
    /// # Errors
    /// [`AddressError::Unknown`] and [`AddressError::Beyond`].
    pub async fn resolve(&self, beyond_loopback: bool) -> Result<Vec<SocketAddr>, AddressError> {
        let unknown = |source| AddressError::Unknown { host: self.host.clone(), source };
        let found: Vec<SocketAddr> = if self.host == "*" {
            vec![SocketAddr::from(([0; 16], self.port))]
        } else {
            tokio::net::lookup_host((self.host.as_str(), self.port)).await.map_err(unknown)?.collect()
        };
        if found.is_empty() {
            return Err(unknown(io::ErrorKind::NotFound.into()));
        }
        match found.iter().find(|address| !is_loopback(address.ip())) {
            Some(address) if !beyond_loopback => Err(AddressError::Beyond { address: *address }),
            _ => Ok(found),
        }
    }
}

/// Returns whether an address is a loopback address, including IPv4 addresses mapped to IPv6.
fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Prefix of addresses of remote processes.
const SCHEME: &str = "runtap://";
/// URL schemes that users may specify by mistake.
const OTHER_SCHEMES: [&str; 6] = ["http", "https", "tcp", "ws", "wss", "net.tcp"];

/// The address of a process behind a router: `runtap://HOST:PORT[/PID|NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAddress {
    /// Address of the router.
    pub router: HostPort,
    /// The process.
    pub which: RemoteSelector,
}

/// A selection among the processes of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteSelector {
    /// The only process.
    Only,
    /// The process with this id on the router's machine.
    Pid(u32),
    /// The process with this name.
    Name(String),
}

impl RemoteAddress {
    /// Returns whether a text starts with `runtap://`.
    pub fn is_meant(text: &str) -> bool {
        text.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
    }

    /// Returns whether a text is a URL of another protocol, such as `http://HOST:PORT`, which was probably specified by
    /// mistake: neither a process name nor the path of a port looks like that.
    pub fn is_other(text: &str) -> bool {
        let is_scheme = |scheme: &str| OTHER_SCHEMES.iter().any(|other| scheme.eq_ignore_ascii_case(other));
        text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
    }

    /// Parses an address.
    ///
    /// # Errors
    /// [`AddressError::Remote`], with the whole address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Remote(text.to_owned());
        let rest = text.get(SCHEME.len()..).filter(|_| Self::is_meant(text)).ok_or_else(wrong)?;
        // Addresses of ports may have this suffix; it is the only mode here.
        let rest = rest.strip_suffix(",connect").unwrap_or(rest);
        let (router, which) = rest.split_once('/').unwrap_or((rest, ""));
        let which = match which.parse() {
            _ if which.is_empty() => RemoteSelector::Only,
            Ok(pid) => RemoteSelector::Pid(pid),
            Err(_no_number) => RemoteSelector::Name(which.to_owned()),
        };
        let router = HostPort::parse(router).map_err(|_syntax| wrong())?;
        Ok(Self { router, which })
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.router)?;
        match &self.which {
            RemoteSelector::Only => Ok(()),
            RemoteSelector::Pid(pid) => write!(f, "/{pid}"),
            RemoteSelector::Name(name) => write!(f, "/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in ["127.0.0.1:9000", "localhost:0", "[::1]:65535", "*:1", "a-b.example:80"] {
            assert_eq!(HostPort::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for text in
            ["", "9000", ":9000", "host:", "host:+1", "host:65536", "::1:9000", "[::1:9000", "h/x:1", " h:1"]
        {
            assert!(matches!(HostPort::parse(text), Err(AddressError::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn remote_addresses_round_trip() {
        for text in ["runtap://127.0.0.1:9000", "runtap://[::1]:9/42", "runtap://host:9/My Service"] {
            assert_eq!(RemoteAddress::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(RemoteAddress::parse("runtap://h:9/42,connect").unwrap().which, RemoteSelector::Pid(42));
        let error = RemoteAddress::parse("runtap://host/42").unwrap_err().to_string();
        assert_eq!(error, "'runtap://host/42' is not an address of the form runtap://HOST:PORT[/PID|NAME]");
        assert_eq!(RemoteAddress::parse("RUNTAP://h:9/").unwrap().to_string(), "runtap://h:9");
        for text in ["runtap:/h:9", "runtap://", "runtap://h", "runtap://h:9000000", "host:9", "uds:/p", "é"]
        {
            RemoteAddress::parse(text).unwrap_err();
        }
    }

    #[tokio::test]
    async fn only_loopback_unless_more_is_allowed() {
        for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            HostPort::parse(text).unwrap().resolve(false).await.unwrap();
        }
        for text in ["0.0.0.0:1", "*:1", "192.0.2.1:1", "[::]:1", "[2001:db8::1]:1"] {
            let address = HostPort::parse(text).unwrap();
            assert!(matches!(address.resolve(false).await, Err(AddressError::Beyond { .. })), "{text}");
            assert_eq!(address.resolve(true).await.unwrap().len(), 1);
        }
    }
}
