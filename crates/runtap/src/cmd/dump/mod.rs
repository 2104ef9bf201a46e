//! `runtap dump`: has the target write a core dump of itself, watches it grow, looks whether it is whole.

mod place;
mod summary;
mod way;

use std::cell::Cell;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use jiff::Zoned;
use runtap_diag::{Client, CoreDump, DumpFlags, DumpForm, DumpType, EncodeError, Error, WrittenDump};
use runtap_discover::Memory;
use runtap_record::Stops;
use runtap_target::Subject;
use runtap_transport::in_a_thread;
use tokio::time::{MissedTickBehavior, interval};

use self::place::{Files, Place, Wanted};
use self::summary::Summary;
use super::failure::explain;
use super::interrupt::unless;
use super::target::{choose_all, each};
use crate::cli::{Dump, DumpKind};
use crate::exit::{self, expected, usage};
use crate::output::Output;
use crate::units::Bytes;
use runtap_outputs::{NAMES_TRIED, insert_before_extension, is_free, numbered};

/// Between two looks at the file.
const LOOK: Duration = Duration::from_millis(200);
/// What a dump takes beside the memory in it, and what one without the heap takes altogether.
const BASE: u64 = 8 << 20;

impl DumpKind {
    fn wire(self) -> DumpType {
        match self {
            Self::Full => DumpType::FULL,
            Self::Heap => DumpType::WITH_HEAP,
            Self::Mini => DumpType::MINI,
            Self::Triage => DumpType::TRIAGE,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Heap => "heap",
            Self::Mini => "mini",
            Self::Triage => "triage",
        }
    }

    /// About how large it becomes. Measured: full is all that can be read, heap is all that can be written.
    fn estimate(self, memory: Memory) -> u64 {
        match self {
            Self::Full => memory.readable,
            Self::Heap => memory.writable.saturating_add(BASE),
            Self::Mini | Self::Triage => BASE,
        }
    }
}

pub(super) async fn run(options: &Dump, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    if options.output.as_deref() == Some(Path::new("-")) {
        return Err(usage(
            "the target writes the dump itself, which can't be to our stdout: give a file or a folder with -o",
        ));
    }
    // Before anybody is asked for anything.
    let files = Cell::new(Some(files(options, None)?));
    let all = unless(&stops, choose_all(&options.target, options.all.all, output)).await?;
    let several = all.len() > 1;
    let first = all.first().and_then(|chosen| Some(chosen.process.as_ref()?.pid));
    let dump = async |chosen: Subject, output: Output| {
        // The first has the name that was given, each other one its process id in it.
        let pid =
            chosen.process.as_ref().map(|process| process.pid).filter(|pid| several && Some(*pid) != first);
        let files = match (pid, files.take()) {
            (None, Some(files)) => files,
            (pid, _) => self::files(options, pid)?,
        };
        dump(&chosen, options, files, &stops, output).await
    };
    each(all, output, dump).await
}

fn files(options: &Dump, in_the_name: Option<u32>) -> anyhow::Result<Files> {
    Files::make(output_path(options.output.as_deref(), in_the_name), options.crashreport)
}

