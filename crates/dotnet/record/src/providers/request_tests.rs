//! Precedence of the parts of a selection, and remarks.

use runtap_diag_proto::EventFilter;

use super::*;

#[test]
fn method_names_require_level_verbose() {
    let clr = |request: &Request| {
        let entry = request.providers.iter().find(|entry| entry.provider.name == CLR_PROVIDER).unwrap();
        (entry.provider.keywords, entry.provider.level, entry.by)
    };
    let mut alone = resolve(&["A:1:4"], &[], None).unwrap();
    alone.add_method_names();
    assert_eq!(clr(&alone), (0x18, Level::Verbose, EnabledBy::MethodNames));
    assert_eq!(alone.notes, []);
    assert!(
        alone.includes_method_names()
            && !resolve(&[], &[], Some("gc+loader+jit")).unwrap().includes_method_names()
    );
    let mut raised = resolve(&[], &[], Some("gc")).unwrap();
    raised.add_method_names();
    assert_eq!(clr(&raised), (0x19, Level::Verbose, EnabledBy::ClrEvents));
    assert_eq!(raised.notes, [Note::VerboseForNames]);
}

fn resolve(providers: &[&str], profiles: &[&str], clr: Option<&str>) -> Result<Request, RequestError> {
    let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    Request::resolve(&Selection {
        providers: &own(providers),
        profiles: &own(profiles),
        clr_events: clr,
        ..Selection::default()
    })
}

fn lines(request: &Request) -> Vec<String> {
    let line = |Requested { provider: p, by }: &Requested| {
        format!("{} {:#x} {:?} {by:?}", p.name, p.keywords, p.level)
    };
    request.providers.iter().map(line).collect()
}

#[test]
fn an_empty_selection_is_the_cpu_profile() {
    let request = resolve(&[""], &[], None).unwrap();
    assert_eq!(
        lines(&request),
        [
            "Microsoft-Windows-DotNETRuntime 0x100003801d Informational Profile",
            "Microsoft-DotNETCore-SampleProfiler 0xf00000000000 Informational Profile",
        ]
    );
    assert_eq!(
        request.notes,
        [Note::Default { profiles: vec!["dotnet-common", "dotnet-sampled-thread-time"] }]
    );
}

#[test]
fn entries_for_one_provider_are_merged_within_an_option() {
    let request = resolve(&["A:1:4,A:2:5", "A:4:3:x=1"], &[], None).unwrap();
    assert_eq!(lines(&request), ["A 0x7 Verbose Providers"]);
    assert_eq!(request.providers[0].provider.arguments.as_deref(), Some("x=1"));
    assert_eq!(
        resolve(&["A:1:4:x=1,A:1:4:x=2"], &[], None).unwrap_err().to_string(),
        "arguments of provider \"A\": specified twice with different values"
    );
}

#[test]
fn providers_take_precedence_over_profiles_and_those_over_clrevents() {
    let request = resolve(&["Microsoft-Windows-DotNETRuntime:1:5"], &["gc-collect"], Some("jit")).unwrap();
    assert_eq!(
        lines(&request),
        [
            "Microsoft-Windows-DotNETRuntime 0x1 Verbose Providers",
            "Microsoft-Windows-DotNETRuntimePrivate 0x1 Informational Profile",
        ]
    );
    assert_eq!(request.notes, [Note::ClrEventsIgnored]);
    let request = resolve(&["A:1"], &[], Some("gc+jit")).unwrap();
    assert_eq!(request.providers[1].provider.keywords, 0x11);
}

#[test]
fn a_small_rundown_is_used_only_if_nothing_else_needs_names() {
    let rundown =
        |providers: &[&str], profiles: &[&str]| resolve(providers, profiles, None).unwrap().rundown_keyword;
    assert_eq!(rundown(&[], &["gc-collect"]), Some(1));
    assert_eq!(rundown(&[], &["gc-collect,dotnet-sampled-thread-time"]), None);
    assert_eq!(rundown(&["A:1"], &["gc-collect"]), None);
    assert_eq!(rundown(&[], &[]), None);
}

