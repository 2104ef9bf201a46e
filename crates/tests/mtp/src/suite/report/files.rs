//! The reports of a run: files, standard output, and GitHub annotations. Most are written at the end, event reports during the
//! run.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use runtap_os::output::{self, PendingFile, make_folder};
use runtap_test_report::{Format, Spool, github};
use thiserror::Error;

use super::system;
use crate::Module;

/// The name of the report for GitHub.
const GITHUB_NAME: &str = "github";
/// The names of the event report.
const EVENT_NAMES: [&str; 2] = ["jsonl", "events"];
/// The path that stands for standard output.
pub const STDOUT: &str = "-";

/// The reports of a run.
#[derive(Debug, Default)]
pub struct Reports(Vec<Report>);

/// An error that occurs if requested reports are impossible.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// No report has this name.
    #[error("'{0}' is not a report")]
    Unknown(String),
    /// The report for GitHub was requested with a path.
    #[error("the report for GitHub can't be written to a file")]
    GitHubFile,
    /// The report with this name would be written to standard output, which has other content.
    #[error("the {0} report can't be written to standard output")]
    StdoutTaken(String),
    /// The report with this name is the second one on standard output.
    #[error("only one report can be written to standard output")]
    SecondOnStdout(String),
    /// Several reports have the same path.
    #[error("two reports would have the path {}", .path.display())]
    SamePath {
        /// The name of the second report.
        name: String,
        /// The path.
        path: PathBuf,
    },
    /// The path of a report is a test application.
    #[error("{} is a test application", .0.display())]
    IsModule(PathBuf),
    /// A report's file or directory cannot be created.
    #[error("{}: {}", .0, .0.cause)]
    File(output::Error),
}

impl ReportError {
    /// Returns the option that serves instead. `None` if unknown.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => {
                let known: Vec<_> = names().map(|(name, _)| name).collect();
                Some(format!("Valid values: {}", known.join(", ")))
            }
            Self::GitHubFile => Some("Use --report github.".to_owned()),
            Self::StdoutTaken(name) | Self::SecondOnStdout(name) => {
                Some(format!("Use --report {name}=FILE."))
            }
            Self::SamePath { name, .. } => Some(format!("Use --report {name}=FILE with another file.")),
            Self::IsModule(_) | Self::File(_) => None,
        }
    }
}

/// An error that occurs if a report cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Results of the run are lost.
    #[error("results of the run are lost")]
    ResultsLost,
    /// The report cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The report's file cannot be completed.
    #[error(transparent)]
    File(#[from] output::Error),
}

/// A report that was written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Written {
    /// A report in this file.
    File(Format, PathBuf),
    /// A report on standard output.
    Stdout,
    /// Annotations and a summary for GitHub.
    GitHub,
    /// Annotations for GitHub. There is no summary because no file is given for it.
    GitHubAnnotations,
}

/// A requested report.
#[derive(Debug)]
enum Report {
    /// A file, opened before any application is started.
    File(Format, PendingFile),
    /// A report on standard output, which then has no other content.
    Stdout(Format),
    /// An event report in a file that is created when the run starts.
    Events(PendingFile),
    /// An event report on standard output.
    EventsOnStdout,
    /// Annotations in the output and the summary of the job.
    GitHub,
}

/// The title of an event report, and where it is written.
pub(super) type LiveReport = (String, Box<dyn Write + Send>);

/// The kind of a report, parsed from its name on the command line or in the configuration.
enum ReportKind {
    Format(Format),
    Events,
    GitHub,
}

impl ReportKind {
    fn of(name: &str) -> Result<Self, ReportError> {
        if name == GITHUB_NAME {
            return Ok(Self::GitHub);
        }
        if EVENT_NAMES.contains(&name) {
            return Ok(Self::Events);
        }
        Format::from_name(name).map(Self::Format).ok_or_else(|| ReportError::Unknown(name.to_owned()))
    }
}

