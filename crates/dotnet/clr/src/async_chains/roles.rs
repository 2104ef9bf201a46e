//! What the types of the class library mean for async methods, by their names: the runtime states nested types without their outer
//! types, but type arguments completely (``AsyncStateMachineBox`1[System.Int32,App.Shop+<BuyAsync>d__3]``).

use runtap_heap::TypeName;
use runtap_model::thread_dump::AwaitedKind;

/// What an object of a type means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The box of an async method.
    Box,
    /// A task that completes when other tasks do, with the method that creates it.
    Combinator(&'static str),
    /// What a task runs when it completes, or a part of that: it refers to the box or the task that waits.
    Continuation,
    /// A list of continuations.
    List,
    /// What wakes a thread that is blocked until a task completes.
    Blocker,
    /// The context of a method that waits.
    Context,
    /// The owner of a task that the program completes itself.
    Source,
    /// A task of what another object completes.
    SourceAsTask,
    /// What is awaited, but is not an async method.
    Awaitable(AwaitedKind),
    Other,
}

const CORE: &str = "System.Private.CoreLib";

/// The beginnings of the names of types in the core library.
const ROLES: &[(&str, Role)] = &[
    ("AsyncStateMachineBox`1[", Role::Box),
    ("DebugFinalizableAsyncStateMachineBox`1[", Role::Box),
    ("StateMachineBox`1[", Role::Box),
    ("WhenAllPromise", Role::Combinator("Task.WhenAll")),
    ("TwoTaskWhenAnyPromise`1[", Role::Combinator("Task.WhenAny")),
    ("CompleteOnInvokePromise", Role::Combinator("Task.WhenAny")),
    ("CancellationPromise`1[", Role::Combinator("Task.WaitAsync")),
    ("System.Threading.Tasks.UnwrapPromise`1[", Role::Combinator("Task.Unwrap")),
    ("System.Threading.Tasks.ContinuationTaskFrom", Role::Combinator("Task.ContinueWith")),
    ("System.Threading.Tasks.ContinuationResultTaskFrom", Role::Combinator("Task.ContinueWith")),
    ("System.Threading.Tasks.ContinueWithTaskContinuation", Role::Continuation),
    ("System.Threading.Tasks.AwaitTaskContinuation", Role::Continuation),
    // While events of tasks are recorded.
    ("ContinuationWrapper", Role::Continuation),
    ("System.Threading.Tasks.SynchronizationContextAwaitTaskContinuation", Role::Continuation),
    ("System.Threading.Tasks.TaskSchedulerAwaitTaskContinuation", Role::Continuation),
    ("System.Collections.Generic.List`1[System.Object]", Role::List),
    ("System.Object[]", Role::List),
    ("SetOnInvokeMres", Role::Blocker),
    ("System.Threading.ExecutionContext", Role::Context),
    ("System.Threading.Tasks.TaskCompletionSource", Role::Source),
    ("ValueTaskSourceAsTask", Role::SourceAsTask),
    ("DelayPromise", Role::Awaitable(AwaitedKind::Delay)),
    ("TaskNode", Role::Awaitable(AwaitedKind::Semaphore)),
    ("System.Threading.Tasks.Task`1[", Role::Awaitable(AwaitedKind::Task)),
    ("System.Action`1[", Role::Continuation),
];

/// Returns the role of a type.
pub(super) fn role_of(of: &TypeName) -> Role {
    let TypeName { name, module } = of;
    let module = module.as_deref();
    if name.starts_with("System.Threading.Channels.") && name.contains("AsyncOperation") {
        return Role::Awaitable(AwaitedKind::Channel);
    }
    if name == "AwaitableSocketAsyncEventArgs" {
        return Role::Awaitable(AwaitedKind::Socket);
    }
    // The program's own types may have equal names.
    if module.is_some_and(|module| !module.starts_with(CORE)) {
        return Role::Other;
    }
    match name.as_str() {
        "System.Action" => Role::Continuation,
        // The private class of `PeriodicTimer`; nothing else of this name can be awaited.
        "State" => Role::Awaitable(AwaitedKind::Timer),
        "System.Threading.Tasks.Task" => Role::Awaitable(AwaitedKind::Task),
        name => {
            let known = ROLES.iter().find(|(start, _)| name.starts_with(start));
            known.map_or(Role::Other, |(_, role)| *role)
        }
    }
}

