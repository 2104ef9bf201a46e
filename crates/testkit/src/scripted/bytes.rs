//! Bytes in a scenario: `0a0b`, `u8:1`, `u16:2`, `i32:-1`, `i64:5`, `text:abc`, and `[` … `]` for a block preceded by
//! its length as an `i32`.

use super::PlayError;

/// Encodes words as bytes.
pub(super) fn bytes(words: &[String]) -> Result<Vec<u8>, PlayError> {
    let mut out = Vec::new();
    let mut open = Vec::new();
    for word in words {
        match word.as_str() {
            "[" => {
                open.push(out.len());
                out.extend([0; 4]);
            }
            "]" => {
                let at = open.pop().ok_or("] closes nothing")?;
                let length = i32::try_from(out.len() - at - 4).map_err(|_too_long| "a block is too long")?;
                out[at..at + 4].copy_from_slice(&length.to_le_bytes());
            }
            word => item(word, &mut out)?,
        }
    }
    if open.is_empty() { Ok(out) } else { Err("a [ is not closed".into()) }
}

fn item(word: &str, out: &mut Vec<u8>) -> Result<(), PlayError> {
    fn number<T: std::str::FromStr>(text: &str) -> Result<T, PlayError> {
        text.parse().map_err(|_no_number| format!("{text:?}: no such number").into())
    }
    match word.split_once(':') {
        Some(("u8", text)) => out.push(number(text)?),
        Some(("u16", text)) => out.extend(number::<u16>(text)?.to_le_bytes()),
        Some(("i32", text)) => out.extend(number::<i32>(text)?.to_le_bytes()),
        Some(("i64", text)) => out.extend(number::<i64>(text)?.to_le_bytes()),
        Some(("text", text)) => out.extend(text.as_bytes()),
        _ => out.extend(hex(word)?),
    }
    Ok(())
}

fn hex(word: &str) -> Result<Vec<u8>, PlayError> {
    let wrong = || PlayError::from(format!("{word:?}: no bytes"));
    if !word.is_ascii() || !word.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let pairs = (0..word.len()).step_by(2).map(|at| word.get(at..at + 2).unwrap_or_default());
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|_no_digits| wrong())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_lengths_and_numbers_their_sizes() {
        let of = |line: &str| bytes(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("0aff u8:1 u16:2 text:ab").unwrap(), [0x0a, 0xff, 1, 2, 0, b'a', b'b']);
        assert_eq!(of("[ [ 01 ] 02 ]").unwrap(), [6, 0, 0, 0, 1, 0, 0, 0, 1, 2]);
        assert_eq!(of("i32:-1 i64:1").unwrap(), [255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0]);
        for wrong in ["0", "xx", "[", "]", "u8:256", "ä0"] {
            of(wrong).unwrap_err();
        }
    }
}
