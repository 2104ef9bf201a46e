//! What a server hears of tests: every outcome and field, and only what it knows or has asked for.

use std::thread;
use std::time::Duration;

use runtap_mtp_host::{
    Artifact, DisplayLevel, Exit, Failure, HostError, Outcome, TestNode, TestResult, Version,
};
use runtap_mtp_proto::server::{Mode, Settings};
use runtap_mtp_proto::{Message, TestState, Versions};

use crate::judge::{Judge, fails, results};

#[test]
fn every_outcome_and_every_field_arrives() {
    let judge = Judge::new(Settings { versions: Versions::all(), ..Settings::new(Mode::Run) });
    let host = judge.connect(&[]);
    assert_eq!(host.version(), Version::V1_4_0);
    let test = TestNode::new("uid").display_name("name");
    let failure = || {
        Failure::new("wrong")
            .type_name("Type")
            .frame("f", "a.rs", 7)
            .frame("g", "b.rs", 8)
            .caused_by("inner")
            .reason("why")
            .expected("1")
            .actual("")
    };
    host.session::<_, HostError>(|session| {
        let passed = TestResult::passed().duration(Duration::from_micros(3)).stdout("out").stderr("err");
        session.report(&test, passed)?;
        session.report(&test, TestResult::skipped("later").duration(Duration::from_secs(1)))?;
        for outcome in [Outcome::Failed, Outcome::Error, Outcome::TimedOut, Outcome::Cancelled] {
            session.report(&test, outcome(failure()))?;
        }
        session.report(&test, TestResult::failed(failure()).attempt(1, true))?;
        session.report(&test, TestResult::passed().attempt(2, false))?;
        let file = Artifact::new("/tmp/a").display_name("a").description("file").kind("k").made_of("/tmp/b");
        session.test_artifact(&test, &file)?;
        session.artifact(&file)?;
        assert!(session.display(DisplayLevel::WARNING, "look")?);
        assert!(session.host().azure_devops_log("##[x]")?);
        Ok(())
    })
    .unwrap();
    host.artifact(&Artifact::new("/tmp/report")).unwrap();
    host.flush().unwrap();
    let exit = host.exit();
    assert_eq!(exit, Exit::FAILED);
    drop(host);
    let messages = judge.messages(exit);
    let states: Vec<_> = results(&messages).into_iter().map(|(_, state)| state.0).collect();
    // The retry's success is told after its failure.
    assert_eq!(states, [1, 2, 3, 4, 5, 6, 3, 1]);
    let Message::TestResults(first) = &messages[1] else { panic!("{messages:?}") };
    let passed = &first.successful.as_ref().unwrap()[0];
    assert_eq!((passed.duration, passed.standard_output.as_deref()), (Some(30), Some("out")));
    assert_eq!((passed.display_name.as_deref(), passed.error_output.as_deref()), (Some("name"), Some("err")));
    let skipped = &first.successful.as_ref().unwrap()[1];
    assert_eq!((skipped.duration, skipped.reason.as_deref()), (None, Some("later")));
    let failed = &first.failed.as_ref().unwrap()[0];
    assert_eq!((failed.expected.as_deref(), failed.actual.as_deref()), (Some("1"), Some("")));
    assert_eq!(failed.reason.as_deref(), Some("why"));
    let exceptions = failed.exceptions.as_ref().unwrap();
    assert_eq!(exceptions[0].stack_trace.as_deref(), Some("   at f in a.rs:line 7\n   at g in b.rs:line 8"));
    assert_eq!(exceptions[0].type_name.as_deref(), Some("Type"));
    assert_eq!(exceptions[1].message.as_deref(), Some("inner"));
    let retried = first.failed.as_ref().unwrap().last().unwrap();
    assert_eq!((retried.retry_attempt_number, retried.is_superseded), (Some(1), Some(true)));
    let artifacts: Vec<_> = messages
        .iter()
        .filter_map(|message| match message {
            Message::FileArtifacts(files) => files.artifacts.as_ref().map(|files| files[0].clone()),
            _ => None,
        })
        .collect();
    assert_eq!(artifacts.len(), 3);
    assert_eq!(artifacts[0].test_uid.as_deref(), Some("uid"));
    assert_eq!(artifacts[0].kind.as_deref(), Some("k"));
    assert_eq!(artifacts[0].input_artifact_paths.as_deref(), Some(&["/tmp/b".to_owned()][..]));
    assert_eq!(artifacts[1].test_uid.as_deref(), Some(""));
    assert_ne!(artifacts[1].session_uid.as_deref(), Some(""));
    assert_eq!(artifacts[2].session_uid.as_deref(), Some(""));
    let texts =
        messages.iter().filter(|message| matches!(message, Message::Display(_) | Message::AzureDevOpsLog(_)));
    assert_eq!(texts.count(), 2);
}

