//! Writes the streams of `runtap_testkit::hostile`, for measuring their cost: `hostile GROWTH MEGABYTES > FILE`, or
//! `hostile GROWTH MEGABYTES SOCKET` as a runtime that streams in every session. Without arguments, lists the streams.

use std::io::{self, BufWriter};
use std::path::Path;

use runtap_testkit::hostile::{Growth, serve};

#[expect(clippy::print_stderr, reason = "what is measured goes to stdout")]
fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &String| Growth::ALL.into_iter().find(|growth| format!("{growth:?}") == *name);
    let megabytes = arguments.get(1).and_then(|text| text.parse::<u64>().ok());
    match (arguments.first().and_then(named), megabytes, arguments.get(2)) {
        (Some(growth), Some(megabytes), None) => {
            growth.write(megabytes << 20, &mut BufWriter::new(io::stdout().lock())).map(drop)
        }
        (Some(growth), Some(megabytes), Some(socket)) => {
            serve(growth, megabytes << 20, Path::new(socket));
            loop {
                std::thread::park();
            }
        }
        _ => {
            eprintln!("{:?}", Growth::ALL);
            Ok(())
        }
    }
}
