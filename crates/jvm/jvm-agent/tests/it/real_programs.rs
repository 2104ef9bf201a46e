//! Real programs from Debian packages: their output is unchanged, and every method's counts equal those of JVMTI. A test run
//! uses small inputs; `cargo xtask sweep jvm-programs` uses larger ones.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use runtap_bytefrog_proto::RecordMode;
use runtap_testkit::{Jdk, JvmCounter, Skip, require, run};

use crate::common::programs;
use crate::oracle::{LONG, Load, jars, words};

/// The time limit with the counter, which disables compilation, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(4);

/// The Eclipse compiler with this number of classes to compile: inheritance, generics, lambdas, switches, exceptions,
/// records, processed in several threads.
fn ecj(classes: usize) -> Result<Load, Skip> {
    let mut source = String::from("import java.util.*;\nimport java.util.function.*;\n");
    source.push_str("abstract class Shape<T extends Comparable<T>> { abstract T size(); }\n");
    for n in 0..classes {
        write!(
            source,
            "class C{n} extends Shape<Integer> implements Supplier<String> {{
    private final int[] values = {{ {n}, 2, 3 }};
    private long unused;
    Integer size() {{ int s = 0; for (int v : values) s += v; return s; }}
    public String get() {{ Function<Integer, String> f = x -> \"v\" + x + {n}; return f.apply(size()); }}
    int pick(String word) {{
        switch (word) {{ case \"a\": return 1; case \"b{n}\": return 2; default: return word.length(); }}
    }}
    void fails() throws Exception {{
        try {{ if (values.length > {n}) throw new IllegalStateException(); }}
        catch (IllegalStateException | ClassCastException e) {{ throw new Exception(e); }}
        finally {{ unused++; }}
    }}
    <K, V extends Comparable<V>> Map<K, List<V>> turned(Map<V, K> from) {{
        Map<K, List<V>> to = new HashMap<>();
        from.forEach((v, k) -> to.computeIfAbsent(k, x -> new ArrayList<>()).add(v));
        return to;
    }}
}}
"
        )
        .unwrap();
    }
    Ok(Load {
        name: "ecj",
        class_path: jars(&["eclipse-jdt-core"])?,
        options: Vec::new(),
        main: "org.eclipse.jdt.internal.compiler.batch.Main",
        arguments: words("-proc:none -source 11 -target 11 -g -warn:+unused -d out Shape.java"),
        files: vec![("Shape.java", source.into_bytes())],
        packages: &["org/eclipse/"],
        limit: PATIENCE,
    })
}

fn closure(functions: usize) -> Result<Load, Skip> {
    let browser = "var window = {};\n/** @param {*} x */ window.alert = function(x) {};\n".to_owned();
    let mut source = String::from("var total = 0;\n");
    for n in 0..functions {
        writeln!(
            source,
            "/** @constructor */ function Thing{n}(x) {{ this.x = x; }}
Thing{n}.prototype.add = function(y) {{ if (y > {n}) {{ return this.x + y; }} return {n} + 2 * 3; }};
for (var i{n} = 0; i{n} < 3; i{n}++) {{ try {{ total += new Thing{n}(i{n}).add(2); }} catch (e) {{ total = 0; }} }}"
        )
        .unwrap();
    }
    source.push_str("window.alert(total);\n");
    Ok(Load {
        name: "closure-compiler",
        class_path: jars(&["closure-compiler", "args4j", "guava", "json"])?,
        options: Vec::new(),
        main: "com.google.javascript.jscomp.CommandLineRunner",
        // With its own declarations of browser APIs it makes 28 million calls, for any input.
        arguments: words(
            "--js in.js --use_only_custom_externs true --externs browser.js --compilation_level ADVANCED_OPTIMIZATIONS \
             --js_output_file out.js",
        ),
        files: vec![("in.js", source.into_bytes()), ("browser.js", browser.into_bytes())],
        packages: &["com/google/", "org/kohsuke/"],
        limit: PATIENCE,
    })
}

/// Its output is the tree of areas: the other formats contain the time.
fn fop(pages: usize) -> Result<Load, Skip> {
    let mut source = String::from(
        "<?xml version='1.0'?><fo:root xmlns:fo='http://www.w3.org/1999/XSL/Format'><fo:layout-master-set>
<fo:simple-page-master master-name='a' page-width='12cm' page-height='10cm' margin='1cm'><fo:region-body/>
</fo:simple-page-master></fo:layout-master-set><fo:page-sequence master-reference='a'><fo:flow flow-name='xsl-region-body'>",
    );
    for n in 0..pages {
        write!(
            source,
            "<fo:block font-size='11pt' break-before='page' text-align='justify' id='p{n}'>Page {n}: what is traced is not
changed, and <fo:inline font-weight='bold'>neither</fo:inline> is what it prints. Page <fo:page-number/>.</fo:block>
<fo:table table-layout='fixed' width='100%'><fo:table-body><fo:table-row><fo:table-cell border='1pt solid black'><fo:block>
{n}</fo:block></fo:table-cell><fo:table-cell><fo:block>cell</fo:block></fo:table-cell></fo:table-row></fo:table-body></fo:table>
<fo:list-block><fo:list-item><fo:list-item-label><fo:block>-</fo:block></fo:list-item-label><fo:list-item-body start-indent='1cm'>
<fo:block>item</fo:block></fo:list-item-body></fo:list-item></fo:list-block>"
        )
        .unwrap();
    }
    source.push_str("</fo:flow></fo:page-sequence></fo:root>");
    Ok(Load {
        name: "fop",
        class_path: jars(&[
            "fop",
            "batik-all",
            "commons-io",
            "commons-logging",
            "xml-apis",
            "xmlgraphics-commons",
            "xml-apis-ext",
            "fontbox2",
        ])?,
        options: words(
            "-Djava.awt.headless=true -Dorg.apache.commons.logging.Log=org.apache.commons.logging.impl.SimpleLog",
        ),
        main: "org.apache.fop.cli.Main",
        arguments: words("-fo in.fo -at out.xml"),
        files: vec![("in.fo", source.into_bytes())],
        packages: &["org/apache/"],
        limit: PATIENCE,
    })
}

fn jython(rounds: usize) -> Result<Load, Skip> {
    let source = format!(
        "import re
class A(object):
    def __init__(self, n): self.n = n
    def next(self): return A(self.n + 1)
    def __cmp__(self, other): return cmp(self.n, other.n)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def numbers(n):
    for i in xrange(n): yield i * 2
for round in range({rounds}):
    a = A(0)
    for i in range(20): a = a.next()
    try: [][a.n]
    except IndexError as e: print e
    print a.n, fib(8), sorted({{'b': 1, 'a': 2}}.items()), max(A(1), a).n, sum(numbers(9))
    print '%05d|%s' % (round, re.sub('[aeiou]+', lambda m: m.group(0).upper(), 'a queue of words'))
"
    );
    Ok(Load {
        name: "jython",
        // Its manifest names its dependencies, in the directory of the jar.
        class_path: jars(&["jython"])?,
        // No collection: finalizers for objects collected when the virtual machine ends run after JVMTI's last event.
        options: words("-Dpython.cachedir.skip=true -XX:+UseSerialGC -Xms1500m -Xmn1200m"),
        main: "org.python.util.jython",
        arguments: words("-S in.py"),
        files: vec![("in.py", source.into_bytes())],
        packages: &["org/python/", "org/antlr/"],
        limit: PATIENCE,
    })
}

/// Obfuscates programs of these tests. It supports class files up to version 57, so the JDK's classes are those of 11, as
/// selected by the filter.
fn proguard(library: &Path, main: &str, filter: &str, options: &str) -> Result<Load, Skip> {
    let Some(old) = Jdk::all()?.into_iter().find(|jdk| jdk.major() == 11) else {
        return Err(Skip::because("there is no JDK 11, whose classes ProGuard can read"));
    };
    let mut java = old.java();
    run({
        java.arg("-cp").arg(programs()?).arg("demo.Library").arg(library);
        java
    })
    .expect_code(0);
    let (classes, library) = (programs()?.display(), library.display());
    let settings = format!(
        "-injars {classes}(demo/{main}*.class)\n-libraryjars {library}({filter})\n-outjars out\n-printmapping map
-keep class demo.{main} {{ public static void main(java.lang.String[]); }}\n{options}\n"
    );
    Ok(Load {
        name: "proguard",
        class_path: jars(&["proguard"])?,
        options: words("-Xss1m"),
        main: "proguard.ProGuard",
        arguments: words("@settings"),
        files: vec![("settings", settings.into_bytes())],
        packages: &["proguard/"],
        limit: PATIENCE,
    })
}

#[expect(clippy::print_stdout, reason = "how much was compared is what the sweep is read for")]
fn judge(load: &Load, jdk: &Jdk, records: &[RecordMode], at_least: u64) -> Result<(), Skip> {
    let folder = tempfile::tempdir().unwrap();
    let counter = JvmCounter::build(folder.path())?;
    let work = folder.path().join("work");
    let began = Instant::now();
    let plain = load.plain(jdk, &work);
    let alone = began.elapsed();
    for record in records {
        let began = Instant::now();
        let opinions = load.judged(jdk, &work, &counter, &plain, *record);
        let (compared, wrong) = opinions.differences();
        println!(
            "| {} | {} | {record:?} | {} | {} | {} | {} | {:.1} s ({:.1} s alone), not ended: {:?}",
            load.name,
            jdk.major(),
            compared.methods,
            compared.calls,
            compared.thrown,
            compared.unborn,
            began.elapsed().as_secs_f32(),
            alone.as_secs_f32(),
            opinions.unended(),
        );
        assert!(
            wrong.is_empty(),
            "{} on JDK {}, {record:?}: {} of {}:\n{}",
            load.name,
            jdk.major(),
            wrong.len(),
            compared.methods,
            wrong.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n")
        );
        assert!(compared.calls >= at_least, "{compared:?}");
    }
    Ok(())
}

const BOTH: &[RecordMode] = &[RecordMode::Full, RecordMode::Counts];

/// Returns the JDK of a version.
fn on(major: u32) -> Result<Jdk, Skip> {
    let found = Jdk::all()?.into_iter().find(|jdk| jdk.major() == major);
    found.ok_or_else(|| Skip::because(format!("there is no JDK {major}")))
}

/// Only ecj is tested on all versions: the other programs are older than these.
fn on_17() -> Result<Jdk, Skip> {
    on(17)
}

#[test]
fn the_eclipse_compiler_on_11() {
    require!(judge(&require!(ecj(1)), &require!(on(11)), &[RecordMode::Full], 100_000));
}

#[test]
fn the_eclipse_compiler_on_17() {
    require!(judge(&require!(ecj(1)), &require!(on_17()), &[RecordMode::Counts], 100_000));
}

#[test]
fn the_eclipse_compiler_on_21() {
    require!(judge(&require!(ecj(1)), &require!(on(21)), &[RecordMode::Full], 100_000));
}

#[test]
fn the_eclipse_compiler_on_25() {
    require!(judge(&require!(ecj(1)), &require!(on(25)), &[RecordMode::Counts], 100_000));
}

#[test]
fn the_closure_compiler() {
    require!(judge(&require!(closure(1)), &require!(on_17()), &[RecordMode::Full], 100_000));
}

#[test]
fn fop_formats() {
    require!(judge(&require!(fop(1)), &require!(on_17()), &[RecordMode::Counts], 100_000));
}

#[test]
fn jython_runs() {
    require!(judge(&require!(jython(1)), &require!(on_17()), &[RecordMode::Full], 100_000));
}

#[test]
fn proguard_shrinks() {
    let library = tempfile::tempdir().unwrap();
    let load = require!(proguard(
        library.path(),
        "Ends",
        "java/lang/*.class,java/io/*.class",
        "-dontwarn\n-dontnote"
    ));
    require!(judge(&load, &require!(on_17()), &[RecordMode::Counts], 100_000));
}

fn larger(load: Load) -> Load {
    Load { limit: LONG, ..load }
}

#[test]
#[ignore = "takes minutes"]
fn ecj_compiles_more() {
    for jdk in require!(Jdk::all()) {
        require!(judge(&larger(require!(ecj(30))), &jdk, BOTH, 1_000_000));
    }
}

#[test]
#[ignore = "takes minutes"]
fn others_with_larger_inputs() {
    let jdk = require!(on_17());
    let library = tempfile::tempdir().unwrap();
    let shrunk = require!(proguard(library.path(), "Counts", "**.class", "-dontnote"));
    for load in [require!(closure(30)), require!(fop(10)), require!(jython(20)), shrunk] {
        require!(judge(&larger(load), &jdk, BOTH, 500_000));
    }
}
