//! `HOST:PORT`, and whether it stays on this machine. Owns the syntax and the rule; opens nothing.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

/// An address as it is typed: `127.0.0.1:9000`, `localhost:9000`, `[::1]:9000`, `*:9000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    host: String,
    port: u16,
}

/// What is not such an address, or may not be one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// No host, no port, or no number.
    #[error("'{0}' is no HOST:PORT, such as 127.0.0.1:9000 or [::1]:9000")]
    Syntax(String),
    /// The name stands for nothing.
    #[error("the address of '{host}' can't be found: {source}")]
    Unknown {
        /// The name.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// It leads out of this machine, over a connection that nobody protects.
    #[error(
        "{address} is not a loopback address: whoever reaches it commands the program behind it, and nothing is encrypted"
    )]
    Beyond {
        /// The address.
        address: SocketAddr,
    },
}

impl HostPort {
    /// Reads an address.
    ///
    /// # Errors
    /// [`AddressError::Syntax`].
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Syntax(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        // A sign would be taken.
        let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        let port: u16 = port.and_then(|port| port.parse().ok()).ok_or_else(wrong)?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(wrong)?,
            // Six colons and a number: which is which?
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c == '/') {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }

    /// The addresses it stands for: at least one. Beyond loopback only if that is allowed.
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

/// Also where IPv4 is written as IPv6.
pub(crate) fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back() {
        for text in ["127.0.0.1:9000", "localhost:0", "[::1]:65535", "*:1", "a-b.example:80"] {
            assert_eq!(HostPort::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address() {
        for text in
            ["", "9000", ":9000", "host:", "host:+1", "host:65536", "::1:9000", "[::1:9000", "h/x:1", " h:1"]
        {
            assert!(matches!(HostPort::parse(text), Err(AddressError::Syntax(_))), "{text}");
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
