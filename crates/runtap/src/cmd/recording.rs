//! A recording on disk, read in pieces.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use runtap_model::{MAX_THREADS, Room, Trace};
use runtap_nettrace::{Error, InOrder, Item, PartialReason, Reader, TraceHeader};
use serde::Serialize;

use crate::cmd::side_by_side::{self, Gather};
use crate::exit::{self, expected};
use crate::memory::{Budget, Exceeded, Step};
use crate::output::Output;
use crate::units::{Bytes, Count, Things};

/// What is missing from a recording, as JSON has it.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub(crate) struct Partial {
    /// Where the readable part ends, in bytes from the start.
    pub(crate) offset: u64,
    pub(crate) reason: String,
}

impl From<&runtap_nettrace::Partial> for Partial {
    fn from(partial: &runtap_nettrace::Partial) -> Self {
        let reason = match &partial.reason {
            PartialReason::Damaged(error) => format!("damaged: {error}"),
            PartialReason::Cut { unused } => format!("cut off: the last {unused} bytes are of no use"),
            PartialReason::NoEndMarker => "the end marker is missing".to_owned(),
            _ => partial.to_string(),
        };
        Self { offset: partial.offset, reason }
    }
}

impl Partial {
    /// The recording goes on, but there is no room for more of it.
    fn of_memory(offset: u64, exceeded: Exceeded) -> Self {
        let reason = format!(
            "what it holds takes more than {} of memory, so the rest is left out",
            Bytes(exceeded.most)
        );
        Self { offset, reason }
    }
}

/// How much is read at a time.
const PIECE: usize = 1 << 20;

/// An open recording.
pub(crate) struct Recording {
    path: PathBuf,
    file: File,
    reader: Reader,
    /// Instead of the other one, if events were asked for in the order of time.
    in_order: Option<InOrder>,
    /// Where the reading ended because it took too much memory.
    too_much: Option<Partial>,
    /// What is missing from the profile that was made of it.
    left_out: Option<String>,
}

