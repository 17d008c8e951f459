//! What a name that means nothing may be a misspelling of.

/// Names that are offered at most.
const OFFERED_MAX: usize = 3;

/// The names of `known` nearest to `name`, in their order, if any is near: letters in the other case cost nothing;
/// letters that are wrong, missing, too many or exchanged cost one each, and a third of the longer name may be wrong.
pub(crate) fn similar<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    let (mut nearest, mut found) = (usize::MAX, Vec::new());
    for candidate in known {
        let folded = candidate.to_lowercase();
        let limit = length.max(folded.chars().count()) / 3;
        // The distance is at least the difference of the lengths.
        if length.abs_diff(folded.chars().count()) > limit {
            continue;
        }
        let distance = strsim::osa_distance(&name, &folded);
        if distance > limit || distance > nearest {
            continue;
        }
        if distance < nearest {
            nearest = distance;
            found.clear();
        }
        if !found.contains(&candidate) {
            found.push(candidate);
        }
    }
    found.truncate(OFFERED_MAX);
    found
}

/// What is said behind a message to offer `names`; nothing if there is none.
pub(crate) fn did_you_mean<T: AsRef<str>>(names: &[T]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = names.iter().map(|name| quoted(name.as_ref())).collect();
    format!("; did you mean {}?", quoted.join(" or "))
}

/// A name in the quotes of messages; one that has its own is left alone.
fn quoted(name: &str) -> String {
    if name.contains('"') { name.to_owned() } else { format!("\"{name}\"") }
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, similar};

    #[test]
    fn the_nearest_names_are_offered() {
        assert_eq!(similar("nme", ["id", "name", "game"]), ["name"]);
        assert_eq!(similar("naem", ["name", "nae"]), ["name", "nae"]);
        assert_eq!(similar("Name", ["id", "name", "NAME"]), ["name", "NAME"]);
        assert_eq!(similar("amount", ["amuont", "amounts", "mount", "account"]), ["amuont", "amounts", "mount"]);
        assert_eq!(similar("größe", ["grösse", "größ"]), ["größ"]);
    }

    #[test]
    fn names_that_differ_in_more_than_a_third_are_not() {
        assert_eq!(similar("a", ["b", "ab"]), Vec::<&str>::new());
        assert_eq!(similar("ab", ["abc"]), ["abc"]);
        assert_eq!(similar("nme", ["names"]), Vec::<&str>::new());
        assert_eq!(similar("abcdef", ["abcxyz"]), Vec::<&str>::new());
        assert_eq!(similar("abcdef", ["abcdxy"]), ["abcdxy"]);
    }

    #[test]
    fn names_are_quoted_once() {
        assert_eq!(did_you_mean::<&str>(&[]), "");
        assert_eq!(did_you_mean(&["name"]), "; did you mean \"name\"?");
        assert_eq!(did_you_mean(&["t.\"Name\"", "b"]), "; did you mean t.\"Name\" or \"b\"?");
    }
}
