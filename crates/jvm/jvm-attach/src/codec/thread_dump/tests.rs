//! Real replies of JDK 11, 17, 21 and 25 to the program `testdata/thread_dumps/Stuck.java`, and laws of the parser.

use std::fmt::Write as _;

use proptest::prelude::*;
use runtap_model::thread_dump::{DumpedFrame, DumpedThread, ThreadDump, ThreadKind, WaitKind};

use super::{ThreadDumpError, ThreadDumpLimits, add_virtual_threads, thread_dump, vm_version};

/// Replies, and whether they have lists of synchronizers (`-l`).
const REPLIES: [(u32, bool, &[u8]); 6] = [
    (11, true, include_bytes!("../../../testdata/thread_dumps/jdk-11-l.txt")),
    (17, false, include_bytes!("../../../testdata/thread_dumps/jdk-17.txt")),
    (17, true, include_bytes!("../../../testdata/thread_dumps/jdk-17-l.txt")),
    (21, true, include_bytes!("../../../testdata/thread_dumps/jdk-21-l.txt")),
    (25, true, include_bytes!("../../../testdata/thread_dumps/jdk-25-l.txt")),
    (25, true, include_bytes!("../../../testdata/thread_dumps/jdk-25-le.txt")),
];
const QUOTED: &str =
    "\"quoted\" #7 daemon prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x1 nid=0x2 runnable  [0x0]";
const LINES: &str = "lines\n   java.lang.Thread.State: RUNNABLE\n\tat fake.Frame.run(Fake.java:1)\n\n\"fake\" #99 prio=5 os_prio=0 tid=0x1 nid=0x3 runnable  [0x0]\n";
const ESCAPE: &str = "escape \u{1b}[31m\u{202e}é😀 \t\\";

fn parse(reply: &[u8]) -> ThreadDump {
    thread_dump(reply, &ThreadDumpLimits::default()).unwrap()
}

#[track_caller]
fn place(dump: &ThreadDump, name: &str) -> usize {
    let mut found =
        dump.threads.iter().enumerate().filter(|(_, thread)| thread.name.as_deref() == Some(name));
    let place = found.next().unwrap_or_else(|| panic!("no thread is named {name:?}")).0;
    assert!(found.next().is_none(), "two threads are named {name:?}");
    place
}

#[track_caller]
fn thread<'a>(dump: &'a ThreadDump, name: &str) -> &'a DumpedThread {
    &dump.threads[place(dump, name)]
}

fn wait(dump: &ThreadDump, name: &str) -> Option<(WaitKind, Option<String>)> {
    let wait = thread(dump, name).wait?;
    Some((wait.kind, wait.lock.and_then(|lock| dump.locks[lock].class.clone())))
}

#[test]
fn names_that_look_like_the_format_are_names() {
    for (jdk, _, reply) in REPLIES {
        let dump = parse(reply);
        for name in [QUOTED, LINES, ESCAPE, "", "main", "VM Thread", "Attach Listener"] {
            assert_eq!(
                thread(&dump, name).wait.map(|wait| wait.kind),
                match name {
                    QUOTED | LINES | ESCAPE | "" | "main" => Some(WaitKind::Sleep),
                    _ => None,
                }
            );
        }
        assert!(dump.threads.iter().all(|thread| !matches!(thread.name.as_deref(), Some("fake" | "quoted"))));
        assert!(
            dump.threads.iter().flat_map(|thread| &thread.frames).all(|frame| frame.name != "fake.Frame.run")
        );
        let listed = String::from_utf8_lossy(reply).matches(" nid=").count();
        // Two are in names.
        assert_eq!((dump.threads.len(), dump.omitted), (listed - 2, 0), "JDK {jdk}");
        assert_eq!(vm_version(reply), Some(jdk));
    }
}

#[test]
fn threads_have_their_ids_states_and_times() {
    for (jdk, _, reply) in REPLIES {
        let dump = parse(reply);
        let (main, vm) = (thread(&dump, "main"), thread(&dump, "VM Thread"));
        assert_eq!((main.kind, vm.kind), (ThreadKind::Platform, ThreadKind::Runtime));
        assert_eq!((main.is_daemon, main.priority, vm.is_daemon), (Some(false), Some(5), None));
        assert_eq!(main.id, Some(if jdk == 25 { 3 } else { 1 }));
        assert!(dump.threads.iter().all(|thread| thread.tid.is_some() && thread.cpu_ns.is_some()));
        assert!(main.elapsed_ns > Some(1_000_000_000) && main.elapsed_ns < Some(600_000_000_000));
        assert_eq!(thread(&dump, "waiting").is_daemon, Some(true));
        let states =
            ["main", "spinning", "blocked", "waiting", "parked"].map(|name| thread(&dump, name).state);
        let states = states.map(|state| state.unwrap().name());
        assert_eq!(states, ["timed_waiting", "runnable", "blocked", "waiting", "waiting"]);
        assert_eq!(vm.state, None);
    }
}

