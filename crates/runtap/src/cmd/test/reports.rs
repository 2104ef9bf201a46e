//! The reports of a run: files, standard output, and what GitHub shows. Most are written at its end, one while it goes on.

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

/// The name by which GitHub's report is asked for.
const GITHUB: &str = "github";
/// The names of the report that has all events while they happen.
const EVENTS: [&str; 2] = ["jsonl", "events"];
/// The path that means standard output.
pub(super) const STDOUT: &str = "-";

/// The reports of a run.
#[derive(Debug, Default)]
pub(super) struct Reports(Vec<Report>);

/// A report that is to be written.
#[derive(Debug)]
enum Report {
    /// A file, opened before anything is started.
    File(Format, PendingFile),
    /// Standard output, which has nothing else then.
    Stdout(Format),
    /// All events, into a file that is there as soon as the run begins.
    Events(PendingFile),
    /// The same, on standard output.
    EventsOnStdout,
    /// Annotations in the output, and the summary of the job.
    GitHub,
}

/// What a report is called on the command line and in the configuration.
enum Kind {
    Format(Format),
    Events,
    GitHub,
}

impl Kind {
    fn of(name: &str) -> anyhow::Result<Self> {
        if name == GITHUB {
            return Ok(Self::GitHub);
        }
        if EVENTS.contains(&name) {
            return Ok(Self::Events);
        }
        Format::from_name(name).map(Self::Format).ok_or_else(|| {
            let known: Vec<_> = names().map(|(name, _)| name).collect();
            usage(format!("'{name}' is no report"), format!("one of {}", known.join(", ")))
        })
    }
}

/// What a report can be called, and what it is for.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let formats = Format::ALL.into_iter().map(|format| (format.name(), Some(format.about())));
    formats.chain([
        (EVENTS[0], Some("Everything that happens, a line of JSON each, while it happens")),
        (GITHUB, Some("Annotations and the summary of a job, for GitHub Actions")),
    ])
}

/// Whether all of them exist, so that a mistake is told before anything is done.
pub(super) fn check(wanted: &[(String, Option<PathBuf>)]) -> anyhow::Result<()> {
    wanted.iter().try_for_each(|(name, path)| match (Kind::of(name)?, path) {
        (Kind::GitHub, Some(_)) => {
            Err(usage("a report for GitHub has no file", "--report github".to_owned()))
        }
        _ => Ok(()),
    })
}

