//! Properties of every message: it round-trips, a part of it is never accepted as the whole, and the decoder accepts
//! everything that the encoder produces.

use proptest::{collection::vec, option, prelude::*};
use runtap_diag_proto::{
    AttachProfiler, Buffering, Command, CoreDump, DumpFlags, DumpForm, DumpType, ErrorReply, EventFilter,
    Format, Hresult, InfoForm, Level, PerfMapType, ProcessInfo, Provider, Reply, Request, RequestError,
    RundownFallback, SessionConfig, SessionForm, SessionId, StartupProfiler, TracepointSet, Tracepoints,
    UserEventsConfig, UserEventsProvider, Uuid, Variable, client,
    client::{Client, Failure},
    merge_providers, server,
    server::Server,
};

fn level() -> impl Strategy<Value = Level> {
    (0..6u32).prop_map(|n| Level::from_number(n).unwrap())
}

fn filter() -> impl Strategy<Value = EventFilter> {
    (any::<bool>(), vec(any::<u32>(), 0..20)).prop_map(|(enable, ids)| EventFilter { enable, ids })
}

/// Mostly valid providers, and some that must be rejected: empty names, NULs, duplicate names.
fn provider() -> impl Strategy<Value = Provider> {
    (
        prop_oneof![8 => "[A-Za-z.é😀-]{1,12}", 1 => "[AB]", 1 => "[A\0]{0,2}"],
        any::<u64>(),
        level(),
        option::of(prop_oneof![8 => "[^\0]{0,20}", 1 => "\0"]),
        option::of(filter()),
    )
        .prop_map(|(name, keywords, level, arguments, filter)| Provider {
            name,
            keywords,
            level,
            arguments,
            filter,
        })
}

fn config() -> impl Strategy<Value = SessionConfig> {
    (
        vec(provider(), 0..4),
        prop_oneof![9 => 1..=u32::MAX, 1 => Just(0)],
        any::<bool>(),
        prop_oneof![any::<u64>(), Just(0), Just(runtap_diag_proto::DEFAULT_RUNDOWN_KEYWORD)],
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(providers, buffer_mb, nettrace, rundown_keyword, none, stackwalk, block)| {
            SessionConfig {
                providers,
                buffer_mb,
                format: if nettrace { Format::Nettrace } else { Format::NetPerf },
                rundown_keyword,
                rundown_fallback: if none { RundownFallback::None } else { RundownFallback::Standard },
                stackwalk,
                buffering: if block { Buffering::Block } else { Buffering::Drop },
            }
        })
}

fn form() -> impl Strategy<Value = SessionForm> {
    (0..6usize).prop_map(|n| SessionForm::NEWEST_FIRST[n])
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        1 => (0..3usize).prop_map(|n| Request::ProcessInfo(InfoForm::NEWEST_FIRST[n])),
        1 => Just(Request::ProcessEnvironment),
        1 => Just(Request::ResumeRuntime),
        1 => any::<u64>().prop_map(|id| Request::StopTracing(SessionId(id))),
        4 => (form(), config()).prop_map(|(form, config)| Request::CollectTracing { form, config }),
        2 => (form(), user_events()).prop_map(|(form, config)| Request::CollectUserEvents { form, config }),
        4 => command(),
    ]
}

/// Mostly valid tracepoints, and some that must be rejected: duplicate ids and names, none at all.
fn tracepoints() -> impl Strategy<Value = Tracepoints> {
    let name = || prop_oneof![8 => "[A-Z][A-Za-z0-9._-]{0,12}", 1 => "[ ;é\0]?"];
    let set = (name(), vec(any::<u32>(), 0..6)).prop_map(|(name, ids)| TracepointSet { name, ids });
    (option::of(name()), vec(set, 0..4)).prop_map(|(default, sets)| Tracepoints { default, sets })
}

