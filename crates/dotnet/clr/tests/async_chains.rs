//! Chains of async methods in graphs that are made up: as runtimes have them, damaged ones, and very long ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use runtap_clr::{ArgumentModules, async_chains};
use runtap_heap::{Graph, GraphBuilder};
use runtap_model::thread_dump::{AsyncChains, AwaitedKind};

const CORE: &str = "System.Private.CoreLib";
const TASK: &str = "System.Threading.Tasks.Task`1[System.Int32]";
const SOURCE: &str = "System.Threading.Tasks.TaskCompletionSource`1[System.Int32]";
const CONTEXT: &str = "System.Threading.ExecutionContext";
const ACTION: &str = "System.Action";
const LIST: &str = "System.Collections.Generic.List`1[System.Object]";
const ARRAY: &str = "System.Object[]";
const DELAY: &str = "DelayPromise";

/// Returns the type of the box of an async method of the class `App`.
fn box_of(method: &str) -> String {
    format!("AsyncStateMachineBox`1[System.Int32,App+<{method}>d__1]")
}

/// Objects by address, each with its type and references. Types of the class library are in its module.
fn graph(objects: &[(u64, &str, &[u64])]) -> Graph {
    let mut builder = GraphBuilder::default();
    for (address, name, references) in objects {
        let module = if name.starts_with("App") { "app" } else { CORE };
        let type_id = builder.add_type(name, Some(Arc::from(module)));
        builder.object(*address, type_id, 24);
        for reference in *references {
            builder.reference(*reference);
        }
    }
    builder.finish()
}

fn chains(objects: &[(u64, &str, &[u64])]) -> AsyncChains {
    async_chains(&graph(objects), &ArgumentModules::default())
}

/// Returns the chains as lines, sorted: `count kind: innermost < outermost`.
fn lines(chains: &AsyncChains) -> Vec<String> {
    let line = |chain: &runtap_model::thread_dump::AsyncChain| {
        let frames: Vec<&str> = chain.frames.iter().map(|frame| &*frame.name).collect();
        let blocks = if chain.blocks_thread { " blocks" } else { "" };
        format!("{} {}{blocks}: {}", chain.count, chain.awaited.kind.name(), frames.join(" < "))
    };
    let mut lines: Vec<String> = chains.chains.iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn each_continuation_leads_to_the_method_that_awaits() {
    let [inner, middle, outer, done] = ["Inner", "Middle", "Outer", "Done"].map(box_of);
    let chains = chains(&[
        // The continuation is the box itself, a delegate, and a list of delegates.
        (1, &inner, &[9, 2, 1, 5]),
        (2, &middle, &[9, 6, 2, 1]),
        (3, &outer, &[9, 3, 2]),
        // A completed method has no state machine.
        (4, &done, &[3, 9]),
        (5, TASK, &[10]),
        (6, LIST, &[7]),
        (7, ARRAY, &[8]),
        (8, ACTION, &[3]),
        (9, CONTEXT, &[]),
        (10, ACTION, &[1]),
        (11, SOURCE, &[5]),
    ]);
    assert_eq!(lines(&chains), ["1 completion_source: App.Inner < App.Middle < App.Outer"]);
    assert_eq!((chains.methods, chains.omitted, chains.count()), (3, 0, 1));
    assert_eq!(chains.chains[0].awaited.name.as_deref(), Some(TASK));
}

#[test]
fn variables_are_no_continuations() {
    let [first, second] = ["First", "Second"].map(box_of);
    // The first method keeps the task of the second one in a variable, and the second one keeps that of the first.
    let chains = chains(&[
        (1, &first, &[9, 2, 1, 3]),
        (2, &second, &[9, 1, 2, 4]),
        (3, DELAY, &[1]),
        (4, DELAY, &[2]),
        (9, CONTEXT, &[]),
    ]);
    assert_eq!(lines(&chains), ["1 delay: App.First", "1 delay: App.Second"]);
}

#[test]
fn several_methods_may_await_one() {
    let [shared, first, second] = ["Shared", "First", "Second"].map(box_of);
    let chains = chains(&[
        (1, &shared, &[9, 5, 1, 4]),
        (2, &first, &[9, 2, 1]),
        (3, &second, &[9, 3, 1]),
        (4, DELAY, &[1]),
        (5, LIST, &[6]),
        (6, ARRAY, &[2, 3]),
        (9, CONTEXT, &[]),
    ]);
    let lines = lines(&chains);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("1 delay: App.Shared < App.")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("1 method: App.")), "{lines:?}");
    let of_shared = |kind| chains.chains.iter().find(|chain| chain.awaited.kind == kind).unwrap();
    assert_eq!(of_shared(AwaitedKind::Method).awaited.name.as_deref(), Some("App.Shared"));
    assert_eq!(chains.methods, 3);
}