/// Opens what was asked for; `directory` is for those without a path. Nothing that is there is changed.
pub(super) fn open(
    wanted: &[(String, Option<PathBuf>)],
    directory: Option<&Path>,
    modules: &[Module],
    output: Output,
) -> anyhow::Result<Reports> {
    check(wanted)?;
    let (mut reports, mut places) = (Vec::new(), HashSet::new());
    for (name, path) in wanted {
        let format = match Kind::of(name)? {
            Kind::Format(format) => Some(format),
            Kind::Events => None,
            Kind::GitHub => {
                reports.push(Report::GitHub);
                continue;
            }
        };
        let path = path.clone().unwrap_or_else(|| {
            let extension = format.map_or(EVENTS[0], |format| format.extension().trim_start_matches('.'));
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
        let draft = draft(&path)?;
        if draft.is_file() {
            if !places.insert(place(&path)) {
                let why = format!("two reports have the path {}", path.display());
                return Err(usage(why, format!("--report {name}=FILE, with another one")));
            }
            if modules.iter().any(|module| place(module.path()) == place(&path)) {
                return Err(usage(format!("{} is a test application", path.display()), None));
            }
        }
        reports.push(match format {
            Some(format) => Report::File(format, draft),
            None => Report::Events(draft),
        });
    }
    Ok(Reports(reports))
}

fn is_stdout(path: &Path) -> bool {
    [STDOUT, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Reports are for others to read: they have the rights of any new file. What is refused is a mistake like any other one.
fn draft(path: &Path) -> anyhow::Result<PendingFile> {
    let refused = |error: runtap_os::output::Error| {
        let advice = error.cause.advice().map(str::to_owned);
        usage(format!("{error}: {}", error.cause), advice)
    };
    if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        make_folder(directory).map_err(refused)?;
    }
    PendingFile::public(path).map_err(refused)
}

/// What is the same for two paths of one file: the folder and the name, wherever links lead.
fn place(path: &Path) -> (PathBuf, OsString) {
    let mut path = path.to_owned();
    // As many as the system follows. What is behind a link need not be there.
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
    /// Whether standard output is one of them.
    pub(super) fn take_stdout(&self) -> bool {
        self.0.iter().any(Report::is_on_stdout)
    }

    /// Where events go while they happen, each with what it is. The files are there from now on.
    pub(super) fn begin(&mut self) -> anyhow::Result<Vec<(String, Box<dyn Write + Send>)>> {
        let mut live: Vec<(String, Box<dyn Write + Send>)> = Vec::new();
        for report in std::mem::take(&mut self.0) {
            let title = report.title();
            match report {
                Report::Events(draft) => live.push((title, Box::new(draft.appear()?.0))),
                Report::EventsOnStdout => {
                    live.push((title, Box::new(io::stdout())));
                    self.0.push(report);
                }
                other => self.0.push(other),
            }
        }
        Ok(live)
    }

    /// Whether any of them is made of the results, at the end.
    pub(super) fn need_results(&self) -> bool {
        self.0.iter().any(|report| !matches!(report, Report::Events(_) | Report::EventsOnStdout))
    }

    /// Whether they show what only a listing says of tests, of a run that ended with this code. GitHub is told where tests
    /// are that did not pass.
    pub(super) fn want_facts(&self, exit_code: i32) -> bool {
        self.0.iter().any(|report| match report {
            Report::File(..) | Report::Stdout(_) => true,
            Report::GitHub => exit_code != 0,
            Report::Events(_) | Report::EventsOnStdout => false,
        })
    }

    /// Writes them, unless results are lost. One that can't be written is told, and keeps none of the others from it. Returns
    /// whether all are written.
    pub(super) fn write(self, results: Option<&Spool<File>>, output: Output) -> bool {
        let taken = output.json() || self.take_stdout();
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

    /// What it is, and where it goes.
    fn title(&self) -> String {
        let on_stdout = |name| format!("{name} report on standard output");
        match self {
            Self::File(format, draft) => format!("{} report {}", format.name(), draft.wanted().display()),
            Self::Events(draft) => format!("{} report {}", EVENTS[0], draft.wanted().display()),
            Self::Stdout(format) => on_stdout(format.name()),
            Self::EventsOnStdout => on_stdout(EVENTS[0]),
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
            // They are written.
            return Ok(());
        }
        let spool = results.ok_or_else(|| anyhow::anyhow!("results of the run are lost"))?;
        match self {
            Self::File(format, draft) => {
                let mut file = BufWriter::new(draft.file());
                format.write(spool, &mut file)?;
                file.into_inner().map_err(io::IntoInnerError::into_error)?;
                let path = draft.appear_whole()?;
                output.note(format_args!("{} report: {}", format.name(), path.display()));
                Ok(())
            }
            Self::Stdout(format) => {
                let mut out = BufWriter::new(io::stdout().lock());
                format.write(spool, &mut out)?;
                Ok(out.flush()?)
            }
            Self::Events(_) | Self::EventsOnStdout => Ok(()),
            Self::GitHub => on_github(spool, stdout_is_taken, output),
        }
    }
}

fn on_github(spool: &Spool<File>, stdout_is_taken: bool, output: Output) -> anyhow::Result<()> {
    let path = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let root = match path("GITHUB_WORKSPACE") {
        Some(root) => root,
        None => std::env::current_dir()?,
    };
    let options = github::Options::new(root.to_string_lossy());
    // GitHub reads both streams of a step; a document keeps its own.
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
    // Where others can write, a link may be theirs.
    let mut file = append(&path)?;
    file.write_all(&text)?;
    Ok(())
}
