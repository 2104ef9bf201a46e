//! An open recording.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use runtap_nettrace::{InOrder, Join, PartialReason, Reader, StreamItem, TraceHeader};

use crate::source::budget::{Budget, Exceeded, Step};
use crate::source::{Error, ForeignFile, Input, MaxSize, parallel};

/// Describes what is missing from a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partial {
    /// End of the readable part, in bytes from the start.
    pub offset: u64,
    /// Why the readable part ends.
    pub reason: Reason,
}

/// The reasons why the readable part of a recording ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The stream is incomplete or damaged.
    Stream(runtap_nettrace::Partial),
    /// Reading was stopped by the memory limit.
    Memory {
        /// The limit in bytes.
        most: u64,
    },
    /// The stream is complete, but blocks were skipped.
    Skipped {
        /// Number of blocks of an unknown kind or version, which may also be damaged.
        blocks: u64,
    },
    /// The file cannot be decompressed any further, or exceeds the size limit.
    Compressed {
        /// The error.
        error: String,
    },
    /// Bytes after the end marker were not read.
    Follows {
        /// Number of bytes.
        bytes: u64,
        /// Whether these bytes start like a recording.
        is_recording: bool,
    },
    /// Samples are missing from the result.
    LeftOut {
        /// Number of samples, as [recorded](Recording::note_left_out).
        samples: u64,
        /// Why the recording was not read to its end, if it was not.
        besides: Option<Box<Self>>,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(partial) => match &partial.reason {
                PartialReason::Damaged(error) => write!(f, "damaged: {error}"),
                PartialReason::Cut { unused } => {
                    write!(f, "truncated: the last {unused} bytes cannot be used")
                }
                PartialReason::NoEndMarker => f.write_str("the end marker is missing"),
                _ => write!(f, "{partial}"),
            },
            Self::Memory { most } => {
                write!(f, "decoding it takes more than {most} bytes of memory, so the rest was skipped")
            }
            Self::Skipped { blocks } => write!(
                f,
                "{blocks} {} a newer format, or damaged, and skipped: the first",
                if *blocks == 1 { "block is of" } else { "blocks are of" }
            ),
            Self::Compressed { error } => write!(f, "cannot be decompressed beyond this point: {error}"),
            Self::Follows { bytes, is_recording: true } => {
                write!(
                    f,
                    "another recording of {bytes} bytes follows the end marker and is not read; split the file"
                )
            }
            Self::Follows { bytes, is_recording: false } => {
                write!(f, "{bytes} bytes follow the end marker and are not read")
            }
            Self::LeftOut { samples, besides: None } => write!(f, "{samples} samples omitted"),
            Self::LeftOut { samples, besides: Some(reason) } => {
                write!(f, "{samples} samples omitted; {reason}")
            }
        }
    }
}

impl From<runtap_nettrace::Partial> for Partial {
    fn from(partial: runtap_nettrace::Partial) -> Self {
        Self { offset: partial.offset, reason: Reason::Stream(partial) }
    }
}

impl Partial {
    /// Reading was stopped at `offset` by the memory limit.
    fn of_memory(offset: u64, exceeded: Exceeded) -> Self {
        Self { offset, reason: Reason::Memory { most: exceeded.most } }
    }
}

/// Number of bytes per read.
const CHUNK_SIZE: usize = 1 << 20;

/// An open recording.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    /// Replaces `file` if that is compressed, or is a pipe from which the first bytes were read.
    input: Option<Input>,
    /// The first bytes.
    start: Vec<u8>,
    reader: Reader,
    /// Replaces `reader` if events are read in time order.
    in_order: Option<InOrder>,
    /// Where reading stopped because of the memory limit or a decompression error.
    stopped_by_limit: Option<Partial>,
    /// Number of samples missing from the result.
    left_out: Option<u64>,
    /// Number of bytes read.
    read: u64,
    threads: usize,
}

