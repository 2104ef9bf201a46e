//! A byte for the size of chunks, then what an HTTP server answers a test application: the chunks do not matter, and a
//! response that is taken has a body out of what came.
#![no_main]

use runtap_mtp_host::fuzzing::response;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [size, bytes @ ..] = input else { return };
    let whole = response(bytes, usize::MAX);
    let parts = response(bytes, usize::from(*size).max(1));
    match (&whole, &parts) {
        (Ok(Some(body)), Ok(Some(parts))) => assert_eq!(body, parts),
        // What comes behind a response is seen only if it comes with it.
        (Err(_), Ok(Some(_))) => {}
        _ => assert_eq!(whole, parts),
    }
    if let Ok(Some(body)) = whole {
        assert!(bytes.ends_with(&body));
    }
});