fn user_events() -> impl Strategy<Value = UserEventsConfig> {
    let entry = (provider(), tracepoints())
        .prop_map(|(provider, tracepoints)| UserEventsProvider { provider, tracepoints });
    (vec(entry, 0..4), any::<u64>())
        .prop_map(|(providers, rundown_keyword)| UserEventsConfig { providers, rundown_keyword })
}

/// A text that is mostly valid.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![8 => "[^\0=]{1,20}", 1 => "[\0=]?"]
}

/// The commands without a result.
fn command() -> impl Strategy<Value = Request> {
    let class_id = || any::<u128>().prop_map(Uuid::from_u128);
    prop_oneof![
        (0..3usize, field(), any::<u32>(), prop_oneof![0..8u32, any::<u32>()]).prop_map(
            |(n, path, kind, flags)| Request::GenerateCoreDump {
                form: DumpForm::NEWEST_FIRST[n],
                dump: CoreDump { path, kind: DumpType(kind), flags: DumpFlags(flags) },
            }
        ),
        (class_id(), field(), any::<u32>(), vec(any::<u8>(), 0..20)).prop_map(
            |(class_id, path, timeout_ms, client_data)| {
                Request::AttachProfiler(AttachProfiler { class_id, path, timeout_ms, client_data })
            }
        ),
        (class_id(), field())
            .prop_map(|(class_id, path)| Request::StartupProfiler(StartupProfiler { class_id, path })),
        (field(), option::of(prop_oneof![8 => "[^\0]{0,20}", 1 => "\0"]))
            .prop_map(|(name, value)| Request::SetEnvironmentVariable { name, value }),
        (0..3usize).prop_map(|n| Request::EnablePerfMap(PerfMapType::ALL[n])),
        Just(Request::DisablePerfMap),
        field().prop_map(|path| Request::ApplyStartupHook { path }),
    ]
}

fn info() -> impl Strategy<Value = ProcessInfo> {
    let text = || "[^\0]{0,12}";
    (any::<u64>(), any::<u128>(), text(), text(), text(), text(), text(), text()).prop_map(
        |(process_id, cookie, command_line, os, arch, entry, version, rid)| ProcessInfo {
            process_id,
            runtime_cookie: Uuid::from_u128(cookie),
            command_line,
            os,
            arch,
            entry_assembly: Some(entry),
            runtime_version: Some(version),
            portable_rid: Some(rid),
        },
    )
}

/// A request with its answer.
fn exchange() -> impl Strategy<Value = (Request, Reply)> {
    prop_oneof![
        info().prop_map(|info| (Request::ProcessInfo(InfoForm::ProcessInfo3), Reply::ProcessInfo(info))),
        vec("[^\0]{0,12}", 0..8).prop_map(|entries| {
            let variables = entries.into_iter().map(Variable::from_entry).collect();
            (Request::ProcessEnvironment, Reply::Environment(variables))
        }),
        Just((Request::ResumeRuntime, Reply::Resumed)),
        any::<u64>()
            .prop_map(|id| (Request::StopTracing(SessionId(id)), Reply::SessionStopped(SessionId(id)))),
        (form(), 1..=u64::MAX).prop_map(|(form, id)| {
            let config = SessionConfig::new(vec![Provider::new("A", 1, Level::Verbose)]);
            (Request::CollectTracing { form, config }, Reply::SessionStarted(SessionId(id)))
        }),
        command()
            .prop_filter("not sent", |request| request.to_bytes().is_ok())
            .prop_map(|request| (request, Reply::Done)),
    ]
}

/// The session as the other side sees it: without the settings that the form cannot carry.
fn as_received(form: SessionForm, config: &SessionConfig) -> SessionConfig {
    let mut seen = config.clone();
    seen.rundown_keyword = config.effective_rundown(form);
    seen.rundown_fallback = RundownFallback::default();
    for lost in config.downgrades(form) {
        match lost.code() {
            "blocking-dropped" => seen.buffering = Buffering::Drop,
            "filters-dropped" => seen.providers.iter_mut().for_each(|provider| provider.filter = None),
            "stackwalk-forced" => seen.stackwalk = true,
            "rundown-changed" => assert_ne!(seen.rundown_keyword, config.rundown_keyword),
            other => panic!("{other}"),
        }
    }
    seen.providers.iter_mut().for_each(without_empty_filter);
    seen
}

