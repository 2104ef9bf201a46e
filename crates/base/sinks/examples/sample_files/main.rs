//! Writes a little recording in every format: `cargo run -p runtap-sinks --example sample_files -- DIR`.

mod trace;

use runtap_model::Trace;
use runtap_sinks::{Format, Options};
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("usage: sample_files DIR")?;
    let dir = Path::new(&dir);
    fs::create_dir_all(dir)?;
    let trace = trace::trace();
    for format in Format::ALL {
        let file = File::create(dir.join(format!("sample{}", format.extension())))?;
        format.write(&trace, file, &Options::new(format.default_view()))?;
    }
    let mut options = Options::new(Format::Speedscope.default_view());
    options.evented = true;
    let file = File::create(dir.join(format!("sample.evented{}", Format::Speedscope.extension())))?;
    Format::Speedscope.write(&trace, file, &options)?;
    let merged = Trace::merge([trace.clone(), trace]);
    for format in [Format::Chrome, Format::Perfetto] {
        let file = File::create(dir.join(format!("sample.merged{}", format.extension())))?;
        format.write(&merged, file, &Options::new(format.default_view()))?;
    }
    Ok(())
}
