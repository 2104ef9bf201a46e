//! What another source than the CLR has: kinds of its own, and frames of which it knows more.

use crate::read::pprof;
use runtap_model::{Frame, KindInfo, Origin, SampleClass, SampleKind, Trace, TraceBuilder, Unit, View};
use runtap_sinks::{Format, Options};
use std::io::Read;
use std::num::NonZeroU32;

/// A method of a JVM's library, called by the program, that calls native code, which calls the kernel.
fn trace() -> Trace {
    let mut builder = TraceBuilder::new();
    let own = Frame::new(Some("app.jar"), "App.main").of(Origin::Own).at("App.java", NonZeroU32::new(12));
    let library = Frame::new(Some("java.base"), "java.util.zip.CRC32.update").of(Origin::Runtime);
    let native = Frame::new(Some("libzip.so"), "crc32_z").of(Origin::Native).at("crc32.c", None);
    let kernel = Frame::new(Some("vmlinux"), "asm_exc_page_fault").of(Origin::Kernel);
    let frames = [own, library, native, kernel].map(|frame| builder.add_frame(&frame));
    let stack = builder.stack_of(frames);
    let thread = builder.thread(1);
    builder.add_sample(thread, 0, SampleKind::MANAGED, stack);
    builder.finish()
}

fn written(format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.write(&trace(), &mut bytes, &Options::new(View::Cpu)).expect("a Vec takes all");
    bytes
}

fn text(format: Format) -> String {
    String::from_utf8(written(format)).expect("the format is UTF-8")
}

#[test]
fn firefox_has_a_category_for_each_origin() {
    let mut text = String::new();
    flate2::read::GzDecoder::new(&written(Format::Firefox)[..]).read_to_string(&mut text).expect("gzip");
    assert!(text.contains(r#""category":[2,1,3,4]"#), "{text}");
    let names = ["Other", "Framework", "Program", "Native", "Kernel"];
    let places = names.map(|name| text.find(&format!(r#"{{"name":"{name}""#)).expect(name));
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn a_flame_graph_says_what_its_colours_mean() {
    let text = text(Format::Flamegraph);
    assert!(text.contains("orange: program, blue: framework, green: native, violet: kernel, gray: no name"));
}

#[test]
fn speedscope_and_pprof_have_the_place_of_the_source() {
    let text = text(Format::Speedscope);
    assert!(text.contains(r#"{"name":"app.jar!App.main","file":"App.java","line":12}"#), "{text}");
    assert!(text.contains(r#"{"name":"libzip.so!crc32_z","file":"crc32.c"}"#), "{text}");
    assert!(text.contains(r#"{"name":"vmlinux!asm_exc_page_fault"}"#), "{text}");
    let profile = pprof::read(&written(Format::Pprof));
    // Those of the four frames, and of the missing stack.
    let expected = [("App.java", 12), ("", 0), ("crc32.c", 0), ("", 0), ("", 0)];
    assert_eq!(profile.places, expected.map(|(file, line)| (file.to_owned(), line)));
}

#[test]
fn kinds_of_a_source_have_their_names_units_and_views() {
    let mut builder = TraceBuilder::new();
    let mut kind = |class, name, unit| {
        let info = KindInfo { class, name, about: "", unit };
        (builder.kind(info).expect("there is room"), info)
    };
    let java = kind(SampleClass::Running, "java", Unit::Nanoseconds);
    let parked = kind(SampleClass::Waiting, "parked", Unit::Nanoseconds);
    let (bytes, of_bytes) = kind(SampleClass::Weighted, "tlab", Unit::Bytes);
    let (locks, of_locks) = kind(SampleClass::Weighted, "lock", Unit::Nanoseconds);
    let frame = builder.frame(Some("app.jar"), "App.main");
    let stack = builder.stack_of([frame]);
    let [sampled, allocating] = [1, 2].map(|tid| builder.thread(tid));
    for (n, (kind, _)) in (0..).zip([java, parked, java, java]) {
        builder.add_sample(sampled, n * 10, kind, stack);
    }
    builder.add_weighted(allocating, 5, 4096, bytes, stack);
    builder.add_weighted(allocating, 6, 70, locks, stack);
    builder.add_weighted(allocating, 7, 512, bytes, stack);
    let trace = builder.finish();

    let sums = |view| trace.threads().map(|(_, thread)| (thread.weight(view), thread.ticks(view))).collect();
    let sums = |view| -> Vec<(u64, u64)> { sums(view) };
    assert_eq!(sums(View::ThreadTime), [(40, 4), (0, 0)]);
    assert_eq!(sums(View::Cpu), [(30, 3), (0, 0)]);
    assert_eq!(sums(View::Alloc), [(0, 0), (0, 0)], "those are the CLR's");
    let (tlab, lock) = (View::Kind(bytes, of_bytes), View::Kind(locks, of_locks));
    assert_eq!(sums(tlab), [(0, 0), (4608, 2)]);
    assert_eq!(sums(lock), [(0, 0), (70, 1)]);
    assert_eq!(sums(View::Kind(java.0, java.1)), [(30, 3), (0, 0)]);
    assert!(!tlab.is_sampled() && View::Kind(java.0, java.1).is_sampled());

    let write = |format: Format, view, trace: &Trace| {
        let mut bytes = Vec::new();
        format.write(trace, &mut bytes, &Options::new(view)).map(|()| bytes)
    };
    let profile = pprof::read(&write(Format::Pprof, View::ThreadTime, &trace).unwrap());
    let kinds: Vec<&str> = profile.samples.iter().map(|sample| sample.text("kind")).collect();
    assert_eq!(kinds, ["java", "parked"]);
    let profile = pprof::read(&write(Format::Pprof, tlab, &trace).unwrap());
    let types = [("events", "count"), ("tlab", "bytes")];
    assert_eq!(profile.types, types.map(|(what, unit)| (what.to_owned(), unit.to_owned())));
    assert_eq!(profile.samples[0].values, [2, 4608]);
    assert!(write(Format::Chrome, lock, &trace).is_ok());
    let refused = write(Format::Chrome, tlab, &trace).unwrap_err().to_string();
    assert_eq!(refused, "the view `tlab` has no time axis, which this format needs");

    // Put together with others, they keep what they are.
    let merged = Trace::merge([Trace::default(), trace.clone(), trace]);
    let views: Vec<View> = merged.kinds().iter().map(|(kind, info)| View::Kind(kind, info)).collect();
    let of = |name| *views.iter().find(|view| view.name() == name).expect("the kind is there");
    let weight = |name| -> u64 { merged.threads().map(|(_, thread)| thread.weight(of(name))).sum() };
    assert_eq!(["java", "parked", "tlab", "lock", "managed"].map(weight), [60, 20, 9216, 140, 0]);
}
