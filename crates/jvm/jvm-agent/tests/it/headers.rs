//! The indices of functions in the JVM's tables equal those in its headers.

use std::fs;

use runtap_jvm_agent::sys::index::{jni, jvmti};
use runtap_testkit::{Jdk, require};

/// `/*   48 : Get Class Signature */` and the declaration behind it.
fn jvmti_functions(header: &str) -> Vec<(usize, String)> {
    let rows = header.lines().filter_map(|line| {
        let (number, name) = line.trim().strip_prefix("/*")?.strip_suffix("*/")?.split_once(" : ")?;
        // `Get Method Name (and Signature)` is `GetMethodName`.
        let name = name.split('(').next()?;
        Some((number.trim().parse().ok()?, name.trim().replace(' ', "")))
    });
    rows.collect()
}

/// Returns the members of `struct JNINativeInterface_`, in order.
fn jni_functions(header: &str) -> Vec<String> {
    let (_, rest) = header.split_once("struct JNINativeInterface_ {").unwrap();
    let (body, _) = rest.split_once("\n};").unwrap();
    let members = body.split(';').filter_map(|member| {
        let reserved = member.contains("reserved").then(|| "reserved".to_owned());
        let name = member.split_once("(JNICALL *").and_then(|(_, rest)| rest.split_once(')'));
        name.map(|(name, _)| name.to_owned()).or(reserved)
    });
    members.collect()
}

#[test]
fn functions_are_where_the_headers_say() {
    let mut read = 0;
    for jdk in require!(Jdk::all()) {
        let include = jdk.home().join("include");
        let (Ok(jvmti_header), Ok(jni_header)) =
            (fs::read_to_string(include.join("jvmti.h")), fs::read_to_string(include.join("jni.h")))
        else {
            continue;
        };
        read += 1;
        let found = jvmti_functions(&jvmti_header);
        for (name, number) in jvmti::ALL {
            assert!(found.contains(&(*number, (*name).to_owned())), "{name} in JDK {}", jdk.major());
        }
        let found = jni_functions(&jni_header);
        for (name, number) in jni::ALL {
            assert_eq!(found.get(*number).map(String::as_str), Some(*name), "JDK {}", jdk.major());
        }
    }
    assert!(read > 0, "a JDK with headers is here");
}
