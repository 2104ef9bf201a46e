//! Folded stacks, the format of `stackcollapse` tools and flame graph tools.
//!
//! | in the model | in the file |
//! |---|---|
//! | a stack with self weight | a line `thread;root;…;leaf WEIGHT` |
//! | weight | nanoseconds, a whole number, summed over the thread's samples of that stack |
//! | thread | the first frame, `Thread (TID) NAME`, by which threads are sorted; none if threads are merged |
//! | frame | `Module!Namespace.Type.Method(args)`; `;` becomes `:`, control characters become spaces |
//! | a sample without a stack | a line `thread;[no stack] WEIGHT` |
//! | view | selects the samples; `cpu` by default |
//! | kind, times | not in the file |
//!
//! The lines are in the order of a tree with sorted branches: a stack precedes its callees, and stacks with a common
//! caller are adjacent. The text is UTF-8 with `\n`.

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
