//! A recording, read in pieces.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use runtap_nettrace::{InOrder, Item, Join, PartialReason, Reader, TraceHeader};

use crate::source::budget::{Budget, Exceeded, Step};
use crate::source::{Error, ForeignFile, Input, MaxSize, parallel};

/// What is missing from a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partial {
    /// Where the readable part ends, in bytes from the start.
    pub offset: u64,
    /// Why it ends there.
    pub reason: Reason,
}

/// Why the readable part of a recording ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The stream itself is not whole.
    Stream(runtap_nettrace::Partial),
    /// It goes on, and what is built of it takes more memory than this many bytes.
    Memory {
        /// What may be taken.
        most: u64,
    },
    /// It is whole, and has blocks that were skipped.
    Skipped {
        /// Blocks of a kind or version that nobody here knows; damaged ones look like that too.
        blocks: u64,
    },
    /// It was compressed, and what is in it can't be read to its end, or is larger than is read.
    Compressed {
        /// Why.
        error: String,
    },
    /// More bytes follow the end marker, which are not read.
    Follows {
        /// How many.
        bytes: u64,
        /// Whether they begin like a recording.
        is_recording: bool,
    },
    /// What was made of it lacks something.
    LeftOut {
        /// Samples, as [noted](Recording::note_left_out).
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
                    write!(f, "cut off: the last {unused} bytes can't be used")
                }
                PartialReason::NoEndMarker => f.write_str("the end marker is missing"),
                _ => write!(f, "{partial}"),
            },
            Self::Memory { most } => {
                write!(f, "decoding it takes more than {most} bytes of memory, so the rest is left out")
            }
            Self::Skipped { blocks } => write!(
                f,
                "{blocks} {} a newer format, or damaged, and skipped: the first",
                if *blocks == 1 { "block is of" } else { "blocks are of" }
            ),
            Self::Compressed { error } => write!(f, "can't be decompressed any further: {error}"),
            Self::Follows { bytes, is_recording: true } => {
                write!(
                    f,
                    "another recording of {bytes} bytes follows the end marker and is not read; split the file"
                )
            }
            Self::Follows { bytes, is_recording: false } => {
                write!(f, "{bytes} bytes follow the end marker and are not read")
            }
            Self::LeftOut { samples, besides: None } => write!(f, "{samples} samples left out"),
            Self::LeftOut { samples, besides: Some(reason) } => {
                write!(f, "{samples} samples left out; {reason}")
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
    /// The recording goes on, but there is no room for more of it.
    fn of_memory(offset: u64, exceeded: Exceeded) -> Self {
        Self { offset, reason: Reason::Memory { most: exceeded.most } }
    }
}

/// How much is read at a time.
const PIECE: usize = 1 << 20;

/// An open recording.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    /// Instead of the file, if it is compressed, or begins with bytes that were looked at.
    input: Option<Input>,
    /// What it begins with.
    start: Vec<u8>,
    reader: Reader,
    /// Instead of the other one, if events were asked for in the order of time.
    in_order: Option<InOrder>,
    /// Where the reading ended because it took too much memory, or because nothing more can be decompressed.
    too_much: Option<Partial>,
    /// What is missing from what was made of it.
    left_out: Option<u64>,
    /// Bytes that were read.
    read: u64,
    threads: usize,
}

impl Recording {
    /// Opens a file, or a pipe by its name.
    ///
    /// # Errors
    /// It is not there, may not be read, or is a folder.
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

