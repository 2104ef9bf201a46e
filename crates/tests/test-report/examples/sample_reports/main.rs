//! Writes a sample run and an interrupted run in every format: `cargo run -p runtap-test-report --example
//! sample_reports -- DIR [COUNT]`. With a count, also writes a large run with this number of tests.

mod run;

use runtap_test_report::{Format, Source, github};
use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("usage: sample_reports DIR [COUNT]")?;
    let dir = Path::new(&dir);
    fs::create_dir_all(dir)?;
    write(dir, "run", &run::sample())?;
    write(dir, "cut-off", &run::cut_off())?;
    if let Some(count) = arguments.next() {
        let spool = dir.join("large.spool");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&spool)?;
        write(dir, "large", &run::large(count.parse()?, file)?)?;
        fs::remove_file(spool)?;
    }
    Ok(())
}

fn write(dir: &Path, name: &str, source: &impl Source) -> Result<(), Box<dyn Error>> {
    let create = |extension| File::create(dir.join(format!("{name}{extension}"))).map(BufWriter::new);
    for format in Format::ALL {
        format.write(source, create(format.extension())?)?;
    }
    github::summary(source, create(".md")?)?;
    github::annotations(source, create(".annotations.txt")?, &github::Options::new("/src"))?;
    Ok(())
}
