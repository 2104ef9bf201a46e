//! The platform's diagnostic log (`--diagnostic`): a file with the negotiated version, the requests, and the result.
//! Written only on request.
//!
//! The log contains neither names or output of tests nor the HTTP token.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::{HostError, Launch};

/// The variable that enables the log: `1` or `true`.
const DIAGNOSTIC: &str = "TESTINGPLATFORM_DIAGNOSTIC";
/// The variable with the directory of the log.
const DIRECTORY: &str = "TESTINGPLATFORM_DIAGNOSTIC_OUTPUT_DIRECTORY";

/// The level of detail of the diagnostic log (`--diagnostic-verbosity`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verbosity {
    /// `None`: no log is written.
    Nothing,
    /// `Critical`, `Error`, `Warning`: errors only.
    Problems,
    /// `Information`: also the version and the result.
    Information,
    /// `Debug`, `Trace`: also every request. The default, as in the platform.
    Everything,
}

impl Verbosity {
    /// Parses the platform's name of a level.
    pub(crate) fn parse(word: &str) -> Option<Self> {
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

/// Creates the log file at a path that does not exist yet, and its missing parent directories.
pub type CreateLog = fn(&Path) -> io::Result<File>;

/// The command-line options of the diagnostic log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The prefix of the file name (`--diagnostic-file-prefix`). Defaults to `log`.
    pub file_prefix: String,
    /// The level of detail.
    pub verbosity: Verbosity,
}

/// The log. Writes nothing if the log is disabled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Option<Arc<OpenLog>>);

#[derive(Debug)]
struct OpenLog {
    file: Mutex<File>,
    verbosity: Verbosity,
    since: Instant,
}

impl Log {
    /// Opens the log if the command line or the environment enables it.
    pub(crate) fn open(launch: &Launch, module: &Path, create: CreateLog) -> Result<Self, HostError> {
        let wanted = env::var(DIAGNOSTIC).is_ok_and(|text| text == "1" || text.eq_ignore_ascii_case("true"));
        let default = || Diagnostic { file_prefix: "log".to_owned(), verbosity: Verbosity::Everything };
        let requested = launch.diagnostic.clone().or_else(|| wanted.then(default));
        let Some(requested) = requested.filter(|requested| requested.verbosity > Verbosity::Nothing) else {
            return Ok(Self::default());
        };
        let directory = launch.diagnostic_output_directory.clone();
        let directory = directory.or_else(|| env::var_os(DIRECTORY).map(PathBuf::from));
        let directory = directory.or_else(|| launch.results_directory.clone());
        let directory = directory.unwrap_or_else(|| PathBuf::from("TestResults"));
        let path = directory.join(file_name(&requested.file_prefix, module));
        let file = create(&path).map_err(|error| HostError::Diagnostic {
            directory: directory.display().to_string(),
            error: Arc::new(error),
        })?;
        let open = OpenLog { file: Mutex::new(file), verbosity: requested.verbosity, since: Instant::now() };
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

    /// Writes a line in one operation and without buffering, so that lines survive the termination of the process.
    fn write(&self, level: Verbosity, name: &str, text: fmt::Arguments<'_>) {
        let Some(open) = self.0.as_deref().filter(|open| open.verbosity >= level) else { return };
        let line = format!("{:>10.6} {name} {text}\n", open.since.elapsed().as_secs_f64());
        // A full disk must not stop the tests.
        let _ = open.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

/// Returns a unique file name: concurrent modules and attempts write separate logs.
fn file_name(prefix: &str, module: &Path) -> String {
    let stem = module.file_stem().unwrap_or_default().to_string_lossy();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("{prefix}_{stem}_{now}_{}.diag", process::id())
}

/// Creates a new log file, and its directory.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or_else(|| Path::new("")))?;
    File::create_new(path)
}
