//! When results are sent, and in which order.

use std::time::Duration;

use proptest::prelude::*;
use runtap_mtp_proto::{Frame, Limits, TestState};

use super::*;

fn passed(uid: &str, output: &str) -> Entry {
    Entry::Successful(SuccessfulTest {
        uid: Some(uid.into()),
        state: Some(TestState::PASSED),
        standard_output: Some(output.into()),
        ..SuccessfulTest::default()
    })
}

fn failed(uid: &str, output: &str) -> Entry {
    Entry::Failed(FailedTest {
        uid: Some(uid.into()),
        state: Some(TestState::FAILED),
        standard_output: Some(output.into()),
        ..FailedTest::default()
    })
}

fn queue(batching: Batching) -> Queue {
    Queue::new(batching, "run".into(), "process".into())
}

fn push(queue: &mut Queue, entry: Entry, now: Instant) {
    queue.push(entry, || now).unwrap();
}

/// Decodes a message: the id and the kind of each test.
fn decoded(request: &Request) -> Vec<(String, char)> {
    let (frame, _) = Frame::parse(&request.frame, Limits::default()).unwrap();
    assert_eq!(frame.id, request.id);
    let message = Message::decode(&frame, Limits::default()).unwrap();
    if frame.id != MessageId::VOID {
        assert_eq!(message.instance_id(), Some("process"));
    }
    let uid = |uid: &Option<String>| uid.clone().unwrap_or_default();
    match message {
        Message::TestResults(results) => {
            let successful = results.successful.iter().flatten().map(|test| (uid(&test.uid), 'p'));
            successful.chain(results.failed.iter().flatten().map(|test| (uid(&test.uid), 'f'))).collect()
        }
        Message::DiscoveredTests(found) => {
            found.tests.iter().flatten().map(|test| (uid(&test.uid), 'd')).collect()
        }
        _ => vec![(String::new(), 'o')],
    }
}

fn all(queue: &mut Queue) -> Vec<Vec<(String, char)>> {
    std::iter::from_fn(|| queue.take().unwrap().map(|request| decoded(&request))).collect()
}

#[test]
fn results_are_delayed_for_a_limited_time() {
    let start = Instant::now();
    let mut queue = queue(Batching::default());
    assert_eq!(queue.due(), Due::Never);
    push(&mut queue, passed("a", ""), start);
    let end = start + Duration::from_millis(50);
    push(&mut queue, passed("b", ""), end);
    assert_eq!(queue.due(), Due::At(end));
    assert_eq!(all(&mut queue), [[("a".into(), 'p'), ("b".into(), 'p')]]);
    assert_eq!((queue.due(), queue.bytes(), queue.is_empty()), (Due::Never, 0, true));
}

#[test]
fn many_or_large_results_and_other_messages_are_due_immediately() {
    let now = Instant::now();
    let due = |entries: Vec<Entry>| {
        let mut queue = queue(Batching::default());
        for entry in entries {
            push(&mut queue, entry, now);
        }
        queue.due()
    };
    assert_ne!(due((0..63).map(|i| passed(&i.to_string(), "")).collect()), Due::Now);
    assert_eq!(due((0..64).map(|i| passed(&i.to_string(), "")).collect()), Due::Now);
    assert_eq!(due(vec![failed("a", &"x".repeat(64 << 10))]), Due::Now);
    assert_eq!(due(vec![passed("a", ""), Entry::Other(Message::Void)]), Due::Now);
    let mut queue = queue(Batching::default());
    push(&mut queue, passed("a", ""), now);
    queue.flush().unwrap();
    assert_eq!(queue.due(), Due::Now);
    queue.take().unwrap();
    push(&mut queue, passed("b", ""), now);
    assert_ne!(queue.due(), Due::Now, "later results may be delayed");
}

