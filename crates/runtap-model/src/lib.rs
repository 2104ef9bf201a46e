//! What a recording means: threads, frames, stacks and samples as tables with handles.
