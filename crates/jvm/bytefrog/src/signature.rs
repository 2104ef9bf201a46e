//! Readable forms of method signatures.
//!
//! [`readable`] converts the agent's `demo/Counts.fib;9;(I)I` to `demo.Counts.fib(int)`, and [`fitted`] shortens a
//! name but keeps its method. The format is that of the class `MethodSignature` of the original agents; descriptors
//! are those of JVMS 4.3.3.

/// Converts a signature to the form in source code: the class with dots, the method, and the simple names of the
/// parameter types. Returns an invalid signature unchanged.
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

/// Returns the types of a descriptor up to its closing parenthesis; `None` if the descriptor is invalid.
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

/// Shortens a readable name to at most `columns` characters if possible: first parameters become `…`, then packages
/// their first letters, and then the start is truncated. The name of the method is kept longest.
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
    // The packages are all words except the class and the method.
    let words: Vec<&str> = path.split('.').collect();
    for whole in (2..words.len()).rev() {
        if short.chars().count() <= columns {
            return short;
        }
        let abbreviated = words.len() - whole;
        let initials: String = words
            .iter()
            .take(abbreviated)
            .map(|word| word.chars().next().map_or_else(String::new, |c| format!("{c}.")))
            .collect();
        let rest: Vec<&str> = words.iter().skip(abbreviated).copied().collect();
        short = format!("{initials}{}{parameters}", rest.join("."));
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
    fn signatures_are_shown_as_in_source_code() {
        for (signature, read) in [
            ("demo/Counts.fib;9;(I)I", "demo.Counts.fib(int)"),
            ("demo/Counts$Node.<init>;1;(I)V", "demo.Counts$Node.<init>(int)"),
            ("A.m;0;()V", "A.m()"),
            (
                "a/B.m;1;([[JLjava/lang/String;[Ljava/util/List;Z)V",
                "a.B.m(long[][], String, List[], boolean)",
            ),
            // Invalid signatures.
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
    fn a_shortened_name_keeps_its_method() {
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
