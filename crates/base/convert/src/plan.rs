//! Which files to write, and under which names.

use std::path::{Path, PathBuf};

use runtap_os::output::{
    Destination, NAMES_TRIED, is_free, is_same_path, numbered, with_extension, without_extension,
};

use crate::{Error, FileFormat};

/// The format that the extension of an output says; dotnet-trace's own names of files among them.
pub fn format_of(output: Option<&Path>) -> Option<FileFormat> {
    let name = output?.file_name()?.to_str()?.to_ascii_lowercase();
    FileFormat::all()
        .find(|format| name.strip_suffix(format.extension()).is_some_and(|stem| !stem.is_empty()))
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its format.
    pub format: FileFormat,
    /// Where it goes.
    pub to: Destination,
}

/// Which files to write. One format: `output` is taken as it is. Several: the known extension of `output` is replaced
/// by each format's. Without `output`: `base` and the extension.
///
/// # Errors
/// Several formats to stdout.
pub fn plan(formats: &[FileFormat], output: Option<&Path>, base: &Path) -> Result<Vec<Planned>, Error> {
    let mut distinct: Vec<FileFormat> = Vec::new();
    for format in formats {
        if !distinct.contains(format) {
            distinct.push(*format);
        }
    }
    let one = distinct.len() == 1;
    if !one && output == Some(Path::new("-")) {
        return Err(Error::SeveralToStdout);
    }
    let destination = |format: FileFormat| match output {
        Some(path) if path == Path::new("-") => Destination::Stdout,
        // A slash at the end means a folder, which is refused as it stands: what is put behind it would be another name.
        Some(path) if one || path.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            Destination::File(path.to_owned())
        }
        Some(path) => Destination::File(with_extension(&without_extension(path), format.extension())),
        None => Destination::File(with_extension(base, format.extension())),
    };
    Ok(distinct.into_iter().map(|format| Planned { format, to: destination(format) }).collect())
}

/// `base`, or `base_2`, `base_3` …: the first under which none of the files is there yet.
pub fn free_base(formats: &[FileFormat], base: &Path) -> PathBuf {
    let are_free =
        |base: &PathBuf| formats.iter().all(|format| is_free(&with_extension(base, format.extension())));
    (1..=NAMES_TRIED).map(|n| numbered(base, n, "")).find(are_free).unwrap_or_else(|| base.to_owned())
}

/// Refuses outputs that are one of the inputs, by whatever name or link.
///
/// # Errors
/// The first that is.
pub fn refuse_overwriting(inputs: &[&Path], planned: &[Planned]) -> Result<(), Error> {
    for Planned { to, .. } in planned {
        let Destination::File(path) = to else { continue };
        if !path.is_file() {
            continue;
        }
        let is_input = |input: &&&Path| is_same_path(input, path);
        if let Some(input) = inputs.iter().find(is_input) {
            return Err(Error::Overwrites { output: path.clone(), input: (*input).to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use runtap_sinks::Format;

    use super::*;

    const SPEEDSCOPE: FileFormat = FileFormat::Profile(Format::Speedscope);

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
        assert_eq!(names(&[SPEEDSCOPE], Some("x.json")), ["x.json"]);
        assert_eq!(names(&[FileFormat::Profile(Format::Folded)], Some("-")), ["-"]);
        assert_eq!(names(&[FileFormat::Nettrace], None), ["my.app_1_20260101_000000.nettrace"]);
    }

    #[test]
    fn several_formats_replace_the_extension() {
        let both = [FileFormat::Nettrace, SPEEDSCOPE, FileFormat::Nettrace];
        assert_eq!(names(&both, Some("d/t.nettrace")), ["d/t.nettrace", "d/t.speedscope.json"]);
        assert_eq!(names(&both, Some("d.1/t")), ["d.1/t.nettrace", "d.1/t.speedscope.json"]);
        assert_eq!(names(&both, Some("my.app")), ["my.app.nettrace", "my.app.speedscope.json"]);
        assert_eq!(names(&both, Some("d/")), ["d/", "d/"]);
        assert!(plan(&both, Some(Path::new("-")), Path::new("x")).is_err());
    }
}
