//! Sample coverage with special cases: unusual names, a line of two methods, a method without known lines, uncalled
//! methods.

use runtap_jvm::coverage::Coverage;
use runtap_jvm::coverage::model::{Class, Method};

/// Returns 11 lines, of which 7 ran; 9 methods, of which 7 were called; 5 classes, of which 4 are in use.
pub(crate) fn sample() -> Coverage {
    let mut coverage = Coverage { has_lines: true, ..Coverage::default() };
    let mut add = |package: &str, class: &str, source: &str, methods: Vec<Method>| {
        let class_name = if package.is_empty() { class.to_owned() } else { format!("{package}/{class}") };
        let class = Class { source: source.to_owned(), source_is_known: true, methods };
        coverage.packages.entry(package.to_owned()).or_default().classes.insert(class_name, class);
    };
    let shop = vec![
        method("<init>", "()V", 3, 2, &[(3, 2)]),
        method("total", "(I)I", 6, 5, &[(6, 5), (7, 5), (8, 0)]),
        method("lambda$total$0", "(I)I", 7, 10, &[(7, 10)]),
        method("never", "()V", 11, 0, &[(11, 0), (12, 0)]),
    ];
    add("shop", "Shop", "Shop.java", shop);
    add("shop", "Shop$Item", "Shop.java", vec![method("get", "()I", 20, 1, &[(20, 1)])]);
    add("shop", "Dead", "Dead.java", vec![method("die", "()V", 5, 0, &[(5, 0)])]);
    let odd =
        vec![method("a,b\"&'%c", "(Ljava/util/Map;)V", 4, 1, &[(4, 1)]), method("blind", "()V", 9, 3, &[])];
    add("shop/sub", "Ödd", "Odd.java", odd);
    let main = vec![method("main", "([Ljava/lang/String;)V", 2, 1, &[(2, 1), (3, 1)])];
    add("", "Plain", "Plain.java", main);
    coverage
}

fn method(name: &str, descriptor: &str, line: u32, calls: u64, lines: &[(u32, u64)]) -> Method {
    Method {
        name: name.to_owned(),
        descriptor: descriptor.to_owned(),
        line: Some(line),
        calls,
        lines: lines.iter().copied().collect(),
    }
}
