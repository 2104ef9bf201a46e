//! A file with counters that is complete after each interval, so that a killed tool loses one interval at most.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use runtap_model::counters::{CounterBoard, CounterRow};
use runtap_os::output::{Destination, Error, OutputSink, PendingFile, numbered};
use runtap_sinks::counters::CounterWriter;

use super::CounterSignal;

/// The base of the file name without an option.
const NAME: &str = "counter";

/// Writes counters to a file or to standard output.
#[derive(Debug)]
pub struct CounterFile {
    writer: CounterWriter,
    output: Output,
    path: Option<PathBuf>,
    has_head: bool,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Output {
    Stdout,
    /// Data is appended. `rows` is the offset behind the last row, or `None` for pipes and devices.
    Append {
        file: File,
        rows: Option<u64>,
    },
    /// The file is replaced.
    Replace(PathBuf),
}

impl CounterFile {
    /// Opens the output: a path, `-` for standard output, or a new file named `counter`.
    ///
    /// # Errors
    /// Returns an error if the output can't be written.
    pub fn open(writer: CounterWriter, path: Option<&Path>) -> Result<Self, Error> {
        let format = writer.format();
        let (output, path) = match path {
            Some(path) if path == "-" => (Output::Stdout, None),
            path => {
                // Collectors of other users read a snapshot.
                let is_public = format.is_snapshot();
                let pending = match path {
                    None if is_public => PendingFile::public_within(Path::new(""))?,
                    None => PendingFile::within(Path::new(""))?,
                    Some(path) if is_public => PendingFile::public(path)?,
                    Some(path) => match OutputSink::open(&Destination::File(path.to_owned()))? {
                        OutputSink::File(pending) => pending,
                        OutputSink::Stdout => return Self::open(writer, Some(Path::new("-"))),
                    },
                };
                let is_file = path.is_none() || pending.is_file();
                let base = Path::new(NAME);
                let (file, path) = match path {
                    None => pending.settle(|n| numbered(base, n, format.extension()))?,
                    Some(_) => pending.appear()?,
                };
                let output = if format.is_snapshot() && is_file {
                    Output::Replace(path.clone())
                } else {
                    Output::Append { file, rows: is_file.then_some(0) }
                };
                (output, Some(path))
            }
        };
        Ok(Self { writer, output, path, has_head: false, buffer: Vec::new() })
    }

    /// Returns the path. `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Processes a signal.
    ///
    /// # Errors
    /// Returns an error if the output can't be written.
    pub(super) fn signal(&mut self, signal: &CounterSignal<'_>) -> io::Result<()> {
        match signal {
            CounterSignal::Started { name, .. } => self.start(name),
            CounterSignal::Reading(row) => self.row(row),
            CounterSignal::Pause(board) => self.pause(board),
            CounterSignal::Notice { .. } => Ok(()),
        }
    }

    fn start(&mut self, name: &str) -> io::Result<()> {
        if std::mem::replace(&mut self.has_head, true) {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        self.writer.head(name, now, &mut self.buffer)?;
        self.write()
    }

    fn row(&mut self, row: &CounterRow) -> io::Result<()> {
        self.writer.row(row, &mut self.buffer)
    }

    fn pause(&mut self, board: &CounterBoard) -> io::Result<()> {
        self.writer.snapshot(board, &mut self.buffer);
        self.write()
    }

    /// Writes what is buffered. In a regular file, the end of the document follows, which the next rows replace.
    fn write(&mut self) -> io::Result<()> {
        let tail = self.writer.tail().as_bytes();
        match &mut self.output {
            Output::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(&self.buffer)?;
                out.flush()?;
            }
            Output::Append { file, rows: None } => file.write_all(&self.buffer)?,
            Output::Append { file, rows: Some(rows) } => {
                let length = self.buffer.len() as u64;
                self.buffer.extend_from_slice(tail);
                file.seek(SeekFrom::Start(*rows))?;
                file.write_all(&self.buffer)?;
                *rows += length;
            }
            Output::Replace(path) => {
                let pending = PendingFile::public(path).map_err(io::Error::other)?;
                pending.file().write_all(&self.buffer)?;
                pending.appear_soon().map_err(io::Error::other)?;
            }
        }
        self.buffer.clear();
        Ok(())
    }

    /// Finishes the output.
    ///
    /// # Errors
    /// Returns an error if the output can't be written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let tail = self.writer.tail().as_bytes();
        match &mut self.output {
            Output::Stdout if self.has_head => {
                let mut out = io::stdout().lock();
                out.write_all(tail)?;
                out.flush()
            }
            Output::Append { file, rows: None } if self.has_head => file.write_all(tail),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use runtap_model::counters::{Counter, CounterValues, Reading};
    use runtap_sinks::counters::CounterFormat;

    use super::*;

    fn reading(value: f64) -> Reading {
        let counter = Counter { name: "a".to_owned(), ..Counter::default() };
        let values = CounterValues { value: Some(value), ..CounterValues::default() };
        Reading { counter, values, utc_ns: None }
    }

    /// Collectors of other users read snapshots only.
    #[cfg(unix)]
    #[test]
    fn snapshots_are_public_from_the_start() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // The umask may forbid a part.
        let usual = folder.path().join("usual");
        std::fs::write(&usual, "").unwrap();
        for (format, expected) in [
            (CounterFormat::Prometheus, mode(&usual)),
            (CounterFormat::Csv, 0o600),
            (CounterFormat::Json, 0o600),
        ] {
            let path = folder.path().join(format.name());
            let mut file = CounterFile::open(CounterWriter::new(format, 1.0), Some(&path)).unwrap();
            assert_eq!(mode(&path), expected);
            file.signal(&CounterSignal::Started { pid: 1, name: "app" }).unwrap();
            file.signal(&CounterSignal::Pause(&CounterBoard::default())).unwrap();
            assert_eq!(mode(&path), expected);
        }
    }

    /// Whatever kills the tool between two intervals, the file can be read.
    #[test]
    fn files_are_complete_after_each_interval() {
        let folder = tempfile::tempdir().unwrap();
        for format in [CounterFormat::Json, CounterFormat::Csv, CounterFormat::Prometheus] {
            let path = folder.path().join(format.name());
            let mut file = CounterFile::open(CounterWriter::new(format, 1.0), Some(&path)).unwrap();
            let mut board = CounterBoard::default();
            file.signal(&CounterSignal::Started { pid: 1, name: "app" }).unwrap();
            for round in 0..3_u8 {
                let row = board.add(1, reading(f64::from(round))).unwrap().clone();
                file.signal(&CounterSignal::Reading(&row)).unwrap();
                file.signal(&CounterSignal::Pause(&board)).unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                match format {
                    CounterFormat::Json => {
                        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
                        assert_eq!(document["Events"].as_array().unwrap().len(), usize::from(round) + 1);
                    }
                    CounterFormat::Csv => assert_eq!(text.lines().count(), usize::from(round) + 2),
                    _ => assert!(text.ends_with(&format!("}} {round}\n")), "{text}"),
                }
            }
            file.finish().unwrap();
        }
    }
}