async fn dump(
    chosen: &Subject,
    options: &Dump,
    files: Files,
    stops: &Stops,
    output: Output,
) -> anyhow::Result<u8> {
    let (pid, own_pid) = unless(stops, async { chosen.pids().await.map_err(explain) }).await?;
    let view = runtap_discover::file_view(pid).map_err(|error| {
        let hint = "run runtap as root, or as the user who runs the process";
        expected(exit::NO_TARGET, format!("can't look into process {pid}: {error}"), hint.to_owned())
    })?;
    let mut place = Place::find(&view, runtap_discover::facts(pid).file_uid, files)?;
    if let Ok(memory) = runtap_discover::memory(pid) {
        place.check_space(options.r#type.estimate(memory))?;
    }
    place.prepare(&view);
    if let Some(why) = place.fetched() {
        let theirs = place.theirs().display();
        output.note(format_args!("the target writes to {theirs}, and the file is fetched from there: {why}"));
    }
    let (kind, path) = (options.r#type.name(), place.ours().display());
    output.note(format_args!("process {pid} writes a {kind} dump to {path}"));

    let started = Instant::now();
    let asked = Cell::new(false);
    let note = || {
        asked.set(true);
        output.detail("the target was asked");
    };
    let answer = ask(&chosen.client, options, &place, note, output);
    let watched = watch(answer, stops, &place, output).await;
    output.end_status();
    let written = match watched {
        Ok(Watched::Done(written)) => written,
        Ok(Watched::Interrupted(code)) => {
            if asked.get() {
                output.warning(format_args!(
                    "the dump goes on without us: process {pid} stands still until its createdump has written the whole of {}",
                    place.theirs().display()
                ));
                place.leave();
            } else {
                place.clean();
            }
            return Ok(code);
        }
        Err(error) => {
            // Without an answer the dump may be there, or become.
            if asked.get() && exit::code_of(&error) != exit::REFUSED && place.written() > 0 {
                output
                    .warning(format_args!("what the target has written is in {}", place.theirs().display()));
                place.leave();
            } else {
                place.clean();
            }
            return Err(error);
        }
    };
    let duration = started.elapsed();
    let crash_report = options.crashreport && written.form != DumpForm::GenerateCoreDump;
    let theirs = place.fetched().is_some().then(|| place.theirs().to_owned());
    // Maybe a long copy.
    let found = unless(stops, in_a_thread(move || place.finish(crash_report))).await??;
    // Where the target wrote into our file, that has its name by now.
    let target_path =
        theirs.or_else(|| view.to_target(&found.path).ok().flatten()).unwrap_or_else(|| found.path.clone());
    Summary { pid, own_pid, target_path, kind, duration, found }.print(output)
}

/// `-o`, a name like dotnet-dump's in the folder that it names, or that name here. With a process id it is in the name.
fn output_path(output: Option<&Path>, pid: Option<u32>) -> Wanted {
    let folder = match output {
        Some(path) if !path.is_dir() => {
            return Wanted::Given(
                pid.map_or_else(|| path.to_owned(), |pid| insert_before_extension(path, &format!(".{pid}"))),
            );
        }
        Some(folder) => folder,
        None => Path::new(""),
    };
    let base = folder.join(format!("core_{}", Zoned::now().strftime("%Y%m%d_%H%M%S")));
    let mut candidates = (1..=NAMES_TRIED).map(|n| numbered(&base, n, ""));
    Wanted::Fresh(candidates.find(|path| is_free(path)).unwrap_or(base))
}

/// Asks for the dump. What the runtime is too old for is left out, and said.
async fn ask(
    client: &Client,
    options: &Dump,
    place: &Place,
    mut asked: impl FnMut(),
    output: Output,
) -> anyhow::Result<WrittenDump> {
    let mut flags = DumpFlags::NONE;
    if options.diag {
        flags = flags | DumpFlags::LOGGING;
    }
    if options.crashreport {
        flags = flags | DumpFlags::CRASH_REPORT;
    }
    let dump = CoreDump::new(place.told(), options.r#type.wire()).with_flags(flags);
    let mut written = client.dump_and_tell(&dump, &mut asked).await;
    if let Err(Error::Invalid(EncodeError::DumpFlags { .. })) = &written {
        output.warning("no crash report is written: that needs .NET 6 or later in the target");
        let plain = if options.diag { DumpFlags::LOGGING } else { DumpFlags::NONE };
        written = client.dump_and_tell(&dump.with_flags(plain), &mut asked).await;
    }
    written.map_err(|error| match &error {
        Error::Refused { reply, .. } if no_ptrace(reply.message.as_deref()) => {
            let hint = "createdump may not trace its own parent: a container needs the capability SYS_PTRACE";
            expected(exit::REFUSED, error.to_string(), hint.to_owned())
        }
        Error::Refused { reply, .. } if reply.message.as_deref().is_some_and(|it| it.contains(FULL_ONLY)) => {
            expected(exit::REFUSED, error.to_string(), "take --type full".to_owned())
        }
        _ => explain(error),
    })
}

/// What createdump says of a program that has its runtime in its own file.
const FULL_ONLY: &str = "Only full dumps are supported";

fn no_ptrace(message: Option<&str>) -> bool {
    message.is_some_and(|text| text.contains("ptrace(") && text.contains("not permitted"))
}

enum Watched {
    Done(WrittenDump),
    /// With this exit code.
    Interrupted(u8),
}

/// Waits for the answer, and shows how the file grows.
async fn watch(
    asked: impl Future<Output = anyhow::Result<WrittenDump>>,
    stops: &Stops,
    place: &Place,
    output: Output,
) -> anyhow::Result<Watched> {
    let mut asked = pin!(asked);
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let started = Instant::now();
    loop {
        tokio::select! {
            written = &mut asked => return written.map(Watched::Done),
            () = stops.stopping() => {
                return Ok(Watched::Interrupted(stops.exit_code().unwrap_or(exit::INTERRUPTED)));
            }
            _ = tick.tick() => if output.progress() {
                let size = Bytes(place.written());
                output.status(format_args!("{} s: {size} written", started.elapsed().as_secs()));
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_those_of_dotnet_dump() {
        let folder = tempfile::tempdir().unwrap();
        let Wanted::Fresh(path) = output_path(Some(folder.path()), None) else {
            panic!("a folder was given")
        };
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(path.starts_with(folder.path()));
        let shape: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "core_00000000_000000");
        let given = |path: &str, pid| match output_path(Some(Path::new(path)), pid) {
            Wanted::Given(path) => path,
            Wanted::Fresh(path) => panic!("{} is another name", path.display()),
        };
        assert_eq!(given("x/y", None), Path::new("x/y"));
        assert_eq!(given("x/y.dmp", Some(7)), Path::new("x/y.7.dmp"));
        assert!(matches!(output_path(None, None), Wanted::Fresh(path) if path.is_relative()));
    }

    #[test]
    fn a_missing_right_to_trace_is_known_by_its_text() {
        let text =
            "[createdump] Problem suspending threads: ptrace(ATTACH, 1) FAILED Operation not permitted (1)";
        assert!(no_ptrace(Some(text)));
        assert!(!no_ptrace(Some("[createdump] Could not create output file")));
        assert!(!no_ptrace(None));
    }
}
