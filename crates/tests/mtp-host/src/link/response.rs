//! Parsing of HTTP/1.1 responses, without I/O: status, content type, length, body. Accepts only what the platform's own
//! hosts accept: status 200, `application/octet-stream`, and a body with a `Content-Length`.

use super::HttpError;

/// The maximum size of the header in bytes, as in servers.
const MAX_HEAD_SIZE: usize = 16 << 10;
/// The maximum size of the body in bytes, as in MTP 2.4.1.
const MAX_BODY_SIZE: usize = 256 << 20;

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) body: Vec<u8>,
    /// Whether the connection can be reused.
    pub(crate) is_reusable: bool,
}

/// Parses one response from chunks of any size.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    bytes: Vec<u8>,
    head: Option<Head>,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    size: usize,
    length: usize,
    is_reusable: bool,
}

impl ResponseReader {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the number of received bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the response, or `None` if it is not complete yet.
    ///
    /// # Errors
    /// Returns an error if the platform's own hosts would not accept the response. Parsing cannot continue afterwards.
    pub(crate) fn next(&mut self) -> Result<Option<Response>, HttpError> {
        let head = match self.head {
            Some(head) => head,
            None => match self.read_head()? {
                Some(head) => *self.head.insert(head),
                None => return Ok(None),
            },
        };
        let end = head.size + head.length;
        if self.bytes.len() < end {
            return Ok(None);
        }
        if self.bytes.len() > end {
            return Err(HttpError::Malformed { what: "bytes after the body", offset: end });
        }
        Ok(Some(Response { body: self.bytes.split_off(head.size), is_reusable: head.is_reusable }))
    }

    fn read_head(&self) -> Result<Option<Head>, HttpError> {
        let searched = self.bytes.get(..MAX_HEAD_SIZE).unwrap_or(&self.bytes);
        let Some(end) = searched.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            return match self.bytes.len() {
                size if size >= MAX_HEAD_SIZE => {
                    Err(HttpError::TooLarge { size: size as u64, limit: MAX_HEAD_SIZE as u64 })
                }
                _ => Ok(None),
            };
        };
        let text = searched.get(..end).unwrap_or_default();
        let text = std::str::from_utf8(text)
            .map_err(|error| malformed("header is not UTF-8", error.valid_up_to()))?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let mut words = first.splitn(3, ' ');
        let version = words.next().unwrap_or_default();
        let is_reusable_by_default = match version {
            "HTTP/1.1" => true,
            "HTTP/1.0" => false,
            _ => return Err(malformed("no HTTP/1.1 status line", 0)),
        };
        let status = words.next().filter(|status| status.len() == 3);
        let status = status.and_then(|status| status.parse::<u16>().ok());
        let status = status.ok_or_else(|| malformed("no status", version.len() + 1))?;
        let mut offset = first.len() + 2;
        let (mut length, mut content_type, mut is_reusable) = (None, None, is_reusable_by_default);
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                return Err(malformed("header without a colon", offset));
            };
            let value = value.trim_matches([' ', '\t']);
            if name.eq_ignore_ascii_case("content-length") {
                let number = value.bytes().all(|c| c.is_ascii_digit());
                let number = Some(value).filter(|_| number).and_then(|value| value.parse::<u64>().ok());
                let number = number.ok_or_else(|| malformed("no content length", offset))?;
                if length.replace(number).is_some_and(|other| other != number) {
                    return Err(malformed("conflicting content lengths", offset));
                }
            } else if name.eq_ignore_ascii_case("content-type") {
                content_type = Some(value);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(malformed("unsupported transfer encoding", offset));
            } else if name.eq_ignore_ascii_case("connection") {
                let has = |word: &str| value.split(',').any(|it| it.trim().eq_ignore_ascii_case(word));
                is_reusable = !has("close") && (is_reusable_by_default || has("keep-alive"));
            }
            offset += line.len() + 2;
        }
        if status != 200 {
            return Err(HttpError::Status(status));
        }
        let content_type = content_type.unwrap_or_default();
        let media = content_type.split(';').next().unwrap_or_default().trim();
        if !media.eq_ignore_ascii_case("application/octet-stream") {
            return Err(HttpError::ContentType(content_type.to_owned()));
        }
        let length = length.ok_or_else(|| malformed("no content length", end))?;
        let limit = MAX_BODY_SIZE as u64;
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_BODY_SIZE);
        let Some(length) = length else {
            return Err(HttpError::TooLarge { size: u64::MAX, limit });
        };
        Ok(Some(Head { size: end + 4, length, is_reusable }))
    }
}

