//! The platform's diagnostic log (`--diagnostic`): a file that says with whom which version was negotiated, what was sent,
//! and how it ended. Nothing is written without being asked for.
//!
//! Owns: the file and its name. Refuses to: write what tests are called or say, and the token of HTTP.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::{HostError, Launch};

/// The variable that asks for the log: `1` or `true`.
const DIAGNOSTIC: &str = "TESTINGPLATFORM_DIAGNOSTIC";
/// The variable with its directory.
const DIRECTORY: &str = "TESTINGPLATFORM_DIAGNOSTIC_OUTPUT_DIRECTORY";

/// How much the diagnostic log has (`--diagnostic-verbosity`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verbosity {
    /// `None`: there is no log.
    Nothing,
    /// `Critical`, `Error`, `Warning`: what went wrong.
    Problems,
    /// `Information`: the version too, and how it ended.
    Information,
    /// `Debug`, `Trace`: every request too. The default, as the platform has it.
    Everything,
}

impl Verbosity {
    /// By the platform's word.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let words = [
            (Self::Nothing, "none"),
            (Self::Problems, "critical"),
            (Self::Problems, "error"),
            (Self::Problems, "warning"),
            (Self::Information, "information"),
            (Self::Everything, "debug"),
            (Self::Everything, "trace"),
        ];
        words.into_iter().find(|(_, known)| word.eq_ignore_ascii_case(known)).map(|(this, _)| this)
    }
}

/// Makes the file of the log at this path, where nothing is yet, with the folders that are missing on the way.
pub type CreateLog = fn(&Path) -> io::Result<File>;

/// What the command line says of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What its name begins with (`--diagnostic-file-prefix`); `log` otherwise.
    pub file_prefix: String,
    /// How much it has.
    pub verbosity: Verbosity,
}

/// The log, or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Option<Arc<Open>>);

#[derive(Debug)]
struct Open {
    file: Mutex<File>,
    verbosity: Verbosity,
    since: Instant,
}

impl Log {
    /// As the command line and the environment want it.
    pub(crate) fn open(launch: &Launch, module: &Path, create: CreateLog) -> Result<Self, HostError> {
        let wanted = env::var(DIAGNOSTIC).is_ok_and(|text| text == "1" || text.eq_ignore_ascii_case("true"));
        let default = || Diagnostic { file_prefix: "log".to_owned(), verbosity: Verbosity::Everything };
        let asked = launch.diagnostic.clone().or_else(|| wanted.then(default));
        let Some(asked) = asked.filter(|asked| asked.verbosity > Verbosity::Nothing) else {
            return Ok(Self::default());
        };
        let directory = launch.diagnostic_output_directory.clone();
        let directory = directory.or_else(|| env::var_os(DIRECTORY).map(PathBuf::from));
        let directory = directory.or_else(|| launch.results_directory.clone());
        let directory = directory.unwrap_or_else(|| PathBuf::from("TestResults"));
        let path = directory.join(file_name(&asked.file_prefix, module));
        let file = create(&path).map_err(|error| HostError::Diagnostic {
            directory: directory.display().to_string(),
            error: Arc::new(error),
        })?;
        let open = Open { file: Mutex::new(file), verbosity: asked.verbosity, since: Instant::now() };
        let this = Self(Some(Arc::new(open)));
        let version = env!("CARGO_PKG_VERSION");
        this.information(format_args!(
            "runtap-mtp-host {version}, process {}, module {}, log {}",
            process::id(),
            module.display(),
            path.display()
        ));
        Ok(this)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn problem(&self, text: &impl fmt::Display) {
        self.write(Verbosity::Problems, "problem", format_args!("{text}"));
    }

    pub(crate) fn information(&self, text: fmt::Arguments<'_>) {
        self.write(Verbosity::Information, "information", text);
    }

    pub(crate) fn detail(&self, text: fmt::Arguments<'_>) {
        self.write(Verbosity::Everything, "trace", text);
    }

    /// A line at once, in one piece: whoever ends the process takes nothing with it.
    fn write(&self, level: Verbosity, name: &str, text: fmt::Arguments<'_>) {
        let Some(open) = self.0.as_deref().filter(|open| open.verbosity >= level) else { return };
        let line = format!("{:>10.6} {name} {text}\n", open.since.elapsed().as_secs_f64());
        // A full disk keeps no test from running.
        let _ = open.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

/// A new one each time: modules that run beside each other, and attempts, have their own.
fn file_name(prefix: &str, module: &Path) -> String {
    let stem = module.file_stem().unwrap_or_default().to_string_lossy();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("{prefix}_{stem}_{now}_{}.diag", process::id())
}

/// Makes a log that was not there, and its folder.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new("")))?;
    File::create_new(path)
}
