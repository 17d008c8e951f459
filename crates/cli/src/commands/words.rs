//! What stands behind a command, read.

use crate::output::Stopped;

use super::wrong;

/// What on, off or nothing makes of a switch that is `now` so.
pub(super) fn switch(command: &str, argument: &str, now: bool) -> Result<bool, Stopped> {
    match argument.to_ascii_lowercase().as_str() {
        "" => Ok(!now),
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(wrong(format!("{command} is on or off, not \"{argument}\""))),
    }
}

/// The parts of a name as SQL folds them: in small letters, unless quoted.
///
/// # Errors
/// 42601 for what is no name, or one of more than a schema and a table.
pub(super) fn names(text: &str) -> Result<Vec<String>, Stopped> {
    let bad = || wrong(format!("\"{text}\" is not the name of a table"));
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => after_quoted(quoted).ok_or_else(bad)?,
            None => {
                let end = rest.find(['.', '"']).unwrap_or(rest.len());
                let (name, behind) = rest.split_at(end);
                (name.to_lowercase(), behind)
            }
        };
        if name.is_empty() || name.contains(char::is_whitespace) && !rest.starts_with('"') {
            return Err(bad());
        }
        names.push(name);
        match behind.strip_prefix('.') {
            Some(behind) => rest = behind,
            None if behind.is_empty() && names.len() <= 2 => return Ok(names),
            None => return Err(bad()),
        }
    }
}

/// The name up to the quote that ends it, and what is behind that.
fn after_quoted(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let (inside, behind) = rest.split_once('"')?;
        name.push_str(inside);
        match behind.strip_prefix('"') {
            Some(behind) => {
                name.push('"');
                rest = behind;
            }
            None => return Some((name, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_are_folded_unless_quoted() {
        let read = |text: &str| names(text).ok().map(|names| names.join("|"));
        assert_eq!(read("Orders").as_deref(), Some("orders"));
        assert_eq!(read("\"Orders\"").as_deref(), Some("Orders"));
        assert_eq!(read("Sales.\"My \"\"Orders\"\".\"").as_deref(), Some("sales|My \"Orders\"."));
        for bad in ["", "a b", "a..b", "a.b.c", "\"a", "\"a\"b", ".a", "a."] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
