//! Writes sample coverage in every format: `cargo run -p runtap-jvm --example sample_coverage -- DIR`.

mod sample;

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use runtap_jvm::coverage::{Format, WriteOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: sample_coverage DIR")?;
    let dir = Path::new(&dir);
    fs::create_dir_all(dir)?;
    let coverage = sample::sample();
    for format in Format::ALL {
        let file = File::create(dir.join(format!("sample{}", format.extension())))?;
        format.write(&coverage, BufWriter::new(file), &WriteOptions::default())?;
    }
    Ok(())
}
