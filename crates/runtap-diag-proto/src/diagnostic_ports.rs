//! The value of `DOTNET_DiagnosticPorts`, as runtimes parse it, and what a user most likely did not mean by it.
//!
//! ```text
//! ADDRESS[,TAG…][;ADDRESS[,TAG…]]…     TAG = suspend | nosuspend | connect | listen
//! ```
//!
//! Split at `;`, then at `,`; empty parts vanish and nothing is trimmed, quoted or expanded. The first part is the
//! address whatever it says. Tags have no case; of two that contradict each other the first counts, unknown ones do not.
//! Without a tag the runtime waits at its start (`suspend`) and dials (`connect`). Owns no sockets.
//! Source: the section "Diagnostic Ports" of the specification, and .NET 8, 9 and 10 as measured.

use std::fmt;

/// What fits into a socket address with the NUL at its end. A runtime never reaches a longer path, and does not say so.
pub const LONGEST_ADDRESS: usize = 107;

/// One port of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagnosticPort<'a> {
    /// The path of a socket, byte for byte. A relative one is taken from the runtime's working directory.
    pub address: &'a [u8],
    /// Whether the runtime waits at its start until it was resumed **over this port**.
    pub suspend: bool,
    /// `listen`: runtimes with a default port of their own (all on desktops and servers) ignore such a port altogether.
    pub listen: bool,
}

impl DiagnosticPort<'_> {
    /// Whether a runtime that has this port waits for it.
    pub fn is_waited_for(&self) -> bool {
        self.suspend && !self.listen
    }
}

/// The ports of the value, in its order. A runtime makes them in reverse.
pub fn parse(value: &[u8]) -> impl Iterator<Item = DiagnosticPort<'_>> {
    parts(value, b';').filter_map(|port| {
        let mut parts = parts(port, b',');
        let mut found = DiagnosticPort { address: parts.next()?, suspend: true, listen: false };
        let (mut suspend, mut mode) = (None, None);
        for tag in parts {
            match Tag::parse(tag) {
                Some(Tag::Suspend) => suspend = suspend.or(Some(true)),
                Some(Tag::NoSuspend) => suspend = suspend.or(Some(false)),
                Some(Tag::Connect) => mode = mode.or(Some(false)),
                Some(Tag::Listen) => mode = mode.or(Some(true)),
                None => {}
            }
        }
        found.suspend = suspend.unwrap_or(true);
        found.listen = mode.unwrap_or(false);
        Some(found)
    })
}

/// Non-empty parts between separators.
fn parts(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    text.split(move |byte| *byte == separator).filter(|part| !part.is_empty())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Suspend,
    NoSuspend,
    Connect,
    Listen,
}

impl Tag {
    fn parse(text: &[u8]) -> Option<Self> {
        let tags = [
            ("suspend", Self::Suspend),
            ("nosuspend", Self::NoSuspend),
            ("connect", Self::Connect),
            ("listen", Self::Listen),
        ];
        tags.into_iter().find(|(name, _)| text.eq_ignore_ascii_case(name.as_bytes())).map(|(_, tag)| tag)
    }
}

/// Something in the value that does not do what it looks like. For people; the text may gain words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A blank at the start or the end of an address or tag: it is part of it.
    Blank(String),
    /// `~` at the start of an address: it is not expanded.
    Tilde(String),
    /// Quotation marks around an address: they are part of it.
    Quotes(String),
    /// The address is a word that was meant as a tag: there was nothing before the comma.
    TagAsAddress(String),
    /// A tag that runtimes do not know, and pass over.
    UnknownTag(String),
    /// A tag that is not looked at because an earlier one says the opposite.
    Contradiction(String),
    /// A `listen` port: it is ignored.
    Listen(String),
    /// An address that does not fit into a socket address: the runtime never connects.
    TooLong(String),
    /// The same address twice.
    Twice(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank(part) => write!(f, "'{part}': the blank is part of it, nothing is trimmed"),
            Self::Tilde(address) => write!(f, "'{address}': '~' is not expanded"),
            Self::Quotes(address) => write!(f, "'{address}': the quotation marks are part of it"),
            Self::TagAsAddress(word) => write!(f, "'{word}' stands where the address belongs"),
            Self::UnknownTag(tag) => {
                write!(f, "'{tag}' is no tag (suspend, nosuspend, connect, listen) and is passed over")
            }
            Self::Contradiction(tag) => write!(f, "'{tag}' contradicts an earlier tag, which counts"),
            Self::Listen(address) => write!(f, "'{address}': runtimes ignore a port with 'listen'"),
            Self::TooLong(address) => {
                write!(f, "'{address}' is longer than {LONGEST_ADDRESS} bytes: the runtime never reaches it")
            }
            Self::Twice(address) => write!(f, "'{address}' stands there twice"),
        }
    }
}

