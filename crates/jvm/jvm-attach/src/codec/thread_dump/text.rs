//! Decodes texts of a JVM: modified UTF-8, in which a character beyond the first 65,536 is a pair of surrogates of three bytes each.

use std::borrow::Cow;

/// Decodes a text. Invalid bytes become U+FFFD.
pub(super) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(decode_modified(bytes)),
    }
}

fn decode_modified(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    loop {
        let chunk = bytes.utf8_chunks().next();
        let Some(chunk) = chunk else { return text };
        text.push_str(chunk.valid());
        bytes = bytes.get(chunk.valid().len()..).unwrap_or_default();
        if chunk.invalid().is_empty() {
            continue;
        }
        let (c, length) = match bytes {
            [0xed, high @ 0xa0..=0xaf, h @ 0x80..=0xbf, 0xed, low @ 0xb0..=0xbf, l @ 0x80..=0xbf, ..] => {
                let bits = |byte: &u8, mask: u8| u32::from(byte & mask);
                let high = bits(high, 0xf) << 6 | bits(h, 0x3f);
                let low = bits(low, 0xf) << 6 | bits(l, 0x3f);
                (char::from_u32(0x1_0000 + (high << 10) + low), 6)
            }
            [0xc0, 0x80, ..] => (Some('\0'), 2),
            _ => (None, chunk.invalid().len()),
        };
        text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
        bytes = bytes.get(length..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_are_joined_and_invalid_bytes_replaced() {
        assert_eq!(decode(b"a\xc3\xa9\xed\xa0\xbd\xed\xb8\x80b\xc0\x80"), "aé😀b\0");
        assert_eq!(decode("é😀".as_bytes()), "é😀");
        assert_eq!(decode(b"\xed\xa0\xbdx\xff"), "\u{fffd}\u{fffd}\u{fffd}x\u{fffd}");
        assert_eq!(decode(b""), "");
    }
}