fn malformed(what: &'static str, offset: usize) -> HttpError {
    HttpError::Malformed { what, offset }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Option<Response>, HttpError> {
        let mut reader = ResponseReader::new();
        reader.feed(text.as_bytes());
        reader.next()
    }

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n";

    #[test]
    fn a_response_has_a_status_a_type_and_a_length() {
        let response = read(&format!("{OK}content-length: 3\r\ndate: today\r\n\r\nabc"));
        assert_eq!(response, Ok(Some(Response { body: b"abc".to_vec(), is_reusable: true })));
        let response = read(&format!("{OK}Connection: Close\r\nContent-Length: 0\r\n\r\n")).unwrap();
        assert_eq!(response, Some(Response { body: Vec::new(), is_reusable: false }));
        let response = read(&OK.replace("1.1", "1.0").replace("stream", "stream; x=y")).unwrap();
        assert_eq!(response, None);
    }

    #[test]
    fn everything_else_is_rejected() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(error("HTTP/1.1 401 Unauthorized\r\n\r\n"), "the server replied with HTTP status 401");
        assert_eq!(
            error("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
            "the response has the content type \"\", not application/octet-stream"
        );
        assert_eq!(error(&format!("{OK}\r\n")), "invalid HTTP response: no content length at byte 55");
        assert_eq!(
            error(&format!("{OK}content-length: 1\r\ncontent-length: 2\r\n\r\n")),
            "invalid HTTP response: conflicting content lengths at byte 76"
        );
        assert_eq!(
            error(&format!("{OK}transfer-encoding: chunked\r\n\r\n")),
            "invalid HTTP response: unsupported transfer encoding at byte 57"
        );
        assert_eq!(
            error(&format!("{OK}content-length: 1\r\n\r\nab")),
            "invalid HTTP response: bytes after the body at byte 79"
        );
        assert!(error(&format!("{OK}content-length: 268435457\r\n\r\n")).contains("too large"));
        assert!(error(&format!("{OK}content-length: +1\r\n\r\n")).contains("no content length"));
        assert!(error("SSH-2.0\r\n\r\n").contains("no HTTP/1.1 status line"));
        assert!(error(&"x".repeat(MAX_HEAD_SIZE)).contains("too large"));
    }

    proptest! {
        #[test]
        fn the_result_does_not_depend_on_chunking(
            text in prop_oneof![
                "[ -~\r\n]{0,200}",
                ".{0,20}",
                "[a-c:]{0,9}".prop_map(|body| format!("{OK}content-length: {}\r\n\r\n{body}", body.len())),
                "[a-c:]{0,9}".prop_map(|line| format!("{OK}{line}\r\ncontent-length: 2\r\n\r\nab")),
            ],
            size in 1_usize..40,
        ) {
            let whole = read(&text);
            let mut reader = ResponseReader::new();
            let mut last = Ok(None);
            for chunk in text.as_bytes().chunks(size) {
                reader.feed(chunk);
                last = reader.next();
                if !matches!(last, Ok(None)) {
                    break;
                }
            }
            // With small chunks, a complete response is returned before excess bytes arrive.
            if !matches!(whole, Err(HttpError::Malformed { what: "bytes after the body", .. })) {
                prop_assert_eq!(whole, last);
            }
        }

        #[test]
        fn any_prefix_is_incomplete(body in prop::collection::vec(any::<u8>(), 0..50), split in 0.0..1.0_f64) {
            let mut bytes = format!("{OK}content-length: {}\r\n\r\n", body.len()).into_bytes();
            bytes.extend(&body);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                reason = "a place within the bytes")]
            let split = (bytes.len() as f64 * split) as usize;
            let mut reader = ResponseReader::new();
            reader.feed(&bytes[..split]);
            prop_assert_eq!(reader.next(), Ok(None));
            reader.feed(&bytes[split..]);
            prop_assert_eq!(reader.next(), Ok(Some(Response { body, is_reusable: true })));
        }
    }
}
