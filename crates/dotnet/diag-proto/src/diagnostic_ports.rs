//! The value of `DOTNET_DiagnosticPorts` as runtimes parse it, and warnings about likely mistakes in it.
//!
//! ```text
//! ADDRESS[,TAG…][;ADDRESS[,TAG…]]…     TAG = suspend | nosuspend | connect | listen
//! ```
//!
//! The value is split at `;`, then at `,`; empty parts are dropped and nothing is trimmed, quoted or expanded. The first
//! part is always the address. Tags are case-insensitive; of two contradicting tags the first counts, and unknown tags
//! are ignored. The defaults are `suspend` (the runtime waits at startup) and `connect`. Opens no sockets.
//! Source: the section "Diagnostic Ports" of the specification, and measurements on .NET 8, 9 and 10.

mod lint;

pub use lint::{Warning, lint};

/// The longest path that fits into a socket address with its final NUL, in bytes. A runtime silently fails to connect to
/// a longer one.
pub const LONGEST_ADDRESS: usize = 107;

/// One port in the value of `DOTNET_DiagnosticPorts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagnosticPort<'a> {
    /// The path of a socket, byte for byte. A relative path is resolved in the runtime's working directory.
    pub address: &'a [u8],
    /// Whether the runtime waits at startup until it is resumed **over this port**.
    pub suspend: bool,
    /// Whether the port has the tag `listen`. Runtimes with a default port (all on desktops and servers) ignore such ports.
    pub listen: bool,
}

impl DiagnosticPort<'_> {
    /// Returns whether a runtime with this port waits for it at startup.
    pub fn is_waited_for(&self) -> bool {
        self.suspend && !self.listen
    }
}

/// Returns the ports in the order of the value. A runtime connects to them in reverse order.
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

/// Returns the non-empty parts between separators.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the address, `suspend` and `listen` of each port.
    fn ports(value: &str) -> Vec<(String, bool, bool)> {
        let text = |port: DiagnosticPort<'_>| {
            (String::from_utf8(port.address.to_vec()).unwrap(), port.suspend, port.listen)
        };
        parse(value.as_bytes()).map(text).collect()
    }

    /// Measured on 8.0.33, 9.0.22 and 10.0.12.
    #[test]
    fn values_are_parsed_as_runtimes_do() {
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
    fn likely_mistakes_are_reported() {
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
            (&format!("/{}", "x".repeat(LONGEST_ADDRESS - 1)), vec![]),
            ("/p", vec![]),
            ("/p,suspend,connect;/q,nosuspend;", vec![]),
            ("p,nosuspend", vec![Warning::Relative("p".into())]),
            (";;,,;", vec![Warning::Nothing(";;,,;".into())]),
            ("", vec![]),
        ] {
            assert_eq!(lint(value.as_bytes()), expected, "{value}");
        }
    }

    /// The effect and the fix of a warning can be joined to one text.
    #[test]
    fn every_warning_has_an_effect_and_a_fix() {
        let value = " /p,foo,suspend,nosuspend;~/p;\"/p\",listen;suspend;q;/r;/r";
        let codes: Vec<_> = lint(value.as_bytes()).iter().map(Warning::code).collect();
        let expected = "blank unknown-tag contradiction tilde quotes listen tag-as-address relative twice";
        assert_eq!(codes.join(" "), expected);
        for warning in lint(value.as_bytes()) {
            assert!(!warning.effect().is_empty() && !warning.fix().ends_with('.'), "{warning}");
        }
        let fix = |value: &str| lint(value.as_bytes())[0].fix();
        assert_eq!(fix(" /p"), "write '/p'");
        assert_eq!(fix("'/p'"), "write '/p'");
        assert_eq!(fix(",nosuspend"), "write the path of a socket before ',nosuspend'");
    }

    proptest! {
        /// Every address is a part of the value.
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
