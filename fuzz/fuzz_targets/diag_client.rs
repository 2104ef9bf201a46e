//! Any bytes as the answer to any command (first byte): no panic, and one outcome for any chunk size.
#![no_main]

use runtap_diag_proto::{
    AttachProfiler, CoreDump, DumpForm, DumpType, InfoForm, Level, PerfMapType, Provider, Request,
    SessionConfig, SessionForm, SessionId, StartupProfiler, Tracepoints, UserEventsConfig,
    UserEventsProvider, Uuid, client::Client,
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([command, chunk], answer)) = input.split_first_chunk() else { return };
    assert_eq!(outcome(*command, answer, usize::from(*chunk)), outcome(*command, answer, answer.len()));
});

fn outcome(command: u8, answer: &[u8], chunk: usize) -> String {
    let mut client = Client::with_descriptor(request(command)).expect("all of them are sound");
    let taken: usize = answer.chunks(chunk.max(1)).map(|part| client.handle_bytes(part)).sum();
    client.handle_eof();
    format!("{taken} {:?} {:?}", client.poll_event().expect("one outcome"), client.poll_event())
}

fn request(command: u8) -> Request {
    let provider = || Provider::new("A", 1, Level::Verbose);
    let path = || String::from("/x");
    let class_id = Uuid::nil();
    match command % 15 {
        0 => Request::ProcessInfo(InfoForm::ProcessInfo3),
        1 => Request::ProcessEnvironment,
        2 => Request::CollectTracing {
            form: SessionForm::CollectTracing5,
            config: SessionConfig::new(vec![provider()]),
        },
        3 => Request::StopTracing(SessionId(1)),
        4 => Request::ResumeRuntime,
        5 => Request::ProcessInfo(InfoForm::ProcessInfo2),
        6 => Request::GenerateCoreDump {
            form: DumpForm::GenerateCoreDump3,
            dump: CoreDump::new(path(), DumpType::FULL),
        },
        7 => Request::AttachProfiler(AttachProfiler {
            class_id,
            path: path(),
            timeout_ms: 0,
            client_data: Vec::new(),
        }),
        8 => Request::StartupProfiler(StartupProfiler { class_id, path: path() }),
        9 => Request::SetEnvironmentVariable { name: "A".into(), value: None },
        10 => Request::ProcessInfo(InfoForm::ProcessInfo),
        11 => Request::EnablePerfMap(PerfMapType::All),
        12 => Request::DisablePerfMap,
        13 => Request::ApplyStartupHook { path: path() },
        _ => Request::CollectUserEvents {
            form: SessionForm::CollectTracing5,
            config: UserEventsConfig::new(vec![UserEventsProvider {
                provider: provider(),
                tracepoints: Tracepoints::all_to("A"),
            }]),
        },
    }
}
