//! Files that the build script compresses into the program.

use anyhow::Context as _;

pub(crate) fn decompress(mut file: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    lzma_rs::lzma_decompress(&mut file, &mut bytes).context("cannot decompress a part of this program")?;
    Ok(bytes)
}