#[test]
fn while_the_server_is_busy_messages_grow_but_not_beyond_four_times_their_bytes() {
    let now = Instant::now();
    let mut queue = queue(Batching::default());
    for number in 0..10_000 {
        push(&mut queue, passed(&number.to_string(), "some output"), now);
    }
    let sizes: Vec<_> =
        std::iter::from_fn(|| queue.take().unwrap()).map(|request| request.frame.len()).collect();
    let (last, full) = sizes.split_last().unwrap();
    assert!(full.iter().all(|size| (256 << 10..258 << 10).contains(size)), "{sizes:?}");
    assert!(!full.is_empty() && *last < 258 << 10, "{sizes:?}");
}

#[test]
fn a_retry_that_passes_is_sent_after_its_failure() {
    let now = Instant::now();
    let mut queue = queue(Batching::default());
    for entry in [failed("a", ""), passed("b", ""), passed("a", ""), failed("b", "")] {
        push(&mut queue, entry, now);
    }
    let of = |uid: &str, kind| (uid.to_owned(), kind);
    assert_eq!(all(&mut queue), [vec![of("b", 'p'), of("a", 'f')], vec![of("a", 'p'), of("b", 'f')]]);
}

#[test]
fn without_batching_each_result_has_its_own_message() {
    let now = Instant::now();
    let mut queue = queue(Batching::NONE);
    push(&mut queue, passed("a", "text"), now);
    push(&mut queue, passed("b", ""), now);
    assert_eq!(queue.due(), Due::Now);
    assert_eq!(all(&mut queue).len(), 2);
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = prop_oneof![
        4 => ("[a-d]", 0_usize..40_000).prop_map(|(uid, size)| passed(&uid, &"x".repeat(size))),
        4 => ("[a-d]", 0_usize..200).prop_map(|(uid, size)| failed(&uid, &"x".repeat(size))),
        1 => "[a-d]".prop_map(|uid| Entry::Discovered(DiscoveredTest {
            uid: Some(uid),
            ..DiscoveredTest::default()
        })),
        1 => Just(Entry::Other(Message::Void)),
    ];
    prop::collection::vec(entry, 0..200)
}

proptest! {
    #[test]
    fn nothing_is_lost_and_results_of_each_test_stay_in_order(
        entries in entries(),
        max_results in 1_usize..80,
        taken in prop::collection::vec(any::<bool>(), 200),
    ) {
        let now = Instant::now();
        let batching = Batching { results: max_results, ..Batching::default() };
        let mut queue = queue(batching);
        let (mut expected, mut sent) = (Vec::new(), Vec::new());
        for (entry, is_taken) in entries.into_iter().zip(taken) {
            let uid = |uid: &Option<String>| uid.clone().unwrap_or_default();
            expected.push(match &entry {
                Entry::Successful(test) => (uid(&test.uid), 'p'),
                Entry::Failed(test) => (uid(&test.uid), 'f'),
                Entry::Discovered(test) => (uid(&test.uid), 'd'),
                Entry::Other(_) => (String::new(), 'o'),
            });
            push(&mut queue, entry, now);
            if is_taken && queue.due() == Due::Now {
                sent.extend(decoded(&queue.take().unwrap().unwrap()));
            }
        }
        sent.extend(all(&mut queue).into_iter().flatten());
        prop_assert_eq!((queue.bytes(), queue.due()), (0, Due::Never));
        prop_assert_eq!(sent.len(), expected.len());
        for uid in ["a", "b", "c", "d", ""] {
            let of = |all: &[(String, char)]| -> String {
                all.iter().filter(|(known, _)| known == uid).map(|(_, kind)| *kind).collect()
            };
            prop_assert_eq!(of(&sent), of(&expected));
        }
        // Other messages are not overtaken.
        let others = |all: &[(String, char)]| -> Vec<usize> {
            all.iter().enumerate().filter(|(_, (_, kind))| *kind == 'o').map(|(at, _)| at).collect()
        };
        prop_assert_eq!(others(&sent), others(&expected));
    }
}
