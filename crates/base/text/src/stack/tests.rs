//! Tests of stacks as text: each thread, lock and frame in its place.

use runtap_model::thread_dump::{AsyncChain, AsyncChains, AsyncFrame, Awaited, AwaitedKind, DumpedLock};

use super::*;

fn frame(name: &str, module: Option<&str>, place: Option<(&str, u32)>) -> DumpedFrame {
    DumpedFrame {
        name: name.to_owned(),
        module: module.map(str::to_owned),
        file: place.map(|(file, _)| file.to_owned()),
        line: place.map(|(_, line)| line),
        is_native: Some(place.is_none()),
        ..DumpedFrame::default()
    }
}

/// Two threads of a deadlock, a third one, and a virtual thread.
fn deadlock() -> ThreadDump {
    let thread = |name: &str, tid, waits: usize, holds: usize| DumpedThread {
        kind: ThreadKind::Platform,
        name: Some(name.to_owned()),
        tid: Some(tid),
        state: Some(ThreadState::Blocked),
        is_daemon: Some(true),
        cpu_ns: Some(1_430_000),
        frames: vec![
            frame("shop.Cart.enter", Some("shop"), Some(("Cart.java", 31))),
            frame("java.lang.Thread.run", Some("java.base"), None),
        ],
        wait: Some(ThreadWait { kind: WaitKind::Lock, lock: Some(waits) }),
        holds: vec![holds],
        ..DumpedThread::default()
    };
    let lock = |id: &str, owner| DumpedLock {
        id: id.to_owned(),
        class: Some("java.lang.Object".to_owned()),
        owner: Some(owner),
    };
    let parked = DumpedThread {
        kind: ThreadKind::Virtual,
        id: Some(33),
        state: Some(ThreadState::Waiting),
        frames: vec![frame(
            "java.lang.VirtualThread.park",
            Some("java.base"),
            Some(("VirtualThread.java", 582)),
        )],
        wait: Some(ThreadWait::new(WaitKind::Park)),
        ..DumpedThread::default()
    };
    let mut dump = ThreadDump {
        threads: vec![
            thread("lock-1\u{1b}[2J\n\"x\"", 11, 0, 1),
            thread("lock-2", 12, 1, 0),
            DumpedThread {
                name: Some("sleeper".to_owned()),
                wait: Some(ThreadWait::new(WaitKind::Sleep)),
                ..DumpedThread::default()
            },
            parked.clone(),
            DumpedThread { id: Some(34), ..parked },
        ],
        locks: vec![lock("0xfc08a098", 1), lock("0xfc08a088", 0)],
        ..ThreadDump::default()
    };
    dump.find_deadlocks();
    dump
}

fn list(dump: &ThreadDump, is_merged: bool) -> StackList<'_> {
    StackList {
        pid: Some(42),
        kind: "jvm",
        name: Some("shop.Main"),
        dump,
        is_merged,
        has_virtual_threads: Some(true),
    }
}

