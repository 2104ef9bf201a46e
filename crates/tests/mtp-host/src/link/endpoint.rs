//! The endpoint of HTTP as it is on the command line, and what can be wrong with HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// What is wrong with HTTP. The connection is of no use then: the platform's own hosts try nothing again either.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// `--dotnet-test-http-endpoint` is nothing that we would send the token to.
    #[error("the endpoint {endpoint:?} {reason}")]
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// `--dotnet-test-http-token` can't be in a header.
    #[error("the token has characters that no header can have")]
    Token,
    /// Not 200.
    #[error("the server has answered with HTTP status {0}")]
    Status(u16),
    /// No `application/octet-stream`.
    #[error("the response has the content type {0:?}, not application/octet-stream")]
    ContentType(String),
    /// No response of HTTP/1.1.
    #[error("no HTTP response: {what} at byte {offset}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// Where in the response.
        offset: usize,
    },
    /// Its head or its body is too large.
    #[error("the response is too large: {size} bytes, at most {limit} are read")]
    TooLarge {
        /// How large it is.
        size: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The server has closed the connection before the end of the response.
    #[error("the response ends after {0} bytes")]
    Cut(usize),
    /// The body is not one frame.
    #[error("the body of the response is not one whole frame")]
    NoFrame,
}

/// `http://127.0.0.1:PORT/PATH`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// Where to connect to, the first that answers.
    pub(super) addresses: Vec<SocketAddr>,
    /// For the `Host` header.
    pub(super) authority: String,
    /// At least `/`.
    pub(super) path: String,
}

impl Endpoint {
    pub(super) fn parse(text: &str) -> Result<Self, HttpError> {
        let wrong = |reason| HttpError::Endpoint { endpoint: text.to_owned(), reason };
        let scheme = text.get(..7).unwrap_or_default();
        if text.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
            return Err(wrong("is https, which this application can't speak"));
        }
        if !scheme.eq_ignore_ascii_case("http://") {
            return Err(wrong("is no http:// address"));
        }
        let rest = text.get(7..).unwrap_or_default();
        if !rest.bytes().all(|c| c.is_ascii_graphic()) {
            return Err(wrong("has characters that no address can have"));
        }
        if rest.contains(['?', '#', '@']) {
            return Err(wrong("has a user, a query or a fragment"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_no_number| wrong("has no valid port"))?)
            }
            _ => (authority, 80),
        };
        let ip = if host.eq_ignore_ascii_case("localhost") {
            None
        } else {
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            let ip: IpAddr = bare.parse().map_err(|_no_address| wrong("is not of this machine"))?;
            Some(ip)
        };
        if ip.is_some_and(|ip| !ip.is_loopback()) {
            return Err(wrong("is not of this machine"));
        }
        let local = || vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()];
        let addresses = ip.map_or_else(local, |ip| vec![SocketAddr::new(ip, port)]);
        Ok(Self { addresses, authority: authority.to_owned(), path: format!("/{path}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_this_machine() {
        let of = |text: &str| {
            let endpoint = Endpoint::parse(text).unwrap();
            let first = endpoint.addresses[0].to_string();
            format!("{first} {} {}", endpoint.authority, endpoint.path)
        };
        assert_eq!(of("http://127.0.0.1:5000"), "127.0.0.1:5000 127.0.0.1:5000 /");
        assert_eq!(of("HTTP://127.0.0.1:5000/a/b"), "127.0.0.1:5000 127.0.0.1:5000 /a/b");
        assert_eq!(of("http://[::1]:7/x"), "[::1]:7 [::1]:7 /x");
        assert_eq!(of("http://[::1]"), "[::1]:80 [::1] /");
        assert_eq!(of("http://localhost/"), "127.0.0.1:80 localhost /");
        assert_eq!(Endpoint::parse("http://localhost:1").unwrap().addresses.len(), 2);
    }

    #[test]
    fn a_token_goes_nowhere_else() {
        for (text, reason) in [
            ("https://127.0.0.1:1", "is https, which this application can't speak"),
            ("ftp://127.0.0.1", "is no http:// address"),
            ("", "is no http:// address"),
            ("http://192.168.0.1:1", "is not of this machine"),
            ("http://example.org", "is not of this machine"),
            ("http://", "is not of this machine"),
            ("http://127.0.0.1:x", "has no valid port"),
            ("http://127.0.0.1:70000", "has no valid port"),
            ("http://a@127.0.0.1:1", "has a user, a query or a fragment"),
            ("http://127.0.0.1:1/?x", "has a user, a query or a fragment"),
            ("http://127.0.0.1:1/a b", "has characters that no address can have"),
            ("http://127.0.0.1:1/\r\nX: y", "has characters that no address can have"),
        ] {
            let endpoint = text.to_owned();
            assert_eq!(Endpoint::parse(text), Err(HttpError::Endpoint { endpoint, reason }), "{text}");
        }
    }
}
