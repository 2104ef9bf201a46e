//! Where a stream goes on behind bytes that are no part of it: the next object that is followed by what has to follow one.
//! For `NetPerf` 3 and Nettrace 4, whose objects have names; the blocks of Nettrace 6 have nothing to know them by. Judges
//! no payload.

use crate::raw::Format;
use crate::raw::envelope::{Candidate, candidate, first_tags};

/// Where the stream goes on.
pub(crate) enum Found {
    /// Not before this position, and whether there is more to come decides what is there.
    NotBefore(usize),
    /// At a position; blocks are aligned with this shift.
    At { position: usize, format: Format, shift: u8 },
}

/// Looks for the next object in `bytes`, which begin at `offset`. `known` is the format and the alignment of what was read
/// before; `None` if that was nothing.
pub(crate) fn search(
    bytes: &[u8],
    offset: u64,
    known: Option<(Format, u8)>,
    max_block: u32,
    finished: bool,
) -> Found {
    let formats = match known {
        Some((format, shift)) => [Some((format, Some(shift))), None],
        None => [Some((Format::Nettrace4, None)), Some((Format::NetPerf3, None))],
    };
    for position in 0..bytes.len() {
        let rest = bytes.get(position..).unwrap_or_default();
        for (format, shift) in formats.into_iter().flatten() {
            let tags = first_tags(format);
            if !rest.iter().zip(&tags).all(|(a, b)| a == b) {
                continue;
            }
            match candidate(rest, offset + position as u64, (format, shift), max_block, finished) {
                Candidate::No => {}
                Candidate::More => return Found::NotBefore(position),
                Candidate::Yes { shift } => return Found::At { position, format, shift },
            }
        }
    }
    Found::NotBefore(bytes.len())
}
