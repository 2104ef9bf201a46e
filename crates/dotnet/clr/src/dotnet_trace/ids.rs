//! Parses and formats activity ids by the rules of TraceEvent. An id has 16 bytes and is either a path through the outer activities,
//! as the runtime assigns them, or derived from a number.

use std::fmt::Write as _;

/// The second half of ids that TraceEvent derives from a number in the event: for SQL commands, and for requests by the HTTP client
/// of .NET Framework.
const SQL: [u8; 8] = [7, 7, 8, 9, 10, 11, 12, 13];
const HTTP: [u8; 8] = [6, 7, 8, 9, 10, 11, 12, 13];

/// Returns the id of a SQL command, from the number in its start and end events. TraceEvent appends 1234 and 5.
pub(super) fn of_command(number: [u8; 4]) -> [u8; 16] {
    let mut id = [0; 16];
    let (first, kind) = id.split_at_mut(8);
    let (object, constant) = first.split_at_mut(4);
    object.copy_from_slice(&number);
    constant.copy_from_slice(&[0xd2, 0x04, 5, 0]);
    kind.copy_from_slice(&SQL);
    id
}

/// Formats an id.
pub(super) fn text(id: &[u8; 16], process: u32) -> String {
    path(id, process).unwrap_or_else(|| known(*id))
}

/// Whether an id is a path, as assigned by the runtime.
pub(super) fn is_path(id: &[u8; 16], process: u32) -> bool {
    path(id, process).is_some()
}

/// Formats an id that is not a path.
fn known(id: [u8; 16]) -> String {
    let (Some(number), Some(kind)) = (id.first_chunk(), id.last_chunk::<8>()) else { return plain(id) };
    let kind = match *kind {
        SQL => "SQL",
        HTTP => "HTTP",
        _ => return plain(id),
    };
    format!("{kind}/Id={:08x}", u32::from_le_bytes(*number))
}

fn plain(id: [u8; 16]) -> String {
    runtap_nettrace::Uuid::from_bytes_le(id).to_string()
}

/// Formats an id that is a path: the numbers of the activities, outermost first, `/#PID/1/7/`.
fn path(id: &[u8; 16], process: u32) -> Option<String> {
    let word = |at: usize| {
        let bytes = id.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let sum = word(0).wrapping_add(word(4)).wrapping_add(word(8)).wrapping_add(0x599D_99AD);
    let of = sum ^ word(12);
    let fits = match process {
        0 => of >> 20 == 0,
        process => of == process || of == 0,
    };
    if !fits {
        return None;
    }
    let mut text = String::new();
    if of == 0 {
        text.push('/');
    } else {
        let _ = write!(text, "/#{}", of.cast_signed());
    }
    let bytes = id.get(..12).unwrap_or_default();
    let half = |at: usize| {
        let byte = *bytes.get(at / 2)?;
        Some(if at.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
    };
    let (mut at, mut separator) = (0, '/');
    while let Some(code) = half(at) {
        at += 1;
        match code {
            0 => break,
            1..=0xA => {
                let _ = write!(text, "/{code}");
                continue;
            }
            _ => {}
        }
        let mut code = code;
        let mut high = 0;
        if code == 0xB {
            // The code follows: in the low half of this byte, or else in the high half of the next one.
            separator = '$';
            let Some(next) = half(at) else { break };
            if !(0xC..=0xF).contains(&next) {
                return Some(plain(*id));
            }
            if !at.is_multiple_of(2) {
                high = u32::from(next);
            }
            code = next;
            at += 1;
            // The rest of a byte is ignored.
            at += at % 2;
        } else if !at.is_multiple_of(2) {
            high = u32::from(half(at).unwrap_or(0));
            at += 1;
        }
        let count = usize::from(code - 0xC) + 1;
        let start = at / 2;
        let Some(value) = bytes.get(start..start + count) else { break };
        let low = value.iter().rev().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
        let number = high.checked_shl(u32::try_from(8 * count).unwrap_or(32)).unwrap_or(0) | low;
        let _ = write!(text, "{separator}{number}");
        at = (start + count) * 2;
    }
    text.push('/');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(hex: &str, last: u32) -> [u8; 16] {
        let mut id = [0; 16];
        for (at, byte) in hex.split(' ').enumerate() {
            id[at] = u8::from_str_radix(byte, 16).unwrap();
        }
        id[12..].copy_from_slice(&last.to_be_bytes());
        id
    }

    #[test]
    fn paths_have_texts() {
        for (hex, last, process, text) in [
            ("17", 0xb3d0_9d59, 18807, Some("/#18807/1/7/")),
            ("1d ee 02", 0xbdce_a059, 18807, Some("/#18807/1/750/")),
            (
                "1c 40 11 11 11 11 11 11 11 11 11 11",
                0xace9_d08c,
                4679,
                Some("/#4679/1/64/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/"),
            ),
            (
                "1c 40 11 11 11 11 11 11 11 1b c0",
                0xac17_807c,
                4679,
                Some("/#4679/1/64/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1$0/"),
            ),
            ("17", 0xb3d0_9d59, 1, None),
        ] {
            assert_eq!(path(&id(hex, last), process).as_deref(), text, "{hex}");
        }
    }

    #[test]
    fn ids_derived_from_numbers_are_recognized() {
        let id = |text: u128| runtap_nettrace::Uuid::from_u128(text).to_bytes_le();
        let made_up = id(0x0000_00cd_0000_0000_0607_0809_0a0b_0c0d);
        assert_eq!(text(&made_up, 42), "HTTP/Id=000000cd");
        assert_eq!(text(&of_command([0xcd, 0, 0, 0]), 42), "SQL/Id=000000cd");
        assert_eq!(text(&id(0xcd), 42), "00000000-0000-0000-0000-0000000000cd");
        assert!(!is_path(&made_up, 42));
    }
}
