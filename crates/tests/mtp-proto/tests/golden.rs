//! Golden bytes: frames that Microsoft's own code has written, with the values they stand for.
//!
//! The frames are also in the shared folder (`data/mtp/vectors.json`); there must be none that is not tested here.

#![expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]

mod common;

use common::{decode, frame, unhex};
use runtap_mtp_proto::{
    CommandLineOption, CommandLineOptions, DiscoveredTest, DiscoveredTests, Display, DisplayLevel,
    FailedTest, FileArtifact, FileArtifacts, Handshake, HandshakeKey, Limits, Message, SessionEvent,
    SessionEventType, SuccessfulTest, TestHostCompleted, TestHostProcessId, TestInProgress, TestResults,
    TestState, TestTrait, TestsInProgress, render::Rendering,
};
use runtap_testkit::{require, shared_data};
use serde_json::Value;

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn ids() -> (Option<String>, Option<String>) {
    (some("exec-1"), some("inst-1"))
}

/// Name, hexadecimal frame, message.
fn golden() -> Vec<(&'static str, &'static str, Message)> {
    let (execution_id, instance_id) = ids();
    let results = |execution: &str, instance: &str, successful, failed| {
        let (execution_id, instance_id) = (some(execution), some(instance));
        Message::TestResults(TestResults { execution_id, instance_id, successful, failed })
    };
    let session_uid = || some("sess-1");
    vec![
        ("void_response", "0400000000000000", Message::Void),
        (
            "handshake_reply_130_ide",
            "3c0000000900000006000001000000310103000000583634020600000072756e74617003050000006c696e7578040500\
             0000312e332e30090400000054727565",
            Message::Handshake(
                Handshake::new()
                    .with(HandshakeKey::PID, "1")
                    .with(HandshakeKey::ARCHITECTURE, "X64")
                    .with(HandshakeKey::FRAMEWORK, "runtap")
                    .with(HandshakeKey::OS, "linux")
                    .with(HandshakeKey::SUPPORTED_VERSIONS, "1.3.0")
                    .with(HandshakeKey::IS_IDE, "True"),
            ),
        ),
        (
            "handshake_reply_reject",
            "0b0000000900000001000400000000",
            Message::Handshake(Handshake::new().with(HandshakeKey::SUPPORTED_VERSIONS, "")),
        ),
        (
            "session_start",
            "2500000008000000030001000100000000020006000000736573732d31030006000000657865632d31",
            Message::SessionEvent(SessionEvent {
                session_type: Some(SessionEventType::START),
                session_uid: session_uid(),
                execution_id: execution_id.clone(),
            }),
        ),
        ("session_all_null", "06000000080000000000", Message::SessionEvent(SessionEvent::default())),
        (
            "discovered_full",
            "ed000000050000000300010006000000657865632d31020006000000696e73742d310300c90000000200000009000100\
             050000007569642d3102000800000041646428312c32290300090000002f7372632f542e63730400040000002a000000\
             0500020000004e73060003000000436c73070003000000416464090024000000020000000c00000053797374656d2e49\
             6e7433320c00000053797374656d2e496e74333208003200000002000000020001000800000043617465676f72790200\
             05000000536d6f6b6502000100050000004f776e657202000000000002000100050000007569642d3202000200000054\
             32",
            Message::DiscoveredTests(DiscoveredTests {
                execution_id: execution_id.clone(),
                instance_id: instance_id.clone(),
                tests: Some(vec![
                    DiscoveredTest {
                        uid: some("uid-1"),
                        display_name: some("Add(1,2)"),
                        file_path: some("/src/T.cs"),
                        line_number: Some(42),
                        namespace: some("Ns"),
                        type_name: some("Cls"),
                        method_name: some("Add"),
                        parameter_types: Some(vec!["System.Int32".into(), "System.Int32".into()]),
                        traits: Some(vec![
                            TestTrait { key: some("Category"), value: some("Smoke") },
                            TestTrait { key: some("Owner"), value: some("") },
                        ]),
                    },
                    DiscoveredTest { uid: some("uid-2"), display_name: some("T2"), ..Default::default() },
                ]),
            }),
        ),
        (
            "result_passed",
            "73000000060000000300010006000000657865632d31020006000000696e73742d3103004f0000000100000008000100\
             050000007569642d3102000500000054657374310300010000000104000800000040e201000000000005000000000006\
             0000000000070000000000080006000000736573732d31",
            results(
                "exec-1",
                "inst-1",
                Some(vec![SuccessfulTest {
                    uid: some("uid-1"),
                    display_name: some("Test1"),
                    state: Some(TestState::PASSED),
                    duration: Some(123_456),
                    reason: some(""),
                    standard_output: some(""),
                    error_output: some(""),
                    session_uid: session_uid(),
                    ..Default::default()
                }]),
                None,
            ),
        ),
        (
            "result_in_progress_ide",
            "65000000060000000300010006000000657865632d31020006000000696e73742d310300410000000100000007000100\
             050000007569642d33020005000000546573743303000100000007050000000000060000000000070000000000080006\
             000000736573732d31",
            results(
                "exec-1",
                "inst-1",
                Some(vec![SuccessfulTest {
                    uid: some("uid-3"),
                    display_name: some("Test3"),
                    state: Some(TestState::IN_PROGRESS),
                    reason: some(""),
                    standard_output: some(""),
                    error_output: some(""),
                    session_uid: session_uid(),
                    ..Default::default()
                }]),
                None,
            ),
        ),
        (
            "result_failed_null_exceptions",
            "70000000060000000300010006000000657865632d31020006000000696e73742d3104004c0000000100000008000100\
             050000007569642d35020002000000543503000100000005040008000000000000000000000005000000000007000000\
             0000080000000000090006000000736573732d31",
            results(
                "exec-1",
                "inst-1",
                None,
                Some(vec![FailedTest {
                    uid: some("uid-5"),
                    display_name: some("T5"),
                    state: Some(TestState::TIMEOUT),
                    duration: Some(0),
                    reason: some(""),
                    standard_output: some(""),
                    error_output: some(""),
                    session_uid: session_uid(),
                    ..Default::default()
                }]),
            ),
        ),
        (
            "result_lone_surrogate",
            "66000000060000000300010001000000650200010000006903004c000000010000000800010001000000750200050000\
             0078efbfbd79030001000000010400080000000100000000000000050000000000060006000000001b5b33316d070000\
             00000008000100000073",
            results(
                "e",
                "i",
                Some(vec![SuccessfulTest {
                    uid: some("u"),
                    display_name: some("x\u{fffd}y"),
                    state: Some(TestState::PASSED),
                    duration: Some(1),
                    reason: some(""),
                    standard_output: some("\0\u{1b}[31m"),
                    error_output: some(""),
                    session_uid: some("s"),
                    ..Default::default()
                }]),
                None,
            ),
        ),
        (
            "artifact_test_23",
            "6d000000070000000300010006000000657865632d31020006000000696e73742d310300490000000100000006000100\
             0b0000002f722f73686f742e706e6702000400000073686f740300000000000400050000007569642d31050005000000\
             5465737431060006000000736573732d31",
            Message::FileArtifacts(FileArtifacts {
                execution_id: execution_id.clone(),
                instance_id: instance_id.clone(),
                artifacts: Some(vec![FileArtifact {
                    full_path: some("/r/shot.png"),
                    display_name: some("shot"),
                    description: some(""),
                    test_uid: some("uid-1"),
                    test_display_name: some("Test1"),
                    session_uid: session_uid(),
                    ..Default::default()
                }]),
            }),
        ),
        (
            "help_options",
            "670000000300000002000100100000002f772f62696e2f54657374732e646c6c02004500000002000000040001000a00\
             000066696c7465722d75696402000600000046696c746572030001000000000400010000000102000100060000006869\
             6464656e03000100000001",
            Message::CommandLineOptions(CommandLineOptions {
                module_path: some("/w/bin/Tests.dll"),
                options: Some(vec![
                    CommandLineOption {
                        name: some("filter-uid"),
                        description: some("Filter"),
                        is_hidden: Some(false),
                        is_built_in: Some(true),
                        ..Default::default()
                    },
                    CommandLineOption { name: some("hidden"), is_hidden: Some(true), ..Default::default() },
                ]),
            }),
        ),
        (
            "in_progress",
            "4d0000000a0000000300010006000000657865632d31020006000000696e73742d310300290000000200000002000100\
             050000007569642d31020005000000546573743101000100050000007569642d32",
            Message::TestsInProgress(TestsInProgress {
                execution_id: execution_id.clone(),
                instance_id: instance_id.clone(),
                tests: Some(vec![
                    TestInProgress { uid: some("uid-1"), display_name: some("Test1") },
                    TestInProgress { uid: some("uid-2"), display_name: None },
                ]),
            }),
        ),
        (
            "display_warning",
            "320000000c0000000400010006000000657865632d31020006000000696e73742d310300010000000104000700000063\
             61726566756c",
            Message::Display(Display {
                execution_id,
                instance_id,
                level: Some(DisplayLevel::WARNING),
                text: some("careful"),
            }),
        ),
        ("wait_for_server_control", "040000000d000000", Message::WaitForServerControl),
        (
            "testhost_pid",
            "080000000200000092100000",
            Message::TestHostProcessId(TestHostProcessId { pid: 4242 }),
        ),
        (
            "testhost_completed",
            "0c000000010000000200000008000000",
            Message::TestHostCompleted(TestHostCompleted { exit_code: 2, unfiltered_exit_code: Some(8) }),
        ),
        (
            "testhost_completed_old",
            "080000000100000002000000",
            Message::TestHostCompleted(TestHostCompleted { exit_code: 2, unfiltered_exit_code: None }),
        ),
    ]
}