    /// One that is open, at its beginning; the path is for messages.
    pub fn of(file: File, path: PathBuf) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let (input, start, reader) = (None, Vec::new(), Reader::new());
        let (in_order, too_much, left_out, read) = (None, None, None, 0);
        Self { path, file, input, start, reader, in_order, too_much, left_out, read, threads }
    }

    /// Has [`read_parallel`](Self::read_parallel) take so many threads instead of one for each processor.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// What it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses what can be read only once.
    ///
    /// # Errors
    /// It is a pipe.
    pub fn must_be_read_twice(&self) -> Result<(), Error> {
        if self.file.metadata().is_ok_and(|meta| meta.is_file()) {
            return Ok(());
        }
        Err(Error::OnceOnly { path: self.path.clone() })
    }

    /// Hands every item that can be read to `visit`; [`Self::partial`] tells what is missing.
    ///
    /// # Errors
    /// A file that can't be read, or that is no recording at all.
    pub fn read(&mut self, mut visit: impl FnMut(&Item<'_>)) -> Result<(), Error> {
        self.pieces(|recording, piece| {
            if piece.is_empty() {
                recording.reader.finish();
            }
            let Self { reader, path, start, .. } = recording;
            let mut items = reader.items(piece);
            // The reader goes on behind a damaged block, and remembers the damage.
            while let Err(error) = items.for_each(|item| visit(&item)) {
                if items.header().is_none() {
                    return Err(no_recording(path, start, error));
                }
            }
            Ok(())
        })
    }

    /// The same in the order of time, for a visitor that can fail, which ends the reading.
    ///
    /// # Errors
    /// Those of [`Self::read`] and of `visit`.
    pub fn read_in_order<E: From<Error>>(
        &mut self,
        mut visit: impl FnMut(&Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pieces(|recording, piece| {
            let Self { in_order, path, start, .. } = recording;
            let reader = in_order.get_or_insert_default();
            if piece.is_empty() {
                reader.finish();
            } else {
                reader.feed(piece);
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
        })
    }

    /// The same into `whole`, by several threads if the file is large enough: `part` makes what observes a part of it.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_parallel<T: Join + Send>(
        &mut self,
        whole: &mut T,
        part: impl Fn() -> T + Sync,
    ) -> Result<(), Error> {
        if self.input.is_some() {
            return self.read(|item| whole.item(item));
        }
        let budget = self.budget();
        let read = parallel::read(&self.file, self.threads, whole, part, || budget.is_exceeded(Step::Gather))
            .map_err(|error| self.unreadable(error))?;
        if let Some(parallel::Read { reader, too_much }) = read {
            self.reader = reader;
            self.read = self.length();
            self.too_much = too_much.map(|(offset, exceeded)| Partial::of_memory(offset, exceeded));
            return Ok(());
        }
        self.read(|item| whole.item(item))
    }

    /// Reads the file piece by piece, and gives `take` each of them; an empty one at the end.
    fn pieces<E: From<Error>>(
        &mut self,
        mut take: impl FnMut(&mut Self, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut piece = vec![0; PIECE];
        let budget = self.budget();
        let mut offset = 0;
        loop {
            let read = match &mut self.input {
                Some(input) => input.read(&mut piece),
                None => self.file.read(&mut piece),
            };
            let is_compressed = self.input.as_ref().is_some_and(|input| input.compression().is_some());
            let mut n = match read {
                // What was decompressed before is good.
                Err(error) if is_compressed && offset > 0 => {
                    let reason = Reason::Compressed { error: error.to_string() };
                    self.too_much = Some(Partial { offset, reason });
                    0
                }
                read => read.map_err(|error| self.unreadable(error))?,
            };
            if offset == 0 {
                let start = piece.get(..n.min(runtap_os::compressed::LOOKED_AT)).unwrap_or_default();
                self.start = start.to_vec();
            }
            if n > 0
                && let Some(exceeded) = budget.is_exceeded(Step::Gather)
            {
                self.too_much = Some(Partial::of_memory(offset, exceeded));
                n = 0;
            }
            offset += n as u64;
            self.read = offset;
            take(self, piece.get(..n).unwrap_or_default())?;
            if n == 0 {
                break;
            }
        }
        if self.header().is_none() {
            return Err(Error::NoHeader { path: self.path.clone() }.into());
        }
        Ok(())
    }

    fn unreadable(&self, error: io::Error) -> Error {
        Error::Read { path: self.path.clone(), error }
    }

    /// The stream's header, if it was read.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.in_order.as_ref().map_or_else(|| self.reader.header(), InOrder::header)
    }

    /// Events that the target dropped.
    pub fn lost(&self) -> u64 {
        self.in_order.as_ref().map_or_else(|| self.reader.lost(), InOrder::lost)
    }

    /// The memory that its reading may take.
    fn budget(&self) -> Budget {
        Budget::for_recording(self.length())
    }

    /// Its size in bytes by now; 0 for a pipe.
    pub fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |meta| meta.len())
    }

    /// Tells whether there is memory left for what is put together of what was read: reading takes half of what may be
    /// taken, this another quarter, and the rest is for writing.
    pub fn room(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let budget = self.budget();
        move || budget.is_exceeded(Step::PutTogether).is_none()
    }

    /// Notes how many samples are missing from what was made of it; [`Self::partial`] tells it.
    pub fn note_left_out(&mut self, samples: u64) {
        self.left_out = Some(samples);
    }

    /// Whether what was made of it lacks what the recording has.
    pub fn is_cut_short(&self) -> bool {
        self.too_much.is_some() || self.left_out.is_some()
    }

    /// Blocks that were skipped: what is missing then need not have been dropped by the target.
    fn skipped(&self) -> Option<Partial> {
        let counts = self.in_order.as_ref().map_or_else(|| self.reader.counts(), InOrder::counts);
        let offset = counts.first_unknown?;
        Some(Partial { offset, reason: Reason::Skipped { blocks: counts.unknown_objects } })
    }

    /// Bytes behind the end marker.
    fn follows(&self) -> Option<Partial> {
        let counts = self.in_order.as_ref().map_or_else(|| self.reader.counts(), InOrder::counts);
        let offset = counts.end?;
        let bytes = Some(self.read.saturating_sub(offset)).filter(|bytes| *bytes > 0)?;
        Some(Partial { offset, reason: Reason::Follows { bytes, is_recording: self.begins_at(offset) } })
    }

    /// Whether a recording begins at this offset. Unknown, and told as none, where the file can be read only once.
    fn begins_at(&self, offset: u64) -> bool {
        let (mut file, mut magic) = (&self.file, [0; 8]);
        self.input.is_none()
            && file.seek(SeekFrom::Start(offset)).is_ok()
            && file.read_exact(&mut magic).is_ok()
            && (magic == *b"Nettrace" || magic == *b"\x14\0\0\0!Fas")
    }

    /// Whether events may have been in blocks that were skipped: not all that are [lost](Self::lost) the target dropped then.
    pub fn has_skipped(&self) -> bool {
        self.skipped().is_some()
    }

    /// What is missing, after it was read.
    pub fn partial(&self) -> Option<Partial> {
        let of_stream = || {
            let partial = self.in_order.as_ref().map_or_else(|| self.reader.partial(), InOrder::partial);
            partial.cloned().map(Into::into).or_else(|| self.skipped()).or_else(|| self.follows())
        };
        let unread = self.too_much.clone().or_else(of_stream);
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
