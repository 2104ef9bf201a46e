//! Determines the files to write and their names.

use std::path::{Path, PathBuf};

use runtap_os::output::{
    Destination, NAMES_TRIED, is_free, is_same_path, numbered, with_extension, without_extension,
};

use crate::{Error, FileFormat};

/// Returns the format that the extension of an output implies, including the file names of dotnet-trace. `None` if
/// unknown.
pub fn format_of(output: Option<&Path>) -> Option<FileFormat> {
    let name = output?.file_name()?.to_str()?.to_ascii_lowercase();
    FileFormat::all()
        .find(|format| name.strip_suffix(format.extension()).is_some_and(|stem| !stem.is_empty()))
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Format of the file.
    pub format: FileFormat,
    /// Destination of the file.
    pub to: Destination,
}

/// Determines the files to write. For one format, `output` is used unchanged. For several, the known extension of
/// `output` is replaced by that of each format. Without `output`, the extension is added to `base`.
///
/// # Errors
/// If several formats would be written to standard output.
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
        // A trailing slash means a directory. Keep it, so that it is rejected instead of becoming another name.
        Some(path) if one || path.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            Destination::File(path.to_owned())
        }
        Some(path) => Destination::File(with_extension(&without_extension(path), format.extension())),
        None => Destination::File(with_extension(base, format.extension())),
    };
    Ok(distinct.into_iter().map(|format| Planned { format, to: destination(format) }).collect())
}

/// Returns the first of `base`, `base_2`, `base_3` … for which none of the files exists.
pub fn free_base(formats: &[FileFormat], base: &Path) -> PathBuf {
    let are_free =
        |base: &PathBuf| formats.iter().all(|format| is_free(&with_extension(base, format.extension())));
    (1..=NAMES_TRIED).map(|n| numbered(base, n, "")).find(are_free).unwrap_or_else(|| base.to_owned())
}

/// Checks that no output is one of the inputs, under any name or link.
///
/// # Errors
/// If an output is an input, for the first one.
pub fn reject_overwriting(inputs: &[&Path], planned: &[Planned]) -> Result<(), Error> {
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
    fn one_format_uses_the_name_unchanged() {
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
