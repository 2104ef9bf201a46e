//! The contents of files: byte by byte for a small one, and by the rules of each format.

use std::collections::BTreeMap;

use runtap_jvm::coverage::{Coverage, Format, WriteOptions};

use crate::sample::sample;
use crate::written;
use crate::xml::{COBERTURA, Element, JACOCO, obeys};

#[test]
fn a_tracefile_to_the_byte() {
    let expected = "\
TN:runtap
SF:Plain.java
FN:2,Plain.main([Ljava/lang/String;)V
FNDA:1,Plain.main([Ljava/lang/String;)V
FNF:1
FNH:1
DA:2,1
DA:3,1
LF:2
LH:2
end_of_record
SF:shop/Dead.java
FN:5,Dead.die()V
FNDA:0,Dead.die()V
FNF:1
FNH:0
DA:5,0
LF:1
LH:0
end_of_record
SF:shop/Shop.java
FN:3,Shop.<init>()V
FN:6,Shop.total(I)I
FN:7,Shop.lambda$total$0(I)I
FN:11,Shop.never()V
FN:20,Shop$Item.get()I
FNDA:2,Shop.<init>()V
FNDA:5,Shop.total(I)I
FNDA:10,Shop.lambda$total$0(I)I
FNDA:0,Shop.never()V
FNDA:1,Shop$Item.get()I
FNF:5
FNH:4
DA:3,2
DA:6,5
DA:7,15
DA:8,0
DA:11,0
DA:12,0
DA:20,1
LF:7
LH:4
end_of_record
SF:shop/sub/Odd.java
FN:4,Ödd.a%2Cb\"&'%25c(Ljava/util/Map;)V
FN:9,Ödd.blind()V
FNDA:1,Ödd.a%2Cb\"&'%25c(Ljava/util/Map;)V
FNDA:3,Ödd.blind()V
FNF:2
FNH:2
DA:4,1
LF:1
LH:1
end_of_record
";
    assert_eq!(written(Format::Lcov, &sample()), expected);
}

#[test]
fn a_package_of_jacoco_to_the_byte() {
    let mut coverage = sample();
    coverage.packages.retain(|name, _| name == "shop/sub");
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd">
<report name="runtap">
 <package name="shop/sub">
  <class name="shop/sub/Ödd" sourcefilename="Odd.java">
   <method name="a,b&quot;&amp;'%c" desc="(Ljava/util/Map;)V" line="4">
    <counter type="LINE" missed="0" covered="1"/>
    <counter type="METHOD" missed="0" covered="1"/>
   </method>
   <method name="blind" desc="()V" line="9">
    <counter type="METHOD" missed="0" covered="1"/>
   </method>
   <counter type="LINE" missed="0" covered="1"/>
   <counter type="METHOD" missed="0" covered="2"/>
   <counter type="CLASS" missed="0" covered="1"/>
  </class>
  <sourcefile name="Odd.java">
   <line nr="4" mi="0" ci="1" mb="0" cb="0"/>
   <counter type="LINE" missed="0" covered="1"/>
   <counter type="METHOD" missed="0" covered="2"/>
   <counter type="CLASS" missed="0" covered="1"/>
  </sourcefile>
  <counter type="LINE" missed="0" covered="1"/>
  <counter type="METHOD" missed="0" covered="2"/>
  <counter type="CLASS" missed="0" covered="1"/>
 </package>
 <counter type="LINE" missed="0" covered="1"/>
 <counter type="METHOD" missed="0" covered="2"/>
 <counter type="CLASS" missed="0" covered="1"/>
</report>
"#;
    assert_eq!(written(Format::Jacoco, &coverage), expected);
}

#[test]
fn a_package_of_cobertura_to_the_byte() {
    let mut coverage = sample();
    coverage.packages.retain(|name, _| name == "shop/sub");
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">
<coverage line-rate="1" branch-rate="0" lines-covered="1" lines-valid="1" branches-covered="0" branches-valid="0" complexity="0" version="1.2" timestamp="1700000000000">
 <sources>
  <source>src/&lt;main&gt;</source>
 </sources>
 <packages>
  <package name="shop.sub" line-rate="1" branch-rate="0" complexity="0">
   <classes>
    <class name="shop.sub.Ödd" filename="shop/sub/Odd.java" line-rate="1" branch-rate="0" complexity="0">
     <methods>
      <method name="a,b&quot;&amp;'%c" signature="(Ljava/util/Map;)V" line-rate="1" branch-rate="0" complexity="0">
       <lines>
        <line number="4" hits="1" branch="false"/>
       </lines>
      </method>
      <method name="blind" signature="()V" line-rate="1" branch-rate="0" complexity="0">
       <lines/>
      </method>
     </methods>
     <lines>
      <line number="4" hits="1" branch="false"/>
     </lines>
    </class>
   </classes>
  </package>
 </packages>
</coverage>
"#;
    let roots = ["src/<main>".to_owned()];
    let options = WriteOptions {
        version: "1.2",
        timestamp_ms: 1_700_000_000_000,
        roots: &roots,
        ..WriteOptions::default()
    };
    let mut bytes = Vec::new();
    Format::Cobertura.write(&coverage, &mut bytes, &options).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

#[test]
fn counters_are_those_of_what_is_below_them() {
    let coverage = sample();
    let totals = coverage.totals();
    let both = |counter: runtap_jvm::coverage::model::Counter| (counter.missed, counter.covered);
    assert_eq!((both(totals.lines), both(totals.methods), both(totals.classes)), ((4, 7), (2, 7), (1, 4)));

    let report = Element::read(&written(Format::Jacoco, &coverage));
    obeys(&report, JACOCO);
    let names: Vec<&str> = report.all("package").map(|package| package.get("name")).collect();
    assert_eq!(names, ["", "shop", "shop/sub"]);
    for (kind, expected) in [("LINE", (4, 7)), ("METHOD", (2, 7)), ("CLASS", (1, 4))] {
        assert_eq!(report.counter(kind), Some(expected));
        for part in ["package", "sourcefile"] {
            let parts: Vec<&Element> = match part {
                "package" => report.all("package").collect(),
                _ => report.all("package").flat_map(|package| package.all("sourcefile")).collect(),
            };
            let sum = parts
                .iter()
                .filter_map(|part| part.counter(kind))
                .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            assert_eq!(sum, expected, "{kind} of {part}");
        }
    }
    assert_eq!(report.counter("INSTRUCTION"), None, "nothing is known of instructions");

    let root = Element::read(&written(Format::Cobertura, &coverage));
    obeys(&root, COBERTURA);
    assert_eq!(
        (root.get("lines-covered"), root.get("lines-valid"), root.get("line-rate")),
        ("7", "11", "0.6363")
    );
}

#[test]
fn without_a_line_there_are_methods_only() {
    let mut coverage = sample();
    for class in coverage.packages.values_mut().flat_map(|package| package.classes.values_mut()) {
        class.methods.iter_mut().for_each(|method| method.lines.clear());
    }
    coverage.packages.get_mut("").unwrap().classes.get_mut("Plain").unwrap().methods[0].line = None;
    assert_eq!(coverage.methods_without_line(), 1);
    let tracefile = written(Format::Lcov, &coverage);
    assert!(!tracefile.contains("\nDA:") && !tracefile.contains("Plain.main"), "{tracefile}");
    assert!(tracefile.contains("SF:Plain.java\nFNF:0\nFNH:0\nLF:0\nLH:0\n"), "{tracefile}");
    let report = Element::read(&written(Format::Jacoco, &coverage));
    obeys(&report, JACOCO);
    assert_eq!((report.counter("LINE"), report.counter("METHOD")), (None, Some((2, 7))));
    let root = Element::read(&written(Format::Cobertura, &coverage));
    obeys(&root, COBERTURA);
    assert_eq!((root.get("lines-valid"), root.get("line-rate")), ("0", "0"));
    let methods = |class: &Element| -> BTreeMap<String, String> {
        let methods = class.one("methods").all("method");
        methods.map(|method| (method.get("name").to_owned(), method.get("line-rate").to_owned())).collect()
    };
    let packages = root.one("packages").all("package").map(|package| package.one("classes"));
    let found: BTreeMap<String, String> =
        packages.flat_map(|classes| classes.all("class").flat_map(methods)).collect();
    assert_eq!((found["total"].as_str(), found["never"].as_str()), ("1", "0"), "that is all it can say");
}

#[test]
fn formats_have_names_and_nothing_is_valid_too() {
    let nothing = Coverage::default();
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
        assert!(format.extension().starts_with('.') && !format.about().is_empty());
        assert!(!written(format, &nothing).is_empty());
    }
    obeys(&Element::read(&written(Format::Jacoco, &nothing)), JACOCO);
    obeys(&Element::read(&written(Format::Cobertura, &nothing)), COBERTURA);
    assert_eq!(Format::from_name("emma"), None);
}
