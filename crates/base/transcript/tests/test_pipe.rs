//! The transcripts of the test pipe: each can be read, and writing it again yields the same JSON values.

use runtap_testkit::{require, shared_data};
use runtap_transcript::{Entry, Reader, Writer};
use serde_json::Value;

fn values(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_transcript_is_written_as_it_was_read() {
    let index = require!(shared_data("mtp/transcripts/INDEX.tsv"));
    let index = String::from_utf8(index).unwrap();
    let (mut files, mut frames, mut others) = (0, 0, 0);
    for file in index.lines().skip(1).filter_map(|row| row.split('\t').next()) {
        files += 1;
        let bytes = shared_data(format!("mtp/transcripts/{file}")).unwrap();
        let mut writer = Writer::new(Vec::new());
        for located in Reader::new(&bytes[..]) {
            let entry = located.unwrap_or_else(|error| panic!("{file}: {error}")).entry;
            match &entry {
                Entry::Frame(frame) => {
                    frames += 1;
                    // The length word counts the bytes that follow.
                    let hex = frame.hex.as_ref().unwrap();
                    let length = u32::from_le_bytes(hex[..4].try_into().unwrap());
                    assert_eq!(hex.len(), length as usize + 4, "{file}");
                    assert!(frame.dir == "h2s" || frame.dir == "s2h");
                }
                Entry::Other { .. } => others += 1,
                _ => {}
            }
            writer.write(&entry).unwrap();
        }
        assert_eq!(values(&writer.into_inner()), values(&bytes), "{file}");
    }
    // The numbers of INDEX.tsv, where one transcript has an end of an unknown kind.
    assert_eq!((files, frames, others), (56, 2073, 1));
}