impl Recording {
    /// Opens a file or a named pipe.
    ///
    /// # Errors
    /// If the path cannot be opened or is a directory.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let unreadable = |error| Error::Open { path: path.to_owned(), error };
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(Error::Folder { path: path.to_owned() });
        }
        let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
        let mut recording = Self::of(file.try_clone().map_err(unreadable)?, path.to_owned());
        let input = Input::new(file, MaxSize::BY_RATIO).map_err(unreadable)?;
        if is_file && input.compression().is_none() {
            recording.file.rewind().map_err(unreadable)?;
        } else {
            recording.input = Some(input);
        }
        Ok(recording)
    }

    /// Creates a recording from an open file, whose position must be at the start. `path` is used in messages.
    pub fn of(file: File, path: PathBuf) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let (input, start, reader) = (None, Vec::new(), Reader::new());
        let (in_order, stopped_by_limit, left_out, read) = (None, None, None, 0);
        Self { path, file, input, start, reader, in_order, stopped_by_limit, left_out, read, threads }
    }

    /// Sets the number of threads for [`read_parallel`](Self::read_parallel), which defaults to the number of
    /// processors.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Returns the path of the recording.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the recording can be read twice.
    ///
    /// # Errors
    /// If the recording is a pipe.
    pub fn must_be_read_twice(&self) -> Result<(), Error> {
        if self.file.metadata().is_ok_and(|meta| meta.is_file()) {
            return Ok(());
        }
        Err(Error::OnceOnly { path: self.path.clone() })
    }

    /// Passes all readable items to `visit`. [`Self::partial`] returns what is missing.
    ///
    /// # Errors
    /// If the file cannot be read or is not a recording.
    pub fn read(&mut self, visit: &mut dyn FnMut(&StreamItem<'_>)) -> Result<(), Error> {
        self.chunks(|recording, chunk| recording.items(chunk, visit))?;
        self.must_have_header()
    }

    /// Passes the items of the next chunk to `visit`; the last chunk is empty.
    // Dynamic: the reader is 15 kB of code for each type of visitor.
    pub(super) fn items(
        &mut self,
        chunk: &[u8],
        visit: &mut dyn FnMut(&StreamItem<'_>),
    ) -> Result<(), Error> {
        if chunk.is_empty() {
            self.reader.finish();
        }
        let Self { reader, path, start, .. } = self;
        let mut items = reader.items(chunk);
        // The reader continues after a damaged block and records the damage.
        while let Err(error) = items.for_each(|item| visit(&item)) {
            if items.header().is_none() {
                return Err(no_recording(path, start, error));
            }
        }
        Ok(())
    }

    pub(super) fn must_have_header(&self) -> Result<(), Error> {
        match self.header() {
            Some(_) => Ok(()),
            None => Err(Error::NoHeader { path: self.path.clone() }),
        }
    }

    /// Passes all readable items to `visit` in time order. An error of `visit` stops reading.
    ///
    /// # Errors
    /// See [`Self::read`]; also if `visit` fails.
    pub fn read_in_order<E: From<Error>>(
        &mut self,
        mut visit: impl FnMut(&StreamItem<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.chunks::<E>(|recording, chunk| {
            let Self { in_order, path, start, .. } = recording;
            let reader = in_order.get_or_insert_default();
            if chunk.is_empty() {
                reader.finish();
            } else {
                reader.feed(chunk);
            }
            loop {
                let error = match reader.next() {
                    Ok(Some(item)) => {
                        visit(&item)?;
                        continue;
                    }
                    Ok(None) => return Ok(()),
                    Err(error) => error,
                };
                if reader.header().is_none() {
                    return Err(no_recording(path, start, error).into());
                }
            }
        })?;
        Ok(self.must_have_header()?)
    }

    /// Reads all items into `whole`, with several threads if the file is large enough. `part` creates the observer of a
    /// part.
    ///
    /// # Errors
    /// See [`Self::read`].
    pub fn read_parallel<T: Join + Send>(
        &mut self,
        whole: &mut T,
        part: impl Fn() -> T + Sync,
    ) -> Result<(), Error> {
        if self.input.is_some() {
            return self.read(&mut |item| whole.item(item));
        }
        let budget = self.budget();
        let read = parallel::read(&self.file, self.threads, whole, part, || budget.is_exceeded(Step::Read))
            .map_err(|error| self.unreadable(error))?;
        if let Some(parallel::ReadResult { reader, exceeded }) = read {
            self.reader = reader;
            self.read = self.length();
            self.stopped_by_limit = exceeded.map(|(offset, exceeded)| Partial::of_memory(offset, exceeded));
            return Ok(());
        }
        self.read(&mut |item| whole.item(item))
    }

    /// Reads the file and passes its chunks to `take`, followed by an empty one.
    pub(super) fn chunks<E: From<Error>>(
        &mut self,
        mut take: impl FnMut(&mut Self, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut chunk = vec![0; CHUNK_SIZE];
        let budget = self.budget();
        let mut offset = 0;
        loop {
            let read = match &mut self.input {
                Some(input) => input.read(&mut chunk),
                None => self.file.read(&mut chunk),
            };
            let is_compressed = self.input.as_ref().is_some_and(|input| input.compression().is_some());
            let mut n = match read {
                // Data decompressed before the error is valid.
                Err(error) if is_compressed && offset > 0 => {
                    let reason = Reason::Compressed { error: error.to_string() };
                    self.stopped_by_limit = Some(Partial { offset, reason });
                    0
                }
                read => read.map_err(|error| self.unreadable(error))?,
            };
            if offset == 0 {
                let start = chunk.get(..n.min(runtap_os::compressed::START_BYTES)).unwrap_or_default();
                self.start = start.to_vec();
            }
            if n > 0
                && let Some(exceeded) = budget.is_exceeded(Step::Read)
            {
                self.stopped_by_limit = Some(Partial::of_memory(offset, exceeded));
                n = 0;
            }
            offset += n as u64;
            self.read = offset;
            take(self, chunk.get(..n).unwrap_or_default())?;
            if n == 0 {
                return Ok(());
            }
        }
    }

    fn unreadable(&self, error: io::Error) -> Error {
        Error::Read { path: self.path.clone(), error }
    }

    /// Returns the header of the stream. `None` if it was not read.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.in_order.as_ref().map_or_else(|| self.reader.header(), InOrder::header)
    }

    /// Returns the number of events that the target dropped.
    pub fn lost(&self) -> u64 {
        self.in_order.as_ref().map_or_else(|| self.reader.lost(), InOrder::lost)
    }

    /// Returns the memory limit for processing the recording.
    fn budget(&self) -> Budget {
        Budget::for_recording(self.length())
    }

    /// Returns the current size in bytes; 0 for a pipe.
    pub fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |meta| meta.len())
    }

    /// Returns a function that returns whether there is memory left for building the result. Reading may use half of
    /// the limit, building another quarter, and the rest is for writing.
    pub fn room(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let budget = self.budget();
        move || budget.is_exceeded(Step::Build).is_none()
    }

    /// Records how many samples are missing from the result, for [`Self::partial`].
    pub fn note_left_out(&mut self, samples: u64) {
        self.left_out = Some(samples);
    }

    /// Returns whether the result lacks data that the recording contains.
    pub fn is_incomplete(&self) -> bool {
        self.stopped_by_limit.is_some() || self.left_out.is_some()
    }

    /// Returns information about skipped blocks. Missing events may have been in these blocks.
    fn skipped(&self) -> Option<Partial> {
        let counts = self.in_order.as_ref().map_or_else(|| self.reader.counts(), InOrder::counts);
        let offset = counts.first_unknown?;
        Some(Partial { offset, reason: Reason::Skipped { blocks: counts.unknown_objects } })
    }

    /// Returns information about bytes after the end marker.
    fn follows(&self) -> Option<Partial> {
        let counts = self.in_order.as_ref().map_or_else(|| self.reader.counts(), InOrder::counts);
        let offset = counts.end?;
        let bytes = Some(self.read.saturating_sub(offset)).filter(|bytes| *bytes > 0)?;
        Some(Partial { offset, reason: Reason::Follows { bytes, is_recording: self.begins_at(offset) } })
    }

    /// Returns whether a recording starts at this offset. False if unknown because the file can be read only once.
    fn begins_at(&self, offset: u64) -> bool {
        let (mut file, mut magic) = (&self.file, [0; 8]);
        self.input.is_none()
            && file.seek(SeekFrom::Start(offset)).is_ok()
            && file.read_exact(&mut magic).is_ok()
            && (magic == *b"Nettrace" || magic == *b"\x14\0\0\0!Fas")
    }

    /// Returns where and why reading was stopped before the end. `None` if it was not.
    pub(super) fn stopped(&self) -> Option<Partial> {
        self.stopped_by_limit.clone()
    }

    /// Returns whether blocks were skipped, so that not all [lost](Self::lost) events need to have been dropped by the
    /// target.
    pub fn has_skipped(&self) -> bool {
        self.skipped().is_some()
    }

    /// Returns what is missing after reading. `None` if the recording is complete.
    pub fn partial(&self) -> Option<Partial> {
        let of_stream = || {
            let partial = self.in_order.as_ref().map_or_else(|| self.reader.partial(), InOrder::partial);
            partial.cloned().map(Into::into).or_else(|| self.skipped()).or_else(|| self.follows())
        };
        let unread = self.stopped_by_limit.clone().or_else(of_stream);
        let Some(samples) = self.left_out else { return unread };
        Some(match unread {
            Some(Partial { offset, reason }) => {
                Partial { offset, reason: Reason::LeftOut { samples, besides: Some(Box::new(reason)) } }
            }
            None => Partial { offset: self.length(), reason: Reason::LeftOut { samples, besides: None } },
        })
    }
}

fn no_recording(path: &Path, start: &[u8], error: runtap_nettrace::Error) -> Error {
    match ForeignFile::of(start) {
        Some(kind) => Error::Foreign { path: path.to_owned(), kind },
        None => Error::NoRecording { path: path.to_owned(), error },
    }
}
