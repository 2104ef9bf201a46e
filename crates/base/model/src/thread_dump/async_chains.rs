//! Async methods that wait without a thread, as chains of callers.

use std::sync::Arc;

/// The async methods of a program that wait, as chains. Each chain starts with a method that does not wait for another one, and
/// continues with the method that awaits it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsyncChains {
    /// The distinct chains, frequent ones first.
    pub chains: Vec<AsyncChain>,
    /// The number of waiting methods.
    pub methods: u64,
    /// The number of chains that were omitted because of limits.
    pub omitted: u64,
    /// Why methods may be missing. `None` if all are included.
    pub incomplete: Option<String>,
}

impl AsyncChains {
    /// Returns the number of chains with equal ones.
    pub fn count(&self) -> u64 {
        self.chains.iter().fold(self.omitted, |sum, chain| sum.saturating_add(chain.count))
    }
}

/// Equal chains of waiting methods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsyncChain {
    /// The number of equal chains. Never 0.
    pub count: u64,
    /// What the innermost method waits for.
    pub awaited: Awaited,
    /// The methods, with the innermost first.
    pub frames: Vec<AsyncFrame>,
    /// Whether a thread is blocked until the outermost method completes.
    pub blocks_thread: bool,
}

/// What the innermost method of a chain waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Awaited {
    /// The kind of the awaited object.
    pub kind: AwaitedKind,
    /// The type of the awaited object, or the name of the awaited method. `None` if unknown.
    pub name: Option<String>,
}

/// A kind of awaited object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AwaitedKind {
    /// The end of a time.
    Delay,
    /// The next tick of a timer.
    Timer,
    /// A semaphore.
    Semaphore,
    /// A task that the program completes itself.
    CompletionSource,
    /// A channel.
    Channel,
    /// A socket.
    Socket,
    /// Another task.
    Task,
    /// An async method in another chain, which several methods await.
    Method,
    /// The outermost method of the chain itself, so none of the methods can continue.
    Cycle,
    /// An object of another type.
    Object,
    /// Unknown: the method may be running or ready to run.
    #[default]
    Unknown,
}

impl AwaitedKind {
    /// Returns the name in documents, such as `completion_source`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Timer => "timer",
            Self::Semaphore => "semaphore",
            Self::CompletionSource => "completion_source",
            Self::Channel => "channel",
            Self::Socket => "socket",
            Self::Task => "task",
            Self::Method => "method",
            Self::Cycle => "cycle",
            Self::Object => "object",
            Self::Unknown => "unknown",
        }
    }
}

/// A waiting method, or an operation that combines tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AsyncFrame {
    /// The method with its type, or the operation, such as `Task.WhenAll`.
    pub name: Arc<str>,
    /// The assembly of the method. `None` if unknown.
    pub module: Option<Arc<str>>,
    /// Whether the frame is an async method.
    pub is_method: bool,
}
