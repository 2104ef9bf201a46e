//! The performance counters of a `HotSpot` virtual machine: which machine it is and what it runs. The user who owns the machine
//! controls every byte of the file.
//!
//! ```text
//! offset  bytes
//!      0  4     CA FE C0 C0
//!      4  1     byte order of all following numbers: 0 big-endian, 1 little-endian
//!      5  2     major and minor version: 2, 0
//!      7  1     1 if the machine is ready
//!      8  20    bytes in use, overflow, time of the last change: not read
//!     24  4     offset of the first counter
//!     28  4     number of counters
//!
//! a counter; its offsets are relative to its start:
//!      0  4     total length in bytes, with name and value
//!      4  4     offset of the name, which ends with 0
//!      8  4     number of elements of the value; 0 for a number
//!     12  1     type of the elements: 'B' for bytes
//!     13  3     flags, unit, variability
//!     16  4     offset of the value; a text ends with 0
//! ```
//!
//! Source: `openjdk/jdk` `src/hotspot/share/runtime/perfMemory.hpp`, compared with what JDK 17 writes.

use super::Java;

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const MAJOR: u8 = 2;
const HEADER: usize = 32;
const COUNTER: usize = 20;
/// A virtual machine has fewer than 300 counters.
const MOST_COUNTERS: u32 = 5_000;
/// Longer values are truncated: the arguments of a program may be long.
const LONGEST_VALUE: usize = 4_096;

/// Parses a file or its first part. Returns `None` if the virtual machine is not ready or the version is unknown.
pub(crate) fn parse(bytes: &[u8]) -> Option<Java> {
    let header = bytes.get(..HEADER)?;
    if !header.starts_with(&MAGIC) || header.get(5) != Some(&MAJOR) || header.get(7) != Some(&1) {
        return None;
    }
    let order = match header.get(4) {
        Some(0) => u32::from_be_bytes,
        Some(1) => u32::from_le_bytes,
        _ => return None,
    };
    let number = |at: usize| {
        let bytes = bytes.get(at..at.checked_add(4)?)?;
        Some(order(bytes.try_into().ok()?))
    };
    let offset = |at: usize| usize::try_from(number(at)?).ok();
    let (mut at, count) = (offset(24)?, number(28)?);
    let mut java = Java { has_counters: true, ..Java::default() };
    for _ in 0..count.min(MOST_COUNTERS) {
        // The rest may be missing if the file was truncated.
        let Some(length) = offset(at).filter(|length| *length >= COUNTER) else { break };
        let Some(counter) = at.checked_add(length).and_then(|end| bytes.get(at..end)) else { break };
        if counter.get(12) == Some(&b'B')
            && let (Some(name), Some(value)) = (offset(at + 4), offset(at + 16))
            && let (Some(name), Some(value)) = (text(counter, name), text(counter, value))
        {
            match name.as_str() {
                "sun.rt.javaCommand" => java.command = value,
                "java.property.java.version" => java.version = value,
                "java.property.java.vm.version" => java.vm_version = value,
                "java.property.java.vm.name" => java.vm_name = value,
                "java.property.java.vm.info" => java.vm_info = value,
                "java.property.java.vm.vendor" => java.vendor = value,
                "java.property.java.home" => java.home = value,
                "java.rt.vmArgs" => java.arguments = value,
                "java.rt.vmFlags" => java.flags = value,
                _ => {}
            }
        }
        at += length;
    }
    Some(java)
}

/// Returns the text up to its terminating 0, or to the end of the counter.
fn text(counter: &[u8], at: usize) -> Option<String> {
    let bytes = counter.get(at..)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Some(String::from_utf8_lossy(bytes.get(..end.min(LONGEST_VALUE))?).into_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds a file with these texts and a number before each.
    pub(in crate::jvm) fn file(little: bool, texts: &[(&str, &str)]) -> Vec<u8> {
        let word = |number: usize| {
            let number = u32::try_from(number).unwrap();
            if little { number.to_le_bytes() } else { number.to_be_bytes() }
        };
        let mut file = [&MAGIC[..], &[u8::from(little), 2, 0, 1], &[0; 16]].concat();
        file.extend([word(HEADER), word(2 * texts.len())].concat());
        for (name, value) in texts {
            let number =
                [word(32), word(20), word(0), *b"J\0\x02\x03", word(24), *b"n\0\0\0", [7; 4], [7; 4]];
            file.extend(number.concat());
            let end = (COUNTER + name.len() + 1 + value.len() + 1).next_multiple_of(8);
            let places = [word(end), word(COUNTER), word(value.len() + 1), *b"B\0\x05\x01"];
            let mut counter = places.concat();
            counter.extend(word(COUNTER + name.len() + 1));
            counter.extend([name.as_bytes(), &[0], value.as_bytes(), &[0]].concat());
            counter.resize(end, 0);
            file.extend(counter);
        }
        file
    }

    const TEXTS: [(&str, &str); 5] = [
        ("sun.rt.javaCommand", "shop.Main --port 80"),
        ("java.property.java.version", "17.0.15"),
        ("java.property.java.vm.version", "17.0.15+6"),
        ("java.property.java.vm.name", "OpenJDK 64-Bit Server VM"),
        ("java.rt.vmArgs", "-Xmx1g"),
    ];

    #[test]
    fn both_byte_orders_are_read() {
        for little in [false, true] {
            let java = parse(&file(little, &TEXTS)).unwrap();
            assert_eq!(java.version(), Some("17.0.15"));
            assert_eq!((java.command.as_str(), java.vm_name.as_str()), (TEXTS[0].1, TEXTS[3].1));
            assert_eq!((java.arguments.as_str(), java.has_counters), (TEXTS[4].1, true));
        }
    }

    #[test]
    fn machines_that_are_not_ready_and_other_versions_are_rejected() {
        let whole = file(true, &TEXTS);
        for (at, byte) in [(0, 0), (4, 2), (5, 1), (7, 0)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert_eq!(parse(&other), None, "{at}");
        }
        // A counter of length 0 must not cause an endless loop.
        let mut idle = whole;
        idle[HEADER..HEADER + 4].fill(0);
        assert_eq!(parse(&idle), Some(Java { has_counters: true, ..Java::default() }));
    }

    proptest! {
        #[test]
        fn a_truncated_file_yields_a_part_of_the_values(little: bool, end in 0..600_usize) {
            let whole = file(little, &TEXTS);
            let part = parse(&whole[..end.min(whole.len())]);
            let all = parse(&whole).unwrap();
            let Some(part) = part else {
                prop_assert!(end < HEADER);
                return Ok(());
            };
            prop_assert!(part.command.is_empty() || part.command == all.command);
            prop_assert!(part.arguments.is_empty() || end >= whole.len());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(at: usize, bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut damaged = file(true, &TEXTS);
            let at = at % damaged.len();
            let end = damaged.len().min(at + bytes.len());
            damaged.splice(at..end, bytes.iter().copied());
            let _ = parse(&damaged);
            let _ = parse(&bytes);
        }
    }
}
