//! Records the garbage collections of a running .NET program for some time, and prints the number of events: a client and
//! a reader of the stream in one loop.
//!
//! ```sh
//! cargo run -p runtap-diag --example record -- PID [SECONDS]
//! ```

#![expect(clippy::print_stdout, reason = "a program, not a library")]

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_diag::{Client, Level, Provider, SessionConfig};
use runtap_nettrace::{Reader, StreamItem};

/// The runtime's keyword for garbage collections.
const GC: u64 = 1;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid: u32 = arguments.next().ok_or("missing argument: the process id")?.parse()?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |seconds| seconds.parse())?;

    let process = runtap_discover::process(pid)?;
    let client = Client::new(process.endpoint().ok_or("the process has no diagnostic socket")?);
    println!("{}", client.process_info().await?.command_line);

    let provider = Provider::new("Microsoft-Windows-DotNETRuntime", GC, Level::Informational);
    let mut config = SessionConfig::new(vec![provider]);
    // No method names at the end: they are not needed.
    config.rundown_keyword = 0;
    let mut session = client.start_session(&config).await?;
    let end = tokio::time::sleep(Duration::from_secs(seconds));
    tokio::pin!(end);

    let mut reader = Reader::new();
    let mut counts = BTreeMap::<(String, u32), u64>::new();
    let mut stopping = None;
    loop {
        // The stop is answered only after the whole stream was written, so read the stream meanwhile.
        let chunk = tokio::select! {
            chunk = session.next_chunk() => chunk?,
            () = &mut end, if stopping.is_none() => {
                stopping = Some(session.stop());
                continue;
            }
        };
        let Some(chunk) = chunk else { break };
        reader.items(&chunk).for_each(|item| {
            if let StreamItem::Event(event) = item
                && let Some(metadata) = event.metadata
            {
                *counts.entry((metadata.provider.clone(), metadata.event_id)).or_default() += 1;
            }
        })?;
    }
    if let Some(stopping) = stopping {
        stopping.await?;
    }
    for ((provider, event), count) in counts {
        println!("{count:8} {provider} {event}");
    }
    println!("{:8} lost", reader.lost());
    Ok(())
}