#[test]
fn an_old_server_is_told_what_it_knows() {
    let versions = Versions::new([Version::V1_0_0]);
    let judge = Judge::new(Settings { versions, ..Settings::new(Mode::Run) });
    let host = judge.connect(&[]);
    host.session::<_, HostError>(|session| {
        assert!(!session.display(DisplayLevel::ERROR, "not displayed")?);
        session.test("a", || ())?;
        session.test("b", || Err::<(), _>("broken"))?;
        session.test("c", || fails("at the disco"))
    })
    .unwrap();
    let exit = host.exit();
    drop(host);
    let messages = judge.messages(exit);
    assert_eq!(messages.len(), 3, "start, all results, end: {messages:?}");
    let of = |uid: &str, state| (uid.to_owned(), state);
    assert_eq!(
        results(&messages),
        [of("a", TestState::PASSED), of("b", TestState::FAILED), of("c", TestState::FAILED)]
    );
}

#[test]
fn a_server_that_wants_more_hears_of_tests_that_begin_and_where_they_are() {
    let judge = Judge::new(Settings { is_ide: true, ..Settings::new(Mode::Run) });
    let host = judge.connect(&["--filter-uid", "m::a", "x"]);
    host.session::<_, HostError>(|session| {
        session.test("m::a", || ())?;
        session.test("m::b", || fails("not wanted"))
    })
    .unwrap();
    drop(host);
    let of = |uid: &str, state| (uid.to_owned(), state);
    assert_eq!(
        results(&judge.messages(Exit::OK)),
        [of("m::a", TestState::IN_PROGRESS), of("m::a", TestState::PASSED)]
    );

    let judge = Judge::new(Settings { is_ide: true, ..Settings::new(Mode::Discover) });
    let host = judge.connect(&["--list-tests"]);
    host.session::<_, HostError>(|session| {
        let test = TestNode::from_rust_path("m::a").at("src/m.rs", 3).with_trait("slow", "");
        session.test(test, || fails("it is only listed"))?;
        session.skip("later", "no")
    })
    .unwrap();
    assert_eq!(host.exit(), Exit::OK);
    drop(host);
    let messages = judge.messages(Exit::OK);
    let Message::DiscoveredTests(found) = &messages[1] else { panic!("{messages:?}") };
    let tests = found.tests.as_ref().unwrap();
    assert_eq!((tests[0].file_path.as_deref(), tests[0].line_number), (Some("src/m.rs"), Some(3)));
    assert_eq!((tests[0].namespace.as_deref(), tests[0].method_name.as_deref()), (Some("m"), Some("a")));
    assert_eq!(tests[0].traits.as_ref().unwrap()[0].key.as_deref(), Some("slow"));
    assert_eq!(tests.len(), 2);
}

#[test]
fn a_server_that_does_not_ask_is_not_told_where_tests_are() {
    let judge = Judge::new(Settings::new(Mode::Discover));
    let host = judge.connect(&["--list-tests"]);
    host.session(|session| session.discovered(&TestNode::from_rust_path("m::a").at("a.rs", 1))).unwrap();
    drop(host);
    let messages = judge.messages(Exit::OK);
    let Message::DiscoveredTests(found) = &messages[1] else { panic!("{messages:?}") };
    let test = &found.tests.as_ref().unwrap()[0];
    assert_eq!((&test.file_path, &test.namespace), (&None, &None));
}

#[test]
fn many_threads_share_a_session_and_a_few_messages() {
    let judge = Judge::new(Settings::new(Mode::Run));
    let host = judge.connect(&[]);
    host.session::<_, HostError>(|session| {
        thread::scope(|scope| {
            for worker in 0..8 {
                scope.spawn(move || {
                    for test in 0..250 {
                        session
                            .report(&TestNode::new(format!("{worker}.{test}")), TestResult::passed())
                            .unwrap();
                    }
                });
            }
        });
        Ok(())
    })
    .unwrap();
    let requests = host.requests();
    assert_eq!(host.exit(), Exit::OK);
    drop(host);
    let mut uids: Vec<_> = results(&judge.messages(Exit::OK)).into_iter().map(|(uid, _)| uid).collect();
    uids.sort_unstable();
    uids.dedup();
    assert_eq!(uids.len(), 2000);
    assert!(requests < 300, "{requests}");
}
