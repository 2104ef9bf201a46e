//! A byte for the chunk size, then the response of an HTTP server to a test application: chunk sizes do not matter, and
//! the body of an accepted response is a part of the input.
#![no_main]

use runtap_mtp_host::fuzzing::response;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [size, bytes @ ..] = input else { return };
    let whole = response(bytes, usize::MAX);
    let parts = response(bytes, usize::from(*size).max(1));
    match (&whole, &parts) {
        (Ok(Some(body)), Ok(Some(parts))) => assert_eq!(body, parts),
        // Bytes after a response are seen only if they arrive with it.
        (Err(_), Ok(Some(_))) => {}
        _ => assert_eq!(whole, parts),
    }
    if let Ok(Some(body)) = whole {
        assert!(bytes.ends_with(&body));
    }
});
