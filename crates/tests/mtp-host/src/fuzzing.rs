//! What only fuzz targets see of the inside.

use crate::HttpError;
use crate::link::ResponseReader;

/// The body of a response that comes in pieces of this size.
///
/// # Errors
/// It is none that is accepted.
pub fn response(bytes: &[u8], size: usize) -> Result<Option<Vec<u8>>, HttpError> {
    let mut reader = ResponseReader::new();
    for piece in bytes.chunks(size) {
        reader.feed(piece);
        if let Some(response) = reader.next()? {
            return Ok(Some(response.body));
        }
    }
    Ok(None)
}
