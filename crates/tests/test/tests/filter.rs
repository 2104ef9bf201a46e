//! Filters: what they select, and how they say what is wrong.

use runtap_test::plan::{Filter, Test};

fn test() -> Test<'static> {
    Test {
        namespace: Some("Shop.Orders".into()),
        class: Some("CartTests".into()),
        method: Some("AddsALine".into()),
        traits: vec![
            ("Category".into(), "Slow".into()),
            ("io".into(), "".into()),
            ("Owner".into(), "Ann Lee".into()),
        ],
        file: Some(r"C:\src\Shop\CartTests.cs".into()),
        line: Some(12),
        module: Some("/bin/Shop.Tests.dll".into()),
        ..Test::new("a-1", "Adds a line (1, \"x\")")
    }
}

#[test]
fn comparisons() {
    for yes in [
        "uid = a-1",
        "uid == 'a-1'",
        "name = 'Adds a line (1, \"x\")'",
        "name ^= 'Adds a'",
        r#"name $= "\"x\")""#,
        "name *= line",
        "name ~ ^Adds",
        "name ~ 'lin(e|k)'",
        "name !~ ^adds",
        "class = CartTests",
        "class = Shop.Orders.CartTests",
        "class != Cart",
        "namespace=Shop.Orders",
        "namespace ~ ^Shop",
        "method = AddsALine",
        "module = Shop.Tests",
        "module = Shop.Tests.dll",
        "module = /bin/Shop.Tests.dll",
        "file = CartTests.cs",
        "file = Shop/CartTests.cs",
        r"file = 'C:/src/Shop/CartTests.cs'",
        r"file $= \CartTests.cs",
        "file != Tests.cs",
        "category = Slow",
        "category = io",
        "category != slow",
        "category != Owner",
        "trait[Owner] = 'Ann Lee'",
        "trait[ 'Owner' ] ^= Ann",
        "trait:Owner ~ Lee",
        "trait[owner] != 'Ann Lee'",
        "trait[Missing] != x",
        // Text without a field, without regard to case.
        "line",
        "LINE",
        "'a line'",
        "shop.orders.carttests.adds",
        // The grammar of `dotnet test --filter`.
        "FullyQualifiedName=Shop.Orders.CartTests.AddsALine",
        "FullyQualifiedName~carttests",
        "fullyqualifiedname!~Basket",
        "ClassName=Shop.Orders.CartTests",
        "ClassName~Cart&TestCategory=slow",
        "TestCategory=IO|Priority=1",
        "(Name~zzz|DisplayName~a line) & TestCategory!=Fast",
        r#"DisplayName=adds a line \(1, "x"\)"#,
        "Name~adds a line and uid = a-1",
        "Name~a line or uid = a-2",
        // Precedence and spelling.
        "uid = no and uid = no or uid = a-1",
        "uid = a-1 && !(uid = no || uid = none)",
        "NOT uid = no AND class = CartTests",
        "not not uid=a-1",
        "!uid=no&!uid=none|uid=never",
        "(uid=a-1)and(class=CartTests)",
    ] {
        let filter: Filter = yes.parse().unwrap_or_else(|error| panic!("{yes}: {error}"));
        assert!(filter.matches(&test()), "{yes}");
        let not: Filter = format!("not ({yes})").parse().unwrap();
        assert!(!not.matches(&test()), "not ({yes})");
        assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter);
    }
}

#[test]
fn what_is_not_known_matches_no_value() {
    let bare = Test::new("1", "t");
    for field in ["class", "namespace", "method", "module", "file", "category", "trait[x]"] {
        let matches = |filter: String| filter.parse::<Filter>().unwrap().matches(&bare);
        assert!(!matches(format!("{field} ~ ''")), "{field}");
        assert!(matches(format!("{field} != x")), "{field}");
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    for (text, message, caret) in [
        ("", "expected a field or a text, but the filter ends (column 1)", "^"),
        ("clas = X", "unknown field 'clas'; did you mean 'class'? (column 1)", "^^^^"),
        (
            "FullyQualifedName~X",
            "unknown field 'FullyQualifedName'; did you mean 'FullyQualifiedName'? (column 1)",
            "^^^^^^^^^^^^^^^^^",
        ), // typos: on purpose
        (
            "uid = x and Owner = ann",
            "unknown field 'Owner'; valid fields: uid, name, class, namespace, method, module, file, \
             category, trait[KEY] (column 13)",
            "            ^^^^^",
        ),
        (
            "uid =",
            "expected a value (quote it if it contains any of ()&|=!~), but the filter ends (column 6)",
            "     ^",
        ),
        (
            "uid = )",
            "expected a value (quote it if it contains any of ()&|=!~), found ')' (column 7)",
            "      ^",
        ),
        ("uid = a b", "expected 'and' or 'or', found 'b' (column 9)", "        ^"),
        ("(uid = a", "expected 'and', 'or' or ')', but the filter ends (column 9)", "        ^"),
        ("ü and and", "expected a field or a text, found 'and' (column 7)", "      ^^^"),
        ("name = \"x", "missing closing \" (column 8)", "       ^^"),
        ("name ~ 'a('", "'a(' is not a regular expression", "       ^^^^"),
        ("trait[x", "expected the key of a trait and ']', found 'x' (column 7)", "      ^"),
        ("trait[] = x", "expected the key of a trait and ']', found ']' (column 7)", "      ^"),
        ("trait['x' = x", "expected ']', found '=' (column 11)", "          ^"),
        ("trait[x] y", "expected an operator (= != ~ !~ ^= $= *=), found 'y' (column 10)", "         ^"),
        (
            "Name ^= x",
            "properties of 'dotnet test --filter' support only the operators = != ~ !~ (column 6)",
            "     ^^",
        ),
        ("TestCategory=&x", "expected a value, found '&' (column 14)", "             ^"),
    ] {
        let error = text.parse::<Filter>().unwrap_err();
        assert!(error.to_string().starts_with(message), "{text}: {error}");
        assert_eq!(error.caret(), format!("{text}\n{caret}"), "{text}");
    }
    let deep = format!("{}x{}", "(".repeat(1_000_000), ")".repeat(1_000_000));
    let error = deep.parse::<Filter>().unwrap_err();
    assert!(error.message.starts_with("expected fewer parentheses"), "{}", error.message);
    assert_eq!(error.column(), 102);
}

#[test]
fn only_alternatives_of_uids_need_no_discovery() {
    let uids = |text: &str| text.parse::<Filter>().unwrap().uids().map(|uids| uids.join(" "));
    assert_eq!(uids("uid = a"), Some("a".to_owned()));
    assert_eq!(uids("uid = a | (uid = b or uid = c)"), Some("a b c".to_owned()));
    for text in
        ["uid != a", "uid ~ a", "not uid = a", "uid = a and uid = a", "uid = a or class = b", "a", "name = a"]
    {
        assert_eq!(uids(text), None, "{text}");
    }
}

#[test]
fn several_filters_become_one() {
    let filter = |text: &str| text.parse::<Filter>().unwrap();
    assert_eq!(Filter::any([]), None);
    let any = Filter::any([filter("uid = a-1"), filter("uid = b")]).unwrap();
    assert_eq!(any.uids(), Some(vec!["a-1", "b"]));
    let all = Filter::all([any, filter("class = CartTests or class = X")]).unwrap();
    assert_eq!(all.to_string(), "(uid = a-1 or uid = b) and (class = CartTests or class = X)");
    assert!(all.matches(&test()));
}
