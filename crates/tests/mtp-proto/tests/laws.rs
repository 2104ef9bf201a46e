//! Laws that hold for all messages and all bytes.

mod common;

use common::{decode, frame, greeting};
use proptest::{collection::vec, option, prelude::*};
use runtap_mtp_proto::{
    AzureDevOpsLog, CommandLineOption, CommandLineOptions, ControlKind, DecodeError, DiscoveredTest,
    DiscoveredTests, DiscoveredTestsWriter, Display, DisplayLevel, FailedTest, FileArtifact, FileArtifacts,
    Frame, FrameReader, Handshake, HandshakeKey, Limits, Message, MessageId, ServerControl, SessionEvent,
    SessionEventType, SuccessfulTest, TestException, TestHostCompleted, TestHostProcessId, TestInProgress,
    TestResults, TestResultsWriter, TestState, TestTrait, TestsInProgress, Version, Versions, is_old_layout,
    render::Rendering,
    server::{Application, Event, Mode, Output, Pipe, Settings},
};

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(prop_oneof![Just(String::new()), "[ -~]{1,12}", any::<String>()])
}

fn texts() -> impl Strategy<Value = Option<Vec<String>>> {
    option::of(vec(any::<String>(), 0..3))
}

fn options() -> impl Strategy<Value = Message> {
    let option =
        (text(), text(), any::<(Option<bool>, Option<bool>, Option<i32>, Option<i32>)>(), text(), text())
            .prop_map(
                |(
                    name,
                    description,
                    (hidden, built_in, minimum, maximum),
                    obsolescence_message,
                    provider_uid,
                )| {
                    CommandLineOption {
                        name,
                        description,
                        is_hidden: hidden,
                        is_built_in: built_in,
                        obsolescence_message,
                        provider_uid,
                        minimum_arity: minimum,
                        maximum_arity: maximum,
                    }
                },
            );
    (text(), option::of(vec(option, 0..3))).prop_map(|(module_path, options)| {
        Message::CommandLineOptions(CommandLineOptions { module_path, options })
    })
}

fn discovered() -> impl Strategy<Value = Message> {
    let traits = option::of(vec((text(), text()).prop_map(|(key, value)| TestTrait { key, value }), 0..3));
    let test = ((text(), text(), text(), text(), text(), text()), any::<Option<i32>>(), texts(), traits)
        .prop_map(
            |(
                (uid, display_name, file_path, namespace, type_name, method_name),
                line_number,
                parameter_types,
                traits,
            )| {
                DiscoveredTest {
                    uid,
                    display_name,
                    file_path,
                    line_number,
                    namespace,
                    type_name,
                    method_name,
                    parameter_types,
                    traits,
                }
            },
        );
    (text(), text(), option::of(vec(test, 0..3))).prop_map(|(execution_id, instance_id, tests)| {
        Message::DiscoveredTests(DiscoveredTests { execution_id, instance_id, tests })
    })
}

type Numbers = (Option<u8>, Option<i64>, Option<i32>, Option<bool>);

fn results() -> impl Strategy<Value = Message> {
    let base = || (text(), text(), text(), text(), text(), text(), any::<Numbers>());
    let successful =
        base().prop_map(|(uid, display_name, reason, out, err, session_uid, numbers)| SuccessfulTest {
            uid,
            display_name,
            state: numbers.0.map(TestState),
            duration: numbers.1,
            reason,
            standard_output: out,
            error_output: err,
            session_uid,
            retry_attempt_number: numbers.2,
            is_superseded: numbers.3,
        });
    let exception = (text(), text(), text()).prop_map(|(message, type_name, stack_trace)| TestException {
        message,
        type_name,
        stack_trace,
    });
    let failed = (base(), option::of(vec(exception, 0..3)), text(), text()).prop_map(
        |((uid, display_name, reason, out, err, session_uid, numbers), exceptions, expected, actual)| {
            FailedTest {
                uid,
                display_name,
                state: numbers.0.map(TestState),
                duration: numbers.1,
                reason,
                exceptions,
                standard_output: out,
                error_output: err,
                session_uid,
                expected,
                actual,
                retry_attempt_number: numbers.2,
                is_superseded: numbers.3,
            }
        },
    );
    (text(), text(), option::of(vec(successful, 0..3)), option::of(vec(failed, 0..3))).prop_map(
        |(execution_id, instance_id, successful, failed)| {
            Message::TestResults(TestResults { execution_id, instance_id, successful, failed })
        },
    )
}

