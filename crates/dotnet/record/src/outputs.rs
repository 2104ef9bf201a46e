//! The outputs of one recording. They are opened before any request is sent, so that an error in them causes no session, and a
//! rejected session leaves no file created or changed.
//!
//! File names that contain the program's name are known only when the process has answered; the files are created before, without a
//! name.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::Error;
use crate::job::Job;
use crate::raw::RawStream;
use crate::recorder::Sink;
use runtap_convert::{FileFormat, Planned, free_base, plan};
use runtap_os::output::{
    Destination, OutputSink, PendingFile, insert_before_extension, is_regular, numbered, with_extension,
};

/// A format and its output.
pub(crate) type Opened = (FileFormat, OutputSink);

/// Outputs that are open and empty.
#[derive(Debug)]
pub(crate) struct Outputs {
    opened: Vec<Opened>,
    /// A temporary file for the stream, if the stream itself was not requested.
    stream: Option<PendingFile>,
    /// The index of the process. The outputs of the first process have the names given by the user; those of others include a
    /// process id.
    number: usize,
}

impl Outputs {
    /// Opens all outputs of a process. With `pid`, the names include it. Outputs that are common to all processes are opened once;
    /// then only the stream is opened.
    ///
    /// # Errors
    /// Returns an error if an output can't be written.
    fn open(job: &Job, pid: Option<u64>, number: usize) -> Result<Self, Error> {
        if job.spec.consumers.is_some() {
            return Ok(Self { opened: Vec::new(), stream: None, number });
        }
        let output = job.spec.output.as_deref();
        let mut opened = Vec::new();
        if !job.spec.merge || pid.is_none() {
            let planned = plan(&job.spec.formats, output, Path::new("x"))?;
            for Planned { format, to } in planned {
                opened.push((format, Self::outlet(job, to, pid)?));
            }
        }
        let is_asked_for = job.spec.formats.contains(&FileFormat::Nettrace);
        let stream = if is_asked_for { None } else { Some(Self::stream(&opened, output)?) };
        Ok(Self { opened, stream, number })
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    fn outlet(job: &Job, to: Destination, pid: Option<u64>) -> Result<OutputSink, Error> {
        let path = match to {
            Destination::Stdout => return Ok(OutputSink::Stdout),
            Destination::File(_) if job.spec.output.is_none() => {
                return Ok(OutputSink::File(PendingFile::within(Path::new(""))?));
            }
            Destination::File(path) => path,
        };
        let path = if is_regular(&path) { job.unused(&path, pid) } else { path };
        Ok(OutputSink::open(&Destination::File(path))?)
    }

    /// Creates a temporary file for the stream: beside the first result, so that it is on the disk chosen by the user, or in the
    /// temporary directory if the result is not a file.
    fn stream(opened: &[Opened], output: Option<&Path>) -> Result<PendingFile, Error> {
        let drafts = opened.iter().filter_map(|(_, outlet)| match outlet {
            OutputSink::File(draft) => Some(draft),
            OutputSink::Stdout => None,
        });
        for draft in drafts {
            if let Some(beside) = draft.sibling()? {
                return Ok(beside);
            }
        }
        match output.filter(|output| opened.is_empty() && is_regular(output)).and_then(Path::parent) {
            Some(folder) => Ok(PendingFile::within(folder)?),
            None => Ok(PendingFile::within(&std::env::temp_dir())?),
        }
    }

    /// Assigns the final names after the session has started. Without names given by the user, they start with `base` or an unused
    /// variant.
    ///
    /// # Errors
    /// Returns an error if no name is unused, or the directory has changed.
    pub(crate) fn settle(self, job: &Job, base: &Path) -> Result<(RawStream, Sink, Vec<Opened>), Error> {
        let Self { opened, stream, .. } = self;
        let is_given = job.spec.output.is_some();
        let base = if is_given { base.to_owned() } else { free_base(&job.spec.formats, base) };
        let mut raw = None;
        if let Some(stream) = stream {
            let file = stream.file().try_clone()?;
            raw = Some((RawStream::Temporary(stream), Sink::File(file)));
        }
        let mut rest = Vec::new();
        for (format, outlet) in opened {
            let extension = format.extension();
            match outlet {
                OutputSink::Stdout if format == FileFormat::Nettrace => {
                    raw = Some((RawStream::Stdout, Sink::Stdout));
                }
                OutputSink::File(draft) if format == FileFormat::Nettrace => {
                    let (file, path) = if is_given {
                        draft.appear()?
                    } else {
                        draft.settle(|n| numbered(&base, n, extension))?
                    };
                    raw = Some((RawStream::Asked(path, file.try_clone()?), Sink::File(file)));
                }
                OutputSink::File(mut draft) if !is_given => {
                    draft.name(job.unused(&with_extension(&base, extension), None));
                    rest.push((format, OutputSink::File(draft)));
                }
                outlet => rest.push((format, outlet)),
            }
        }
        let (raw, sink) = raw.ok_or(Error::NoFile)?;
        Ok((raw, sink, rest))
    }
}

impl Job {
    /// Opens the outputs with the names given by the user, before any request is sent.
    ///
    /// # Errors
    /// Returns an error if an output can't be written.
    pub(crate) fn open_outputs(&self) -> Result<(), Error> {
        let outputs = Outputs::open(self, None, 0)?;
        self.named.lock().unwrap_or_else(PoisonError::into_inner).replace(outputs);
        Ok(())
    }

    /// Returns the outputs for one more process: the named ones for the first, separate ones for others.
    ///
    /// # Errors
    /// Returns an error if an output can't be written.
    pub(crate) fn outputs_of(&self, pid: u64) -> Result<Outputs, Error> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner).take();
        let number = || self.numbers.fetch_add(1, Ordering::SeqCst) + 1;
        named.map_or_else(|| Outputs::open(self, Some(pid), number()), Ok)
    }

    /// Returns the outputs of a process without a result, so that another one may use them.
    pub(crate) fn take_back(&self, outputs: Outputs) {
        if outputs.number == 0 {
            self.named.lock().unwrap_or_else(PoisonError::into_inner).replace(outputs);
        }
    }

    /// Returns the outputs common to all processes, if no process has them.
    ///
    /// # Errors
    /// Returns an error if an output can't be written.
    pub(crate) fn outputs_of_all(&self, base: &Path) -> Result<Vec<Opened>, Error> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner).take();
        let outputs = named.map_or_else(|| Outputs::open(self, None, 0), Ok)?;
        Ok(outputs.settle(self, base)?.2)
    }

    /// Returns a path that no other process uses. With `pid`, the name includes it.
    fn unused(&self, path: &Path, pid: Option<u64>) -> PathBuf {
        let with = |pid| insert_before_extension(path, &format!(".{pid}"));
        let wanted = pid.map_or_else(|| path.to_owned(), with);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        // A process id may be reused in a long recording.
        let (mut path, mut n) = (wanted.clone(), 1);
        while !taken.insert(path.clone()) {
            n += 1;
            path = insert_before_extension(&wanted, &format!("_{n}"));
        }
        path
    }
}
