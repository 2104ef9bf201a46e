//! Opens recordings, and reads their bytes or lists their blocks with offsets, one buffer at a time.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use runtap_nettrace::inspect::{Inspect, Inspected};

use crate::source::{Error, Input, MaxSize};

/// Number of bytes per read.
const CHUNK_SIZE: usize = 1 << 20;

/// Passes the contents of a file to `take` in chunks. Returns its size in bytes.
///
/// # Errors
/// If the file cannot be read, or `take` fails. `path` is used in messages.
pub fn chunks<E: From<Error>>(
    mut file: impl Read,
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<u64, E> {
    let mut chunk = vec![0; CHUNK_SIZE];
    let mut bytes = 0;
    loop {
        let n = file.read(&mut chunk).map_err(|error| Error::Read { path: path.to_owned(), error })?;
        if n == 0 {
            return Ok(bytes);
        }
        bytes += n as u64;
        take(chunk.get(..n).unwrap_or_default())?;
    }
}

/// Opens a file or pipe, which is decompressed while being read if it is compressed.
///
/// # Errors
/// If the path cannot be opened, is a directory, or starts like a compressed file but is invalid.
pub fn open_input(path: &Path, max_size: MaxSize) -> Result<Input, Error> {
    let unreadable = |error| Error::Open { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(Error::Folder { path: path.to_owned() });
    }
    Input::new(file, max_size).map_err(unreadable)
}

/// Passes the objects and blocks of a stream to `visit`, including damaged ones. Returns the (decompressed) size of the
/// file in bytes.
///
/// # Errors
/// If the file cannot be opened or read, or `visit` fails.
pub fn inspect<E: From<Error>>(path: &Path, visit: impl FnMut(Inspected) -> Result<(), E>) -> Result<u64, E> {
    inspect_opened(open_input(path, MaxSize::BY_RATIO)?, path, visit)
}

/// Like [`inspect`], for an open file. `path` is used in messages.
///
/// # Errors
/// If the file cannot be read, or `visit` fails.
pub fn inspect_opened<E: From<Error>>(
    file: impl Read,
    path: &Path,
    mut visit: impl FnMut(Inspected) -> Result<(), E>,
) -> Result<u64, E> {
    let mut inspect = Inspect::new();
    let bytes = chunks(file, path, |chunk| {
        inspect.feed(chunk);
        visit_found(&mut inspect, &mut visit)
    })?;
    inspect.finish();
    visit_found(&mut inspect, &mut visit)?;
    Ok(bytes)
}

/// Passes what was found so far to `visit`.
fn visit_found<E>(
    inspect: &mut Inspect,
    visit: &mut impl FnMut(Inspected) -> Result<(), E>,
) -> Result<(), E> {
    while let Some(found) = inspect.next() {
        visit(found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_passed_on_until_a_failure() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..=250).cycle().take(CHUNK_SIZE + 7).collect();
        std::fs::write(file.path(), &bytes).unwrap();
        let open = || File::open(file.path()).unwrap();
        let mut seen = Vec::new();
        let size = chunks::<Error>(open(), file.path(), |chunk| {
            seen.extend_from_slice(chunk);
            Ok(())
        });
        assert_eq!((size.unwrap(), seen), (bytes.len() as u64, bytes));
        let enough = || Error::Folder { path: file.path().to_owned() };
        assert!(matches!(chunks(open(), file.path(), |_| Err(enough())), Err(Error::Folder { .. })));
    }

    #[test]
    fn a_missing_file_cannot_be_inspected() {
        let none = inspect(Path::new("/none"), |_| Ok::<(), Error>(()));
        assert_eq!(none.unwrap_err().to_string(), "can't read /none: No such file or directory (os error 2)");
    }
}
