//! Events of Rust programs, as .NET tools read them.
