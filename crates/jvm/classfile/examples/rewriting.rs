//! Measures the insertion of probes into classes: processor time per class, and with `valgrind --tool=callgrind`
//! instructions.
//!
//! ```sh
//! jimage extract --include 'regex:/java.xml/.*' --dir CLASSES "$JAVA_HOME/lib/modules"
//! cargo run --profile profiling -p runtap-classfile --example rewriting CLASSES 10
//! ```

#![expect(clippy::print_stdout, reason = "a measuring program")]

use std::path::Path;
use std::{env, fs, io};

use runtap_classfile::ClassFile;
use runtap_classfile::rewrite::{Probe, Probes, Rewritten, rewrite};

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let mut classes = Vec::new();
    collect(Path::new(&folder), &mut classes)?;
    let bytes: usize = classes.iter().map(Vec::len).sum();
    let mut best = u64::MAX;
    let (mut changed, mut after) = (0, 0);
    for _ in 0..rounds {
        let before = processor_time()?;
        (changed, after) =
            classes.iter().map(|class| probed(class)).fold((0, 0), |(methods, bytes), class| {
                (methods + class.changed.len(), bytes + class.bytes.map_or(0, |bytes| bytes.len()))
            });
        best = best.min(processor_time()? - before);
    }
    let count = u64::try_from(classes.len().max(1)).unwrap_or(1);
    println!(
        "{count} classes of {bytes} bytes: {changed} methods changed, {after} bytes; {:.1} µs per class (minimum of {rounds} rounds)",
        f64::from(u32::try_from(best / count).unwrap_or(u32::MAX)) / 1e3
    );
    Ok(())
}

/// Inserts probes as the agent does with `mode=full` for F1.
fn probed(bytes: &[u8]) -> Rewritten {
    let probe = |name| Some(Probe { name, line: false });
    let probes = Probes {
        class: "java/lang/RuntapProbe_7f0123456789",
        entry: probe("entry"),
        exit: probe("exit"),
        throwing: Some(Probe { name: "throwing", line: true }),
        unwinding: probe("unwinding"),
        constructing: None,
    };
    let class = ClassFile::parse(bytes).ok();
    let result = class.and_then(|class| {
        let choose = |method: &runtap_classfile::rewrite::Candidate<'_>| {
            let has_code = !method.access.is_abstract() && !method.access.is_native();
            has_code.then(|| i32::try_from(method.number + 10_000).unwrap_or(0))
        };
        rewrite(&class, &probes, choose).ok()
    });
    result.unwrap_or_default()
}

fn collect(folder: &Path, classes: &mut Vec<Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, classes)?;
        } else if path.extension().is_some_and(|extension| extension == "class") {
            classes.push(fs::read(path)?);
        }
    }
    Ok(())
}

/// Returns the processor time of this thread, in nanoseconds.
fn processor_time() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().and_then(|first| first.parse().ok());
    first.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
