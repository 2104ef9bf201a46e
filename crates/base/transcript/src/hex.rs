//! Hexadecimal encoding: written in lower case, accepted in either case.

/// Encodes bytes as hexadecimal digits in lower case, two per byte.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    text
}

/// Decodes hexadecimal digits. The error is the number of valid digits.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    for (n, [high, low]) in pairs.iter().enumerate() {
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(n * 2) };
        bytes.push(high << 4 | low);
    }
    if rest.is_empty() { Ok(bytes) } else { Err(bytes.len() * 2) }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        assert_eq!(encode(&[0, 0x0f, 0xf0, 0xab]), "000ff0ab");
        assert_eq!(decode("000ff0AB"), Ok(vec![0, 0x0f, 0xf0, 0xab]));
        assert_eq!(decode(""), Ok(Vec::new()));
        assert_eq!(decode("00f"), Err(2));
        assert_eq!(decode("00zz"), Err(2));
        assert_eq!(decode("0é0"), Err(0));
    }
}