#[test]
fn frames_have_their_modules_and_lines() {
    for (jdk, _, reply) in REPLIES {
        let dump = parse(reply);
        let main = &thread(&dump, "main").frames;
        let sleep = main.first().unwrap();
        assert!(sleep.name.starts_with("java.lang.Thread.sleep"), "{}", sleep.name);
        assert_eq!(
            (sleep.module.as_deref(), sleep.is_native, sleep.line),
            (Some("java.base"), Some(true), None)
        );
        let last = main.last().unwrap();
        let expected = DumpedFrame {
            name: "Stuck.main".to_owned(),
            file: Some("Stuck.java".to_owned()),
            line: Some(74),
            is_native: Some(false),
            ..DumpedFrame::default()
        };
        assert_eq!(*last, expected, "JDK {jdk}");
        let deep = &thread(&dump, "deep").frames;
        assert_eq!(deep.iter().filter(|frame| frame.name == "Stuck.down").count(), 51);
    }
}

#[test]
fn waits_and_owners_are_known() {
    for (jdk, has_synchronizers, reply) in REPLIES {
        let dump = parse(reply);
        let object = |kind| Some((kind, Some("java.lang.Object".to_owned())));
        assert_eq!(wait(&dump, "blocked"), object(WaitKind::Lock));
        assert_eq!(wait(&dump, "waiting"), object(WaitKind::Condition));
        let sync = Some("java.util.concurrent.locks.ReentrantLock$NonfairSync".to_owned());
        assert_eq!(wait(&dump, "parked"), Some((WaitKind::Lock, sync)));
        assert_eq!(wait(&dump, "spinning"), None);
        assert_eq!(dump.blocker(place(&dump, "blocked")), Some(place(&dump, "holder")));
        let owner = has_synchronizers.then(|| place(&dump, "owner"));
        assert_eq!(dump.blocker(place(&dump, "parked")), owner, "JDK {jdk}");
        // The waiting thread has released its lock.
        assert!(thread(&dump, "waiting").holds.is_empty());
        assert_eq!(thread(&dump, "holder").holds.len(), 1);
    }
}

/// Without synchronizers, the owners of locks are known from the deadlocks that the JVM reports.
#[test]
fn both_deadlocks_are_found() {
    for (jdk, _, reply) in REPLIES {
        let dump = parse(reply);
        let pair = |a, b| vec![place(&dump, a), place(&dump, b)];
        let expected = [pair("monitor-1", "monitor-2"), pair("lock-1", "lock-2")];
        assert_eq!(dump.deadlocks, expected, "JDK {jdk}");
    }
}

#[test]
fn virtual_threads_are_added() {
    for (jdk, file, reply) in [
        (
            21,
            &include_bytes!("../../../testdata/thread_dumps/jdk-21-virtual.json")[..],
            &include_bytes!("../../../testdata/thread_dumps/jdk-21-virtual.txt")[..],
        ),
        (
            25,
            &include_bytes!("../../../testdata/thread_dumps/jdk-25-virtual.json")[..],
            &include_bytes!("../../../testdata/thread_dumps/jdk-25-virtual.txt")[..],
        ),
    ] {
        let mut dump = parse(reply);
        let platform = dump.threads.len();
        assert_eq!(add_virtual_threads(&mut dump, file, &ThreadDumpLimits::default()), Ok(2));
        let added = &dump.threads[platform..];
        assert_eq!(added.len(), 2, "JDK {jdk}");
        for thread in added {
            assert_eq!((thread.kind, thread.tid, thread.name.as_ref()), (ThreadKind::Virtual, None, None));
            assert_eq!(thread.state.is_some(), jdk == 25);
            let park = thread.frames.first().unwrap();
            assert_eq!(
                (park.name.as_str(), park.module.as_deref()),
                ("java.lang.VirtualThread.park", Some("java.base"))
            );
            let own =
                thread.frames.iter().find(|frame| frame.name.starts_with("Stuck.lambda$main$")).unwrap();
            assert_eq!((own.file.as_deref(), own.line, &own.module), (Some("Stuck.java"), Some(67), &None));
        }
    }
    let mut dump = ThreadDump::default();
    let truncated = &include_bytes!("../../../testdata/thread_dumps/jdk-21-virtual.json")[..900];
    let error = add_virtual_threads(&mut dump, truncated, &ThreadDumpLimits::default()).unwrap_err();
    assert!(error.to_string().starts_with("the list of virtual threads is invalid at line "), "{error}");
}

