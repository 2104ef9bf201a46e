//! Pauses of collections and of the sampler, which stops all threads too, on synthetic streams as a runtime writes them.

use runtap_clr::clr::RUNTIME;
use runtap_clr::report::{Collect, Gc, GcReport};
use runtap_clr::{ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::{EventToWrite, Metadata, Observe, Reader, TraceHeader, Writer};

const US: u64 = 1_000;
const SAMPLER: u64 = 9;
const USER: u64 = 1;
const BACKGROUND: u64 = 2;

/// An event of a thread at a time in microseconds.
enum Told {
    Suspend(u32),
    Stopped,
    Resumed,
    /// Number, generation and type.
    Start(u32, u32, u32),
    /// The reason for a collection of the oldest generation.
    Why(u32),
    Stop(u32),
}
use Told::{Resumed, Start, Stop, Stopped, Suspend, Why};

fn stream(told: &[(u64, u64, Told)]) -> Vec<u8> {
    let mut writer = Writer::new(&TraceHeader::new(0, 0, 1_000_000_000));
    let ids = [1, 2, 3, 8, 9].map(|id| (id, writer.define_event(&Metadata::new(RUNTIME, id, "")).unwrap()));
    for (us, thread_id, told) in told {
        let mut payload = runtap_wire::Writer::new();
        let id = match told {
            Start(number, generation, kind) => {
                payload.u32(*number).u32(*generation).u32(0).u32(*kind).u16(0).u64(0);
                1
            }
            Why(reason) => {
                payload.u32(1).u32(2).u32(*reason).u32(0).u16(0).u64(0);
                1
            }
            Stop(number) => {
                payload.u32(*number).u32(0).u16(0);
                2
            }
            Resumed => 3,
            Stopped => 8,
            Suspend(reason) => {
                payload.u32(*reason).u32(0).u16(0);
                9
            }
        };
        let metadata_id = ids.iter().find(|(known, _)| *known == id).unwrap().1;
        let event = EventToWrite {
            metadata_id,
            thread_id: *thread_id,
            capture_thread_id: *thread_id,
            timestamp: us * US,
            payload: payload.as_bytes(),
            ..Default::default()
        };
        writer.event(&event).unwrap();
    }
    writer.finish()
}

fn report(stream: &[u8]) -> GcReport {
    let mut gc = Gc::default();
    let mut reader = Reader::new();
    reader.feed(stream);
    reader.finish();
    while let Some(item) = reader.next().unwrap() {
        gc.item(&item);
    }
    gc.finish()
}

/// Returns the pause of each collection, and the total, in microseconds.
fn pauses(report: &GcReport) -> (Vec<u64>, u64) {
    (report.collections.iter().map(|it| it.pause_ns / US).collect(), report.pauses.total_ns / US)
}

fn view_total(stream: &[u8]) -> u64 {
    let mut builder = ProfileBuilder::of(View::Gc);
    let mut reader = Reader::new();
    reader.feed(stream);
    reader.finish();
    while let Some(item) = reader.next().unwrap() {
        builder.item(&item);
    }
    let trace = builder.finish(&ProfileOptions::default());
    trace.threads().flat_map(|(_, thread)| thread.samples(View::Gc)).map(|pause| pause.weight / US).sum()
}

#[test]
fn suspensions_of_the_sampler_are_not_attributed_to_the_collector() {
    let stream = stream(&[
        (90, SAMPLER, Suspend(0)),
        (95, SAMPLER, Stopped),
        (100, USER, Suspend(1)),
        // It had its turn first and ends inside the pause.
        (110, SAMPLER, Resumed),
        (120, USER, Stopped),
        (130, USER, Start(1, 0, 0)),
        // It requests a suspension again, and has its turn only after the collection.
        (140, SAMPLER, Suspend(0)),
        (400, USER, Stop(1)),
        (500, USER, Resumed),
        (510, SAMPLER, Stopped),
        (600, SAMPLER, Resumed),
    ]);
    assert_eq!(pauses(&report(&stream)), (vec![400], 400));
    assert_eq!(view_total(&stream), 400);
}

#[test]
fn a_background_collection_has_the_pauses_of_its_steps() {
    let stream = stream(&[
        (100, USER, Suspend(1)),
        (110, USER, Stopped),
        (120, USER, Start(1, 2, 1)),
        (200, USER, Resumed),
        (250, SAMPLER, Suspend(0)),
        (260, SAMPLER, Resumed),
        // Another collection during the background collection.
        (300, USER, Suspend(1)),
        (310, USER, Start(2, 0, 2)),
        (330, USER, Stop(2)),
        (340, USER, Resumed),
        (400, BACKGROUND, Suspend(6)),
        (405, SAMPLER, Suspend(0)),
        (450, BACKGROUND, Resumed),
        (455, SAMPLER, Resumed),
        (900, BACKGROUND, Stop(1)),
    ]);
    assert_eq!(pauses(&report(&stream)), (vec![150, 40], 190));
    assert_eq!(view_total(&stream), 190);
}

#[test]
fn a_nested_collection_gets_the_pause_from_its_start() {
    let stream = stream(&[
        (100, USER, Suspend(1)),
        (110, USER, Stopped),
        (120, USER, Start(1, 2, 1)),
        (130, USER, Start(2, 1, 0)),
        (180, USER, Stop(2)),
        (200, USER, Resumed),
    ]);
    assert_eq!(pauses(&report(&stream)), (vec![10, 70], 100));
}

#[test]
fn suspensions_without_a_collection_are_counted_separately() {
    let stream = stream(&[
        (100, USER, Suspend(6)),
        (170, USER, Resumed),
        (200, USER, Suspend(1)),
        (210, USER, Start(1, 0, 0)),
        (240, USER, Resumed),
        // The request was not recorded.
        (300, USER, Resumed),
    ]);
    let report = report(&stream);
    assert_eq!(pauses(&report), (vec![40], 40));
    assert_eq!((report.other_suspensions.timed_count, report.other_suspensions.total_ns), (1, 70 * US));
}

#[test]
fn reasons_have_names_and_program_requests_count_as_induced() {
    let told: Vec<_> = (0u32..19).map(|reason| (u64::from(reason), USER, Why(reason))).collect();
    let report = report(&stream(&told));
    let names: Vec<_> = report.collections.iter().map(|collection| collection.reason).collect();
    let induced = names.iter().filter(|name| name.starts_with("Induced"));
    assert_eq!(report.induced_count, 5, "{names:?}");
    assert_eq!(induced.count(), 5);
    assert_eq!(names[17..], ["InducedAggressive", "unknown reason"]);
    assert!(!names[..18].contains(&"unknown reason"), "{names:?}");
}
