//! The command line of a scripted host, as far as it is common to all hosts.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::PlayError;

/// The options of a host.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    /// Path of the scenario.
    pub script: PathBuf,
    /// Path of the server's pipe.
    pub pipe: PathBuf,
    /// Mode: `run`, `discover` or `help`.
    pub mode: &'static str,
    /// Selected tests; `None` for all.
    pub uids: Option<Vec<String>>,
    /// The whole command line, for child processes.
    pub all: Vec<OsString>,
}

impl Options {
    pub(super) fn read(arguments: &[OsString]) -> Result<Self, PlayError> {
        let mut arguments = arguments.iter().cloned();
        let own = PathBuf::from(arguments.next().unwrap_or_default());
        let mut own_name = own.into_os_string();
        own_name.push(".mtp");
        let mut this = Self { script: own_name.into(), mode: "run", ..Self::default() };
        let mut arguments = arguments.peekable();
        if let Some(script) =
            arguments.next_if(|first| Path::new(first).extension().is_some_and(|it| it == "mtp"))
        {
            this.script = script.into();
        }
        this.all = arguments.clone().collect();
        while let Some(argument) = arguments.next() {
            match argument.to_str().unwrap_or_default() {
                "--dotnet-test-pipe" => this.pipe = arguments.next().unwrap_or_default().into(),
                "--list-tests" => this.mode = "discover",
                "--help" => this.mode = "help",
                "--filter-uid" => {
                    let mut uids = Vec::new();
                    while let Some(uid) =
                        arguments.next_if(|next| !next.as_encoded_bytes().starts_with(b"--"))
                    {
                        let uid = uid.to_string_lossy().into_owned();
                        match uid.strip_prefix('@') {
                            Some(file) => {
                                let lines = fs::read_to_string(file)?;
                                uids.extend(lines.lines().map(|line| line.replace('"', "")));
                            }
                            None => uids.push(uid),
                        }
                    }
                    this.uids = Some(uids);
                }
                _ => {}
            }
        }
        Ok(this)
    }
}
