//! Data ranges of files and free space on Unix.

use std::fs::File;
use std::io;

use rustix::fs::SeekFrom as Sought;
use rustix::io::Errno;

/// Returns the number of free bytes in the file system of `file`.
pub(super) fn room(file: &File) -> io::Result<u64> {
    let room = rustix::fs::fstatvfs(file)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Returns the data ranges of a file up to `len`, or the whole range if the file system does not report holes.
pub(super) fn parts(file: &File, len: u64) -> impl Iterator<Item = io::Result<(u64, u64)>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= len {
            return None;
        }
        let start = match rustix::fs::seek(file, Sought::Data(at)) {
            Err(Errno::NXIO) => return None,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(at),
            found => found,
        };
        let end = match (&start, start.and_then(|start| rustix::fs::seek(file, Sought::Hole(start)))) {
            (_, Ok(end)) => end,
            (Ok(_), Err(_)) => len,
            (Err(error), _) => {
                at = len;
                return Some(Err((*error).into()));
            }
        };
        let start = start.unwrap_or(len).max(at).min(len);
        // Treat an inconsistent answer as the end of the data.
        let end = end.min(len);
        at = if end > start { end } else { len };
        (end > start).then_some(Ok((start, end)))
    })
}
