//! What somebody calls a target: one form for all of it. Pure; looks at no process.

use runtap_diag::tool_port::PortError;
use runtap_transport::remote::{AddressError, RemoteAddress, Token};

use crate::port::PortSpec;
use crate::remote::RemoteSpec;

/// What was said of the target, as it was typed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Given<'a> {
    /// A process id.
    pub pid: Option<u32>,
    /// A name.
    pub name: Option<&'a str>,
    /// Whose process the name stands for: a name or a number.
    pub user: Option<&'a str>,
    /// A port, in every form that `dotnet-trace` takes.
    pub port: Option<&'a str>,
    /// A bare word. A number is a process id, `runtap://…` a process of another machine, anything else a name.
    pub word: Option<&'a str>,
    /// What the router of another machine knows, too.
    pub token: Option<&'a Token>,
}

/// What a target is chosen by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSpec {
    /// A process id.
    Pid(u32),
    /// A name: the process's own, that of its file, or that of its entry assembly.
    Name {
        /// The whole of it.
        name: String,
        /// Whose processes are meant; those of our own user if nothing is said.
        user: Option<String>,
    },
    /// A diagnostic port.
    Port(PortSpec),
    /// A process of another machine.
    Remote(RemoteSpec),
    /// Nothing was said: somebody has to be asked.
    Ask,
}

/// What can't be meant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A user without a name.
    #[error("a user says whose process a name stands for, and there is no name")]
    UserWithoutName,
    /// What is no port.
    #[error("port '{port}': {error}")]
    Port {
        /// As it was typed.
        port: String,
        /// Why.
        error: PortError,
    },
    /// What is no address of another machine's process.
    #[error(transparent)]
    Remote(AddressError),
    /// An address of another protocol.
    #[error("'{0}' is not an address of a process")]
    OtherAddress(String),
    /// A process of another machine, and no token.
    #[error("'{0}' needs the token of that router")]
    NoToken(String),
    /// A port of another system.
    #[error("port '{port}': a named pipe is of Windows; here a port is a socket")]
    Pipe {
        /// As it was typed.
        port: String,
    },
}

impl TargetSpec {
    /// What is meant. Where several things are given, a port comes first, then a process id, a name and the bare word.
    ///
    /// # Errors
    /// A user without a name, what is no port, and addresses that are none of ours.
    pub fn parse(given: &Given<'_>) -> Result<Self, SpecError> {
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
            Given { port: Some(port), .. } => Self::Port(PortSpec::parse(port)?),
            Given { pid: Some(pid), .. } => Self::Pid(pid),
            Given { name: Some(name), .. } => named(name),
            Given { word: Some(word), .. } => match word.parse() {
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

    fn parsed(given: Given<'_>) -> TargetSpec {
        TargetSpec::parse(&given).unwrap()
    }

    fn name(name: &str, user: Option<&str>) -> TargetSpec {
        TargetSpec::Name { name: name.to_owned(), user: user.map(str::to_owned) }
    }

    #[test]
    fn a_word_is_a_process_id_or_a_name() {
        let word = |word| parsed(Given { word: Some(word), ..Given::default() });
        assert_eq!(word("42"), TargetSpec::Pid(42));
        assert_eq!(word("42a"), name("42a", None));
        // No process has that number, but a file may.
        assert_eq!(word("99999999999"), name("99999999999", None));
        assert_eq!(parsed(Given::default()), TargetSpec::Ask);
    }

    #[test]
    fn a_user_needs_a_name() {
        let of_ann = Given { user: Some("ann"), ..Given::default() };
        assert!(matches!(TargetSpec::parse(&of_ann), Err(SpecError::UserWithoutName)));
        assert!(matches!(
            TargetSpec::parse(&Given { word: Some("42"), ..of_ann }),
            Err(SpecError::UserWithoutName)
        ));
        assert_eq!(parsed(Given { word: Some("web"), ..of_ann }), name("web", Some("ann")));
        assert_eq!(parsed(Given { name: Some("42"), ..of_ann }), name("42", Some("ann")));
    }

    #[test]
    fn another_machine_needs_a_token() {
        let address = "runtap://host:9000/web";
        let token = Token::new(b"0123456789abcdef").unwrap();
        let word = Given { word: Some(address), ..Given::default() };
        for given in [word, Given { port: Some(address), ..Given::default() }] {
            assert!(matches!(TargetSpec::parse(&given), Err(SpecError::NoToken(_))));
            let TargetSpec::Remote(remote) = parsed(Given { token: Some(&token), ..given }) else { panic!() };
            assert_eq!(remote.address.to_string(), address);
        }
        let wrong = Given { word: Some("runtap://host"), token: Some(&token), ..Given::default() };
        assert!(matches!(TargetSpec::parse(&wrong), Err(SpecError::Remote(_))));
    }

    #[test]
    fn addresses_of_other_protocols_are_no_names() {
        for address in ["http://host:9000", "HTTPS://host", "tcp://host:9000", "ws://host:9000/web"] {
            let word = Given { word: Some(address), ..Given::default() };
            for given in [word, Given { port: Some(address), ..Given::default() }] {
                assert!(matches!(TargetSpec::parse(&given), Err(SpecError::OtherAddress(_))), "{address}");
            }
        }
        for path in ["file:///run/app.sock", "http"] {
            let given = Given { word: Some(path), ..Given::default() };
            assert_eq!(parsed(given), name(path, None));
        }
    }

    #[test]
    fn a_port_says_who_is_there_first() {
        let port = |port| TargetSpec::parse(&Given { port: Some(port), ..Given::default() });
        let is = |role| TargetSpec::Port(PortSpec { path: "/p".into(), role });
        assert_eq!(port("/p").unwrap(), is(Role::Either));
        assert_eq!(port("uds:/p,connect").unwrap(), is(Role::Connect));
        assert_eq!(port("/p,listen").unwrap(), is(Role::Listen));
        assert!(matches!(port("/p,wait"), Err(SpecError::Port { .. })));
        assert!(matches!(port("namedpipe:p"), Err(SpecError::Pipe { .. })));
    }
}
