//! Options of the agent, given when it is loaded: `host=127.0.0.1,port=8765,include=^demo/`.
//!
//! Owns: [`Options`], parsed and formatted. `key=value` pairs are separated by commas. In a value `\,` is a comma and `\\` a
//! backslash; a backslash before another character is literal, as regular expressions need. docs/jvm-agent.md explains each
//! key.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use runtap_bytefrog_proto::{Dialect, RecordMode, WhenSlow};
use thiserror::Error;

/// The default port of HQ.
pub const DEFAULT_PORT: u16 = 8765;

/// Users to whom an HQ at a loopback address may belong. The program's own user and root are always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HqUser {
    /// No other user.
    #[default]
    Own,
    /// The user with this id.
    User(u32),
    /// All users.
    Any,
}

/// The options of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The name or address of HQ's machine (`host`).
    pub host: String,
    /// The port of HQ (`port`).
    pub port: u16,
    /// Patterns of classes to trace, in addition to HQ's (`include`, repeatable). If neither HQ nor the options have
    /// exclusions, all other classes are excluded.
    pub include: Vec<String>,
    /// Patterns of classes to exclude, in addition to HQ's (`exclude`, repeatable).
    pub exclude: Vec<String>,
    /// The recording mode, overriding HQ's (`mode`): `full`, `counts`, `coverage`.
    pub record: Option<RecordMode>,
    /// Whether the clock has millisecond precision only, overriding HQ's choice (`clock`): `ms`, `ns`.
    pub coarse_clock: Option<bool>,
    /// What to do when HQ is slow, overriding HQ's choice (`when-slow`): `block`, `drop`, `counts`.
    pub when_slow: Option<WhenSlow>,
    /// The only protocol version to use (`version`): `1` to `4`, `f1`. `None` for F1, with fallback to 1, 4, 3 and 2.
    pub version: Option<Dialect>,
    /// How long a starting program waits for HQ (`wait`, in seconds). After that it runs, and the agent keeps trying.
    pub wait: Duration,
    /// How long HQ's machine may acknowledge nothing (`silence`, in seconds), until HQ is considered lost.
    pub silence: Duration,
    /// Whether the agent retries when nothing listens at HQ's address (`retry`): `yes`, `no`. With `no` the program starts at
    /// once, untraced and without a message: for options that remain in effect after HQ has exited.
    pub retry: bool,
    /// Users to whom an HQ on this machine may belong, besides the program's own user and root (`hq-user`): the id
    /// of a user, or
    /// `any`.
    pub hq_user: HqUser,
    /// Whether classes of the boot loader are traced too, if the patterns select them (`boot`): `yes`, `no`.
    pub boot: bool,
    /// The file that an attached agent creates if it does not start, with the reason (`answer`): an absolute path in a folder
    /// that no other user can write to. `None` for standard error.
    pub answer: Option<PathBuf>,
    /// Whether to detach from the JVM: restore the original classes, end all threads and connections (`detach`, alone).
    pub detach: bool,
}

impl Default for Options {
    /// Returns options for an HQ on this machine with the settings that HQ chooses, and a wait of ten seconds.
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: DEFAULT_PORT,
            include: Vec::new(),
            exclude: Vec::new(),
            record: None,
            coarse_clock: None,
            when_slow: None,
            version: None,
            wait: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            retry: true,
            hq_user: HqUser::Own,
            boot: false,
            answer: None,
            detach: false,
        }
    }
}

/// An error for invalid options.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The key is unknown.
    #[error("unknown option {0:?}")]
    Unknown(String),
    /// The value is invalid for the key.
    #[error("invalid value {value:?} for {key}: expected {expected}")]
    Value {
        /// The key.
        key: String,
        /// The invalid value.
        value: String,
        /// The valid values.
        expected: &'static str,
    },
}

impl Options {
    /// Parses options. An empty text gives the default.
    ///
    /// # Errors
    /// If a key is unknown, or a value is invalid for its key.
    pub fn parse(text: &str) -> Result<Self, OptionsError> {
        let mut options = Self::default();
        for (key, value) in pairs(text) {
            options.set(&key, value)?;
        }
        Ok(options)
    }

    /// Returns the file for the reason of a failed start, even if other options are invalid.
    pub(crate) fn answer_of(text: &str) -> Option<PathBuf> {
        let mut found =
            pairs(text).into_iter().rev().filter(|(key, value)| key == "answer" && value.starts_with('/'));
        found.next().map(|(_, path)| path.into())
    }