/// Returns the names of reports with their descriptions.
pub fn names() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let formats = Format::ALL.into_iter().map(|format| (format.name(), Some(format.about())));
    formats.chain([
        (EVENT_NAMES[0], Some("Every event as a line of JSON, as it happens")),
        (GITHUB_NAME, Some("Annotations and the summary of a job, for GitHub Actions")),
    ])
}

fn is_stdout(path: &Path) -> bool {
    [STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Opens a report's file. Reports are meant to be read by others, so the file gets default permissions.
fn open_file(path: &Path) -> Result<PendingFile, output::Error> {
    if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        make_folder(directory)?;
    }
    PendingFile::public(path)
}

/// Returns an identity of a path: the canonical directory and the name, after following links.
fn path_identity(path: &Path) -> (PathBuf, OsString) {
    let mut path = path.to_owned();
    // The limit of links that the system follows. A link's target need not exist.
    for _ in 0..40 {
        match path.read_link() {
            Ok(target) => path = path.parent().unwrap_or_else(|| Path::new("")).join(target),
            Err(_) => break,
        }
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    (folder, path.file_name().unwrap_or_default().to_owned())
}

impl Reports {
    /// Checks that all requested reports exist, to detect mistakes before the run. Each has a name and perhaps a path.
    ///
    /// # Errors
    /// Returns an error if there is no such report.
    pub fn check(wanted: &[(String, Option<PathBuf>)]) -> Result<(), ReportError> {
        wanted.iter().try_for_each(|(name, path)| match (ReportKind::of(name)?, path) {
            (ReportKind::GitHub, Some(_)) => Err(ReportError::GitHubFile),
            _ => Ok(()),
        })
    }

    /// Opens the requested reports; `directory` is for reports without a path. Existing files are not changed yet.
    /// `stdout_is_taken` tells whether standard output has other content.
    ///
    /// # Errors
    /// Returns an error if there is no such report, or if it has an impossible path.
    pub fn open(
        wanted: &[(String, Option<PathBuf>)],
        directory: Option<&Path>,
        modules: &[Module],
        stdout_is_taken: bool,
    ) -> Result<Self, ReportError> {
        Self::check(wanted)?;
        let (mut reports, mut places) = (Vec::new(), HashSet::new());
        for (name, path) in wanted {
            let format = match ReportKind::of(name)? {
                ReportKind::Format(format) => Some(format),
                ReportKind::Events => None,
                ReportKind::GitHub => {
                    reports.push(Report::GitHub);
                    continue;
                }
            };
            let path = path.clone().unwrap_or_else(|| {
                let extension =
                    format.map_or(EVENT_NAMES[0], |format| format.extension().trim_start_matches('.'));
                let name = format!("test-results.{extension}");
                directory.unwrap_or_else(|| Path::new("")).join(name)
            });
            if is_stdout(&path) {
                if stdout_is_taken {
                    return Err(ReportError::StdoutTaken(name.clone()));
                }
                if reports.iter().any(Report::is_on_stdout) {
                    return Err(ReportError::SecondOnStdout(name.clone()));
                }
                reports.push(format.map_or(Report::EventsOnStdout, Report::Stdout));
                continue;
            }
            let pending = open_file(&path).map_err(ReportError::File)?;
            if pending.is_file() {
                if !places.insert(path_identity(&path)) {
                    return Err(ReportError::SamePath { name: name.clone(), path });
                }
                if modules.iter().any(|module| path_identity(module.path()) == path_identity(&path)) {
                    return Err(ReportError::IsModule(path));
                }
            }
            reports.push(match format {
                Some(format) => Report::File(format, pending),
                None => Report::Events(pending),
            });
        }
        Ok(Self(reports))
    }

    /// Returns whether a report uses standard output.
    pub fn uses_stdout(&self) -> bool {
        self.0.iter().any(Report::is_on_stdout)
    }

    /// Creates the event reports, and returns each with its title.
    pub(super) fn begin(&mut self) -> Result<Vec<LiveReport>, output::Error> {
        let mut live: Vec<LiveReport> = Vec::new();
        for report in std::mem::take(&mut self.0) {
            let title = report.title();
            match report {
                Report::Events(pending) => live.push((title, Box::new(pending.appear()?.0))),
                Report::EventsOnStdout => {
                    live.push((title, Box::new(io::stdout())));
                    self.0.push(report);
                }
                other => self.0.push(other),
            }
        }
        Ok(live)
    }

    /// Returns whether a report is written from the results at the end.
    pub(super) fn needs_results(&self) -> bool {
        self.0.iter().any(|report| !matches!(report, Report::Events(_) | Report::EventsOnStdout))
    }

    /// Returns whether a report shows facts that only a listing provides, for a run with this exit code. GitHub annotations
    /// need the locations of tests that failed.
    pub(super) fn needs_facts(&self, exit_code: i32) -> bool {
        self.0.iter().any(|report| match report {
            Report::File(..) | Report::Stdout(_) => true,
            Report::GitHub => exit_code != 0,
            Report::Events(_) | Report::EventsOnStdout => false,
        })
    }

    /// Writes the reports unless results are lost, and passes the title of each and its outcome to `each`. An error does not
    /// affect other reports.
    pub(super) fn write(
        self,
        results: Option<&Spool<File>>,
        stdout_is_taken: bool,
        mut each: impl FnMut(&str, Result<Written, WriteError>),
    ) {
        let stdout_is_taken = stdout_is_taken || self.uses_stdout();
        for report in self.0 {
            let title = report.title();
            if let Some(written) = report.write(results, stdout_is_taken).transpose() {
                each(&title, written);
            }
        }
    }
}

impl Report {
    fn is_on_stdout(&self) -> bool {
        matches!(self, Self::Stdout(_) | Self::EventsOnStdout)
    }

    /// Returns the kind and destination of the report.
    fn title(&self) -> String {
        let on_stdout = |name| format!("{name} report on standard output");
        match self {
            Self::File(format, pending) => {
                format!("{} report {}", format.name(), pending.wanted().display())
            }
            Self::Events(pending) => format!("{} report {}", EVENT_NAMES[0], pending.wanted().display()),
            Self::Stdout(format) => on_stdout(format.name()),
            Self::EventsOnStdout => on_stdout(EVENT_NAMES[0]),
            Self::GitHub => "report for GitHub".to_owned(),
        }
    }

    /// Writes the report. Returns `None` if it was written during the run.
    fn write(
        self,
        results: Option<&Spool<File>>,
        stdout_is_taken: bool,
    ) -> Result<Option<Written>, WriteError> {
        if let Self::Events(_) | Self::EventsOnStdout = self {
            return Ok(None);
        }
        let spool = results.ok_or(WriteError::ResultsLost)?;
        Ok(match self {
            Self::File(format, pending) => {
                let mut file = BufWriter::new(pending.file());
                format.write(spool, &mut file)?;
                file.into_inner().map_err(io::IntoInnerError::into_error)?;
                Some(Written::File(format, pending.appear_whole()?))
            }
            Self::Stdout(format) => {
                let mut out = BufWriter::new(io::stdout().lock());
                format.write(spool, &mut out)?;
                out.flush()?;
                Some(Written::Stdout)
            }
            Self::Events(_) | Self::EventsOnStdout => None,
            Self::GitHub => Some(write_github(spool, stdout_is_taken)?),
        })
    }
}

fn write_github(spool: &Spool<File>, stdout_is_taken: bool) -> Result<Written, WriteError> {
    let path = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let root = match path("GITHUB_WORKSPACE") {
        Some(root) => root,
        None => std::env::current_dir()?,
    };
    let options = github::Options::new(root.to_string_lossy());
    // GitHub reads both streams of a step, so keep a document on standard output intact.
    if stdout_is_taken {
        github::annotations(spool, io::stderr().lock(), &options)?;
    } else {
        github::annotations(spool, io::stdout().lock(), &options)?;
    }
    let Some(path) = path("GITHUB_STEP_SUMMARY") else { return Ok(Written::GitHubAnnotations) };
    let mut text = Vec::new();
    github::summary(spool, &mut text)?;
    // Does not follow links, which other users may have created.
    system::append(&path)?.write_all(&text)?;
    Ok(Written::GitHub)
}