/// Removes a filter that holds back nothing, which is encoded like no filter.
fn without_empty_filter(provider: &mut Provider) {
    provider.filter = provider.filter.take().filter(|filter| filter.enable || !filter.ids.is_empty());
}

fn serve(bytes: &[u8], step: usize) -> Option<server::Event> {
    let mut server = Server::with_user_events();
    bytes.chunks(step).for_each(|part| server.handle_bytes(part));
    server.handle_descriptor();
    server.poll_event()
}

fn receive(request: &Request, bytes: &[u8], step: usize) -> (Option<client::Event>, usize) {
    let mut client = Client::new(request.clone()).unwrap();
    let taken = bytes.chunks(step).map(|part| client.handle_bytes(part)).sum();
    (client.poll_event(), taken)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn encoded_requests_round_trip_except_for_reported_losses(request in request()) {
        let Ok(bytes) = request.to_bytes() else { return Ok(()) };
        let expected = match &request {
            Request::CollectTracing { form, config } => {
                Request::CollectTracing { form: *form, config: as_received(*form, config) }
            }
            Request::CollectUserEvents { form, config } => {
                let mut config = config.clone();
                config.providers.iter_mut().for_each(|entry| without_empty_filter(&mut entry.provider));
                Request::CollectUserEvents { form: *form, config }
            }
            other => other.clone(),
        };
        for step in [1, 7, bytes.len()] {
            prop_assert_eq!(serve(&bytes, step), Some(server::Event::Request(expected.clone())));
        }
    }

    #[test]
    fn the_encoder_rejects_exactly_the_invalid_requests(config in config(), form in form()) {
        let names: Vec<_> = config.providers.iter().map(|provider| &provider.name).collect();
        let sound = config.buffer_mb > 0
            && !names.is_empty()
            && names.iter().enumerate().all(|(i, name)| {
                !name.is_empty() && !name.contains('\0') && !names[..i].contains(name)
            })
            && config.providers.iter().all(|p| p.arguments.as_deref().is_none_or(|text| !text.contains('\0')));
        prop_assert_eq!(Request::CollectTracing { form, config }.to_bytes().is_ok(), sound);
    }

    #[test]
    fn no_event_has_two_tracepoints(config in user_events(), form in form()) {
        let sent = Request::CollectUserEvents { form, config: config.clone() }.to_bytes().is_ok();
        for UserEventsProvider { tracepoints, .. } in &config.providers {
            let mut ids: Vec<_> = tracepoints.sets.iter().flat_map(|set| &set.ids).collect();
            let mut names: Vec<_> = tracepoints.names().collect();
            let counts = (ids.len(), names.len());
            ids.sort_unstable();
            ids.dedup();
            names.sort_unstable();
            names.dedup();
            prop_assert!(!sent || (ids.len(), names.len()) == counts);
            prop_assert!(!sent || !names.is_empty());
        }
        prop_assert!(!sent || (!config.providers.is_empty() && form >= SessionForm::CollectTracing5));
    }

    #[test]
    fn commands_with_a_missing_or_truncated_text_are_not_encoded(request in command()) {
        let texts: Vec<&str> = match &request {
            Request::GenerateCoreDump { dump, .. } => vec![&dump.path],
            Request::AttachProfiler(profiler) => vec![&profiler.path],
            Request::StartupProfiler(profiler) => vec![&profiler.path],
            Request::SetEnvironmentVariable { name, .. } => vec![name],
            Request::ApplyStartupHook { path } => vec![path],
            _ => Vec::new(),
        };
        let unsound = texts.iter().any(|text| text.is_empty() || text.contains('\0'));
        prop_assert!(!unsound || request.to_bytes().is_err());
    }

    #[test]
    fn merged_providers_are_valid_and_request_everything(providers in vec(provider(), 1..6)) {
        let Ok(merged) = merge_providers(providers.clone()) else { return Ok(()) };
        for provider in &providers {
            let found: Vec<_> = merged.iter().filter(|known| known.name == provider.name).collect();
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].keywords & provider.keywords, provider.keywords);
            prop_assert_eq!(found[0].level.widest(provider.level), found[0].level);
        }
    }

    #[test]
    fn a_part_of_a_request_is_not_a_request(request in request(), cut in any::<prop::sample::Index>()) {
        let Ok(bytes) = request.to_bytes() else { return Ok(()) };
        let cut = cut.index(bytes.len());
        let mut server = Server::new();
        server.handle_bytes(&bytes[..cut]);
        prop_assert_eq!(server.poll_event(), None);
        server.handle_eof();
        prop_assert_eq!(
            server.poll_event(),
            Some(server::Event::Rejected(RequestError::Incomplete { received: cut }))
        );
    }

    #[test]
    fn a_short_payload_is_incomplete(request in request(), cut in any::<prop::sample::Index>()) {
        let Ok(bytes) = request.to_bytes() else { return Ok(()) };
        let payload = &bytes[20..];
        if payload.is_empty() { return Ok(()) }
        match Request::decode(request.command(), &payload[..cut.index(payload.len())]) {
            Err(RequestError::BadEncoding(error)) => prop_assert!(error.is_incomplete(), "{}", error),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn answers_round_trip_in_any_pieces((request, reply) in exchange(), tail in vec(any::<u8>(), 0..40)) {
        let answer = reply.to_bytes(&request).unwrap();
        let all = [&answer[..], &tail].concat();
        let stream = matches!(reply, Reply::SessionStarted(_));
        for step in [1, 7, all.len()] {
            let (event, taken) = receive(&request, &all, step);
            prop_assert_eq!(event, Some(client::Event::Reply(reply.clone())));
            prop_assert_eq!(taken, if stream { answer.len() } else { all.len() });
        }
    }

    #[test]
    fn a_part_of_an_answer_is_not_an_answer((request, reply) in exchange(), cut in any::<prop::sample::Index>()) {
        let answer = reply.to_bytes(&request).unwrap();
        let cut = cut.index(answer.len());
        let mut client = Client::new(request).unwrap();
        client.handle_bytes(&answer[..cut]);
        prop_assert_eq!(client.poll_event(), None);
        client.handle_eof();
        let closed = Failure::Closed { received: cut as u64 };
        prop_assert_eq!(client.poll_event(), Some(client::Event::Failed(closed)));
    }

    #[test]
    fn any_error_code_survives(code: u32, text in option::of("[^\0]{1,20}"), (request, _) in exchange()) {
        let error = ErrorReply { hresult: Hresult(code), message: text };
        let (event, _) = receive(&request, &error.to_bytes().unwrap(), 1);
        prop_assert_eq!(event, Some(client::Event::Failed(Failure::Rejected(error))));
    }

    #[test]
    fn any_payload_is_an_answer_or_an_error(
        code in prop_oneof![0x0101..0x0104u16, 0x0200..0x0208u16, 0x0301..0x0303u16, 0x0400..0x0409u16],
        payload in vec(any::<u8>(), 0..200),
    ) {
        // Must not panic; an accepted request must be one that could have been sent, except for what is normalized.
        if let Ok(request) = Request::decode(Command(code), &payload) {
            prop_assert_eq!(request.command(), Command(code));
        }
    }

    #[test]
    fn changed_bytes_never_panic(
        (request, reply) in exchange(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let change = |mut bytes: Vec<u8>| {
            for (at, value) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            bytes
        };
        serve(&change(request.to_bytes().unwrap()), 5);
        receive(&request, &change(reply.to_bytes(&request).unwrap()), 5);
    }
}
