//! Scripts that take the place of a test application: which files they replace.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{folder, runtap};

#[test]
fn a_script_replaces_neither_its_application_nor_any_other_file() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (application, script, recording) = (path("application"), path("script"), path("talk.jsonl"));
    fs::write(&application, "#!/bin/sh\nexit 0\n").unwrap();
    let write = |script: &str, output: &str, application: &str| {
        runtap(["mtp", "record", "-o", output, "--write-module", script, "--", application])
    };
    write(&application, &recording, &application).expect_code(2).says("is the application itself");
    assert_eq!(fs::read_to_string(&application).unwrap(), "#!/bin/sh\nexit 0\n");
    write(&script, &recording, &application).expect_code(0);
    write(&script, &recording, &application).expect_code(0).says("records");
    // The application may itself be such a script: if it were replaced, it would start itself forever.
    write(&script, &recording, &script).expect_code(2).says("is the application itself");
    symlink(&script, path("link")).unwrap();
    write(&path("link"), &recording, &script).expect_code(2).says("is the application itself");
    write(&script, &script, &application).expect_code(2).says("both the script and the recording");
    fs::write(&recording, "{}").unwrap();
    write(&recording, &path("other"), &application)
        .expect_code(2)
        .says("is not a script that runtap has written");
    assert_eq!(fs::read_to_string(&recording).unwrap(), "{}");
}
