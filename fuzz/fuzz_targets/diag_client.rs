//! Any bytes as the answer to any command (first byte): no panic, one outcome, whatever the size of the chunks.
#![no_main]

use runtap_diag_proto::{
    InfoForm, Level, Provider, Request, SessionConfig, SessionForm, SessionId, client::Client,
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([command, chunk], answer)) = input.split_first_chunk() else { return };
    assert_eq!(outcome(*command, answer, usize::from(*chunk)), outcome(*command, answer, answer.len()));
});

fn outcome(command: u8, answer: &[u8], chunk: usize) -> String {
    let config = || SessionConfig::new(vec![Provider::new("A", 1, Level::Verbose)]);
    let mut client = Client::new(match command % 5 {
        0 => Request::ProcessInfo(InfoForm::NEWEST_FIRST[usize::from(command / 5 % 3)]),
        1 => Request::ProcessEnvironment,
        2 => Request::CollectTracing { form: SessionForm::CollectTracing5, config: config() },
        3 => Request::StopTracing(SessionId(1)),
        _ => Request::ResumeRuntime,
    })
    .expect("all of them are sound");
    let taken: usize = answer.chunks(chunk.max(1)).map(|part| client.handle_bytes(part)).sum();
    client.handle_eof();
    format!("{taken} {:?} {:?}", client.poll_event().expect("one outcome"), client.poll_event())
}
