//! Names of output files, and where results are written to. Every file that runtap makes is made here, as a [`Draft`].

mod copy;
mod draft;
mod place;
mod shared;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;

pub(crate) use self::copy::copy;
pub(crate) use self::draft::{Draft, reopened, same, sweep, unforeseen};
use self::place::Folder;
use crate::cli::FileFormat;
use crate::exit::usage;

impl FileFormat {
    /// The sink that writes it; `None` for the stream as it was received.
    pub(crate) fn sink(self) -> Option<runtap_sinks::Format> {
        match self {
            Self::Nettrace => None,
            Self::Speedscope => Some(runtap_sinks::Format::Speedscope),
            Self::Folded => Some(runtap_sinks::Format::Folded),
            Self::Flamegraph => Some(runtap_sinks::Format::Flamegraph),
            Self::Chrome => Some(runtap_sinks::Format::Chrome),
            Self::Perfetto => Some(runtap_sinks::Format::Perfetto),
            Self::Firefox => Some(runtap_sinks::Format::Firefox),
            Self::Pprof => Some(runtap_sinks::Format::Pprof),
        }
    }

    /// Whether one file can hold the threads of several processes. A stream is that of one runtime.
    pub(crate) fn holds_several_processes(self) -> bool {
        self.sink().is_some()
    }

    /// As `--to` and the summary have it.
    pub(crate) fn name(self) -> &'static str {
        self.sink().map_or("nettrace", runtap_sinks::Format::name)
    }

    /// With the dot.
    pub(crate) fn extension(self) -> &'static str {
        self.sink().map_or(".nettrace", runtap_sinks::Format::extension)
    }
}

/// The format that the extension of an output says; dotnet-trace's own names of files among them.
pub(crate) fn format_of(output: Option<&Path>) -> Option<FileFormat> {
    let name = output?.file_name()?.to_str()?;
    FileFormat::value_variants()
        .iter()
        .copied()
        .find(|format| name.strip_suffix(format.extension()).is_some_and(|stem| !stem.is_empty()))
}

/// The longest first, so that `.speedscope.json` is not taken for `.json`.
const EXTENSIONS: [&str; 10] = [
    ".firefox.json.gz",
    ".speedscope.json",
    ".chromium.json",
    ".perfetto-trace",
    ".nettrace",
    ".netperf",
    ".folded",
    ".pb.gz",
    ".svg",
    ".json",
];

/// Where a result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) format: FileFormat,
    pub(crate) to: Destination,
}

/// Refuses what no plan can be made for, before anything is asked of a target.
///
/// # Errors
/// Several formats to stdout.
pub(crate) fn check_output(formats: &[FileFormat], output: Option<&Path>) -> anyhow::Result<()> {
    plan(formats, output, Path::new("x")).map(drop)
}

/// Which files to write. One format: `output` is taken as it is. Several: the known extension of `output` is replaced
/// by each format's. Without `output`: `base` and the extension.
///
/// # Errors
/// Several formats to stdout.
pub(crate) fn plan(
    formats: &[FileFormat],
    output: Option<&Path>,
    base: &Path,
) -> anyhow::Result<Vec<Planned>> {
    let mut distinct: Vec<FileFormat> = Vec::new();
    for format in formats {
        if !distinct.contains(format) {
            distinct.push(*format);
        }
    }
    let one = distinct.len() == 1;
    if !one && output == Some(Path::new("-")) {
        return Err(usage("several formats can't go to stdout: choose one --to, or a file with -o"));
    }
    let destination = |format: FileFormat| match output {
        Some(path) if path == Path::new("-") => Destination::Stdout,
        Some(path) if one => Destination::File(path.to_owned()),
        Some(path) => Destination::File(with_extension(&without_extension(path), format.extension())),
        None => Destination::File(with_extension(base, format.extension())),
    };
    Ok(distinct.into_iter().map(|format| Planned { format, to: destination(format) }).collect())
}

/// `base`, or `base_2`, `base_3` …: the first under which none of the files is there yet.
pub(crate) fn free_base(formats: &[FileFormat], base: &Path) -> PathBuf {
    let are_free =
        |base: &PathBuf| formats.iter().all(|format| is_free(&with_extension(base, format.extension())));
    (1..=NAMES_TRIED).map(|n| numbered(base, n, "")).find(are_free).unwrap_or_else(|| base.to_owned())
}

/// Whether nothing has this name, not even a link to nothing.
pub(crate) fn is_free(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// How many names are tried for a file that must not be there yet.
pub(crate) const NAMES_TRIED: u32 = 100;

/// The n-th name to try, from 1: `base`, `base_2`, `base_3` …, and `extension`.
pub(crate) fn numbered(base: &Path, n: u32, extension: &str) -> PathBuf {
    match n {
        1 => with_extension(base, extension),
        n => with_extension(base, &format!("_{n}{extension}")),
    }
}

/// `path` without a known extension of ours.
pub(crate) fn without_extension(path: &Path) -> PathBuf {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return path.to_owned() };
    for extension in EXTENSIONS {
        if let Some(stem) = name.strip_suffix(extension)
            && !stem.is_empty()
        {
            return path.with_file_name(stem);
        }
    }
    path.to_owned()
}

/// `path` with `extension` behind its whole name: dots in a program's name are no extension.
pub(crate) fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// `path` with `text` before its extension: a known one of ours, else what follows the last dot.
pub(crate) fn insert_before_extension(path: &Path, text: &str) -> PathBuf {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return with_extension(path, text);
    };
    let known = EXTENSIONS.iter().find_map(|known| name.strip_suffix(known).map(|stem| (stem, *known)));
    let any = || name.rfind('.').and_then(|dot| name.split_at_checked(dot));
    match known.or_else(any).filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, extension)) => path.with_file_name(format!("{stem}{text}{extension}")),
        None => with_extension(path, text),
    }
}

