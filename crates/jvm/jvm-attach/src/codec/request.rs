//! Requests. Those that a JVM would truncate or silently reject are errors.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use thiserror::Error;

use super::reply::Reply;

/// The number of arguments in a request of version 1, which is also their maximum number.
const ARGUMENTS: usize = 3;
/// The maximum length of a command in version 1, in bytes (`AttachOperation::name_length_max`).
const MAX_NAME: usize = 16;
/// The maximum length of an argument in version 1, in bytes (`AttachOperation::arg_length_max`).
const MAX_ARGUMENT: usize = 1024;
/// The maximum length of a request in version 2, in bytes (`MAX_REQUEST_SIZE` of the attach listener).
const MAX_REQUEST: usize = 256 << 10;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Three arguments of up to 1,024 bytes; supported by every JVM.
    One,
    /// Requests of up to 256 KiB; supported by JDK 24 and later.
    Two,
}

/// A command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    command: Vec<u8>,
    arguments: Vec<Vec<u8>>,
}

/// An error for a request that cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// An argument contains a 0 byte, which ends texts in this protocol.
    #[error("an argument of command '{command}' contains a 0 byte")]
    Nul {
        /// The command.
        command: String,
    },
    /// The request has more arguments than the version allows.
    #[error("command '{command}' has {count} arguments, but this JVM accepts at most {ARGUMENTS}")]
    TooMany {
        /// The command.
        command: String,
        /// The number of arguments.
        count: usize,
    },
    /// The request, or a part of it, is longer than the version allows.
    #[error("{what} of command '{command}' is {length} bytes long, but this JVM accepts at most {limit}")]
    TooLong {
        /// The command.
        command: String,
        /// The part that is too long.
        what: &'static str,
        /// Its length, in bytes.
        length: usize,
        /// The maximum length, in bytes.
        limit: usize,
    },
}

impl Request {
    /// Creates a request; trailing arguments may be omitted.
    pub fn new<A: AsRef<[u8]>>(command: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        Self { command: command.into(), arguments }
    }

    /// Creates a request that loads a native agent (a shared library with `Agent_OnAttach`) from an absolute path
    /// in the JVM's file system, with options (`load`).
    pub fn load(library: &Path, options: &str) -> Self {
        Self::new("load", [library.as_os_str().as_bytes(), b"true", options.as_bytes()])
    }

    /// Creates a request for the system properties, in the format of `java.util.Properties` (`properties`).
    pub fn properties() -> Self {
        Self::new::<&[u8]>("properties", [])
    }

    /// Creates a request for a thread dump, with the owners of `java.util.concurrent` locks if `synchronizers`: to find them, the JVM
    /// stops all threads while it searches its heap (`threaddump`).
    pub fn thread_dump(synchronizers: bool) -> Self {
        Self::new("threaddump", synchronizers.then_some("-l"))
    }

    /// Creates a request that runs a diagnostic command, with its arguments in one text, such as `VM.version`
    /// (`jcmd`).
    pub fn jcmd(command: &OsStr) -> Self {
        Self::new("jcmd", [command.as_bytes()])
    }

    /// Creates a request that writes the objects that are alive to a new file at an absolute path in the JVM's file system,
    /// after a full collection (`dumpheap`).
    pub fn dump_heap(file: &Path) -> Self {
        Self::new("dumpheap", [file.as_os_str().as_bytes(), b"-live"])
    }

    /// Creates a request for the sums by class of the objects that are alive, after a full collection (`inspectheap`).
    pub fn inspect_heap() -> Self {
        Self::new("inspectheap", ["-live"])
    }

    /// Creates a request for the supported version of the protocol (`getversion`). Only version 2 and later know
    /// the command.
    pub fn version() -> Self {
        Self::new::<&[u8]>("getversion", [])
    }

    /// Returns the name of the command.
    pub fn command(&self) -> String {
        String::from_utf8_lossy(&self.command).into_owned()
    }

    /// Returns the oldest version of the protocol that supports the request.
    ///
    /// # Errors
    /// Fails if no version does.
    pub fn version_needed(&self) -> Result<Version, RequestError> {
        match self.encode(Version::One) {
            Ok(_) => Ok(Version::One),
            Err(_) => self.encode(Version::Two).map(|_| Version::Two),
        }
    }

    /// Encodes the request.
    ///
    /// # Errors
    /// Fails if the version does not support the request.
    pub fn encode(&self, version: Version) -> Result<Vec<u8>, RequestError> {
        let command = || self.command();
        let too_long =
            |what, length, limit| RequestError::TooLong { command: command(), what, length, limit };
        if self.arguments.iter().chain([&self.command]).any(|text| text.contains(&0)) {
            return Err(RequestError::Nul { command: command() });
        }
        let mut body = Vec::new();
        let mut add = |text: &[u8]| {
            body.extend(text);
            body.push(0);
        };
        add(&self.command);
        self.arguments.iter().for_each(|argument| add(argument));
        match version {
            Version::One => {
                let count = self.arguments.len();
                if count > ARGUMENTS {
                    return Err(RequestError::TooMany { command: command(), count });
                }
                if self.command.len() > MAX_NAME {
                    return Err(too_long("the name", self.command.len(), MAX_NAME));
                }
                let longest = self.arguments.iter().map(Vec::len).max().unwrap_or_default();
                if longest > MAX_ARGUMENT {
                    return Err(too_long("an argument", longest, MAX_ARGUMENT));
                }
                body.extend(std::iter::repeat_n(0, ARGUMENTS - count));
                Ok([b"1\0", &body[..]].concat())
            }
            Version::Two if body.len() > MAX_REQUEST => Err(too_long("the request", body.len(), MAX_REQUEST)),
            Version::Two => {
                let length = body.len().to_string();
                Ok([b"2\0", length.as_bytes(), &[0], &body].concat())
            }
        }
    }
}

