//! Any graph of objects that async methods consist of (a byte for the type and the number of references, then a byte for each
//! reference): no panic, no more methods than boxes, and every chain ends.
#![no_main]

use std::sync::Arc;

use runtap_clr::{ArgumentModules, async_chains};
use runtap_heap::GraphBuilder;

const TYPES: [&str; 16] = [
    "AsyncStateMachineBox`1[System.Int32,App+<Buy>d__1]",
    "AsyncStateMachineBox`1[System.Int32,App+<Pay>d__2[System.Int32]]",
    "StateMachineBox`1[System.Int32,App+<Get>d__3]",
    "<Buy>d__1",
    "<Pay>d__2[System.Int32]",
    "WhenAllPromise",
    "CompleteOnInvokePromise",
    "System.Threading.Tasks.Task`1[System.Int32]",
    "System.Threading.Tasks.TaskCompletionSource",
    "System.Threading.ExecutionContext",
    "System.Action",
    "System.Collections.Generic.List`1[System.Object]",
    "System.Object[]",
    "SetOnInvokeMres",
    "ValueTaskSourceAsTask",
    "App",
];

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut builder = GraphBuilder::default();
    let types = TYPES.map(|name| builder.add_type(name, Some(Arc::from("System.Private.CoreLib"))));
    let (mut rest, mut objects, mut boxes) = (input, 0_usize, 0_u64);
    while let Some((head, behind)) = rest.split_first() {
        let (kind, count) = (usize::from(head & 15), usize::from(head >> 4));
        let (references, next) = behind.split_at(count.min(behind.len()));
        builder.object(objects as u64, types[kind], 24);
        for reference in references {
            builder.reference((*reference).into());
        }
        (rest, objects, boxes) = (next, objects + 1, boxes + u64::from(kind < 3));
    }
    let chains = async_chains(&builder.finish(), &ArgumentModules::default());
    assert!(chains.methods <= boxes);
    assert_eq!(chains.omitted, 0);
    for chain in &chains.chains {
        assert!(chain.count > 0 && !chain.frames.is_empty() && chain.frames.len() <= objects);
    }
});
