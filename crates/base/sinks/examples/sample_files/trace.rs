//! A little recording as a .NET program would give it: two seconds at 1 kHz, with the odd names and the odd
//! samples that real ones have. Used by the example and by the snapshot tests.

use runtap_model::{Frame, Origin, Process, SampleKind, Trace, TraceBuilder};

const MS: u64 = 1_000_000;
const RUNS: SampleKind = SampleKind::MANAGED;
const WAITS: SampleKind = SampleKind::EXTERNAL;

/// What a thread does for some milliseconds: its frames from the root, `|` between them, an empty text for a
/// sample that the runtime sent without a stack.
type Phase = (u64, SampleKind, &'static str);

const START: &str = "System.Private.CoreLib!System.Threading.Thread.StartCallback()";

const MAIN: &[Phase] = &[
    (3, RUNS, "spin!Program.Main(class System.String[])"),
    (
        1997,
        WAITS,
        "spin!Program.Main(class System.String[])|System.Private.CoreLib!System.Threading.Thread.Join()",
    ),
];

/// 60 : 20 : 20 of each 100 ms.
const SPIN_A: &[Phase] = &[
    (60, RUNS, "spin!A.Round()|spin!A.Heavy()|spin!Burn.Cycles(int32)"),
    (20, RUNS, "spin!A.Round()|spin!A.Light()|spin!Burn.Cycles(int32)"),
    (20, RUNS, "spin!A.Round()|spin!B.Chain(int32)|spin!B.Inner(int32)|spin!Burn.Cycles(int32)"),
];

const SPIN_B: &[Phase] = &[
    (
        200,
        RUNS,
        "spin!ThreadB.Round()|spin!Recursion.Down(int32)|spin!Recursion.Down(int32)|\
         spin!Recursion.Down(int32)|spin!Burn.Cycles(int32)",
    ),
    (50, RUNS, "spin!ThreadB.Round()|spin!Gen`1[System.Int32].Do(!0,!!0)|spin!Burn.Cycles(int32)"),
    (50, RUNS, "spin!ThreadB.Round()|spin!Gen`1[System.__Canon].Do(!0,!!0)|spin!Burn.Cycles(int32)"),
    (
        100,
        RUNS,
        "spin!ThreadB.Round()|spin!ThreadB+<>c__DisplayClass0_0.<Round>b__0()|spin!Burn.Cycles(int32)",
    ),
];

/// A thread of the pool with what is rare: native code without a name, no stack, odd names.
const POOL: &[Phase] = &[
    (400, WAITS, "System.Private.CoreLib!System.Threading.LowLevelLifoSemaphore.WaitForSignal(int32)"),
    (150, RUNS, "web!Shop.Größe.Äpfel(string; int32)|?!dynamicClass.lambda_\"quoted\"(😀 & <T>)"),
    (50, WAITS, "libcoreclr!0x7f31c0de|?!0x7fff12345678"),
    (25, WAITS, ""),
    (375, RUNS, "System.Text.Json!System.Text.Json.JsonSerializer.Serialize(!!0)|?!IL_STUB stub 12"),
];

/// The recording.
pub(crate) fn trace() -> Trace {
    let mut builder = TraceBuilder::new();
    builder.set_process(Process {
        pid: Some(4242),
        name: Some("spin".to_owned()),
        command_line: Some("dotnet spin.dll 10".to_owned()),
    });
    builder.set_start_unix_ns(1_790_000_000_000_000_000);
    builder.set_duration_ns(2_050 * MS);
    add(&mut builder, 4242, "", MAIN, 2000);
    add(&mut builder, 4250, "spin-A", SPIN_A, 2000);
    add(&mut builder, 4251, "spin-B", SPIN_B, 2000);
    // Ends after half of the recording.
    add(&mut builder, 4260, ".NET TP Worker 3", POOL, 1000);
    builder.thread(4261);
    builder.finish()
}

/// Returns a frame with the origin and the kind that a source would state.
fn frame<'a>(module: &'a str, name: &'a str) -> Frame<'a> {
    let origin = if module.starts_with("System.") { Origin::Runtime } else { Origin::Own };
    let frame = Frame::new(Some(module).filter(|module| *module != "?"), name).of(origin);
    if name.starts_with("0x") { frame.address() } else { frame }
}

/// Repeats the phases until `until_ms`.
fn add(builder: &mut TraceBuilder, tid: u64, name: &str, phases: &[Phase], until_ms: u64) {
    let thread = builder.thread(tid);
    builder.set_thread_name(thread, name);
    let started = !name.is_empty();
    let mut now = 0;
    for (ms, kind, text) in phases.iter().cycle() {
        let root = if started { START } else { "" };
        let stack = [root, text].into_iter().filter(|_| !text.is_empty()).flat_map(|t| t.split('|'));
        let frames: Vec<_> = stack
            .filter_map(|frame| frame.split_once('!'))
            .map(|(module, name)| builder.add_frame(&frame(module, name)))
            .collect();
        let stack = builder.stack_of(frames);
        for _ in 0..*ms {
            if now == until_ms {
                return;
            }
            now += 1;
            builder.add_sample(thread, now * MS, *kind, stack);
        }
    }
}