/// Returns the version in a reply to [`Request::version`]; a JVM that does not know the command supports version 1
/// only.
pub fn version_of(reply: &Reply) -> Version {
    let reported = str::from_utf8(&reply.text).unwrap_or_default().split_ascii_whitespace().next();
    match reported.and_then(|text| text.parse::<u32>().ok()) {
        Some(version) if reply.code == 0 && version >= 2 => Version::Two,
        _ => Version::One,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_bytes() {
        let load = Request::load(Path::new("/tmp/agent.so"), "port=1");
        assert_eq!(load.encode(Version::One).unwrap(), b"1\0load\0/tmp/agent.so\0true\0port=1\0");
        assert_eq!(load.encode(Version::Two).unwrap(), b"2\x0031\0load\0/tmp/agent.so\0true\0port=1\0");
        assert_eq!(Request::properties().encode(Version::One).unwrap(), b"1\0properties\0\0\0\0");
        assert_eq!(Request::properties().encode(Version::Two).unwrap(), b"2\x0011\0properties\0");
        assert_eq!(Request::thread_dump(false).encode(Version::One).unwrap(), b"1\0threaddump\0\0\0\0");
        assert_eq!(Request::thread_dump(true).encode(Version::One).unwrap(), b"1\0threaddump\0-l\0\0\0");
        let version = Request::jcmd("VM.version".as_ref());
        assert_eq!(version.encode(Version::One).unwrap(), b"1\0jcmd\0VM.version\0\0\0");
    }

    #[test]
    fn requests_beyond_the_limits_of_a_version_are_rejected() {
        let long = Request::load(Path::new("/tmp/a"), &"x".repeat(MAX_ARGUMENT + 1));
        let text = long.encode(Version::One).unwrap_err().to_string();
        assert_eq!(
            text,
            "an argument of command 'load' is 1025 bytes long, but this JVM accepts at most 1024"
        );
        assert_eq!(long.version_needed(), Ok(Version::Two));
        let fits = Request::load(Path::new("/tmp/a"), &"x".repeat(MAX_ARGUMENT));
        assert_eq!(fits.version_needed(), Ok(Version::One));
        let huge = Request::load(Path::new("/tmp/a"), &"x".repeat(MAX_REQUEST));
        assert!(matches!(huge.version_needed(), Err(RequestError::TooLong { .. })));
        let many = Request::new("jcmd", ["1", "2", "3", "4"]);
        assert!(matches!(many.encode(Version::One), Err(RequestError::TooMany { count: 4, .. })));
        assert_eq!(many.version_needed(), Ok(Version::Two));
        let name = Request::new::<&str>("a_very_long_name_", []);
        assert!(matches!(name.encode(Version::One), Err(RequestError::TooLong { length: 17, .. })));
        let nul = Request::load(Path::new("/tmp/a"), "x\0true");
        assert_eq!(nul.version_needed(), Err(RequestError::Nul { command: "load".into() }));
    }

    #[test]
    fn the_version_is_the_reported_one() {
        let version = |code, text: &str| version_of(&Reply { code, text: text.into() });
        assert_eq!(version(-1, "Operation getversion not recognized!"), Version::One);
        assert_eq!(version(0, "2"), Version::Two);
        assert_eq!(version(0, "3 streaming\n"), Version::Two);
        assert_eq!(version(0, "1"), Version::One);
        assert_eq!(version(0, "new"), Version::One);
        assert_eq!(version(-1, "2"), Version::One);
    }

    /// Decodes a request as the attach listener does.
    fn read(bytes: &[u8]) -> (Version, Vec<Vec<u8>>) {
        let mut parts: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
        assert_eq!(parts.pop(), Some(&[][..]), "it ends with a 0");
        let (version, rest) = parts.split_first().unwrap();
        let owned = |parts: &[&[u8]]| parts.iter().map(|part| part.to_vec()).collect();
        match *version {
            b"1" => (Version::One, owned(rest)),
            b"2" => {
                let length: usize = str::from_utf8(rest[0]).unwrap().parse().unwrap();
                assert_eq!(length, rest[1..].iter().map(|part| part.len() + 1).sum::<usize>());
                (Version::Two, owned(&rest[1..]))
            }
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn every_argument_arrives(arguments in prop::collection::vec("[^\0]{0,40}", 0..6)) {
            let request = Request::new("jcmd", &arguments);
            for version in [Version::One, Version::Two] {
                let Ok(bytes) = request.encode(version) else {
                    prop_assert!(version == Version::One && arguments.len() > ARGUMENTS);
                    continue;
                };
                let (read_version, parts) = read(&bytes);
                prop_assert_eq!(read_version, version);
                prop_assert_eq!(&parts[0], b"jcmd");
                for (index, argument) in arguments.iter().enumerate() {
                    prop_assert_eq!(&parts[index + 1], argument.as_bytes());
                }
                prop_assert!(parts.iter().skip(arguments.len() + 1).all(Vec::is_empty));
                prop_assert!(version == Version::Two || parts.len() == ARGUMENTS + 1);
            }
        }
    }
}
