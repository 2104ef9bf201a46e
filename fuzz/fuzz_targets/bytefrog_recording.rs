//! Any bytes as the parts of a recording that may have been edited (first byte: which part): rows of an index, marks,
//! names of files, names of parts. No panic, parsed values keep their meaning when they are written again, and a
//! truncated index has the complete rows of the full one.
#![no_main]

use runtap_jvm::recording::{Mark, Marks, Part, Row, Rows, StreamName};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [kind, bytes @ ..] = input else { return };
    match kind % 4 {
        0 => {
            let read = |bytes: &[u8]| {
                let mut rows = Vec::new();
                let wrong = Rows::new(bytes).read_all(&mut rows).expect("memory can be read");
                (rows, wrong)
            };
            let (rows, wrong) = read(bytes);
            let written: String = rows.iter().map(|row| format!("{row}\n")).collect();
            assert_eq!(read(written.as_bytes()), (rows.clone(), None));
            // Rows that are complete in the first half are equal in the full text.
            let (begun, _) = read(&bytes[..bytes.len() / 2]);
            assert_eq!(begun[..], rows[..begun.len()]);
            assert!(wrong.is_none_or(|(line, _)| line == rows.len() as u64 + 1));
            for row in rows {
                assert_eq!(Row::parse(row.to_string().as_bytes()), Ok(row));
            }
        }
        1 => {
            let marks = Marks::parse(bytes);
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            for mark in text.lines().filter_map(|line| Mark::parse(line).ok()) {
                assert_eq!(Mark::parse(&mark.to_string()), Ok(mark));
            }
            // A name has at most as many ranges as beginnings.
            for name in marks.names() {
                assert!(marks.ranges(name).len() <= text.matches("begin").count());
            }
        }
        2 => {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            if let Some(name) = StreamName::parse(text) {
                assert_eq!(name.bytes_file(), text);
            }
        }
        _ => {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            if let Ok(part) = Part::parse(text) {
                assert_eq!(Part::parse(&part.to_string()), Ok(part));
            }
        }
    }
});