/// What the value does not do though it looks so, in its order.
pub fn lint(value: &[u8]) -> Vec<Warning> {
    let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let mut warnings = Vec::new();
    let mut addresses: Vec<&[u8]> = Vec::new();
    for port in parts(value, b';') {
        let mut tags: Vec<Tag> = Vec::new();
        for (n, part) in parts(port, b',').enumerate() {
            let blank = part.trim_ascii().len() != part.len();
            if blank {
                warnings.push(Warning::Blank(shown(part)));
            }
            match (n, Tag::parse(part)) {
                (0, Some(_)) => warnings.push(Warning::TagAsAddress(shown(part))),
                (0, None) => {
                    if part.starts_with(b"~") {
                        warnings.push(Warning::Tilde(shown(part)));
                    }
                    if matches!(part, [b'"' | b'\'', .., b'"' | b'\'']) {
                        warnings.push(Warning::Quotes(shown(part)));
                    }
                    if part.len() > LONGEST_ADDRESS {
                        warnings.push(Warning::TooLong(shown(part)));
                    }
                    if addresses.contains(&part) {
                        warnings.push(Warning::Twice(shown(part)));
                    }
                    addresses.push(part);
                }
                (_, Some(tag)) => {
                    let against = |earlier: &Tag| {
                        matches!(
                            (*earlier, tag),
                            (Tag::Suspend, Tag::NoSuspend)
                                | (Tag::NoSuspend, Tag::Suspend)
                                | (Tag::Connect, Tag::Listen)
                                | (Tag::Listen, Tag::Connect)
                        )
                    };
                    if tags.iter().any(against) {
                        warnings.push(Warning::Contradiction(shown(part)));
                    }
                    tags.push(tag);
                }
                (_, None) if blank => {}
                (_, None) => warnings.push(Warning::UnknownTag(shown(part))),
            }
        }
        let address = parts(port, b',').next();
        if let (Some(address), Some(DiagnosticPort { listen: true, .. })) = (address, parse(port).next()) {
            warnings.push(Warning::Listen(shown(address)));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Address, whether it is waited for, whether it listens.
    fn ports(value: &str) -> Vec<(String, bool, bool)> {
        let text = |port: DiagnosticPort<'_>| {
            (String::from_utf8(port.address.to_vec()).unwrap(), port.suspend, port.listen)
        };
        parse(value.as_bytes()).map(text).collect()
    }

    /// As measured on 8.0.33, 9.0.22 and 10.0.12.
    #[test]
    fn what_runtimes_do() {
        for (value, address, suspend, listen) in [
            ("/p", "/p", true, false),
            ("/p,suspend", "/p", true, false),
            ("/p,connect", "/p", true, false),
            ("/p,nosuspend", "/p", false, false),
            ("/p,NOSUSPEND", "/p", false, false),
            ("/p,connect,nosuspend", "/p", false, false),
            ("/p,foo,nosuspend", "/p", false, false),
            ("/p,suspend,nosuspend", "/p", true, false),
            ("/p,nosuspend,suspend", "/p", false, false),
            ("/p, nosuspend", "/p", true, false),
            ("/p,listen", "/p", true, true),
            ("/p,connect,listen", "/p", true, false),
            (";;,,;/p,nosuspend;", "/p", false, false),
            (" /p,nosuspend", " /p", false, false),
            ("~/p,nosuspend", "~/p", false, false),
            (",nosuspend", "nosuspend", true, false),
        ] {
            assert_eq!(ports(value), [(address.to_owned(), suspend, listen)], "{value}");
        }
        assert_eq!(ports("/a;/b").len(), 2);
        assert_eq!(ports(""), []);
        assert_eq!(ports(";,;"), []);
        assert!(parse(b"/p").all(|port| port.is_waited_for()));
        assert!(!parse(b"/p,listen;/q,nosuspend").any(|port| port.is_waited_for()));
    }

    #[test]
    fn what_does_not_do_what_it_looks_like() {
        let long = format!("/{}", "x".repeat(LONGEST_ADDRESS));
        for (value, expected) in [
            ("/p, nosuspend", vec![Warning::Blank(" nosuspend".into())]),
            (" /p", vec![Warning::Blank(" /p".into())]),
            ("~/p,nosuspend", vec![Warning::Tilde("~/p".into())]),
            ("\"/p\",nosuspend", vec![Warning::Quotes("\"/p\"".into())]),
            (",nosuspend", vec![Warning::TagAsAddress("nosuspend".into())]),
            ("/p,foo,nosuspend", vec![Warning::UnknownTag("foo".into())]),
            ("/p,suspend,nosuspend", vec![Warning::Contradiction("nosuspend".into())]),
            ("/p,LISTEN", vec![Warning::Listen("/p".into())]),
            ("/p;/q;/p,nosuspend", vec![Warning::Twice("/p".into())]),
            (&long, vec![Warning::TooLong(long.clone())]),
            (long.get(1..).unwrap(), vec![]),
            ("/p", vec![]),
            ("/p,suspend,connect;q,nosuspend;", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(lint(value.as_bytes()), expected, "{value}");
        }
    }

    proptest! {
        /// Every part of the value is an address, or a tag of one; nothing is invented.
        #[test]
        fn addresses_are_parts_of_the_value(value in "[a-z/~ ,;\"]{0,40}") {
            let found = ports(&value);
            prop_assert_eq!(found.len(), value.split(';').filter(|port| port.chars().any(|c| c != ',')).count());
            for (address, _, _) in found {
                prop_assert!(value.contains(&address) && !address.contains([',', ';']));
            }
            for warning in lint(value.as_bytes()) {
                prop_assert!(!warning.to_string().is_empty());
            }
        }
    }
}
