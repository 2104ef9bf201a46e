//! How the library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A JVM unloads an agent that refuses to start. What it has been given of ours by then (native methods of the probe class,
    // callbacks that are being delivered) would point to nothing: the library stays where it is.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