#[test]
fn a_cycle_is_found_and_ends() {
    let [first, second, waits] = ["First", "Second", "Waits"].map(box_of);
    let chains = chains(&[
        (1, &first, &[9, 2, 1, 2]),
        (2, &second, &[9, 1, 2, 1]),
        // Waits for its own end.
        (3, &waits, &[9, 3, 3]),
        (9, CONTEXT, &[]),
    ]);
    let lines = lines(&chains);
    assert!(
        lines.iter().any(|line| line.starts_with("1 cycle: App.") && line.contains(" < App.")),
        "{lines:?}"
    );
    assert_eq!(chains.methods, 3);
}

#[test]
fn state_machines_of_debug_builds_are_objects() {
    let [inner, outer] = ["Inner", "Outer"].map(box_of);
    let chains = chains(&[
        (1, &inner, &[9, 2, 3]),
        (2, &outer, &[9, 4]),
        (3, "<Inner>d__1", &[1, 5]),
        (4, "<Outer>d__1", &[2, 1]),
        (5, DELAY, &[1]),
        (9, CONTEXT, &[]),
    ]);
    assert_eq!(lines(&chains), ["1 delay: App.Inner < App.Outer"]);
}

#[test]
fn blocked_threads_and_other_objects_are_told() {
    let [blocks, own, runs] = ["Blocks", "Own", "Runs"].map(box_of);
    let chains = chains(&[
        (1, &blocks, &[9, 8, 1, 4]),
        (2, &own, &[9, 2, 5]),
        (3, &runs, &[9, 3]),
        (4, "TaskNode", &[1]),
        (5, "App.Awaitable", &[6]),
        (6, ACTION, &[2]),
        (8, "SetOnInvokeMres", &[]),
        (9, CONTEXT, &[]),
    ]);
    assert_eq!(
        lines(&chains),
        ["1 object: App.Own", "1 semaphore blocks: App.Blocks", "1 unknown: App.Runs"]
    );
    let own = chains.chains.iter().find(|chain| chain.awaited.kind == AwaitedKind::Object).unwrap();
    assert_eq!(own.awaited.name.as_deref(), Some("App.Awaitable"));
}

#[test]
fn missing_objects_and_types_leave_the_rest() {
    let inner = box_of("Inner");
    // The awaited task and the method that awaits are missing.
    let alone = chains(&[(1, &inner, &[9, 2, 1, 5])]);
    assert_eq!(lines(&alone), ["1 unknown: App.Inner"]);
    assert_eq!(
        lines(&chains(&[(1, "", &[1]), (2, "AsyncStateMachineBox`1[", &[2])])),
        ["1 unknown: AsyncStateMachineBox`1["]
    );
    assert_eq!(chains(&[]), AsyncChains::default());
}

#[test]
fn equal_chains_are_counted() {
    let (names, mut builder) = (["Inner", "Outer"].map(box_of), GraphBuilder::default());
    let [inner, outer] = names.each_ref().map(|name| builder.add_type(name, None));
    let delay = builder.add_type(DELAY, Some(Arc::from(CORE)));
    for n in 1..=1000_u64 {
        let at = n * 10;
        let objects =
            [(at, inner, &[at + 1, at, at + 2][..]), (at + 1, outer, &[at + 1, at]), (at + 2, delay, &[at])];
        for (address, type_id, references) in objects {
            builder.object(address, type_id, 24);
            for it in references {
                builder.reference(*it);
            }
        }
    }
    let modules = ArgumentModules::from_iter([(inner, Arc::from("app"))]);
    let chains = async_chains(&builder.finish(), &modules);
    assert_eq!(lines(&chains), ["1000 delay: App.Inner < App.Outer"]);
    assert_eq!((chains.methods, chains.count()), (2000, 1000));
    let modules: Vec<Option<&str>> = chains.chains[0].frames.iter().map(|it| it.module.as_deref()).collect();
    assert_eq!(modules, [Some("app"), None]);
}

