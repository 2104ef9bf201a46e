//! Likely mistakes in the value of `DOTNET_DiagnosticPorts`: what is wrong, its effect, and the fix. Never changes the
//! value.

use std::fmt;

use super::{DiagnosticPort, LONGEST_ADDRESS, Tag, parse, parts};

/// A likely mistake in the value. The texts are for people and may change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A blank at the start or the end of an address or tag; it is not trimmed.
    Blank(String),
    /// `~` at the start of an address: it is not expanded.
    Tilde(String),
    /// Quotation marks around an address; they become part of it.
    Quotes(String),
    /// A tag in place of the address: nothing precedes the comma.
    TagAsAddress(String),
    /// An unknown tag, which runtimes ignore.
    UnknownTag(String),
    /// A tag that contradicts an earlier one, and is ignored.
    Contradiction(String),
    /// A `listen` port, which runtimes ignore.
    Listen(String),
    /// An address that does not fit into a socket address: the runtime never connects.
    TooLong(String),
    /// An address that occurs twice.
    Twice(String),
    /// A relative path.
    Relative(String),
    /// No port in a non-empty value.
    Nothing(String),
}

impl Warning {
    /// Returns a stable identifier of the kind of warning.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Blank(_) => "blank",
            Self::Tilde(_) => "tilde",
            Self::Quotes(_) => "quotes",
            Self::TagAsAddress(_) => "tag-as-address",
            Self::UnknownTag(_) => "unknown-tag",
            Self::Contradiction(_) => "contradiction",
            Self::Listen(_) => "listen",
            Self::TooLong(_) => "too-long",
            Self::Twice(_) => "twice",
            Self::Relative(_) => "relative",
            Self::Nothing(_) => "nothing",
        }
    }

    /// Returns the effect of the mistake, as measured on .NET 8, 9 and 10.
    pub fn effect(&self) -> &'static str {
        match self {
            Self::Blank(_) => {
                "a blank makes the address a different path, where no tool listens; a tag with a blank is \
                 ignored, so the runtime waits forever if the tag was nosuspend"
            }
            Self::Tilde(_) | Self::Quotes(_) => {
                "the runtime connects to a path that does not exist, and waits forever unless the port has \
                 the tag nosuspend"
            }
            Self::TagAsAddress(_) => {
                "the runtime connects to a socket of that name, and waits forever unless the port has the \
                 tag nosuspend"
            }
            Self::UnknownTag(_) => "the tag has no effect",
            Self::Contradiction(_) => "only the first of the two tags applies",
            Self::Listen(_) => "the port is ignored without a message, and the program starts at once",
            Self::TooLong(_) => {
                "the runtime silently fails to connect, and waits forever unless the port has the tag \
                 nosuspend"
            }
            Self::Twice(_) => {
                "the runtime connects twice, and must be resumed on both connections if it suspends"
            }
            Self::Relative(_) => {
                "each process, including child processes, resolves it in its own working directory"
            }
            Self::Nothing(_) => "no port is configured, and the program starts at once",
        }
    }

    /// Returns what to write instead.
    pub fn fix(&self) -> String {
        match self {
            Self::Blank(part) => format!("write '{}'", part.trim()),
            Self::Tilde(address) => format!("write the full path of the home directory in '{address}'"),
            Self::Quotes(address) => format!("write '{}'", address.trim_matches(['"', '\''])),
            Self::TagAsAddress(word) => format!("write the path of a socket before ',{word}'"),
            Self::UnknownTag(tag) => format!("remove ',{tag}'"),
            Self::Contradiction(tag) => format!("remove ',{tag}' or the tag before it"),
            Self::Listen(_) => "remove 'listen': only tools listen; the runtime connects".to_owned(),
            Self::TooLong(_) => format!("use a path of at most {LONGEST_ADDRESS} bytes"),
            Self::Twice(address) => format!("remove one '{address}'"),
            Self::Relative(address) => format!("write the absolute path of '{address}'"),
            Self::Nothing(_) => "write the path of a socket, or remove the variable".to_owned(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank(part) => write!(f, "'{part}': the blank is not trimmed"),
            Self::Tilde(address) => write!(f, "'{address}': '~' is not expanded"),
            Self::Quotes(address) => write!(f, "'{address}': the quotation marks become part of the path"),
            Self::TagAsAddress(word) => write!(f, "'{word}' is in the position of the address"),
            Self::UnknownTag(tag) => {
                write!(f, "'{tag}' is not a tag (suspend, nosuspend, connect, listen) and is ignored")
            }
            Self::Contradiction(tag) => {
                write!(f, "'{tag}' contradicts an earlier tag, which takes precedence")
            }
            Self::Listen(address) => write!(f, "'{address}': runtimes ignore a port with 'listen'"),
            Self::TooLong(address) => {
                write!(
                    f,
                    "'{address}' is longer than {LONGEST_ADDRESS} bytes: the runtime cannot connect to it"
                )
            }
            Self::Twice(address) => write!(f, "'{address}' occurs twice"),
            Self::Relative(address) => write!(f, "'{address}' is not an absolute path"),
            Self::Nothing(value) => write!(f, "'{value}' contains no address"),
        }
    }
}

/// Returns the likely mistakes in the value, in its order. For systems whose ports are sockets.
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
                    // Addresses with a blank, a tilde or quotes have their own warnings.
                    if !matches!(part.trim_ascii_start(), [b'/' | b'~' | b'"' | b'\'', ..]) {
                        warnings.push(Warning::Relative(shown(part)));
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
    if addresses.is_empty() && warnings.is_empty() && !value.is_empty() {
        warnings.push(Warning::Nothing(shown(value)));
    }
    warnings
}