impl Recording {
    /// Opens a file.
    ///
    /// # Errors
    /// Code 2 when it can't be read.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let unreadable = |error: std::io::Error| {
            expected(exit::USAGE, format!("can't read {}: {error}", path.display()), None)
        };
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(expected(exit::USAGE, format!("{} is a folder, no recording", path.display()), None));
        }
        Ok(Self::of(file, path.to_owned()))
    }

    /// One that is open, at its beginning; the path is for messages.
    pub(crate) fn of(file: File, path: PathBuf) -> Self {
        Self { path, file, reader: Reader::new(), in_order: None, too_much: None, left_out: None }
    }

    /// Refuses what can be read only once.
    ///
    /// # Errors
    /// Code 2 for a pipe.
    pub(crate) fn must_be_read_twice(&self) -> anyhow::Result<()> {
        if self.file.metadata().is_ok_and(|meta| meta.is_file()) {
            return Ok(());
        }
        let message = format!("{} is no file, and the names of stacks stand at its end", self.path.display());
        Err(expected(exit::USAGE, message, "save it to a file first".to_owned()))
    }

    /// Hands every item that can be read to `visit`; [`Self::partial`] tells what is missing.
    ///
    /// # Errors
    /// A file that can't be read, or that is no recording at all.
    pub(crate) fn read(&mut self, mut visit: impl FnMut(&Item<'_>)) -> anyhow::Result<()> {
        self.pieces(|recording, piece| {
            if piece.is_empty() {
                recording.reader.finish();
            }
            let mut items = recording.reader.items(piece);
            // The reader goes on behind a damaged block, and remembers the damage.
            while let Err(error) = items.for_each(|item| visit(&item)) {
                if items.header().is_none() {
                    return Err(Stop::Damage(error));
                }
            }
            Ok(())
        })
    }

    /// The same in the order of time, for a visitor that can fail, which ends the reading.
    ///
    /// # Errors
    /// Those of [`Self::read`] and of `visit`.
    pub(crate) fn try_read_in_order(
        &mut self,
        mut visit: impl FnMut(&Item<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.pieces(|recording, piece| {
            let reader = recording.in_order.get_or_insert_default();
            if piece.is_empty() {
                reader.finish();
            } else {
                reader.feed(piece);
            }
            loop {
                let error = match reader.next() {
                    Ok(Some(item)) => {
                        visit(&item).map_err(Stop::Visitor)?;
                        continue;
                    }
                    Ok(None) => return Ok(()),
                    Err(error) => error,
                };
                if reader.header().is_none() {
                    return Err(Stop::Damage(error));
                }
            }
        })
    }

    /// The same into `whole`, by several threads if the file is large enough: `part` makes what gathers a part of it.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub(crate) fn read_side_by_side<T: Gather>(
        &mut self,
        whole: &mut T,
        part: impl Fn() -> T + Sync,
    ) -> anyhow::Result<()> {
        let budget = self.budget();
        let read = side_by_side::read(&self.file, whole, part, || budget.is_exceeded(Step::Gather))
            .with_context(|| format!("can't read {}", self.path.display()))?;
        if let Some(side_by_side::Read { reader, too_much }) = read {
            self.reader = reader;
            self.too_much = too_much.map(|(offset, exceeded)| Partial::of_memory(offset, exceeded));
            return Ok(());
        }
        self.read(|item| whole.item(item))
    }

    /// Reads the file piece by piece, and gives `take` each of them; an empty one at the end.
    fn pieces(&mut self, mut take: impl FnMut(&mut Self, &[u8]) -> Result<(), Stop>) -> anyhow::Result<()> {
        let mut piece = vec![0; PIECE];
        let budget = self.budget();
        let mut offset = 0;
        loop {
            let mut n =
                self.file.read(&mut piece).with_context(|| format!("can't read {}", self.path.display()))?;
            if n > 0
                && let Some(exceeded) = budget.is_exceeded(Step::Gather)
            {
                self.too_much = Some(Partial::of_memory(offset, exceeded));
                n = 0;
            }
            offset += n as u64;
            match take(self, piece.get(..n).unwrap_or_default()) {
                Ok(()) => {}
                Err(Stop::Visitor(error)) => return Err(error),
                Err(Stop::Damage(error)) => {
                    let message = format!("{} can't be read: {error}", self.path.display());
                    return Err(expected(exit::USAGE, message, hint(&error)));
                }
            }
            if n == 0 {
                break;
            }
        }
        if self.header().is_none() {
            let message = format!("{} ends before its header: it holds no event", self.path.display());
            return Err(expected(exit::USAGE, message, None));
        }
        Ok(())
    }

    /// The stream's header, if it was read.
    pub(crate) fn header(&self) -> Option<&TraceHeader> {
        self.in_order.as_ref().map_or_else(|| self.reader.header(), InOrder::header)
    }

    /// Events that the target dropped.
    pub(crate) fn lost(&self) -> u64 {
        self.in_order.as_ref().map_or_else(|| self.reader.lost(), InOrder::lost)
    }

    /// The memory that its reading may take.
    fn budget(&self) -> Budget {
        Budget::for_recording(self.length())
    }

    fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |meta| meta.len())
    }

    /// The room for what is put together of what was read.
    pub(crate) fn room(&self) -> Room {
        let budget = self.budget();
        Room::while_there_is(move || budget.is_exceeded(Step::PutTogether).is_none())
    }

    /// Notes what is missing from the profile that was made of it.
    pub(crate) fn has_become(&mut self, trace: &Trace) {
        if trace.left_out() > 0 {
            self.left_out = Some(format!(
                "{} left out, of threads beyond the first {} or because memory ran short",
                Things(trace.left_out(), "sample"),
                Count(MAX_THREADS as u64)
            ));
        }
    }

    /// Whether a profile that was made of it lacks what the recording has.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.too_much.is_some() || self.left_out.is_some()
    }

    /// What is missing, after [`Self::read`].
    pub(crate) fn partial(&self) -> Option<Partial> {
        let of_stream =
            || self.in_order.as_ref().map_or_else(|| self.reader.partial(), InOrder::partial).map(Into::into);
        let unread = self.too_much.clone().or_else(of_stream);
        let Some(left_out) = &self.left_out else { return unread };
        Some(match unread {
            Some(Partial { offset, reason }) => Partial { offset, reason: format!("{left_out}; {reason}") },
            None => Partial { offset: self.length(), reason: left_out.clone() },
        })
    }

    /// Says what is missing; the exit code for it.
    pub(crate) fn warn_if_partial(&self, output: Output) -> u8 {
        let Some(partial) = self.partial() else { return exit::OK };
        let Partial { offset, reason } = partial;
        output.warning(format_args!("{} is partial: {reason} at offset {offset}", self.path.display()));
        exit::PARTIAL
    }
}

/// Why items are not handed out any further: there is no header, or nobody wants them.
enum Stop {
    Damage(Error),
    Visitor(anyhow::Error),
}

fn hint(error: &Error) -> Option<String> {
    matches!(error, Error::Unsupported { .. })
        .then(|| "NetPerf 1 to 3 and Nettrace 4 to 6 can be read".to_owned())
}