/// Makes a folder with all that are missing on the way to it, by the rule for outputs: no link of somebody else leads there.
///
/// # Errors
/// It can't be made, lies behind a link that is not followed, or is there and is no folder.
pub(crate) fn make_folder(path: &Path) -> anyhow::Result<()> {
    Folder::made(path).map(drop).with_context(|| format!("can't make the folder {}", path.display()))
}

/// Whether a file can be made under this name, or is there: no device, no pipe.
pub(crate) fn is_regular(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |meta| meta.is_file())
}

/// Refuses outputs that are one of the inputs, by whatever name or link.
///
/// # Errors
/// Code 2.
pub(crate) fn refuse_overwriting(inputs: &[&Path], planned: &[Planned]) -> anyhow::Result<()> {
    for Planned { to, .. } in planned {
        let Destination::File(path) = to else { continue };
        let Some(there) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { continue };
        let is_input = |input: &&&Path| fs::metadata(input).is_ok_and(|input| same(&input, &there));
        if let Some(input) = inputs.iter().find(is_input) {
            let also = if path == *input { String::new() } else { format!(" {}", input.display()) };
            return Err(usage(format!("{} is the recording{also} itself: give another -o", path.display())));
        }
    }
    Ok(())
}

/// An output that is open.
#[derive(Debug)]
pub(crate) enum Outlet {
    Stdout,
    File(Draft),
}

impl Outlet {
    /// Opens it, without a change to what is there.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub(crate) fn open(to: &Destination) -> anyhow::Result<Self> {
        Ok(match to {
            Destination::Stdout => Self::Stdout,
            Destination::File(path) => Self::File(Draft::of(path)?),
        })
    }

    /// Writes all of it; a file is there only when it is whole. Gives its path, if it is one, and its size.
    ///
    /// # Errors
    /// Those of `write`, and of the file.
    pub(crate) fn write_whole(
        self,
        write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<(Option<PathBuf>, u64)> {
        let draft = match self {
            Self::Stdout => return Ok((None, write_to(io::stdout().lock(), write)?)),
            Self::File(draft) => draft,
        };
        if draft.is_file() {
            let bytes = write_to(draft.file(), write)
                .with_context(|| format!("can't write {}", draft.wanted().display()))?;
            return Ok((Some(draft.appear_whole()?), bytes));
        }
        let (file, path) = draft.appear()?;
        let bytes = write_to(file, write).with_context(|| format!("can't write {}", path.display()))?;
        Ok((Some(path), bytes))
    }
}

/// Writes a file that is there only when it is whole, or to stdout. Returns its size.
///
/// # Errors
/// Those of [`Outlet`].
pub(crate) fn write_whole(
    to: &Destination,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    Ok(Outlet::open(to)?.write_whole(write)?.1)
}

fn write_to(
    out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut out = Counting { inner: BufWriter::with_capacity(1 << 16, out), bytes: 0 };
    write(&mut out)?;
    out.flush()?;
    Ok(out.bytes)
}

struct Counting<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(formats: &[FileFormat], output: Option<&str>) -> Vec<String> {
        let planned = plan(formats, output.map(Path::new), Path::new("my.app_1_20260101_000000")).unwrap();
        let name = |p: Planned| match p.to {
            Destination::Stdout => "-".to_owned(),
            Destination::File(path) => path.to_str().unwrap().to_owned(),
        };
        planned.into_iter().map(name).collect()
    }

    #[test]
    fn one_format_takes_the_name_as_it_is() {
        assert_eq!(names(&[FileFormat::Speedscope], Some("x.json")), ["x.json"]);
        assert_eq!(names(&[FileFormat::Folded], Some("-")), ["-"]);
        assert_eq!(names(&[FileFormat::Nettrace], None), ["my.app_1_20260101_000000.nettrace"]);
    }

    #[test]
    fn several_formats_replace_the_extension() {
        let both = [FileFormat::Nettrace, FileFormat::Speedscope, FileFormat::Nettrace];
        assert_eq!(names(&both, Some("d/t.nettrace")), ["d/t.nettrace", "d/t.speedscope.json"]);
        assert_eq!(names(&both, Some("d.1/t")), ["d.1/t.nettrace", "d.1/t.speedscope.json"]);
        assert_eq!(names(&both, Some("my.app")), ["my.app.nettrace", "my.app.speedscope.json"]);
        assert!(plan(&both, Some(Path::new("-")), Path::new("x")).is_err());
    }

    #[test]
    fn text_goes_before_the_extension() {
        let with = |path: &str| insert_before_extension(Path::new(path), ".7").to_str().unwrap().to_owned();
        assert_eq!(with("d.1/t.nettrace"), "d.1/t.7.nettrace");
        assert_eq!(with("t.speedscope.json"), "t.7.speedscope.json");
        assert_eq!(with("my.app.out"), "my.app.7.out");
        assert_eq!(with("d.1/t"), "d.1/t.7");
        assert_eq!(with(".hidden"), ".hidden.7");
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let to = Destination::File(dir.path().join("out"));
        let error = write_whole(&to, |w| {
            w.write_all(b"half")?;
            anyhow::bail!("no more")
        });
        assert!(format!("{:#}", error.unwrap_err()).ends_with("out: no more"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(write_whole(&to, |w| Ok(w.write_all(b"whole")?)).unwrap(), 5);
        assert_eq!(fs::read(dir.path().join("out")).unwrap(), b"whole");
    }
}