    fn set(&mut self, key: &str, value: String) -> Result<(), OptionsError> {
        let expected = match (key, value.as_str()) {
            ("host", host) if !host.is_empty() => {
                self.host = value;
                return Ok(());
            }
            ("host", _) => "a name or an address",
            ("include", _) => {
                self.include.push(value);
                return Ok(());
            }
            ("exclude", _) => {
                self.exclude.push(value);
                return Ok(());
            }
            ("port", port) => match port.parse() {
                Ok(port) if port != 0 => {
                    self.port = port;
                    return Ok(());
                }
                _ => "1 to 65535",
            },
            ("wait", seconds) => match seconds.parse::<u32>() {
                Ok(seconds) => {
                    self.wait = Duration::from_secs(seconds.into());
                    return Ok(());
                }
                Err(_) => "a number of seconds",
            },
            ("silence", seconds) => match seconds.parse::<u32>() {
                Ok(seconds) if seconds > 0 => {
                    self.silence = Duration::from_secs(seconds.into());
                    return Ok(());
                }
                _ => "a number of seconds, and not 0",
            },
            ("mode", word) => {
                return choose(&mut self.record, &RECORDS, key, word, "full, counts or coverage");
            }
            ("clock", word) => return choose(&mut self.coarse_clock, &CLOCKS, key, word, "ms or ns"),
            ("when-slow", word) => {
                return choose(&mut self.when_slow, &WHEN_SLOW, key, word, "block, drop or counts");
            }
            ("version", word) => return choose(&mut self.version, &VERSIONS, key, word, "1, 2, 3, 4 or f1"),
            ("retry", word) => {
                let mut retry = None;
                choose(&mut retry, &YES, key, word, "yes or no")?;
                self.retry = retry == Some(true);
                return Ok(());
            }
            ("hq-user", word) => match (word, word.parse()) {
                ("any", _) => {
                    self.hq_user = HqUser::Any;
                    return Ok(());
                }
                (_, Ok(user)) => {
                    self.hq_user = HqUser::User(user);
                    return Ok(());
                }
                _ => "the number of a user, or any",
            },
            ("boot", word) => {
                let mut boot = None;
                choose(&mut boot, &YES, key, word, "yes or no")?;
                self.boot = boot == Some(true);
                return Ok(());
            }
            ("answer", path) if path.starts_with('/') => {
                self.answer = Some(PathBuf::from(value));
                return Ok(());
            }
            ("answer", _) => "an absolute path",
            ("detach", "") => {
                self.detach = true;
                return Ok(());
            }
            ("detach", _) => "a word without a value",
            _ => return Err(OptionsError::Unknown(key.to_owned())),
        };
        Err(OptionsError::Value { key: key.to_owned(), value, expected })
    }
}

const RECORDS: [(&str, RecordMode); 3] =
    [("full", RecordMode::Full), ("counts", RecordMode::Counts), ("coverage", RecordMode::Coverage)];
const CLOCKS: [(&str, bool); 2] = [("ms", true), ("ns", false)];
const WHEN_SLOW: [(&str, WhenSlow); 3] =
    [("block", WhenSlow::Block), ("drop", WhenSlow::Drop), ("counts", WhenSlow::Counts)];
const VERSIONS: [(&str, Dialect); 5] =
    [("1", Dialect::V1), ("2", Dialect::V2), ("3", Dialect::V3), ("4", Dialect::V4), ("f1", Dialect::F1)];
const YES: [(&str, bool); 2] = [("yes", true), ("no", false)];

fn choose<T: Copy>(
    into: &mut Option<T>,
    words: &[(&str, T)],
    key: &str,
    word: &str,
    expected: &'static str,
) -> Result<(), OptionsError> {
    let Some((_, value)) = words.iter().find(|(name, _)| *name == word) else {
        return Err(OptionsError::Value { key: key.to_owned(), value: word.to_owned(), expected });
    };
    *into = Some(*value);
    Ok(())
}

fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}

/// Returns the pairs of keys and values, without escapes.
fn pairs(text: &str) -> Vec<(String, String)> {
    let mut parts = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let last = parts.len() - 1;
        let c = match c {
            ',' => {
                parts.push(String::new());
                continue;
            }
            '\\' => rest.next_if(|next| matches!(next, ',' | '\\')).unwrap_or('\\'),
            other => other,
        };
        if let Some(part) = parts.get_mut(last) {
            part.push(c);
        }
    }
    parts.retain(|part| !part.is_empty());
    let split = |part: String| match part.split_once('=') {
        Some((key, value)) => (key.to_owned(), value.to_owned()),
        None => (part, String::new()),
    };
    parts.into_iter().map(split).collect()
}