/// Each method awaits the next one; the methods of each of the `long` chains have a type of their own.
fn long_chains(long: u64, length: u64) -> Graph {
    let mut builder = GraphBuilder::default();
    for chain in 0..long {
        let type_id = builder.add_type(&box_of(&format!("Down{chain}")), None);
        let start = 1 + chain * (length + 1);
        for at in start..start + length {
            builder.object(at, type_id, 24);
            // The method that awaits it, itself, and what it awaits.
            [at + 1, at, at - 1].into_iter().filter(|it| *it >= start).for_each(|it| builder.reference(it));
        }
    }
    builder.finish()
}

#[test]
fn a_long_chain_takes_no_stack_and_little_time() {
    let started = Instant::now();
    let chains = async_chains(&long_chains(3, 1_000_000), &ArgumentModules::default());
    assert_eq!(chains.methods, 3_000_000);
    assert_eq!(chains.chains.iter().map(|chain| chain.frames.len()).collect::<Vec<_>>(), [1_000_000; 2]);
    assert_eq!(chains.omitted, 1);
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
}

/// A hub to which all objects refer, and which refers to all of them, must not take the square of their number.
#[test]
fn hubs_take_little_time() {
    let (boxes, mut builder) = (50_000_u64, GraphBuilder::default());
    let name = box_of("Waits");
    let [waits, action, all, machine] =
        [(&*name, CORE), (ACTION, CORE), ("WhenAllPromise", CORE), ("<Waits>d__1", "app")]
            .map(|(name, module)| builder.add_type(name, Some(Arc::from(module))));
    for (hub, type_id) in [(1, action), (2, all), (3, machine)] {
        builder.object(hub, type_id, 24);
        (10..10 + boxes).for_each(|it| builder.reference(it));
    }
    for at in 10..10 + boxes {
        builder.object(at, waits, 24);
        for it in [1, 2, 3] {
            builder.reference(it);
        }
        if at % 2 == 0 {
            for it in [at, 1, 2, 3] {
                builder.reference(it);
            }
        }
    }
    let started = Instant::now();
    let chains = async_chains(&builder.finish(), &ArgumentModules::default());
    assert!(chains.methods >= boxes / 2, "{}", chains.methods);
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());
}

proptest! {
    #[test]
    fn any_graph_is_accepted(objects in prop::collection::vec((0..14_usize, prop::collection::vec(0..40_u64, 0..6)), 0..40)) {
        let boxes = ["A", "B"].map(box_of);
        let types = [
            &*boxes[0], &*boxes[1], TASK, SOURCE, CONTEXT, ACTION, LIST, ARRAY, DELAY, "WhenAllPromise",
            "CompleteOnInvokePromise", "SetOnInvokeMres", "<A>d__1", "App.Other",
        ];
        let objects: Vec<(u64, &str, &[u64])> =
            (0..).zip(&objects).map(|(at, (name, references))| (at, types[*name], &references[..])).collect();
        let chains = chains(&objects);
        let boxes = objects.iter().filter(|(_, name, _)| name.starts_with("AsyncStateMachineBox")).count() as u64;
        prop_assert!(chains.methods <= boxes);
        prop_assert_eq!(chains.omitted, 0);
        for chain in &chains.chains {
            // A chain contains no object twice.
            prop_assert!(chain.count > 0 && !chain.frames.is_empty() && chain.frames.len() <= objects.len());
        }
        // Each pending method is a part of a chain.
        prop_assert_eq!(chains.methods == 0, !chains.chains.iter().any(|it| it.frames.iter().any(|it| it.is_method)));
    }
}
