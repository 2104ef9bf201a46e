//! `runtap heap`: writes the heap of a running program to a file, or shows it. [`runtap_record::heap`] takes it.

use std::path::Path;
use std::slice::from_ref;
use std::time::SystemTime;

use jiff::Zoned;
use runtap_os::in_a_thread;
use runtap_record::Stops;
use runtap_record::heap::{HeapError, HeapFile, HeapProcess, HeapRequest, HeapSignal, TakenHeap, take_heap};
use runtap_target::ManagedTarget;
use runtap_text::Output;
use runtap_text::document::{HeapDocument, HeapFileDocument, HeapSource};
use runtap_text::units::Bytes;

use super::failure::{print_process_error, recording_error};
use super::interrupt::unless;
use super::report::table_options;
use super::target::{choose_managed, reject_stuck};
use crate::cli;
use crate::exit::{self, expected, usage};

pub(super) async fn run(options: &cli::Heap, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    let path = options.output.as_deref();
    if options.report && path == Some(Path::new("-")) {
        return Err(usage(
            "the report and the file can't both be written to stdout; specify another file with -o",
        ));
    }
    let all = unless(&stops, choose_managed(&options.target, options.all.all, output)).await?;
    let several = all.len() > 1;
    if several && path.is_some_and(|path| !path.is_dir()) {
        return Err(usage("several processes need a directory for their files: -o DIR"));
    }
    let (output, mut code) = (output.for_results(all.len()), exit::OK);
    for target in all {
        let pid = match &target {
            ManagedTarget::Dotnet(target) => target.pid(),
            ManagedTarget::Jvm(target) => Some(target.pid()),
        };
        let of_process = match one(&target, options, &stops, output).await {
            Err(error) if several && !stops.is_stopping() => print_process_error(pid, &error, output),
            done => done?,
        };
        code = if code == exit::OK { of_process } else { code };
    }
    Ok(code)
}

async fn one(
    target: &ManagedTarget,
    options: &cli::Heap,
    stops: &Stops,
    output: Output,
) -> anyhow::Result<u8> {
    let shown = Shown::of(options, output);
    match target {
        // The runtime does not collect garbage before it is resumed.
        ManagedTarget::Dotnet(_) if options.quick => {
            return Err(usage("--quick applies only to Java programs: .NET describes all objects or none"));
        }
        ManagedTarget::Dotnet(target) => reject_stuck(from_ref(&**target), stops).await?,
        #[cfg(target_os = "linux")]
        ManagedTarget::Jvm(target) if options.quick => {
            let histogram = runtap_record::heap::class_histogram(target);
            let histogram =
                unless(stops, async { histogram.await.map_err(|error| explain(error, stops)) }).await?;
            let source = HeapSource::Process(target.pid().into());
            return shown.show(HeapDocument::of_classes(source, histogram, options.sort.unwrap_or_default()));
        }
        ManagedTarget::Jvm(_) => {}
    }
    let process = unless(stops, async { anyhow::Ok(HeapProcess::of(target).await) }).await?;
    let time = Zoned::now().strftime("%Y%m%d_%H%M%S").to_string();
    let mut file = match (options.output.as_deref(), options.to) {
        (None, None) if options.report => None,
        (path, format) => {
            Some(HeapFile::open(path, format, target, &process, &time).map_err(recording_error)?)
        }
    };
    let request =
        HeapRequest { buffer_mb: options.buffersize, patience: options.timeout, needs_graph: options.report };
    let tell = |signal| tell(signal, output);
    let taken = take_heap(target, process, request, &mut file, stops, &tell).await;
    output.end_status();
    let taken = taken.map_err(|error| explain(error, stops))?;
    let kind = if matches!(target, ManagedTarget::Jvm(_)) { "jvm" } else { "dotnet" };
    // Large heaps take seconds, during which a signal must be handled.
    unless(stops, in_a_thread(move || finish(taken, kind, file, &shown))).await?
}

/// Shows what happens while a heap is taken.
pub(super) fn tell(signal: HeapSignal, output: Output) {
    match signal {
        HeapSignal::Again { buffer_mb } => output.note(format_args!(
            "The target dropped events because its buffer was full; repeating with a buffer of {buffer_mb} MB"
        )),
        HeapSignal::Progress { bytes } if output.progress() => output.status(Bytes(bytes)),
        HeapSignal::Progress { .. } => {}
    }
}

/// Writes the file if that is not done yet, and shows the result.
fn finish(taken: TakenHeap, kind: &'static str, file: Option<HeapFile>, shown: &Shown) -> anyhow::Result<u8> {
    let TakenHeap { process, heap, mut written, duration } = taken;
    if let (Some(file), Some(heap)) = (file, &heap) {
        written = Some(file.write(heap, &process, SystemTime::now()).map_err(recording_error)?);
    }
    let pid = process.pid;
    let mut document = HeapFileDocument::new(kind, pid, process.name, duration);
    if let Some(heap) = &heap {
        document.set_heap(heap);
    }
    let reason = document.incomplete_reason.clone();
    if let Some(written) = written {
        document.set_file(written.path.as_deref(), written.format.name(), written.bytes);
        match (&document.path, shown.report) {
            (Some(path), true) => shown.output.note(format_args!("Wrote {path} ({})", Bytes(written.bytes))),
            (Some(_), false) => shown.output.show(&document)?,
            (None, _) if shown.output.json() => shown.output.document_on_free_stream(&document, true)?,
            (None, _) => {}
        }
    }
    if let Some(heap) = heap.filter(|_| shown.report) {
        let (order, path) = (shown.order, shown.path.as_deref());
        return shown.show(HeapDocument::new(HeapSource::Process(pid), heap, order, path));
    }
    Ok(shown.code(reason.as_deref()))
}

/// How results are shown.
struct Shown {
    output: Output,
    report: bool,
    order: runtap_heap::TypeOrder,
    path: Option<String>,
    number: Option<usize>,
}

impl Shown {
    fn of(options: &cli::Heap, output: Output) -> Self {
        let (order, path) = (options.sort.unwrap_or_default(), options.path.clone());
        Self { output, report: options.report, order, path, number: options.number }
    }

    fn show(&self, mut document: HeapDocument) -> anyhow::Result<u8> {
        document.limit(self.number.filter(|_| self.output.json()).unwrap_or(usize::MAX));
        self.output.show_with(&document, &table_options(self.number, self.output))?;
        Ok(self.code(document.missing()))
    }

    fn code(&self, missing: Option<&str>) -> u8 {
        let Some(reason) = missing else { return exit::OK };
        self.output.warning(format_args!("the heap is partial: {reason}"));
        exit::PARTIAL
    }
}

pub(super) fn explain(error: HeapError, stops: &Stops) -> anyhow::Error {
    let text = error.to_string();
    match error {
        HeapError::Session(error) => recording_error(error),
        #[cfg(target_os = "linux")]
        HeapError::Attach(error) => super::jvm::explain(error),
        HeapError::Interrupted => expected(stops.exit_code().unwrap_or(exit::INTERRUPTED), text, None),
        HeapError::NotHprof | HeapError::JavaNotSupported => usage(text),
        HeapError::NoHeap(_) => expected(
            exit::FAILED,
            text,
            "Try again: an interrupted session may still have been ending. --timeout waits longer."
                .to_owned(),
        ),
        error => error.into(),
    }
}
