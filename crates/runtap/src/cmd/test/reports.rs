//! The reports of a run: files, standard output, and GitHub annotations. Most are written at the end, event reports during the
//! run.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use runtap_mtp::Module;
use runtap_os::output::{PendingFile, make_folder};
use runtap_test_report::{Format, Spool, github};

use super::system::append;
use super::usage;
use crate::exit::{hint_of, is_broken_pipe};
use crate::output::Output;

/// The name of the report for GitHub.
const GITHUB_NAME: &str = "github";
/// The names of the event report.
const EVENT_NAMES: [&str; 2] = ["jsonl", "events"];
/// The path that stands for standard output.
pub(super) const STDOUT: &str = "-";

/// The reports of a run.
#[derive(Debug, Default)]
pub(super) struct Reports(Vec<Report>);

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

/// The kind of a report, parsed from its name on the command line or in the configuration.
enum ReportKind {
    Format(Format),
    Events,
    GitHub,
}

impl ReportKind {
    fn of(name: &str) -> anyhow::Result<Self> {
        if name == GITHUB_NAME {
            return Ok(Self::GitHub);
        }
        if EVENT_NAMES.contains(&name) {
            return Ok(Self::Events);
        }
        Format::from_name(name).map(Self::Format).ok_or_else(|| {
            let known: Vec<_> = names().map(|(name, _)| name).collect();
            usage(format!("'{name}' is no report"), format!("one of {}", known.join(", ")))
        })
    }
}

/// Returns the names of reports with their descriptions.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let formats = Format::ALL.into_iter().map(|format| (format.name(), Some(format.about())));
    formats.chain([
        (EVENT_NAMES[0], Some("Everything that happens, a line of JSON each, while it happens")),
        (GITHUB_NAME, Some("Annotations and the summary of a job, for GitHub Actions")),
    ])
}

/// Checks that all requested reports exist, to detect mistakes before the run.
pub(super) fn check(wanted: &[(String, Option<PathBuf>)]) -> anyhow::Result<()> {
    wanted.iter().try_for_each(|(name, path)| match (ReportKind::of(name)?, path) {
        (ReportKind::GitHub, Some(_)) => {
            Err(usage("a report for GitHub has no file", "--report github".to_owned()))
        }
        _ => Ok(()),
    })
}

/// Opens the requested reports; `directory` is for reports without a path. Existing files are not changed yet.
pub(super) fn open(
    wanted: &[(String, Option<PathBuf>)],
    directory: Option<&Path>,
    modules: &[Module],
    output: Output,
) -> anyhow::Result<Reports> {
    check(wanted)?;
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
            if output.json() {
                let why = format!("the {name} report can't go to standard output: --format json does");
                return Err(usage(why, format!("--report {name}=FILE")));
            }
            if reports.iter().any(Report::is_on_stdout) {
                return Err(usage("standard output takes one report only", format!("--report {name}=FILE")));
            }
            reports.push(format.map_or(Report::EventsOnStdout, Report::Stdout));
            continue;
        }
        let pending = open_file(&path)?;
        if pending.is_file() {
            if !places.insert(path_identity(&path)) {
                let why = format!("two reports have the path {}", path.display());
                return Err(usage(why, format!("--report {name}=FILE, with another one")));
            }
            if modules.iter().any(|module| path_identity(module.path()) == path_identity(&path)) {
                return Err(usage(format!("{} is a test application", path.display()), None));
            }
        }
        reports.push(match format {
            Some(format) => Report::File(format, pending),
            None => Report::Events(pending),
        });
    }
    Ok(Reports(reports))
}

fn is_stdout(path: &Path) -> bool {
    [STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Opens a report's file. Reports are meant to be read by others, so the file gets default permissions. An error counts as
/// invalid usage.
fn open_file(path: &Path) -> anyhow::Result<PendingFile> {
    let file_error = |error: runtap_os::output::Error| {
        let advice = error.cause.advice().map(str::to_owned);
        usage(format!("{error}: {}", error.cause), advice)
    };
    if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        make_folder(directory).map_err(file_error)?;
    }
    PendingFile::public(path).map_err(file_error)
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
    /// Returns whether a report uses standard output.
    pub(super) fn uses_stdout(&self) -> bool {
        self.0.iter().any(Report::is_on_stdout)
    }

    /// Creates the event reports, and returns each with its title.
    pub(super) fn begin(&mut self) -> anyhow::Result<Vec<(String, Box<dyn Write + Send>)>> {
        let mut live: Vec<(String, Box<dyn Write + Send>)> = Vec::new();
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

    /// Writes the reports unless results are lost. An error is reported and does not affect other reports. Returns whether all
    /// reports were written.
    pub(super) fn write(self, results: Option<&Spool<File>>, output: Output) -> bool {
        let taken = output.json() || self.uses_stdout();
        let mut all = true;
        for report in self.0 {
            let title = report.title();
            if let Err(error) = report.write(results, taken, output)
                && !is_broken_pipe(&error)
            {
                let hint = hint_of(&error);
                output.error(&error.context(format!("the {title} can't be written")), hint.as_deref());
                all = false;
            }
        }
        all
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

    fn write(
        self,
        results: Option<&Spool<File>>,
        stdout_is_taken: bool,
        output: Output,
    ) -> anyhow::Result<()> {
        if let Self::Events(_) | Self::EventsOnStdout = self {
            // These reports were written during the run.
            return Ok(());
        }
        let spool = results.ok_or_else(|| anyhow::anyhow!("results of the run are lost"))?;
        match self {
            Self::File(format, pending) => {
                let mut file = BufWriter::new(pending.file());
                format.write(spool, &mut file)?;
                file.into_inner().map_err(io::IntoInnerError::into_error)?;
                let path = pending.appear_whole()?;
                output.note(format_args!("{} report: {}", format.name(), path.display()));
                Ok(())
            }
            Self::Stdout(format) => {
                let mut out = BufWriter::new(io::stdout().lock());
                format.write(spool, &mut out)?;
                Ok(out.flush()?)
            }
            Self::Events(_) | Self::EventsOnStdout => Ok(()),
            Self::GitHub => write_github(spool, stdout_is_taken, output),
        }
    }
}

fn write_github(spool: &Spool<File>, stdout_is_taken: bool, output: Output) -> anyhow::Result<()> {
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
    let Some(path) = path("GITHUB_STEP_SUMMARY") else {
        output.note("no summary for GitHub: GITHUB_STEP_SUMMARY is not set");
        return Ok(());
    };
    let mut text = Vec::new();
    github::summary(spool, &mut text)?;
    // Does not follow links, which other users may have created.
    let mut file = append(&path)?;
    file.write_all(&text)?;
    Ok(())
}