/// Returns the type of the state machine in the name of a box: its last type argument.
pub(super) fn state_machine(name: &str) -> Option<&str> {
    let arguments = name.split_once('[')?.1.strip_suffix(']')?;
    let (mut depth, mut start) = (0_u32, 0);
    for (at, byte) in arguments.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    arguments.get(start..).filter(|name| !name.is_empty())
}

/// Returns the name of a state machine without its outer types, as the type of an object has it.
pub(super) fn simple_name(state_machine: &str) -> &str {
    let head = state_machine.split('[').next().unwrap_or_default();
    let start = head.rfind('+').map_or(0, |at| at + 1);
    state_machine.get(start..).unwrap_or(state_machine)
}

/// Returns the name of the method of a state machine: `App.Shop.BuyAsync` for `App.Shop+<BuyAsync>d__3`. Names that are not of
/// this form, which other compilers give, remain.
pub(super) fn method_name(state_machine: &str) -> String {
    let simple = simple_name(state_machine);
    let outer = state_machine.strip_suffix(simple).unwrap_or_default();
    let (head, arguments) = simple.split_at(simple.find('[').unwrap_or(simple.len()));
    let method = head.strip_prefix('<').and_then(|rest| rest.rsplit_once('>'));
    match (outer.strip_suffix('+'), method) {
        (Some(outer), Some((method, _))) if !method.is_empty() => format!("{outer}.{method}{arguments}"),
        _ => state_machine.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn methods_are_named_after_their_state_machines() {
        let names = [
            ("AsyncStateMachineBox`1[System.Int32,Never+<Level2Async>d__2]", "Never.Level2Async"),
            (
                "AsyncStateMachineBox`1[System.Threading.Tasks.VoidTaskResult,A.B`1+<ReadAllAsync>d__12[System.Int32]]",
                "A.B`1.ReadAllAsync[System.Int32]",
            ),
            (
                "AsyncStateMachineBox`1[System.String,Generic`1+<RunAsync>d__0`1[System.String,System.Int32]]",
                "Generic`1.RunAsync[System.String,System.Int32]",
            ),
            ("StateMachineBox`1[X[A,B],P+<>c+<<Main>b__3_1>d]", "P+<>c.<Main>b__3_1"),
            ("AsyncStateMachineBox`1[X,P+<<Main>g__LocalAsync|3_0>d]", "P.<Main>g__LocalAsync|3_0"),
            ("AsyncStateMachineBox`1[X,Shop.VB$StateMachine_1_Buy]", "Shop.VB$StateMachine_1_Buy"),
        ];
        for (name, expected) in names {
            assert_eq!(state_machine(name).map(method_name).as_deref(), Some(expected));
        }
        for name in ["", "Box", "Box[", "Box[A,]", "Box[A]]"] {
            assert_eq!(state_machine(name), None, "{name}");
        }
        assert_eq!(simple_name("A+B`1+<Run>d__1`1[C+D]"), "<Run>d__1`1[C+D]");
    }

    #[test]
    fn only_types_of_the_class_library_have_roles() {
        let role = |name: &str, module: Option<&str>| {
            role_of(&TypeName { name: name.to_owned(), module: module.map(Into::into) })
        };
        assert_eq!(
            role("DelayPromise", Some("System.Private.CoreLib.dll")),
            Role::Awaitable(AwaitedKind::Delay)
        );
        assert_eq!(role("DelayPromise", None), Role::Awaitable(AwaitedKind::Delay));
        assert_eq!(role("DelayPromise", Some("app.dll")), Role::Other);
        assert_eq!(role("System.Threading.ExecutionContext", None), Role::Context);
    }

    proptest! {
        #[test]
        fn any_name_is_accepted(name in r"[<>+\[\],`.A-Cé]{0,24}") {
            if let Some(state_machine) = state_machine(&name) {
                prop_assert!(state_machine.ends_with(simple_name(state_machine)));
                prop_assert!(!method_name(state_machine).is_empty());
            }
        }
    }
}
