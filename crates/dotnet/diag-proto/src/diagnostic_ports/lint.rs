//! What a user most likely did not mean by the value of `DOTNET_DiagnosticPorts`: what it is, what happens because of
//! it, and what to write instead. Refuses to change the value.

use std::fmt;

use super::{DiagnosticPort, LONGEST_ADDRESS, Tag, parse, parts};

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
    /// A path that does not begin at the root.
    Relative(String),
    /// No port at all, though the value is not empty.
    Nothing(String),
}

impl Warning {
    /// A stable word for machines.
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

    /// What happens because of it: measured on .NET 8, 9 and 10.
    pub fn effect(&self) -> &'static str {
        match self {
            Self::Blank(_) => {
                "an address with a blank is a path of its own, which nobody listens on; a tag with a blank is passed \
                 over, so that the runtime waits for ever if it was nosuspend"
            }
            Self::Tilde(_) | Self::Quotes(_) => {
                "the runtime dials a path that is not there, and waits for ever unless the port says nosuspend"
            }
            Self::TagAsAddress(_) => {
                "the runtime dials a socket of that name, and waits for ever unless the port says nosuspend"
            }
            Self::UnknownTag(_) => "as if it were not there",
            Self::Contradiction(_) => "only the first of the two counts",
            Self::Listen(_) => "the port is ignored, without a message: the program starts at once",
            Self::TooLong(_) => {
                "the runtime never connects, without a message, and waits for ever unless the port says nosuspend"
            }
            Self::Twice(_) => {
                "the runtime dials it twice, and each of the two has to be resumed if it suspends"
            }
            Self::Relative(_) => "each process looks in its own working directory, its children too",
            Self::Nothing(_) => "no port is made, and the program starts at once",
        }
    }

    /// What to write instead.
    pub fn fix(&self) -> String {
        match self {
            Self::Blank(part) => format!("write '{}'", part.trim()),
            Self::Tilde(address) => format!("write the home folder out in '{address}'"),
            Self::Quotes(address) => format!("write '{}'", address.trim_matches(['"', '\''])),
            Self::TagAsAddress(word) => format!("write the path of a socket before ',{word}'"),
            Self::UnknownTag(tag) => format!("leave ',{tag}' out"),
            Self::Contradiction(tag) => format!("leave ',{tag}' out, or the tag before it"),
            Self::Listen(_) => {
                "leave 'listen' out: on the tool's side it belongs, here the runtime dials".to_owned()
            }
            Self::TooLong(_) => format!("take a path of at most {LONGEST_ADDRESS} bytes"),
            Self::Twice(address) => format!("leave one '{address}' out"),
            Self::Relative(address) => format!("write the whole path of '{address}'"),
            Self::Nothing(_) => "write the path of a socket, or remove the variable".to_owned(),
        }
    }
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
            Self::Relative(address) => write!(f, "'{address}' is not a path from the root on"),
            Self::Nothing(value) => write!(f, "'{value}' holds no address"),
        }
    }
}

/// What the value does not do though it looks so, in its order. For systems whose ports are sockets.
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
                    // Those that begin otherwise by mistake are told as such.
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