#[test]
fn missing_keywords_mean_all_and_are_noted_once() {
    let request = resolve(&["A,B,A"], &[], None).unwrap();
    assert_eq!(lines(&request)[0], "A 0xffffffffffffffff Informational Providers");
    assert_eq!(request.notes, [Note::AllKeywords { providers: vec!["A".to_owned(), "B".to_owned()] }]);
    assert_eq!(resolve(&["A:0"], &[], None).unwrap().providers[0].provider.keywords, 0);
}

#[test]
fn filters_require_an_enabled_provider() {
    let filtered = |filters: &[&str]| {
        let filters: Vec<String> = filters.iter().map(ToString::to_string).collect();
        let selection = Selection {
            providers: &["A:1".to_owned()],
            clr_events: Some("gc"),
            event_filters: &filters,
            ..Selection::default()
        };
        Request::resolve(&selection).map(|request| {
            request.providers.into_iter().map(|asked| asked.provider.filter).collect::<Vec<_>>()
        })
    };
    let one = filtered(&["Microsoft-Windows-DotNETRuntime=1,2"]).unwrap();
    assert_eq!(one, [None, Some(EventFilter::only([1, 2]))]);
    for (filters, message) in [
        (&["B=1"][..], "there is a filter for B, which is not enabled"),
        (&["A=1", "A=!2"], "there are two filters for A"),
        (&["A=x"], "'x' is not a list of event ids (for example 1,2,10-20)"),
    ] {
        assert_eq!(filtered(filters).unwrap_err().to_string(), message);
    }
}

#[test]
fn an_unknown_profile_is_reported_with_the_most_similar() {
    let message = resolve(&[], &["gc-colect"], None).unwrap_err().to_string();
    let start = "'gc-colect' is not a profile; did you mean 'gc-collect'? Valid values: dotnet-common, ";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn ignored_and_default_values_are_noted() {
    let notes = |selection: &Selection<'_>| Request::resolve(selection).unwrap().notes;
    let providers = ["A:1:9".to_owned()];
    let chosen = Selection { providers: &providers, ..Selection::default() };
    let high = |provider: Option<&str>| Note::LevelTooHigh { provider: provider.map(str::to_owned) };
    assert_eq!(notes(&chosen), [high(Some("A"))]);
    let level = |clr_event_level, clr_events| Selection { clr_events, clr_event_level, ..chosen.clone() };
    assert_eq!(notes(&level(Some("6"), Some("gc"))), [high(Some("A")), high(None)]);
    assert_eq!(notes(&level(Some("5"), None)), [high(Some("A")), Note::LevelWithoutClrEvents]);
    assert_eq!(
        notes(&Selection { profiles: &[" ,".to_owned()], ..chosen.clone() }),
        [high(Some("A")), Note::NoProfile]
    );
}

#[test]
fn invalid_input_is_reported_with_its_part() {
    let part = |selection: &Selection<'_>| match Request::resolve(selection).unwrap_err() {
        RequestError::Unreadable { part, .. } | RequestError::Merge { part, .. } => part,
        other => panic!("{other}"),
    };
    let list = |text: &str| [text.to_owned()];
    let all = Selection::default;
    assert_eq!(part(&Selection { providers: &list(":1"), ..all() }), Part::Providers);
    assert_eq!(part(&Selection { providers: &list("A:1:4:x=1,A:1:4:x=2"), ..all() }), Part::Providers);
    assert_eq!(part(&Selection { profiles: &list("x"), ..all() }), Part::Profiles);
    assert_eq!(part(&Selection { clr_events: Some("x"), ..all() }), Part::ClrEvents);
    assert_eq!(part(&Selection { clr_event_level: Some("x"), ..all() }), Part::ClrEventLevel);
    assert_eq!(part(&Selection { event_filters: &list("x"), ..all() }), Part::EventFilters);
}
