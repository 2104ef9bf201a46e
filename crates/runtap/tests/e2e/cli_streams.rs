//! `repair` and `inspect` on complete and truncated recordings.

use std::fs;

use runtap_testkit::{Running, require, shared_data};
use serde_json::{Value, json};

use crate::common::{command, counts, folder, runtap};

#[test]
fn a_truncated_recording_is_repaired() {
    let bytes = require!(shared_data("nettrace/net10/cpu-spin.nettrace.zst"));
    let folder = folder();
    let file = folder.path().join("cut.nettrace");
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let before = counts(&file, 5);
    let done = runtap(["repair", file.to_str().unwrap()]);
    let repaired = folder.path().join("cut.repaired.nettrace");
    let line = format!("{}  ", repaired.display());
    assert!(done.expect_code(0).says("truncated").text().starts_with(&line), "{done}");
    let after = counts(&repaired, 0);
    assert_eq!((&after["events"], &after["counts"]), (&before["events"], &before["counts"]));
    assert_eq!(after["partial"], Value::Null);
    assert_eq!(fs::read(&file).unwrap(), bytes[..bytes.len() / 2], "the recording itself stays");

    // A second repair has nothing to do, and writes nothing.
    runtap(["repair", repaired.to_str().unwrap()]).expect_code(0).says("is complete");
    assert!(!folder.path().join("cut.repaired.repaired.nettrace").exists());
    // The reader of a pipe gets a complete recording anyway.
    let redirected = folder.path().join("redirected");
    let mut piped = command(["repair", repaired.to_str().unwrap(), "-o", "-"]);
    piped.stdout(fs::File::create(&redirected).unwrap());
    Running::start_as_it_is(piped).wait().expect_code(0).says("is complete");
    assert_eq!(fs::read(&redirected).unwrap(), fs::read(&repaired).unwrap());

    let other = folder.path().join("other");
    let answer =
        runtap(["repair", file.to_str().unwrap(), "-o", other.to_str().unwrap(), "--format", "json"]);
    let document: Value = serde_json::from_str(answer.expect_code(0).text()).unwrap();
    assert_eq!(document["schema"], "runtap.repair/1");
    assert_eq!(
        (&document["output"], &document["end_added"]),
        (&json!(other.to_str().unwrap()), &json!(true))
    );
    assert_eq!(document["partial"]["offset"], before["partial"]["offset"]);
    assert_eq!(fs::read(&other).unwrap(), fs::read(&repaired).unwrap());
}

/// Events before and after a hole are kept, and the missing part is reported.
#[test]
fn a_recording_with_a_hole_is_repaired() {
    let bytes = require!(shared_data("nettrace/net10/cpu-spin.nettrace.zst"));
    let folder = folder();
    let file = folder.path().join("hole.nettrace");
    let repaired = folder.path().join("hole.repaired.nettrace");
    let repair = || runtap(["repair", file.to_str().unwrap(), "--format", "json"]);
    let middle = bytes.len() / 2;
    fs::write(&file, [&bytes[..middle], &bytes[middle + 65_536..]].concat()).unwrap();
    let whole = folder.path().join("whole.nettrace");
    fs::write(&whole, &bytes).unwrap();
    let all = counts(&whole, 0)["events"].as_u64().unwrap();
    let cut = folder.path().join("cut.nettrace");
    fs::write(&cut, &bytes[..middle]).unwrap();
    let in_front = counts(&cut, 5)["events"].as_u64().unwrap();

    let document = repair().expect_code(0).json();
    let kept = counts(&repaired, 0)["events"].as_u64().unwrap();
    assert!(kept > in_front && kept < all, "{kept} of {all} events, {in_front} in front of the hole");
    let skipped = document["skipped"].as_array().unwrap();
    let total: u64 = skipped.iter().map(|place| place["bytes"].as_u64().unwrap()).sum();
    assert_eq!(
        (&document["bytes_skipped"], document["skipped_places"].as_u64()),
        (&json!(total), Some(skipped.len() as u64))
    );
    let around = |place: &Value| {
        let offset = place["offset"].as_u64().unwrap();
        (offset..=offset + place["bytes"].as_u64().unwrap()).contains(&(middle as u64))
    };
    assert!(skipped.iter().any(around), "{document:#}");
    let line = format!("bytes at offset {}", skipped[0]["offset"]);
    runtap(["repair", file.to_str().unwrap()]).expect_code(0).says("skipped ").says(&line);
    runtap(["report", repaired.to_str().unwrap(), "cpu"]).expect_code(0);

    // The first bytes only name the format.
    fs::write(&file, &bytes[32..]).unwrap();
    let document = repair().expect_code(0).json();
    assert_eq!((&document["start_added"], &document["bytes_skipped"]), (&json!(true), &json!(0)));
    assert_eq!(fs::read(&repaired).unwrap(), bytes);
    runtap(["repair", file.to_str().unwrap()]).expect_code(0).says("missing first bytes");
}

#[test]
fn unrepairable_recordings_are_reported() {
    let folder = folder();
    let file = folder.path().join("text.nettrace");
    fs::write(&file, "no recording at all").unwrap();
    runtap(["repair", file.to_str().unwrap()]).expect_code(2).says("can't be repaired");
    assert!(!folder.path().join("text.repaired.nettrace").exists());
    runtap(["repair", folder.path().join("none").to_str().unwrap()]).expect_code(2).says("can't read");
    let same = file.to_str().unwrap();
    runtap(["repair", same, "-o", same]).expect_code(2).says("itself");
    let inspected = runtap(["inspect", same]);
    let told = inspected.expect_code(2).says("neither a recording (nettrace) nor a transcript");
    assert_eq!(told.text(), "", "no head of an empty table");
    fs::write(&file, "").unwrap();
    runtap(["inspect", same]).expect_code(2).says("it is empty");
}

#[test]
fn the_structure_is_shown() {
    let bytes = require!(shared_data("nettrace/record-trace-v6-5k.nettrace.zst"));
    let folder = folder();
    let file = folder.path().join("six.nettrace");
    fs::write(&file, &bytes).unwrap();
    let path = file.to_str().unwrap();
    let text = runtap(["inspect", path]);
    let text = text.expect_code(0).text().to_owned();
    assert!(text.contains("Nettrace 6, 64 bits") && text.contains("1,780 stacks from id 1 on"), "{text}");
    assert!(text.contains("1 = Universal.Events/1 cpu"), "{text}");
    let answer = runtap(["inspect", path, "--format", "json"]);
    let document: Value = serde_json::from_str(answer.expect_code(0).text()).unwrap();
    assert_eq!(document["schema"], "runtap.inspect/1");
    let blocks = document["blocks"].as_array().unwrap();
    let numbers: Vec<u64> = blocks.iter().map(|block| block["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3, 4, 5, 6, 8, 2, 4]);
    assert_eq!((&blocks[6]["events"], &document["end"]), (&json!(5010), &json!(bytes.len() - 4)));
    assert_eq!(document["partial"], Value::Null);

    fs::write(&file, &bytes[..bytes.len() - 300]).unwrap();
    let cut = runtap(["inspect", path]);
    cut.expect_code(5).says("partial").says("six.nettrace");
    assert!(cut.text().contains("; TRUNCATED"), "{cut}");
    let mut damaged = bytes;
    // The first definition is longer than its block.
    damaged[0x7d] = 0xff;
    fs::write(&file, &damaged).unwrap();
    assert!(runtap(["inspect", path]).expect_code(5).text().contains("; DAMAGED: "));
}
