//! Any text as the options that select events, one per line: `--providers`, `--profile`, `--clrevents`,
//! `--clreventlevel`, `--event-filter`, `--user-events`. No panic, and the runtime's side decodes the session as it was
//! encoded.
#![no_main]

use runtap_diag_proto::server::{Event, Server};
use runtap_diag_proto::{Request as Message, SessionConfig, SessionForm};
use runtap_record::providers::{Request, Selection, user_events_config};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(text) = str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let mut next = || lines.next().filter(|line| !line.is_empty());
    let list = |line: Option<&str>| line.map(str::to_owned).into_iter().collect::<Vec<_>>();
    let (providers, profiles) = (list(next()), list(next()));
    let (clr_events, clr_event_level) = (next(), next());
    let (event_filters, tracepoints) = (list(next()), list(next()));
    let selection = Selection {
        providers: &providers,
        profiles: &profiles,
        clr_events,
        clr_event_level,
        event_filters: &event_filters,
    };
    let request = match Request::resolve(&selection) {
        Ok(request) => request,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let chosen: Vec<_> = request.providers.into_iter().map(|asked| asked.provider).collect();
    for (n, provider) in chosen.iter().enumerate() {
        assert!(chosen[..n].iter().all(|other| other.name != provider.name), "{} twice", provider.name);
    }
    let config = SessionConfig::new(chosen.clone());
    meant(Message::CollectTracing { form: SessionForm::CollectTracing5, config });
    if let Ok(config) = user_events_config(&chosen, &tracepoints, 42) {
        meant(Message::CollectUserEvents { form: SessionForm::CollectTracing5, config });
    }
});

fn meant(request: Message) {
    let Ok(bytes) = request.to_bytes() else { return };
    let mut server = Server::with_user_events();
    server.handle_bytes(&bytes);
    server.handle_descriptor();
    server.handle_eof();
    match server.poll_event() {
        Some(Event::Request(Message::CollectTracing { config, .. })) => {
            let Message::CollectTracing { config: sent, .. } = &request else { panic!("another request") };
            assert_eq!(config.providers, sent.providers);
        }
        Some(Event::Request(heard)) => assert_eq!(heard, request),
        other => panic!("{other:?}"),
    }
}
