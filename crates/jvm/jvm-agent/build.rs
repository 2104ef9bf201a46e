//! How the library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A JVM unloads an agent that refuses to start. Native methods of the probe class and callbacks in progress would then
    // point to unmapped code, so the library stays mapped.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