#[test]
fn classes_with_slashes_and_loaders_are_names() {
    let file = r#"{"threadDump":{"threadContainers":[{"threads":[{"tid":7,"virtual":true,"stack":[
        "app//A$$Lambda/0x0000000100001000.run(Unknown Source)", "my/own@1.0/B.c(B.java:12)", "own@1.0/B.d(B.java)",
        "D.e(Native Method)"]}]}]}}"#;
    let mut dump = ThreadDump::default();
    assert_eq!(add_virtual_threads(&mut dump, file.as_bytes(), &ThreadDumpLimits::default()), Ok(1));
    let frames: Vec<_> = dump.threads[0]
        .frames
        .iter()
        .map(|frame| (frame.module.as_deref(), frame.name.as_str(), frame.file.as_deref(), frame.line))
        .collect();
    assert_eq!(
        frames,
        [
            (None, "A$$Lambda/0x0000000100001000.run", None, None),
            (Some("own"), "B.c", Some("B.java"), Some(12)),
            (Some("own"), "B.d", Some("B.java"), None),
            (None, "D.e", None, None),
        ]
    );
}

#[test]
fn other_texts_are_rejected_and_limits_hold() {
    let error = thread_dump(b"java.lang.IllegalArgumentException", &ThreadDumpLimits::default()).unwrap_err();
    assert_eq!(error, ThreadDumpError::NoHeading { offset: 34 });
    let limits = ThreadDumpLimits { threads: 3, frames: 4 };
    let dump = thread_dump(REPLIES[1].2, &limits).unwrap();
    assert_eq!(dump.threads.len(), 3);
    let frames: usize = dump.threads.iter().map(|thread| thread.frames.len()).sum();
    assert!(frames == 4 && dump.omitted > 0, "{frames} {}", dump.omitted);
}

/// A dump of threads with these names.
fn with_names(names: &[String]) -> String {
    let addresses: Vec<String> =
        (0..names.len()).map(|index| format!("{:#018x}", 0x7000 + index * 8)).collect();
    let mut text = format!(
        "2026-11-30 18:00:00\nFull thread dump OpenJDK 64-Bit Server VM (17.0.1 mixed mode):\n\nThreads class SMR info:\n_java_thread_list=0x1, length={}, elements={{\n{}\n}}\n\n",
        names.len(),
        addresses.join(", ")
    );
    for (index, (name, address)) in names.iter().zip(&addresses).enumerate() {
        let _ = write!(
            text,
            "\"{name}\" #{index} prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid={address} nid={index:#x} runnable  [0x0]\n   java.lang.Thread.State: RUNNABLE\n\tat A.b{index}(A.java:1)\n\n"
        );
    }
    text + "\"VM Thread\" os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x9000 nid=0x99 runnable  \n\nJNI global refs: 4\n"
}

proptest! {
    #[test]
    fn any_names_are_returned(names in prop::collection::vec(
        prop_oneof![
            "[\"\n\t #a-z\\[\\]]{0,20}",
            Just(QUOTED.to_owned()),
            Just(LINES.to_owned()),
            Just("a\n\nFound one Java-level deadlock:\n=====\n\"b".to_owned()),
            Just("\n\"VM Thread\" os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x9001 nid=0x99 runnable  \n".to_owned()),
        ], 0..6,
    )) {
        let dump = parse(with_names(&names).as_bytes());
        let found: Vec<&str> = dump.threads.iter().filter_map(|thread| thread.name.as_deref()).collect();
        let expected: Vec<&str> = names.iter().map(String::as_str).chain(["VM Thread"]).collect();
        prop_assert_eq!(found, expected);
        for (index, thread) in dump.threads.iter().take(names.len()).enumerate() {
            prop_assert_eq!(thread.tid, Some(index as u64));
            prop_assert_eq!(&thread.frames[0].name, &format!("A.b{index}"));
        }
    }

    #[test]
    fn prefixes_and_damage_are_harmless(
        reply in 0..REPLIES.len(), end in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte: u8,
    ) {
        let whole = REPLIES[reply].2;
        let mut bytes = whole[..end.index(whole.len())].to_vec();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let limits = ThreadDumpLimits { threads: 20, frames: 50 };
        if let Ok(dump) = thread_dump(&bytes, &limits) {
            prop_assert!(dump.threads.len() <= 20);
            let frames: usize = dump.threads.iter().map(|thread| thread.frames.len()).sum();
            prop_assert!(frames <= 50);
            for lock in dump.threads.iter().flat_map(|thread| &thread.holds) {
                prop_assert!(*lock < dump.locks.len());
            }
        }
    }
}
