//! Coverage files: from a request to the files on disk.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use runtap_os::output::{Destination, OutputSink, with_extension};
use thiserror::Error;

use crate::classpath::{self, ClasspathError};
use crate::coverage::{
    Coverage, Format, Inventory, NeverCalled, NeverOptions, Observed, Options, Patterns, RecordedCoverage,
    WriteOptions,
};

/// A requested coverage file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoverageFile {
    /// The format of the file.
    pub format: Format,
    /// The path of the file, with `-` for standard output; `None` for a default name beside the recording.
    pub path: Option<PathBuf>,
}

impl FromStr for CoverageFile {
    type Err = String;

    /// Parses `FORMAT` or `FORMAT=FILE`. The error is a message for the user.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text.split_once('=').map_or((text, None), |(name, path)| (name, Some(path)));
        let format = Format::from_name(&name.to_ascii_lowercase()).ok_or_else(|| {
            let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            format!("'{name}' is not a coverage format; valid values: {}", known.join(", "))
        })?;
        if path.is_some_and(str::is_empty) {
            return Err("a path is missing behind '='".to_owned());
        }
        Ok(Self { format, path: path.map(PathBuf::from) })
    }
}

/// The requested coverage files and lists of methods that were never called.
#[derive(Debug, Clone)]
pub struct CoverageRequest<'a> {
    /// The files.
    pub files: &'a [CoverageFile],
    /// The jars and class directories whose methods that were never called are listed.
    pub never_called: &'a [PathBuf],
    /// The jars and class directories of the program.
    pub classes: &'a [PathBuf],
    /// The source directories.
    pub sources: &'a [PathBuf],
    /// The classes to include.
    pub patterns: Patterns,
    /// Whether methods that the compiler generated are included.
    pub compiler_methods: bool,
    /// Whether a call counts as a visit of the method's first line, in recordings without lines.
    pub entry_lines: bool,
}

/// An error of writing coverage files.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoverageError {
    /// Two files would have the same path.
    #[error("two coverage files would have the same path; use --coverage {}=FILE", .0.name())]
    SamePath(Format),
    /// A jar or class directory cannot be read.
    #[error(transparent)]
    Classpath(#[from] ClasspathError),
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] runtap_os::output::Error),
}

/// The written coverage files.
#[derive(Debug)]
pub struct WrittenCoverage {
    /// The coverage.
    pub coverage: Coverage,
    /// The path, format and size in bytes of each file that is not standard output.
    pub files: Vec<(PathBuf, Format, u64)>,
    /// The number of entries of jars that cannot be read; `None` without jars and class directories.
    pub unread_entries: Option<u64>,
}

impl CoverageRequest<'_> {
    /// Opens the files. Default names have the path `base` with another extension.
    ///
    /// # Errors
    /// Fails if two files have the same path, or a file cannot be created.
    pub fn open(&self, base: &Path) -> Result<Vec<OutputSink>, CoverageError> {
        let mut sinks = Vec::new();
        let mut destinations: Vec<Destination> = Vec::new();
        for file in self.files {
            let to = match &file.path {
                Some(path) if path == Path::new("-") => Destination::Stdout,
                Some(path) => Destination::File(path.clone()),
                None => Destination::File(with_extension(base, file.format.extension())),
            };
            if destinations.contains(&to) {
                return Err(CoverageError::SamePath(file.format));
            }
            sinks.push(OutputSink::open(&to)?);
            destinations.push(to);
        }
        Ok(sinks)
    }

    /// Reads the classes whose methods that were never called are listed.
    ///
    /// # Errors
    /// Fails if a jar or class directory cannot be read.
    pub fn read_never_called(&self, observed: &Observed) -> Result<Inventory, CoverageError> {
        Ok(classpath::inventory(self.never_called, observed.releases.newest())?)
    }

    /// Returns the methods of these classes that were never called; `None` if the list is not requested.
    pub fn never_called<'i>(&self, observed: &Observed, classes: &'i Inventory) -> Option<NeverCalled<'i>> {
        (!self.never_called.is_empty()).then(|| {
            let (patterns, compiler_methods) = (self.patterns.clone(), self.compiler_methods);
            NeverCalled::of(observed, classes, &NeverOptions { patterns, compiler_methods })
        })
    }

    /// Writes the [opened](Self::open) files. `never_called` has the classes of the list, which are part of the program too.
    ///
    /// # Errors
    /// Fails if a jar or class directory cannot be read, or a file cannot be written.
    pub fn write(
        &self,
        recorded: &RecordedCoverage,
        never_called: &Inventory,
        sinks: Vec<OutputSink>,
    ) -> Result<WrittenCoverage, CoverageError> {
        let release = recorded.observed.releases.newest();
        let own =
            (!self.classes.is_empty()).then(|| classpath::inventory(self.classes, release)).transpose()?;
        let inventory = own.as_ref().or_else(|| (!self.never_called.is_empty()).then_some(never_called));
        let options = Options {
            patterns: self.patterns.clone(),
            compiler_methods: self.compiler_methods,
            entry_lines: self.entry_lines,
        };
        let coverage = Coverage::of(&recorded.observed, inventory, &options);
        let roots: Vec<String> =
            self.sources.iter().map(|root| root.to_string_lossy().into_owned()).collect();
        let locate = |path: &str| classpath::locate(self.sources, path);
        let how = WriteOptions {
            // The time of the recording, not the current time: equal traces give equal files.
            timestamp_ms: recorded.began_ms.unwrap_or(0),
            roots: &roots,
            locate: Some(&locate),
            ..WriteOptions::default()
        };
        let mut files = Vec::new();
        for (file, sink) in self.files.iter().zip(sinks) {
            let mut writer = sink.begin()?;
            file.format.write(&coverage, &mut writer, &how).map_err(|error| writer.failed(error))?;
            let (path, bytes) = writer.finish()?;
            files.extend(path.map(|path| (path, file.format, bytes)));
        }
        let unread_entries = inventory.map(|inventory| inventory.unread.len() as u64);
        Ok(WrittenCoverage { coverage, files, unread_entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_with_and_without_a_path() {
        let parse = str::parse::<CoverageFile>;
        assert_eq!(parse("lcov"), Ok(CoverageFile { format: Format::Lcov, path: None }));
        let named = CoverageFile { format: Format::Jacoco, path: Some("a=b.xml".into()) };
        assert_eq!(parse("JaCoCo=a=b.xml"), Ok(named));
        assert_eq!(parse("lcov="), Err("a path is missing behind '='".to_owned()));
        assert!(parse("emma").unwrap_err().contains("valid values: lcov, jacoco, cobertura"));
    }
}