#[test]
fn golden_bytes_both_ways() {
    for (name, hex, message) in golden() {
        let bytes = unhex(hex);
        assert_eq!(decode(&bytes), message, "{name}");
        assert_eq!(message.to_frame().unwrap(), bytes, "{name}");
    }
}

#[test]
fn every_vector_of_microsofts_code_is_golden() {
    let vectors: Value = serde_json::from_slice(&require!(shared_data("mtp/vectors.json"))).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() >= 16, "{}", vectors.len());
    let golden = golden();
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let hex = vector["frame_hex"].as_str().unwrap();
        let known = golden.iter().find(|(known, ..)| *known == name);
        let (_, ours, _) = known.unwrap_or_else(|| panic!("{name} is not tested"));
        assert_eq!(*ours, hex, "{name}");
        assert_eq!(
            frame(&unhex(hex)).id.0,
            i32::try_from(vector["serializer_id"].as_i64().unwrap()).unwrap()
        );
    }
}

#[test]
fn a_rendering_names_every_field() {
    let discovered = golden().into_iter().find(|(name, ..)| *name == "discovered_full").unwrap();
    let bytes = unhex(discovered.1);
    let shown = Rendering::new(&frame(&bytes), Limits::default()).to_string();
    let lines: Vec<&str> = shown.lines().map(str::trim_start).collect();
    assert_eq!(lines[0], "10 1 ExecutionId = \"exec-1\"");
    assert_eq!(lines[2], "34 3 DiscoveredTestMessageList = 2 elements");
    assert_eq!(lines[4], "57 3[0].2 DisplayName = \"Add(1,2)\"");
    assert_eq!(lines[10], "122 3[0].9 ParameterTypeFullNames = [\"System.Int32\", \"System.Int32\"]");
    assert_eq!(lines[14], "203 3[0].8[1].1 Key = \"Owner\"");
    assert_eq!(lines.len(), 18, "{shown}");
}

#[test]
fn a_rendering_shows_what_decoding_skips() {
    // Field 1 with a state byte too many, an unknown field 9, and a byte behind the last field; then the same, cut.
    let bytes = unhex("170000000e00000002000100020000000177090002000000abcdef");
    let shown = Rendering::new(&frame(&bytes), Limits::default()).to_string();
    assert_eq!(shown, "      10 1 Kind = 1 (CancelSession)\n      18 9 ? = abcd\n      26 rest = ef\n");
    let cut = unhex("120000000e0000000200010002000000017709000200");
    let rendering = Rendering::new(&frame(&cut), Limits::default());
    assert_eq!(rendering.fields.len(), 1);
    assert!(
        rendering.to_string().ends_with("20 error: field size at offset 20: needs 4 bytes, 2 are left\n"),
        "{rendering}"
    );
}
