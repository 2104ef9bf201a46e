//! Internals that are exposed to fuzz targets.

use crate::HttpError;
use crate::link::ResponseReader;

/// Parses a response in chunks of `size` bytes, and returns its body.
///
/// # Errors
/// Returns an error if the response is not accepted.
pub fn response(bytes: &[u8], size: usize) -> Result<Option<Vec<u8>>, HttpError> {
    let mut reader = ResponseReader::new();
    for chunk in bytes.chunks(size) {
        reader.feed(chunk);
        if let Some(response) = reader.next()? {
            return Ok(Some(response.body));
        }
    }
    Ok(None)
}
