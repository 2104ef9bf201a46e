//! Files that the build script compresses into the program.

use std::io::{self, Read as _};

use flate2::read::ZlibDecoder;

pub(crate) fn decompress(file: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(file).read_to_end(&mut bytes)?;
    Ok(bytes)
}
