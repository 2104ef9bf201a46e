//! `runtap profiler attach|startup`: what was typed into a request, and a look at the library first.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use runtap_diag::{AttachProfiler, StartupProfiler, Timeouts};
use runtap_target::Subject;
use runtap_wire::Uuid;
use rustix::fs::OFlags;

use super::failure::explain;
use super::target::{choose_all, each};
use crate::cli::{self, Profiler, ProfilerLibrary, ProfilerVerb};
use crate::exit::{self, expected, usage};
use crate::output::Output;

/// Added to the time that the runtime gives the profiler: loading comes before it.
const GRACE: Duration = Duration::from_secs(30);

pub(super) async fn run(options: Profiler, output: Output) -> anyhow::Result<u8> {
    match options.what {
        ProfilerVerb::Attach(options) => attach(&options, output).await,
        ProfilerVerb::Startup(options) => startup(&options, output).await,
    }
}

async fn attach(options: &cli::AttachProfiler, output: Output) -> anyhow::Result<u8> {
    let profiler = AttachProfiler {
        class_id: class_id(&options.library.clsid)?,
        path: path(&options.library)?,
        timeout_ms: u32::try_from(options.timeout.as_millis()).unwrap_or(u32::MAX),
        client_data: options.data.as_deref().map(data).transpose()?.unwrap_or_default(),
    };
    let all = choose_all(&options.target, options.all.all, output).await?;
    let attach = async |chosen: Subject, output: Output| {
        let mut timeouts = Timeouts::default();
        timeouts.load = options.timeout.saturating_add(GRACE);
        let client = chosen.client.with_timeouts(timeouts);
        client.attach_profiler(&profiler).await.map_err(explain)?;
        output.note(format_args!("{} is attached", profiler.path));
        Ok(exit::OK)
    };
    each(all, output, attach).await
}

async fn startup(options: &cli::StartupProfiler, output: Output) -> anyhow::Result<u8> {
    let profiler =
        StartupProfiler { class_id: class_id(&options.library.clsid)?, path: path(&options.library)? };
    let all = choose_all(&options.target, options.all.all, output).await?;
    let set = async |chosen: Subject, output: Output| {
        chosen.client.startup_profiler(&profiler).await.map_err(explain)?;
        output.note(format_args!(
            "{} will be loaded when the program goes on ('runtap resume')",
            profiler.path
        ));
        Ok(exit::OK)
    };
    each(all, output, set).await
}

/// With or without braces.
fn class_id(text: &str) -> anyhow::Result<Uuid> {
    let bare = text.trim().trim_start_matches('{').trim_end_matches('}');
    let dashed = bare.len() == 36;
    bare.parse().ok().filter(|_| dashed).ok_or_else(|| {
        usage(format!("'{text}' is no class id; write it as 12345678-9abc-def0-1234-56789abcdef0"))
    })
}

fn path(library: &ProfilerLibrary) -> anyhow::Result<String> {
    let path = library.path.to_str().ok_or_else(|| {
        usage(format!("{} is no UTF-8, which the protocol can't carry", library.path.display()))
    })?;
    if !Path::new(path).is_absolute() {
        return Err(usage(format!(
            "'{path}' is relative: the target would look in its own working directory"
        )));
    }
    Ok(path.to_owned())
}

/// What is in a file, which has to fit into a request. A pipe is not waited for, and what has no end not read.
fn whole(file: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(file)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    if meta.len() > MOST_DATA {
        return Err(io::Error::other(format!("it is larger than a request can be, {MOST_DATA} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(MOST_DATA).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A request tells its own size in 16 bits.
const MOST_DATA: u64 = 65_535;

/// Text, `@FILE`, or `hex:0123`.
fn data(text: &str) -> anyhow::Result<Vec<u8>> {
    if let Some(file) = text.strip_prefix('@') {
        return whole(Path::new(file))
            .map_err(|error| expected(exit::USAGE, format!("can't read {file}: {error}"), None));
    }
    let Some(digits) = text.strip_prefix("hex:") else { return Ok(text.as_bytes().to_owned()) };
    let digits: Vec<u32> = digits.chars().map_while(|c| c.to_digit(16)).collect();
    let (pairs, odd) = digits.as_chunks::<2>();
    if !odd.is_empty() || digits.len() + 4 != text.len() {
        return Err(usage(format!("'{text}' is no row of bytes: two hexadecimal digits each")));
    }
    Ok(pairs.iter().filter_map(|[high, low]| u8::try_from(high * 16 + low).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_ids() {
        let expected = Uuid::from_u128(0xd0d0_cafe_0001_4002_8003_a0b0_c0d0_e0f0);
        for text in ["{D0D0CAFE-0001-4002-8003-A0B0C0D0E0F0}", "d0d0cafe-0001-4002-8003-a0b0c0d0e0f0"] {
            assert_eq!(class_id(text).unwrap(), expected);
        }
        for text in ["", "{}", "d0d0cafe00014002 8003a0b0c0d0e0f0", "d0d0cafe-0001-4002-8003-a0b0c0d0e0fg"] {
            assert!(class_id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn data_is_text_bytes_or_a_file() {
        assert_eq!(data("mode=fast").unwrap(), b"mode=fast");
        assert_eq!(data("").unwrap(), b"");
        assert_eq!(data("hex:00fF10").unwrap(), [0, 255, 16]);
        assert!(data("hex:").unwrap().is_empty());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0, 1, 2]).unwrap();
        assert_eq!(data(&format!("@{}", file.path().display())).unwrap(), [0, 1, 2]);
        for text in ["hex:0", "hex:0g", "hex:00 11", "@/none/file", "@/dev/zero", "@/"] {
            assert!(data(text).is_err(), "{text}");
        }
    }
}
