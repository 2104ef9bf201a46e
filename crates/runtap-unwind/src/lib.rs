//! Stacks of a program's own threads: sampled, unwound and named.
