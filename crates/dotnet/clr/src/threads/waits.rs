//! What a thread waits for, according to its innermost frames.

use runtap_model::thread_dump::{DumpedFrame, ThreadWait, WaitKind};

/// The names of types and methods of the class library in which threads wait. The last match from the innermost frame outwards
/// determines the result, because waits are built upon each other: `Task.Wait` waits for an event by `Monitor.Wait`.
const WAITS: &[(&str, WaitKind)] = &[
    ("System.Threading.Monitor.Wait(", WaitKind::Condition),
    ("System.Threading.Monitor.ObjWait(", WaitKind::Condition),
    ("System.Threading.Monitor.Enter", WaitKind::Lock),
    ("System.Threading.Monitor.TryEnter", WaitKind::Lock),
    ("System.Threading.Monitor.ReliableEnter", WaitKind::Lock),
    ("System.Threading.Lock.", WaitKind::Lock),
    ("System.Threading.ReaderWriterLockSlim.", WaitKind::Lock),
    ("System.Threading.SpinLock.", WaitKind::Lock),
    ("System.Threading.WaitHandle.", WaitKind::Event),
    ("System.Threading.ManualResetEventSlim.Wait(", WaitKind::Event),
    ("System.Threading.CountdownEvent.Wait(", WaitKind::Event),
    ("System.Threading.Barrier.SignalAndWait(", WaitKind::Event),
    ("System.Threading.SemaphoreSlim.Wait", WaitKind::Semaphore),
    ("System.Threading.Tasks.Task.Wait", WaitKind::Task),
    ("System.Threading.Tasks.Task.InternalWait", WaitKind::Task),
    ("System.Threading.Tasks.Task.SpinThenBlockingWait(", WaitKind::Task),
    ("System.Runtime.CompilerServices.TaskAwaiter", WaitKind::Task),
    ("System.Threading.Thread.Join", WaitKind::Thread),
    ("System.Threading.Thread.Sleep", WaitKind::Sleep),
    ("System.Threading.LowLevelLifoSemaphore.", WaitKind::Work),
    ("System.Threading.PortableThreadPool+WorkerThread.", WaitKind::Work),
    ("System.Threading.PortableThreadPool+GateThread.", WaitKind::Work),
    ("System.Threading.TimerQueue.TimerThread(", WaitKind::Work),
    ("System.Collections.Concurrent.BlockingCollection`1", WaitKind::Work),
    ("System.Net.Sockets.SocketAsyncEngine.EventLoop(", WaitKind::Io),
    ("System.Net.Sockets.Socket.", WaitKind::Io),
    ("System.Net.Sockets.SocketPal.", WaitKind::Io),
    ("System.IO.RandomAccess.Read", WaitKind::Io),
    ("System.IO.RandomAccess.Write", WaitKind::Io),
    ("System.ConsolePal.Read", WaitKind::Io),
    ("System.IO.Pipes.", WaitKind::Io),
    ("Interop+Sys.Read(", WaitKind::Io),
    ("Interop+Sys.WaitForSocketEvents(", WaitKind::Io),
];

/// Returns what a thread in native code waits for. `is_stuck` is whether it did not move, and the runtime shows no frames for locks.
pub(super) fn of_stack(stack: &[DumpedFrame], is_stuck: bool) -> Option<ThreadWait> {
    let library = stack.iter().take_while(|frame| is_library(frame));
    let found = library.filter_map(wait_of).last();
    if let Some(kind) = found {
        return Some(ThreadWait::new(kind));
    }
    // Waiting for a lock has no frame of its own; calls of native code from the program's own code may look alike.
    let innermost = stack.first()?;
    let is_own_code = !is_library(innermost) && !innermost.name.starts_with("0x") && !is_stub(innermost);
    (is_stuck && is_own_code).then(|| ThreadWait::new(WaitKind::Native))
}

fn wait_of(frame: &DumpedFrame) -> Option<WaitKind> {
    if frame.name.starts_with("System.Threading.Tasks.Task`1[") && frame.name.contains("].GetResultCore(") {
        return Some(WaitKind::Task);
    }
    WAITS.iter().find(|(prefix, _)| frame.name.starts_with(prefix)).map(|(_, kind)| *kind)
}

fn is_library(frame: &DumpedFrame) -> bool {
    frame.module.as_deref().is_some_and(crate::frame::is_framework)
}

/// Whether a frame is generated code that calls native code.
fn is_stub(frame: &DumpedFrame) -> bool {
    frame.name.starts_with("dynamicClass.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[(&str, &str)]) -> Vec<DumpedFrame> {
        let frame = |(module, name): &(&str, &str)| DumpedFrame {
            name: (*name).to_owned(),
            module: Some((*module).to_owned()),
            ..DumpedFrame::default()
        };
        names.iter().map(frame).collect()
    }

    fn kind(names: &[(&str, &str)], is_stuck: bool) -> Option<&'static str> {
        of_stack(&stack(names), is_stuck).map(|wait| wait.kind.name())
    }

    const CORE: &str = "System.Private.CoreLib";

    #[test]
    fn the_outermost_wait_of_the_library_counts() {
        let task = [
            (CORE, "System.Threading.Monitor.Wait(class System.Object,int32)"),
            (CORE, "System.Threading.ManualResetEventSlim.Wait(int32)"),
            (CORE, "System.Threading.Tasks.Task.InternalWaitCore(int32)"),
            (CORE, "System.Threading.Tasks.Task`1[System.Int32].GetResultCore(bool)"),
            ("app", "App.Run()"),
            (CORE, "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart()"),
        ];
        assert_eq!(kind(&task, false), Some("task"));
        assert_eq!(kind(&task[..2], false), Some("event"));
        assert_eq!(kind(&task[4..], false), None);
        assert_eq!(kind(&task[5..], false), Some("work"));
        assert_eq!(
            kind(
                &[(CORE, "System.Threading.Monitor.Enter_Slowpath(class System.Object)"), ("app", "A.B()")],
                false
            ),
            Some("lock")
        );
    }

    #[test]
    fn own_code_that_does_not_move_may_wait_for_a_lock() {
        let own = [("app", "App.Enter(class System.Object)")];
        assert_eq!((kind(&own, true), kind(&own, false)), (Some("native"), None));
        assert_eq!(kind(&[("app", "dynamicClass.IL_STUB_PInvoke(int32)")], true), None);
        assert_eq!(kind(&[(CORE, "System.GC.Collect()")], true), None);
        assert_eq!(kind(&[], true), None);
    }
}
