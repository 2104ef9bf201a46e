//! The HTTP endpoint on the command line, and errors of HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// An error of HTTP. The connection cannot be used afterwards; like the platform's own hosts, this crate does not
/// retry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// `--dotnet-test-http-endpoint` is not an endpoint to which the token may be sent.
    #[error("the endpoint {endpoint:?} {reason}")]
    Endpoint {
        /// The endpoint.
        endpoint: String,
        /// The reason.
        reason: &'static str,
    },
    /// `--dotnet-test-http-token` is not valid in a header.
    #[error("the token has characters that are not valid in a header")]
    Token,
    /// The status is not 200.
    #[error("the server replied with HTTP status {0}")]
    Status(u16),
    /// The content type is not `application/octet-stream`.
    #[error("the response has the content type {0:?}, not application/octet-stream")]
    ContentType(String),
    /// The response is not a valid HTTP/1.1 response.
    #[error("invalid HTTP response: {what} at byte {offset}")]
    Malformed {
        /// The reason.
        what: &'static str,
        /// The offset in the response, in bytes.
        offset: usize,
    },
    /// The header or the body is too large.
    #[error("the response is too large: {size} bytes, more than the maximum of {limit}")]
    TooLarge {
        /// The size in bytes.
        size: u64,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// The server closed the connection before the end of the response. Holds the number of received bytes.
    #[error("the response ends after {0} bytes")]
    Truncated(usize),
    /// The body is not exactly one frame.
    #[error("the body of the response is not exactly one frame")]
    NoFrame,
}

/// The parts of `http://127.0.0.1:PORT/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The addresses to try in order.
    pub(super) addresses: Vec<SocketAddr>,
    /// The value of the `Host` header.
    pub(super) authority: String,
    /// The path, at least `/`.
    pub(super) path: String,
}

impl Endpoint {
    pub(super) fn parse(text: &str) -> Result<Self, HttpError> {
        let wrong = |reason| HttpError::Endpoint { endpoint: text.to_owned(), reason };
        let scheme = text.get(..7).unwrap_or_default();
        if text.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
            return Err(wrong("uses https, which is not supported"));
        }
        if !scheme.eq_ignore_ascii_case("http://") {
            return Err(wrong("is not an http:// URL"));
        }
        let rest = text.get(7..).unwrap_or_default();
        if !rest.bytes().all(|c| c.is_ascii_graphic()) {
            return Err(wrong("has characters that are not valid in a URL"));
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
            let ip: IpAddr = bare.parse().map_err(|_no_address| wrong("is not a loopback address"))?;
            Some(ip)
        };
        if ip.is_some_and(|ip| !ip.is_loopback()) {
            return Err(wrong("is not a loopback address"));
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
    fn loopback_endpoints_are_parsed() {
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
    fn other_endpoints_are_rejected() {
        for (text, reason) in [
            ("https://127.0.0.1:1", "uses https, which is not supported"),
            ("ftp://127.0.0.1", "is not an http:// URL"),
            ("", "is not an http:// URL"),
            ("http://192.168.0.1:1", "is not a loopback address"),
            ("http://example.org", "is not a loopback address"),
            ("http://", "is not a loopback address"),
            ("http://127.0.0.1:x", "has no valid port"),
            ("http://127.0.0.1:70000", "has no valid port"),
            ("http://a@127.0.0.1:1", "has a user, a query or a fragment"),
            ("http://127.0.0.1:1/?x", "has a user, a query or a fragment"),
            ("http://127.0.0.1:1/a b", "has characters that are not valid in a URL"),
            ("http://127.0.0.1:1/\r\nX: y", "has characters that are not valid in a URL"),
        ] {
            let endpoint = text.to_owned();
            assert_eq!(Endpoint::parse(text), Err(HttpError::Endpoint { endpoint, reason }), "{text}");
        }
    }
}
