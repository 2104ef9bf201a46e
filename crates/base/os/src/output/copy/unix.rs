//! Where a file has data, and how much room there is, on Unix.

use std::fs::File;
use std::io;

use rustix::fs::SeekFrom as Sought;
use rustix::io::Errno;

/// Bytes that are left for us where a file lies.
pub(super) fn room(file: &File) -> io::Result<u64> {
    let room = rustix::fs::fstatvfs(file)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

/// Where a file has data, up to `len`. All of it, where the file system does not know.
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
        // Who says nonsense has no more data.
        let end = end.min(len);
        at = if end > start { end } else { len };
        (end > start).then_some(Ok((start, end)))
    })
}
