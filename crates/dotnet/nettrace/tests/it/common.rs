//! Feeding real recordings to the reader.

use runtap_nettrace::{Error, Reader, StreamItem};
use runtap_testkit::Recording;

/// Returns all recordings with expected results; none, with a message, without a shared folder.
pub(crate) fn recordings() -> &'static [Recording] {
    runtap_testkit::recordings().unwrap_or_else(|skip| {
        skip.report();
        &[]
    })
}

/// Feeds `bytes` in chunks of `chunk` bytes and passes each item and each error to `see`.
pub(crate) fn read(
    reader: &mut Reader,
    bytes: &[u8],
    chunk: usize,
    mut see: impl FnMut(Result<StreamItem<'_>, Error>),
) {
    let mut drain = |reader: &mut Reader| {
        loop {
            match reader.next() {
                Ok(Some(item)) => see(Ok(item)),
                Ok(None) => break,
                Err(error) => see(Err(error)),
            }
        }
    };
    for chunk in bytes.chunks(chunk.max(1)) {
        reader.feed(chunk);
        drain(reader);
    }
    reader.finish();
    drain(reader);
}
