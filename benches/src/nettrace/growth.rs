//! Growth of time and memory with the size of the file.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use anyhow::Result;
use runtap_testkit::shared_data;

use super::{MEGABYTE, ROUNDS, float, milliseconds, peers};
use crate::output::{self, Table, bar};
use crate::{cost, repeat};

const SIZES: [u64; 5] = [10, 50, 250, 1_000, 2_000];
/// Size in MB of the file whose memory has a bar.
const LIMITED_SIZE: u64 = 1_000;
/// Maximum resident memory in addition to the size of the file.
const MAX_BEYOND_FILE: u64 = 64 << 20;

/// Measures `runtap events --count` and `runtap convert --to speedscope` on files of several sizes, made from
/// `recording`.
pub(super) fn run(runtap: &Path, folder: &Path, recording: &str) -> Result<()> {
    let Ok(short) = shared_data(recording) else { return Ok(()) };
    let (file, output) = (folder.join("growing.nettrace"), folder.join("growing.json"));
    let head = ["file", "events", "time", "ns an event", "processor time", "peak resident", "written"];
    let (mut counts, mut converts) = (Table::new(&head[..6]), Table::new(&head));
    let mut peak = 0;
    for megabytes in SIZES {
        let size = megabytes * MEGABYTE;
        let events = repeat::repeat(&short, size, BufWriter::new(File::create(&file)?))?;
        let row =
            |table: &mut Table, command: &dyn Fn() -> std::process::Command, written: bool| -> Result<u64> {
                let times = (0..ROUNDS).map(|_| peers::process(command())).collect::<Result<Vec<_>>>()?;
                let cost = cost::of(&command())?;
                let time = times.into_iter().min().unwrap_or_default();
                let mut cells = vec![
                    format!("{megabytes} MB"),
                    events.to_string(),
                    milliseconds(time),
                    format!("{:.1}", time.as_secs_f64() * 1e9 / float(events)),
                    milliseconds(cost.cpu),
                    format!("{:.1} MB", float(cost.peak) / 1e6),
                ];
                if written {
                    cells.push(format!("{:.1} MB", float(fs::metadata(&output)?.len()) / 1e6));
                }
                table.row(&cells);
                Ok(cost.peak)
            };
        row(&mut counts, &|| peers::count(runtap, &file), false)?;
        let resident = row(&mut converts, &|| peers::convert(runtap, &file, &[], &output), true)?;
        if megabytes == LIMITED_SIZE {
            peak = resident;
        }
    }
    let name = Path::new(recording).file_name().unwrap_or_default().to_string_lossy();
    counts.print(&format!("runtap events --count, files of growing size ({name} × n)"));
    converts.print("runtap convert --to speedscope, the same files");
    let measured = format!("{:.1} MB; nothing is mapped", float(peak) / 1e6);
    bar(
        "convert of 1 GB: at most the file and 64 MiB resident",
        peak <= LIMITED_SIZE * MEGABYTE + MAX_BEYOND_FILE,
        &measured,
    );
    output::machine();
    Ok(())
}
