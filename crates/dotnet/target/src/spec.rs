//! Specifications of targets. Parsing does not access any process.

use runtap_diag::tool_port::PortError;
use runtap_transport::remote::{AddressError, RemoteAddress, Token};

use crate::port::PortSpec;
use crate::remote::RemoteSpec;

/// The arguments that select a target, as the user typed them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TargetArgs<'a> {
    /// A process id.
    pub pid: Option<u32>,
    /// A process name.
    pub name: Option<&'a str>,
    /// The owner of the process with this name: a user name or number.
    pub user: Option<&'a str>,
    /// A port, in any form that `dotnet-trace` accepts.
    pub port: Option<&'a str>,
    /// An argument without an option: a process id if it is a number, a remote process if it is `runtap://…`, otherwise a name.
    pub word: Option<&'a str>,
    /// The access token of the remote router.
    pub token: Option<&'a Token>,
}

/// A parsed specification of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSpec {
    /// A process id.
    Pid(u32),
    /// A name: the kernel's name of the process, its file name, or its entry assembly.
    Name {
        /// The exact name.
        name: String,
        /// The owner of the process. `None` for the current user.
        user: Option<String>,
    },
    /// A diagnostic port.
    Port(PortSpec),
    /// A process on another machine.
    Remote(RemoteSpec),
    /// Nothing was specified: the user must choose.
    Ask,
}

/// An error in the specification of a target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A user was given without a process name.
    #[error("a user was given without a process name")]
    UserWithoutName,
    /// A malformed port.
    #[error("port '{port}': {error}")]
    Port {
        /// As it was typed.
        port: String,
        /// Why.
        error: PortError,
    },
    /// A malformed `runtap://` address.
    #[error(transparent)]
    Remote(AddressError),
    /// An address with another protocol.
    #[error("'{0}' is not the address of a process")]
    OtherAddress(String),
    /// A remote process was given without a token.
    #[error("'{0}' requires the router's access token")]
    NoToken(String),
    /// A port for another operating system.
    #[error("port '{port}': named pipes exist on Windows only; use the path of a socket")]
    Pipe {
        /// As it was typed.
        port: String,
    },
}

impl TargetSpec {
    /// Parses the arguments. If there are several, the order of precedence is: port, process id, name, argument without an option.
    ///
    /// # Errors
    /// Returns an error for a user without a name, a malformed port, and addresses with another protocol or without a token.
    pub fn parse(given: &TargetArgs<'_>) -> Result<Self, SpecError> {
        let user = given.user.map(str::to_owned);
        let named = |name: &str| Self::Name { name: name.to_owned(), user: user.clone() };
        let is_remote = |text: &&str| RemoteAddress::is_meant(text);
        if let Some(address) = [given.port, given.word].into_iter().flatten().find(is_remote) {
            let Some(token) = given.token else { return Err(SpecError::NoToken(address.to_owned())) };
            let address = RemoteAddress::parse(address).map_err(SpecError::Remote)?;
            return Ok(Self::Remote(RemoteSpec { address, token: token.clone() }));
        }
        let is_other = |text: &&str| RemoteAddress::is_other(text);
        if let Some(address) = [given.port, given.word].into_iter().flatten().find(is_other) {
            return Err(SpecError::OtherAddress(address.to_owned()));
        }
        Ok(match *given {
            TargetArgs { port: Some(port), .. } => Self::Port(PortSpec::parse(port)?),
            TargetArgs { pid: Some(pid), .. } => Self::Pid(pid),
            TargetArgs { name: Some(name), .. } => named(name),
            TargetArgs { word: Some(word), .. } => match word.parse() {
                Ok(_pid) if user.is_some() => return Err(SpecError::UserWithoutName),
                Ok(pid) => Self::Pid(pid),
                Err(_no_number) => named(word),
            },
            _ if user.is_some() => return Err(SpecError::UserWithoutName),
            _ => Self::Ask,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Role;

    fn parsed(given: TargetArgs<'_>) -> TargetSpec {
        TargetSpec::parse(&given).unwrap()
    }

    fn name(name: &str, user: Option<&str>) -> TargetSpec {
        TargetSpec::Name { name: name.to_owned(), user: user.map(str::to_owned) }
    }

    #[test]
    fn a_word_is_a_process_id_or_a_name() {
        let word = |word| parsed(TargetArgs { word: Some(word), ..TargetArgs::default() });
        assert_eq!(word("42"), TargetSpec::Pid(42));
        assert_eq!(word("42a"), name("42a", None));
        // No process has that id, but a file may have that name.
        assert_eq!(word("99999999999"), name("99999999999", None));
        assert_eq!(parsed(TargetArgs::default()), TargetSpec::Ask);
    }

    #[test]
    fn a_user_needs_a_name() {
        let of_ann = TargetArgs { user: Some("ann"), ..TargetArgs::default() };
        assert!(matches!(TargetSpec::parse(&of_ann), Err(SpecError::UserWithoutName)));
        assert!(matches!(
            TargetSpec::parse(&TargetArgs { word: Some("42"), ..of_ann }),
            Err(SpecError::UserWithoutName)
        ));
        assert_eq!(parsed(TargetArgs { word: Some("web"), ..of_ann }), name("web", Some("ann")));
        assert_eq!(parsed(TargetArgs { name: Some("42"), ..of_ann }), name("42", Some("ann")));
    }

    #[test]
    fn another_machine_needs_a_token() {
        let address = "runtap://host:9000/web";
        let token = Token::new(b"0123456789abcdef").unwrap();
        let word = TargetArgs { word: Some(address), ..TargetArgs::default() };
        for given in [word, TargetArgs { port: Some(address), ..TargetArgs::default() }] {
            assert!(matches!(TargetSpec::parse(&given), Err(SpecError::NoToken(_))));
            let TargetSpec::Remote(remote) = parsed(TargetArgs { token: Some(&token), ..given }) else {
                panic!()
            };
            assert_eq!(remote.address.to_string(), address);
        }
        let wrong = TargetArgs { word: Some("runtap://host"), token: Some(&token), ..TargetArgs::default() };
        assert!(matches!(TargetSpec::parse(&wrong), Err(SpecError::Remote(_))));
    }

    #[test]
    fn addresses_of_other_protocols_are_not_names() {
        for address in ["http://host:9000", "HTTPS://host", "tcp://host:9000", "ws://host:9000/web"] {
            let word = TargetArgs { word: Some(address), ..TargetArgs::default() };
            for given in [word, TargetArgs { port: Some(address), ..TargetArgs::default() }] {
                assert!(matches!(TargetSpec::parse(&given), Err(SpecError::OtherAddress(_))), "{address}");
            }
        }
        for path in ["file:///run/app.sock", "http"] {
            let given = TargetArgs { word: Some(path), ..TargetArgs::default() };
            assert_eq!(parsed(given), name(path, None));
        }
    }

    #[test]
    fn a_port_specifies_who_listens() {
        let port = |port| TargetSpec::parse(&TargetArgs { port: Some(port), ..TargetArgs::default() });
        let is = |role| TargetSpec::Port(PortSpec { path: "/p".into(), role });
        assert_eq!(port("/p").unwrap(), is(Role::Either));
        assert_eq!(port("uds:/p,connect").unwrap(), is(Role::Connect));
        assert_eq!(port("/p,listen").unwrap(), is(Role::Listen));
        assert!(matches!(port("/p,wait"), Err(SpecError::Port { .. })));
        assert!(matches!(port("namedpipe:p"), Err(SpecError::Pipe { .. })));
    }
}
