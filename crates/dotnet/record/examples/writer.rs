//! A program without a runtime that answers requests for a dump as it is told to: for trials where there is no .NET.
//!
//! ```sh
//! cargo run -p runtap-record --example writer -- whole       # says its process id, ends with its standard input
//! ```
//!
//! It writes a minidump of itself that has no memory in it (`whole`), one without its end (`cut`), something else (`text`) or
//! nothing at all and says that it did (`nothing`), or refuses (`refuse`).

#![expect(clippy::print_stdout, reason = "a program, not a library")]

use std::fs;
use std::io;
use std::sync::Arc;

use runtap_diag_server::{Commands, CoreDump, DiagnosticServer, ErrorReply, Hresult};

/// What it writes: of this process, with one thread.
fn minidump() -> Vec<u8> {
    const THREADS: [u32; 13] = [1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let header = [0xa793, 2, 32, 0, 0, 0, 0];
    let directory = [3, 52, 56, 15, 12, 108];
    let others = [12, 1, std::process::id()];
    let words = header.into_iter().chain(directory).chain(THREADS).chain(others);
    b"MDMP".iter().copied().chain(words.flat_map(u32::to_le_bytes)).collect()
}

#[derive(Debug)]
struct Writer {
    what: String,
}

impl Commands for Writer {
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        let whole = minidump();
        let bytes = match &*self.what {
            "whole" => &whole[..],
            "cut" => whole.get(..100).unwrap_or_default(),
            "text" => b"no dump at all",
            "nothing" => return Ok(()),
            _ => {
                let message = Some("the disk is made of cheese".to_owned());
                return Err(ErrorReply { hresult: Hresult::E_FAIL, message });
            }
        };
        // As runtimes read a path: two percent signs are one.
        fs::write(dump.path.replace("%%", "%"), bytes)
            .map_err(|error| ErrorReply { hresult: Hresult::E_FAIL, message: Some(error.to_string()) })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let what = std::env::args().nth(1).ok_or("whole, cut, text, nothing or refuse?")?;
    let server = DiagnosticServer::builder().commands(Arc::new(Writer { what })).spawn()?;
    println!("pid {}", std::process::id());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    server.shut_down();
    Ok(())
}
