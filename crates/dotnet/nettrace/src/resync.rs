//! Finds the next object after damaged bytes: an object with a known name whose payload is followed by another object or
//! by the end of the stream. For `NetPerf` 3 and Nettrace 4; the blocks of Nettrace 6 have no names. Reads no payload.

use crate::raw::Format;
use crate::raw::envelope::{Candidate, candidate, first_tags};

/// The result of a search.
pub(crate) enum SearchResult {
    /// No object starts before this position. More bytes are needed to decide whether one starts at it.
    NotBefore(usize),
    /// An object starts at the position; blocks are aligned with this shift.
    At { position: usize, format: Format, shift: u8 },
}

/// Searches for the next object in `bytes`, which begin at `offset`. `known` is the format and the alignment of the bytes
/// read before, or `None` if there are none.
pub(crate) fn search(
    bytes: &[u8],
    offset: u64,
    known: Option<(Format, u8)>,
    max_block: u32,
    finished: bool,
) -> SearchResult {
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
                Candidate::More => return SearchResult::NotBefore(position),
                Candidate::Yes { shift } => return SearchResult::At { position, format, shift },
            }
        }
    }
    SearchResult::NotBefore(bytes.len())
}
