//! Signatures as people read them.
//!
//! Owns: [`readable`], `demo.Counts.fib(int)` for the agent's `demo/Counts.fib;9;(I)I`, and [`fitted`], which makes a name
//! short without losing its method. Source of the form: the class `MethodSignature` of the original agents; descriptors are
//! those of JVMS 4.3.3.

/// A signature as it stands in source code: class with dots, method, parameters with the simple names of their classes.
/// What is no signature stays as it is.
pub fn readable(signature: &str) -> String {
    let mut parts = signature.splitn(3, ';');
    let (Some(name), Some(access), Some(descriptor)) = (parts.next(), parts.next(), parts.next()) else {
        return signature.to_owned();
    };
    let is_number = !access.is_empty() && access.bytes().all(|byte| byte.is_ascii_digit());
    let parameters = descriptor.strip_prefix('(').and_then(parameters);
    match parameters.filter(|_| is_number) {
        Some(parameters) => format!("{}({})", name.replace('/', "."), parameters.join(", ")),
        None => signature.to_owned(),
    }
}

/// The types of a descriptor up to its closing bracket. `None`: it is no descriptor.
fn parameters(mut rest: &str) -> Option<Vec<String>> {
    let mut types = Vec::new();
    loop {
        if rest.starts_with(')') {
            return Some(types);
        }
        let element = rest.trim_start_matches('[');
        let dimensions = rest.len() - element.len();
        let mut letters = element.chars();
        let name = match letters.next()? {
            'B' => "byte",
            'C' => "char",
            'D' => "double",
            'F' => "float",
            'I' => "int",
            'J' => "long",
            'S' => "short",
            'Z' => "boolean",
            'L' => {
                let (class, behind) = letters.as_str().split_once(';')?;
                letters = behind.chars();
                class.rsplit('/').next()?
            }
            _ => return None,
        };
        types.push(format!("{name}{}", "[]".repeat(dimensions)));
        rest = letters.as_str();
    }
}

/// A readable name of at most so many characters, if it can be: parameters become `…`, then packages their first letters,
/// then the beginning is left out. The name of the method is what is kept longest.
pub fn fitted(name: &str, columns: usize) -> String {
    if name.chars().count() <= columns {
        return name.to_owned();
    }
    let (path, parameters) = match name.split_once('(') {
        Some((path, "")) => (path, ""),
        Some((path, ")")) => (path, "()"),
        Some((path, _)) => (path, "(…)"),
        None => (name, ""),
    };
    let mut short = format!("{path}{parameters}");
    // Packages: all words but the class and the method.
    let words: Vec<&str> = path.split('.').collect();
    for whole in (2..words.len()).rev() {
        if short.chars().count() <= columns {
            return short;
        }
        let cut = words.len() - whole;
        let ahead: String = words
            .iter()
            .take(cut)
            .map(|word| word.chars().next().map_or_else(String::new, |c| format!("{c}.")))
            .collect();
        let rest: Vec<&str> = words.iter().skip(cut).copied().collect();
        short = format!("{ahead}{}{parameters}", rest.join("."));
    }
    let size = short.chars().count();
    if size <= columns {
        return short;
    }
    let kept: String = short.chars().skip(size + 1 - columns.max(1)).collect();
    format!("…{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read_as_source_code_has_them() {
        for (signature, read) in [
            ("demo/Counts.fib;9;(I)I", "demo.Counts.fib(int)"),
            ("demo/Counts$Node.<init>;1;(I)V", "demo.Counts$Node.<init>(int)"),
            ("A.m;0;()V", "A.m()"),
            (
                "a/B.m;1;([[JLjava/lang/String;[Ljava/util/List;Z)V",
                "a.B.m(long[][], String, List[], boolean)",
            ),
            // What is none.
            ("(method 17)", "(method 17)"),
            ("a/B.m;x;()V", "a/B.m;x;()V"),
            ("a/B.m;1;(Q)V", "a/B.m;1;(Q)V"),
            ("a/B.m;1;(Ljava/lang", "a/B.m;1;(Ljava/lang"),
            ("", ""),
        ] {
            assert_eq!(readable(signature), read, "{signature}");
        }
    }

    #[test]
    fn a_name_gets_short_and_keeps_its_method() {
        let name = "com.example.shop.OrderService.place(String, int)";
        for (columns, fits) in [
            (48, name),
            (40, "com.example.shop.OrderService.place(…)"),
            (36, "c.example.shop.OrderService.place(…)"),
            (29, "c.e.s.OrderService.place(…)"),
            (15, "…rvice.place(…)"),
            (1, "…"),
        ] {
            assert_eq!(fitted(name, columns), fits);
            assert!(fitted(name, columns).chars().count() <= columns.max(1));
        }
        assert_eq!(fitted("a.B.run()", 8), "…B.run()".to_owned());
        assert_eq!(fitted("x", 0), "…");
    }
}
