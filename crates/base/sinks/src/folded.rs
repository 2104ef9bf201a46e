//! Folded stacks: what `stackcollapse` tools write and flame graph tools read.
//!
//! | in the model | in the file |
//! |---|---|
//! | a stack with weight of its own | a line `thread;root;…;leaf WEIGHT` |
//! | weight | nanoseconds, a whole number, summed over the thread's samples of that stack |
//! | thread | the first frame, `Thread (TID) NAME`; threads are sorted by it. Merged ones have none |
//! | frame | `Module!Namespace.Type.Method(args)`; `;` becomes `:`, control characters become spaces |
//! | a sample without a stack | a line `thread;[no stack] WEIGHT` |
//! | view | which samples are summed; `cpu` unless another is asked for |
//! | kind, times | not in the file |
//!
//! The lines are in the order of a tree with sorted branches: a stack comes before those that grow from it, and
//! stacks with a common caller are neighbours. The text is UTF-8 with `\n`.

use crate::fold::Fold;
use crate::{Error, Options};
use runtap_model::Trace;
use std::io::{BufWriter, Write};

/// Writes `trace` as folded stacks.
pub fn write(trace: &Trace, w: impl Write, options: &Options) -> Result<(), Error> {
    let fold = Fold::new(trace, options)?;
    let mut w = BufWriter::with_capacity(1 << 16, w);
    fold.walk(0, |stack, ns| writeln!(w, "{stack} {ns}"))?;
    w.flush()?;
    Ok(())
}