fn text(list: &StackList<'_>, width: Option<usize>) -> String {
    let mut text = Vec::new();
    list.print(&mut text, &TextOptions { width, ..TextOptions::default() }).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn threads_locks_and_deadlocks_are_shown() {
    let dump = deadlock();
    insta::assert_snapshot!(text(&list(&dump, false), Some(80)), @r#"
    Process 42 (shop.Main): 5 threads, 1 deadlock

    Deadlock: 2 threads wait for each other
      "lock-1\u{1b}[2J\n"x"" (tid 11)
        waits for java.lang.Object 0xfc08a098,
        held by "lock-2" (tid 12)
      "lock-2" (tid 12)
        waits for java.lang.Object 0xfc08a088,
        held by "lock-1\u{1b}[2J\n"x"" (tid 11)

    "lock-1\u{1b}[2J\n"x"" (tid 11), blocked, daemon, cpu 1 ms
      waits for a lock
        java.lang.Object 0xfc08a098
        held by "lock-2" (tid 12)
      holds java.lang.Object 0xfc08a088
        shop/shop.Cart.enter (Cart.java:31)
        java.base/java.lang.Thread.run (native)

    "lock-2" (tid 12), blocked, daemon, cpu 1 ms
      waits for a lock
        java.lang.Object 0xfc08a088
        held by "lock-1\u{1b}[2J\n"x"" (tid 11)
      holds java.lang.Object 0xfc08a098
        shop/shop.Cart.enter (Cart.java:31)
        java.base/java.lang.Thread.run (native)

    "sleeper"
      sleeps

    unnamed (#33), virtual, waiting
      is parked
        java.base/java.lang.VirtualThread.park (VirtualThread.java:582)

    unnamed (#34), virtual, waiting
      is parked
        java.base/java.lang.VirtualThread.park (VirtualThread.java:582)
    "#);
}

#[test]
fn equal_stacks_are_merged() {
    let dump = deadlock();
    let text = text(&list(&dump, true), None);
    let (_, groups) = text.split_once("\n\n2 threads, ").unwrap();
    insta::assert_snapshot!(groups, @r#"
    blocked
      "lock-1\u{1b}[2J\n"x"" (tid 11)
      "lock-2" (tid 12)
      waits for a lock
        shop/shop.Cart.enter (Cart.java:31)
        java.base/java.lang.Thread.run (native)

    2 threads, virtual, waiting
      unnamed (#33)
      unnamed (#34)
      is parked
        java.base/java.lang.VirtualThread.park (VirtualThread.java:582)

    "sleeper"
      sleeps
    "#);
}

#[test]
fn lines_fit_the_terminal_and_places_are_kept() {
    let mut dump = deadlock();
    let long = "x".repeat(100);
    dump.threads[0].frames = vec![frame(&long, Some("m"), Some(("Long.java", 7)))];
    dump.threads[1].name = Some(long);
    let text = text(&list(&dump, false), Some(60));
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert!(text.contains("xxx… (Long.java:7)\n"), "{text}");
}

#[test]
fn the_document_has_all_members() {
    let mut dump = deadlock();
    dump.threads.remove(4);
    dump.threads.remove(2);
    dump.threads[0].frames.truncate(1);
    insta::assert_snapshot!(serde_json::to_string(&list(&dump, true)).unwrap().replace("},{", "},\n{"), @r#"
    {"schema":"runtap.stack/1","pid":42,"kind":"jvm","name":"shop.Main","threads":[{"tid":11,"name":"lock-1\u001b[2J\n\"x\"","kind":"platform","id":null,"state":"blocked","daemon":true,"priority":null,"cpu_ns":1430000,"elapsed_ns":null,"carries":null,"waits_for":{"kind":"lock","lock":"0xfc08a098","type":"java.lang.Object","owner":1},"holds":["0xfc08a088"],"frames":[{"name":"shop.Cart.enter","module":"shop","il_offset":null,"native_offset":null,"file":"Cart.java","line":31,"native":false}]},
    {"tid":12,"name":"lock-2","kind":"platform","id":null,"state":"blocked","daemon":true,"priority":null,"cpu_ns":1430000,"elapsed_ns":null,"carries":null,"waits_for":{"kind":"lock","lock":"0xfc08a088","type":"java.lang.Object","owner":0},"holds":["0xfc08a098"],"frames":[{"name":"shop.Cart.enter","module":"shop","il_offset":null,"native_offset":null,"file":"Cart.java","line":31,"native":false},
    {"name":"java.lang.Thread.run","module":"java.base","il_offset":null,"native_offset":null,"file":null,"line":null,"native":true}]},
    {"tid":null,"name":null,"kind":"virtual","id":33,"state":"waiting","daemon":null,"priority":null,"cpu_ns":null,"elapsed_ns":null,"carries":null,"waits_for":{"kind":"park","lock":null,"type":null,"owner":null},"holds":[],"frames":[{"name":"java.lang.VirtualThread.park","module":"java.base","il_offset":null,"native_offset":null,"file":"VirtualThread.java","line":582,"native":false}]}],"locks":[{"id":"0xfc08a098","type":"java.lang.Object","owner":1,"waiters":[0]},
    {"id":"0xfc08a088","type":"java.lang.Object","owner":0,"waiters":[1]}],"deadlocks":[{"threads":[0,1]}],"merged":[{"count":1,"threads":[0]},
    {"count":1,"threads":[1]},
    {"count":1,"threads":[2]}],"virtual_threads":true,"async":null,"omitted":0}
    "#);
}

/// Chains with names that would change a terminal, and one of 1,000 methods.
fn async_chains() -> AsyncChains {
    let frame = |name: &str, is_method: bool| AsyncFrame {
        name: name.into(),
        module: is_method.then(|| "shop".into()),
        is_method,
    };
    let chain = |count, kind, name: Option<&str>, frames| AsyncChain {
        count,
        awaited: Awaited { kind, name: name.map(str::to_owned) },
        frames,
        blocks_thread: count == 1,
    };
    let buy = || frame("Cart.BuyAsync\u{1b}[2J", true);
    let long = (0..1000).map(|n| frame(&format!("Deep.Down{n}"), true)).collect();
    let chains = vec![
        chain(
            1200,
            AwaitedKind::CompletionSource,
            Some("Task`1[A\n]"),
            vec![frame("Cart.PayAsync", true), frame("Task.WhenAll", false), buy()],
        ),
        chain(1, AwaitedKind::Delay, Some("DelayPromise"), vec![buy()]),
        chain(2, AwaitedKind::Unknown, None, long),
    ];
    AsyncChains { chains, methods: 4000, omitted: 3, incomplete: Some("truncated".to_owned()) }
}

#[test]
fn chains_of_async_methods_are_below_the_threads() {
    let mut dump = deadlock();
    dump.threads.truncate(1);
    dump.deadlocks.clear();
    dump.async_chains = Some(AsyncChains::default());
    for is_merged in [false, true] {
        assert!(text(&list(&dump, is_merged), None).ends_with("(native)\n\nNo pending async methods\n"));
    }
    let mut chains = async_chains();
    chains.chains[2].frames.drain(101..900);
    dump.async_chains = Some(chains);
    let whole = text(&list(&dump, false), Some(60));
    assert!(whole.lines().all(|line| line.chars().count() <= 60), "{whole}");
    assert!(
        whole.contains("\n    shop!Deep.Down99\n    … 1 more method …\n    shop!Deep.Down900\n"),
        "{whole}"
    );
    let (_, chains) = whole.split_once("(native)\n\n").unwrap();
    let (chains, _) = chains.split_once("    shop!Deep.Down1\n").unwrap();
    insta::assert_snapshot!(chains, @r#"
    4,000 pending async methods, in 1,206 chains

    1,200 equal async chains
      waits for a TaskCompletionSource: Task`1[A\n]
        shop!Cart.PayAsync
        Task.WhenAll
        shop!Cart.BuyAsync\u{1b}[2J

    Async chain
      waits for Task.Delay
      blocks a thread until the last method completes
        shop!Cart.BuyAsync\u{1b}[2J

    2 equal async chains
      runs, is ready to run, or waits for something unknown
        shop!Deep.Down0
    "#);
    assert!(whole.ends_with("    shop!Deep.Down999\n\n3 more chains not shown\n"), "{whole}");
}

#[test]
fn the_document_has_all_frames_of_chains() {
    let mut dump = ThreadDump { async_chains: Some(async_chains()), ..ThreadDump::default() };
    let document = serde_json::to_value(list(&dump, false)).unwrap();
    let chains = &document["async"];
    assert_eq!(chains["chains"][2]["frames"].as_array().unwrap().len(), 1000);
    insta::assert_snapshot!(serde_json::to_string(&chains["chains"][0]).unwrap(), @r#"{"blocks_thread":false,"count":1200,"frames":[{"kind":"method","module":"shop","name":"Cart.PayAsync"},{"kind":"combinator","module":null,"name":"Task.WhenAll"},{"kind":"method","module":"shop","name":"Cart.BuyAsync\u001b[2J"}],"waits_for":{"kind":"completion_source","name":"Task`1[A\n]"}}"#);
    assert_eq!((&chains["methods"], &chains["omitted"]), (&4000.into(), &3.into()));
    assert_eq!(chains["incomplete_reason"], "truncated");
    dump.async_chains = None;
    assert!(serde_json::to_value(list(&dump, false)).unwrap()["async"].is_null());
}
