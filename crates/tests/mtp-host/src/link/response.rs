//! Responses of HTTP/1.1, without I/O: status, content type, length, body. Only what the platform's own hosts accept: status
//! 200, `application/octet-stream`, a body with a `Content-Length`.

use super::HttpError;

/// Of the head: the server's own limit for ours.
const HEAD: usize = 16 << 10;
/// Of the body: as MTP 2.4.1 has it.
const BODY: usize = 256 << 20;

/// A response that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) body: Vec<u8>,
    /// Whether the connection can be used again.
    pub(crate) keeps: bool,
}

/// Takes the bytes of one response in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    bytes: Vec<u8>,
    head: Option<Head>,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    size: usize,
    length: usize,
    keeps: bool,
}

impl ResponseReader {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes have come.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The response, once it is whole.
    ///
    /// # Errors
    /// It is none that the platform's own hosts would accept. There is nothing more to read then.
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
        Ok(Some(Response { body: self.bytes.split_off(head.size), keeps: head.keeps }))
    }

    fn read_head(&self) -> Result<Option<Head>, HttpError> {
        let searched = self.bytes.get(..HEAD).unwrap_or(&self.bytes);
        let Some(end) = searched.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            return match self.bytes.len() {
                size if size >= HEAD => Err(HttpError::TooLarge { size: size as u64, limit: HEAD as u64 }),
                _ => Ok(None),
            };
        };
        let text = searched.get(..end).unwrap_or_default();
        let text = std::str::from_utf8(text).map_err(|error| malformed("no text", error.valid_up_to()))?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let mut words = first.splitn(3, ' ');
        let version = words.next().unwrap_or_default();
        let keeps_by_default = match version {
            "HTTP/1.1" => true,
            "HTTP/1.0" => false,
            _ => return Err(malformed("no status line of HTTP/1.1", 0)),
        };
        let status = words.next().filter(|status| status.len() == 3);
        let status = status.and_then(|status| status.parse::<u16>().ok());
        let status = status.ok_or_else(|| malformed("no status", version.len() + 1))?;
        let mut offset = first.len() + 2;
        let (mut length, mut content_type, mut keeps) = (None, None, keeps_by_default);
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                return Err(malformed("a header without a colon", offset));
            };
            let value = value.trim_matches([' ', '\t']);
            if name.eq_ignore_ascii_case("content-length") {
                let number = value.bytes().all(|c| c.is_ascii_digit());
                let number = Some(value).filter(|_| number).and_then(|value| value.parse::<u64>().ok());
                let number = number.ok_or_else(|| malformed("no length", offset))?;
                if length.replace(number).is_some_and(|other| other != number) {
                    return Err(malformed("two lengths", offset));
                }
            } else if name.eq_ignore_ascii_case("content-type") {
                content_type = Some(value);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(malformed("a transfer encoding instead of a length", offset));
            } else if name.eq_ignore_ascii_case("connection") {
                let has = |word: &str| value.split(',').any(|it| it.trim().eq_ignore_ascii_case(word));
                keeps = !has("close") && (keeps_by_default || has("keep-alive"));
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
        let length = length.ok_or_else(|| malformed("no length", end))?;
        let limit = BODY as u64;
        let length = usize::try_from(length).ok().filter(|length| *length <= BODY);
        let Some(length) = length else {
            return Err(HttpError::TooLarge { size: u64::MAX, limit });
        };
        Ok(Some(Head { size: end + 4, length, keeps }))
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
        assert_eq!(response, Ok(Some(Response { body: b"abc".to_vec(), keeps: true })));
        let response = read(&format!("{OK}Connection: Close\r\nContent-Length: 0\r\n\r\n")).unwrap();
        assert_eq!(response, Some(Response { body: Vec::new(), keeps: false }));
        let response = read(&OK.replace("1.1", "1.0").replace("stream", "stream; x=y")).unwrap();
        assert_eq!(response, None);
    }

    #[test]
    fn everything_else_is_refused() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error("HTTP/1.1 401 Unauthorized\r\n\r\n"),
            "the server has answered with HTTP status 401"
        );
        assert_eq!(
            error("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
            "the response has the content type \"\", not application/octet-stream"
        );
        assert_eq!(error(&format!("{OK}\r\n")), "no HTTP response: no length at byte 55");
        assert_eq!(
            error(&format!("{OK}content-length: 1\r\ncontent-length: 2\r\n\r\n")),
            "no HTTP response: two lengths at byte 76"
        );
        assert_eq!(
            error(&format!("{OK}transfer-encoding: chunked\r\n\r\n")),
            "no HTTP response: a transfer encoding instead of a length at byte 57"
        );
        assert_eq!(
            error(&format!("{OK}content-length: 1\r\n\r\nab")),
            "no HTTP response: bytes after the body at byte 79"
        );
        assert!(error(&format!("{OK}content-length: 268435457\r\n\r\n")).contains("too large"));
        assert!(error(&format!("{OK}content-length: +1\r\n\r\n")).contains("no length"));
        assert!(error("SSH-2.0\r\n\r\n").contains("no status line"));
        assert!(error(&"x".repeat(HEAD)).contains("too large"));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same(
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
            for piece in text.as_bytes().chunks(size) {
                reader.feed(piece);
                last = reader.next();
                if !matches!(last, Ok(None)) {
                    break;
                }
            }
            // A response that is whole before more than it has come is known sooner.
            if !matches!(whole, Err(HttpError::Malformed { what: "bytes after the body", .. })) {
                prop_assert_eq!(whole, last);
            }
        }

        #[test]
        fn any_prefix_is_incomplete(body in prop::collection::vec(any::<u8>(), 0..50), cut in 0.0..1.0_f64) {
            let mut bytes = format!("{OK}content-length: {}\r\n\r\n", body.len()).into_bytes();
            bytes.extend(&body);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                reason = "a place within the bytes")]
            let cut = (bytes.len() as f64 * cut) as usize;
            let mut reader = ResponseReader::new();
            reader.feed(&bytes[..cut]);
            prop_assert_eq!(reader.next(), Ok(None));
            reader.feed(&bytes[cut..]);
            prop_assert_eq!(reader.next(), Ok(Some(Response { body, keeps: true })));
        }
    }
}