/// Formats options for [`Options::parse`]: the host and port, and all values that differ from the default.
impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escape = |value: &str| value.replace('\\', "\\\\").replace(',', "\\,");
        let answer = |path: &PathBuf| format!(",answer={}", escape(&path.to_string_lossy()));
        let answer = self.answer.as_ref().map(answer).unwrap_or_default();
        if self.detach {
            return write!(f, "detach{answer}");
        }
        write!(f, "host={},port={}", escape(&self.host), self.port)?;
        for (key, values) in [("include", &self.include), ("exclude", &self.exclude)] {
            for value in values {
                write!(f, ",{key}={}", escape(value))?;
            }
        }
        if let Some(record) = &self.record {
            write!(f, ",mode={}", word_of(&RECORDS, record))?;
        }
        if let Some(coarse) = &self.coarse_clock {
            write!(f, ",clock={}", word_of(&CLOCKS, coarse))?;
        }
        if let Some(when_slow) = &self.when_slow {
            write!(f, ",when-slow={}", word_of(&WHEN_SLOW, when_slow))?;
        }
        if let Some(version) = &self.version {
            write!(f, ",version={}", word_of(&VERSIONS, version))?;
        }
        if self.wait != Self::default().wait {
            write!(f, ",wait={}", self.wait.as_secs())?;
        }
        if self.silence != Self::default().silence {
            write!(f, ",silence={}", self.silence.as_secs())?;
        }
        if !self.retry {
            f.write_str(",retry=no")?;
        }
        match self.hq_user {
            HqUser::Own => {}
            HqUser::User(user) => write!(f, ",hq-user={user}")?,
            HqUser::Any => f.write_str(",hq-user=any")?,
        }
        if self.boot {
            f.write_str(",boot=yes")?;
        }
        f.write_str(&answer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_key() {
        let text = "host=hq,port=9000,include=^demo/[A\\,B]\\$x,include=^x/,exclude=.*,mode=counts,clock=ms,\
                    when-slow=drop,version=f1,wait=3,silence=4,retry=no,hq-user=7,boot=yes,answer=/tmp/a";
        let options = Options::parse(text).unwrap();
        assert_eq!(options.include, ["^demo/[A,B]\\$x", "^x/"]);
        assert_eq!(options.exclude, [".*"]);
        assert_eq!((options.host.as_str(), options.port), ("hq", 9000));
        assert_eq!(options.record, Some(RecordMode::Counts));
        assert_eq!(options.coarse_clock, Some(true));
        assert_eq!(options.when_slow, Some(WhenSlow::Drop));
        assert_eq!(options.version, Some(Dialect::F1));
        assert_eq!((options.wait, options.silence), (Duration::from_secs(3), Duration::from_secs(4)));
        assert!(options.boot && !options.detach && !options.retry);
        assert_eq!(options.hq_user, HqUser::User(7));
        assert_eq!(Options::parse("hq-user=any").unwrap().hq_user, HqUser::Any);
        assert_eq!(options.answer, Some("/tmp/a".into()));
        assert_eq!(Options::answer_of("prot=1,answer=/tmp/a\\,b,mode=x"), Some("/tmp/a,b".into()));
        assert!(Options::parse("detach").unwrap().detach);
        assert_eq!(Options::parse("").unwrap(), Options::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text| Options::parse(text).unwrap_err().to_string();
        assert_eq!(error("prot=1"), "unknown option \"prot\"");
        assert_eq!(error("port=0"), "invalid value \"0\" for port: expected 1 to 65535");
        assert_eq!(error("mode=all"), "invalid value \"all\" for mode: expected full, counts or coverage");
        assert_eq!(error("version=5"), "invalid value \"5\" for version: expected 1, 2, 3, 4 or f1");
        assert_eq!(
            error("hq-user=root"),
            "invalid value \"root\" for hq-user: expected the number of a user, or any"
        );
        assert_eq!(error("answer=a"), "invalid value \"a\" for answer: expected an absolute path");
        assert_eq!(error("detach=now"), "invalid value \"now\" for detach: expected a word without a value");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            host in "[^=]{1,20}",
            include in prop::collection::vec(".*", 0..3),
            exclude in prop::collection::vec("[a-z\\\\,]{0,8}", 0..3),
        ) {
            let silence = Duration::from_secs(host.len() as u64);
            let hq_user = HqUser::User(u32::try_from(host.len()).unwrap());
            let retry = include.is_empty();
            let options = Options { host, include, exclude, silence, retry, hq_user, ..Options::default() };
            prop_assert_eq!(Options::parse(&options.to_string()).unwrap(), options);
        }
    }
}
