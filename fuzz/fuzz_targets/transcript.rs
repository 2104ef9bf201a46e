//! Any bytes as a transcript: the chunk size (first byte) does not matter, and entries are read as they were written.
#![no_main]

use runtap_transcript::{Decoder, Entry, Limits};

/// Returns the entries before the first error, and the error.
fn read(bytes: &[u8], step: usize) -> (Vec<Entry>, Option<String>) {
    let mut decoder = Decoder::new(Limits { line: 256, total: 400, values: 40, connections: 4, names: 32 });
    let mut entries = Vec::new();
    for part in bytes.chunks(step.max(1)) {
        decoder.feed(part);
        loop {
            match decoder.poll() {
                Ok(Some(located)) => entries.push(located.entry),
                Ok(None) => break,
                Err(error) => return (entries, Some(error.to_string())),
            }
        }
    }
    match decoder.finish() {
        Ok(Ok(last)) => entries.extend(last.map(|located| located.entry)),
        Ok(Err(cut)) => return (entries, Some(format!("{cut:?}"))),
        Err(error) => return (entries, Some(error.to_string())),
    }
    (entries, None)
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [step, bytes @ ..] = input else { return };
    let (entries, error) = read(bytes, usize::from(*step));
    // The total limits count received bytes, so results are independent of chunks only below these limits.
    if bytes.len() <= 400 {
        assert_eq!(read(bytes, bytes.len()), (entries.clone(), error));
    }
    for entry in entries {
        let line = entry.to_line();
        let mut decoder = Decoder::default();
        decoder.feed(&line);
        assert_eq!(decoder.poll().unwrap().unwrap().entry, entry);
    }
});
