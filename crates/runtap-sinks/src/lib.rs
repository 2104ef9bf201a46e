//! Writes the model as speedscope, folded stacks and SVG flame graphs.