fn artifacts() -> impl Strategy<Value = Message> {
    let file = (text(), text(), text(), text(), text(), text(), text(), texts()).prop_map(
        |(full_path, display_name, description, test_uid, test_display_name, session_uid, kind, paths)| {
            FileArtifact {
                full_path,
                display_name,
                description,
                test_uid,
                test_display_name,
                session_uid,
                kind,
                input_artifact_paths: paths,
            }
        },
    );
    (text(), text(), option::of(vec(file, 0..3))).prop_map(|(execution_id, instance_id, artifacts)| {
        Message::FileArtifacts(FileArtifacts { execution_id, instance_id, artifacts })
    })
}

fn handshake() -> impl Strategy<Value = Message> {
    vec((any::<u8>(), any::<String>()), 0..6).prop_map(|properties| {
        let mut handshake = Handshake::new();
        for (key, value) in properties {
            handshake.set(HandshakeKey(key), value);
        }
        Message::Handshake(handshake)
    })
}

fn others() -> impl Strategy<Value = Message> {
    let test = (text(), text()).prop_map(|(uid, display_name)| TestInProgress { uid, display_name });
    prop_oneof![
        Just(Message::Void),
        Just(Message::WaitForServerControl),
        any::<(i32, Option<i32>)>().prop_map(|(exit_code, unfiltered_exit_code)| {
            Message::TestHostCompleted(TestHostCompleted { exit_code, unfiltered_exit_code })
        }),
        any::<i32>().prop_map(|pid| Message::TestHostProcessId(TestHostProcessId { pid })),
        (any::<Option<u8>>(), text(), text()).prop_map(|(kind, session_uid, execution_id)| {
            let session_type = kind.map(SessionEventType);
            Message::SessionEvent(SessionEvent { session_type, session_uid, execution_id })
        }),
        (text(), text(), option::of(vec(test, 0..3))).prop_map(|(execution_id, instance_id, tests)| {
            Message::TestsInProgress(TestsInProgress { execution_id, instance_id, tests })
        }),
        (text(), text(), text()).prop_map(|(execution_id, instance_id, text)| {
            Message::AzureDevOpsLog(AzureDevOpsLog { execution_id, instance_id, text })
        }),
        (text(), text(), any::<Option<u8>>(), text()).prop_map(|(execution_id, instance_id, level, text)| {
            Message::Display(Display { execution_id, instance_id, level: level.map(DisplayLevel), text })
        }),
        any::<Option<u8>>()
            .prop_map(|kind| Message::ServerControl(ServerControl { kind: kind.map(ControlKind) })),
        (15..i32::MAX, any::<Vec<u8>>()).prop_map(|(id, body)| Message::Unknown { id: MessageId(id), body }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![options(), discovered(), results(), artifacts(), handshake(), others()]
}

/// Offset, id and body of each frame, the error behind them, and the bytes in no frame.
type Frames = (Vec<(u64, MessageId, Vec<u8>)>, Option<DecodeError>, usize);

/// The frames in `chunks`.
fn frames<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Frames {
    let mut reader = FrameReader::new(Limits { frame: 1000, ..Limits::default() });
    let mut all = Vec::new();
    for chunk in chunks {
        reader.feed(chunk);
        loop {
            match reader.next_frame() {
                Ok(Some(frame)) => all.push((frame.offset, frame.id, frame.body.to_vec())),
                Ok(None) => break,
                Err(error) => return (all, Some(error), 0),
            }
        }
    }
    (all, None, reader.leftover())
}

/// What a machine says to `bytes` in pieces of `size`, but for the rule about overlapping requests: it depends on the pieces.
fn outputs(mode: Mode, bytes: &[u8], size: usize) -> Output {
    let mut application = Application::new(Settings::new(mode));
    let mut connection = application.connect(Pipe::Data);
    let mut all = Output::default();
    let mut add = |output: Output| {
        let overlap =
            |event: &Event| matches!(event, Event::Violation(violation) if violation.rule.id() == "MTP003");
        all.events.extend(output.events.into_iter().filter(|event| !overlap(event)));
        all.transmit.extend(output.transmit);
        all.close |= output.close;
    };
    for chunk in bytes.chunks(size) {
        add(application.handle_bytes(&mut connection, chunk));
    }
    add(application.handle_close(&mut connection));
    add(application.handle_exit(Some(0)));
    all
}

proptest! {
    #[test]
    fn what_is_written_is_read(message in message()) {
        let bytes = message.to_frame().unwrap();
        prop_assert_eq!(&decode(&bytes), &message);
        let shown = Rendering::new(&frame(&bytes), Limits::default());
        prop_assert_eq!(&shown.error, &None);
        prop_assert_eq!(shown.rest.is_some(), matches!(&message, Message::Unknown { body, .. } if !body.is_empty()));
        prop_assert!(!is_old_layout(&frame(&bytes)));
    }

    #[test]
    fn written_one_by_one_is_the_same(message in prop_oneof![results(), discovered()]) {
        let mut results = TestResultsWriter::new();
        let mut discovered = DiscoveredTestsWriter::new();
        let ids = (Some("run".to_owned()), Some("process".to_owned()));
        // Writers omit empty lists.
        let (whole, written) = match message {
            Message::TestResults(message) => {
                message.successful.iter().flatten().for_each(|test| results.successful(test));
                message.failed.iter().flatten().for_each(|test| results.failed(test));
                let count = [&message.successful].into_iter().flatten().map(Vec::len).sum::<usize>()
                    + message.failed.iter().map(Vec::len).sum::<usize>();
                prop_assert_eq!((results.len(), results.is_empty()), (count, count == 0));
                let whole = TestResults {
                    execution_id: ids.0,
                    instance_id: ids.1,
                    successful: message.successful.filter(|tests| !tests.is_empty()),
                    failed: message.failed.filter(|tests| !tests.is_empty()),
                };
                (Message::TestResults(whole), results.finish("run", "process"))
            }
            Message::DiscoveredTests(message) => {
                message.tests.iter().flatten().for_each(|test| discovered.push(test));
                prop_assert_eq!(discovered.len(), message.tests.iter().map(Vec::len).sum::<usize>());
                let tests = message.tests.filter(|tests| !tests.is_empty());
                let whole = DiscoveredTests { execution_id: ids.0, instance_id: ids.1, tests };
                (Message::DiscoveredTests(whole), discovered.finish("run", "process"))
            }
            other => unreachable!("{other:?}"),
        };
        prop_assert_eq!(written.unwrap(), whole.to_frame().unwrap());
        // The next one begins anew.
        prop_assert_eq!((results.bytes(), discovered.bytes()), (0, 0));
        let next = TestResults { execution_id: Some("a".into()), instance_id: Some("b".into()), ..Default::default() };
        prop_assert_eq!(results.finish_in(vec![7; 100], "a", "b").unwrap(), Message::TestResults(next).to_frame().unwrap());
    }

    #[test]
    fn a_frame_that_is_cut_is_incomplete(message in message()) {
        let bytes = message.to_frame().unwrap();
        for n in 0..bytes.len() {
            prop_assert!(Frame::parse(&bytes[..n], Limits::default()).unwrap_err().is_incomplete());
        }
    }

    #[test]
    fn a_body_that_is_cut_is_incomplete_or_has_another_meaning(message in message()) {
        let bytes = message.to_frame().unwrap();
        for n in 8..bytes.len() {
            let cut = Frame { offset: 0, id: message.id(), body: &bytes[8..n] };
            match Message::decode(&cut, Limits::default()) {
                Ok(read) => prop_assert_ne!(&read, &message, "{} of {} bytes", n, bytes.len()),
                Err(error) => {
                    prop_assert!(error.is_incomplete(), "{}", error);
                    prop_assert!(error.offset <= n as u64, "{}", error);
                }
            }
        }
    }

    #[test]
    fn what_comes_behind_is_skipped(message in message(), behind: Vec<u8>) {
        let mut bytes = message.to_frame().unwrap();
        let own = matches!(message, Message::Unknown { .. } | Message::TestHostCompleted(_));
        bytes.extend(&behind);
        let longer = Frame { offset: 0, id: message.id(), body: &bytes[8..] };
        if !own {
            prop_assert_eq!(Message::decode(&longer, Limits::default()).unwrap(), message);
        }
    }

    #[test]
    fn bytes_that_are_read_are_written_alike_from_then_on(id in 0..16i32, body: Vec<u8>) {
        let frame = Frame { offset: 0, id: MessageId(id), body: &body };
        let limits = Limits::default();
        let read = Message::decode(&frame, limits);
        let known = !matches!(id, 0 | 9 | 13);
        let shown = Rendering::new(&frame, limits);
        prop_assert!(!known || read.is_ok() == shown.error.is_none());
        prop_assert!(shown.error.is_some() || shown.error_path.is_empty());
        if let Ok(message) = read {
            prop_assert_eq!(decode(&message.to_frame().unwrap()), message);
        }
    }

    #[test]
    fn chunks_do_not_matter(messages in vec(message(), 0..4), junk: Vec<u8>, size in 1..40usize) {
        let mut bytes = Vec::new();
        for message in &messages {
            bytes.extend(message.to_frame().unwrap());
        }
        bytes.extend(junk);
        let whole = frames(std::iter::once(bytes.as_slice()));
        prop_assert_eq!(frames(bytes.chunks(size)), whole);
    }

    #[test]
    fn the_machine_takes_anything_in_any_chunks(
        messages in vec(message(), 0..6), junk: Vec<u8>, size in 1..40usize, mode in 0..3usize
    ) {
        let mode = [Mode::Run, Mode::Discover, Mode::Help][mode];
        let mut bytes = Message::Handshake(greeting("TestHost", "inst-1")).to_frame().unwrap();
        for message in &messages {
            bytes.extend(message.to_frame().unwrap());
        }
        bytes.extend(junk);
        prop_assert_eq!(outputs(mode, &bytes, size), outputs(mode, &bytes, bytes.len()));
    }

    #[test]
    fn versions_come_back(numbers: [u32; 3], list in vec(any::<[u32; 3]>(), 0..4), other in vec(0..5usize, 0..5)) {
        let [major, minor, patch] = numbers;
        let version = Version::new(major, minor, patch);
        prop_assert_eq!(Version::parse(&version.to_string()), Some(version));
        let list = Versions::new(list.into_iter().map(|[a, b, c]| Version::new(a, b, c)));
        prop_assert_eq!(&Versions::parse(&list.to_string()), &list);
        let other = Versions::new(other.into_iter().map(|i| Version::ALL[i]));
        prop_assert_eq!(Versions::all().highest_common(&other), other.iter().max());
        prop_assert_eq!(other.highest_common(&Versions::all()), other.iter().max());
    }
}

#[test]
fn elements_are_limited_for_a_frame_as_a_whole() {
    // Two tests with three traits each: eight elements.
    let test = DiscoveredTest { traits: Some(vec![TestTrait::default(); 3]), ..Default::default() };
    let tests = DiscoveredTests { tests: Some(vec![test; 2]), ..Default::default() };
    let bytes = Message::DiscoveredTests(tests).to_frame().unwrap();
    let read = |elements| Message::decode(&frame(&bytes), Limits { elements, ..Limits::default() });
    assert!(read(8).is_ok());
    let error = read(7).unwrap_err();
    assert_eq!(error.field, "DiscoveredTest.Traits");
    assert!(error.to_string().ends_with("is 8, more than the allowed 7"), "{error}");
}

#[test]
fn a_claimed_count_reserves_nothing() {
    // A list of a million elements in ten bytes.
    let body = [1, 0, 3, 0, 4, 0, 0, 0, 0x40, 0x42, 0x0f, 0];
    let frame = Frame { offset: 0, id: MessageId::DISCOVERED_TESTS, body: &body };
    assert!(Message::decode(&frame, Limits::default()).unwrap_err().is_incomplete());
    assert!(Rendering::new(&frame, Limits::default()).error.unwrap().is_incomplete());
}
