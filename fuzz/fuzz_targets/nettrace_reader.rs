//! Any bytes through the nettrace reader: no panic, and the size of the chunks (first byte) does not matter.
#![no_main]

use runtap_nettrace::Reader;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((chunk, stream)) = input.split_first() else { return };
    let whole = read(stream, stream.len());
    assert!(whole.len() <= stream.len() + 2, "more items than bytes");
    assert_eq!(read(stream, usize::from(*chunk)), whole);
});

/// Everything the reader says, as text.
fn read(stream: &[u8], chunk: usize) -> Vec<String> {
    let (mut reader, mut said) = (Reader::new(), Vec::new());
    for chunk in stream.chunks(chunk.max(1)).chain([[].as_slice()]) {
        if chunk.is_empty() {
            reader.finish()
        } else {
            reader.feed(chunk)
        }
        while let item @ (Ok(Some(_)) | Err(_)) = reader.next() {
            said.push(format!("{item:?}"));
        }
    }
    said.push(format!("{:?} {:?} {}", reader.partial(), reader.counts(), reader.lost()));
    said
}
