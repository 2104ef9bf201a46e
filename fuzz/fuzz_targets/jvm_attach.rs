//! Any bytes as an answer of a JVM at its attach socket, and as files of its process in `/proc` (first byte: which, and
//! chunk size): no panic, chunk sizes do not matter, and no more is kept than the limit.
#![no_main]

use runtap_jvm_attach::codec::{
    Reply, ReplyError, ReplyReader, Request, Version, loaded, properties, version_of,
};
use runtap_jvm_attach::fuzzing;

const LIMIT: usize = 64;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [how, bytes @ ..] = input else { return };
    match how % 3 {
        0 => {
            let whole = read(bytes, bytes.len().max(1));
            assert_eq!(read(bytes, usize::from(how / 3).max(1)), whole);
            let Ok(reply) = whole else { return };
            assert!(reply.text.len() <= LIMIT);
            assert!(reply.code == 0 || loaded(&reply).is_err());
            assert!(properties(&reply.text).len() <= reply.text.len());
            let _ = version_of(&reply);
        }
        1 => {
            let words: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let request = Request::new("jcmd", &words);
            for version in [Version::One, Version::Two] {
                let Ok(sent) = request.encode(version) else { continue };
                assert!(!bytes.contains(&0));
                assert!(
                    words.iter().all(|word| sent
                        .windows(word.len() + 1)
                        .any(|part| part == [word, &[0][..]].concat()))
                );
            }
        }
        _ => fuzzing::proc_texts(bytes),
    }
});

fn read(bytes: &[u8], chunk: usize) -> Result<Reply, ReplyError> {
    let mut reader = ReplyReader::with_limit(LIMIT);
    for part in bytes.chunks(chunk) {
        reader.handle_bytes(part)?;
    }
    reader.handle_eof()
}
