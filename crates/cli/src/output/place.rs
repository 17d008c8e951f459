//! The line of a text that an error is in, and a caret below its place, as psql draws them.

use unicode_width::UnicodeWidthChar;

/// Columns of a line that are shown at most.
const WIDTH_MAX: usize = 60;
/// Columns behind the place that are left when a line is cut there.
const BEHIND_MIN: usize = 10;
/// What stands where a line was cut.
const CUT: &str = "...";

/// A character as it is shown, and how wide.
struct Shown {
    text: String,
    width: usize,
}

/// The line of `text` with character number `position`, from 1, and a caret below that; none if the text has no such
/// place.
pub fn caret(text: &str, position: usize) -> Option<String> {
    let before = position.checked_sub(1)?;
    let mut place = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let place = place.nth(before)?;
    let (above, behind) = (text.get(..place)?, text.get(place..)?);
    let number = above.matches('\n').count() + 1;
    let start = above.rfind('\n').map_or(0, |end| end + 1);
    let end = behind.find('\n').map_or(text.len(), |end| place + end);
    let line: Vec<Shown> = text.get(start..end)?.trim_end_matches('\r').chars().map(shown).collect();
    let at = above.get(start..)?.chars().count().min(line.len());
    let window = window(&line, at);

    let mut drawn = format!("LINE {number}: ");
    let mut indent = drawn.len();
    if window.start > 0 {
        drawn.push_str(CUT);
        indent += CUT.len();
    }
    indent += width(line.get(window.start..at)?);
    for c in line.get(window.clone())? {
        drawn.push_str(&c.text);
    }
    if window.end < line.len() {
        drawn.push_str(CUT);
    }
    Some(format!("{drawn}\n{}^", " ".repeat(indent)))
}

fn width(line: &[Shown]) -> usize {
    line.iter().map(|c| c.width).sum()
}

/// Which characters of `line` are shown, so that number `at` is among them.
fn window(line: &[Shown], at: usize) -> std::ops::Range<usize> {
    let (mut start, mut end) = (0, line.len());
    let is_wide = |start: usize, end: usize| line.get(start..end).is_some_and(|part| width(part) > WIDTH_MAX);
    let until = |end: usize| line.get(at..end).map_or(0, width);
    if !is_wide(start, end) {
        return start..end;
    }
    // The end is cut off as long as the place keeps some room behind it, then the beginning.
    while is_wide(start, end) && until(end) > BEHIND_MIN {
        end -= 1;
    }
    while is_wide(start, end) && start < at {
        start += 1;
    }
    start..end
}

/// A tab is as wide as a space; what controls the terminal is spelled.
fn shown(c: char) -> Shown {
    let text = match c {
        '\t' => " ".to_owned(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    let width = if c.is_control() { text.len() } else { c.width().unwrap_or(0) };
    Shown { text, width }
}

#[cfg(test)]
mod tests {
    use super::caret;

    /// What is drawn for the place of `^` in `marked`.
    fn drawn(marked: &str) -> String {
        let position = marked.chars().position(|c| c == '^').unwrap() + 1;
        caret(&marked.replace('^', ""), position).unwrap()
    }

    #[test]
    fn the_caret_stands_below_its_character() {
        assert_eq!(drawn("SELECT ^nme FROM t"), "LINE 1: SELECT nme FROM t\n               ^");
        assert_eq!(drawn("^SELEC"), "LINE 1: SELEC\n        ^");
        assert_eq!(drawn("SELECT^"), "LINE 1: SELECT\n              ^");
        assert_eq!(drawn("SELECT 1,\r\n  ^x\r\nFROM t"), "LINE 2:   x\n          ^");
        assert_eq!(drawn("SELECT\n^"), "LINE 2: \n        ^");
    }

    #[test]
    fn characters_have_their_width() {
        assert_eq!(drawn("'ü',\t^x"), "LINE 1: 'ü', x\n             ^");
        assert_eq!(drawn("'漢字' ^x"), "LINE 1: '漢字' x\n               ^");
        assert_eq!(drawn("'e\u{301}' ^x"), "LINE 1: 'e\u{301}' x\n            ^");
        assert_eq!(drawn("'\u{1b}' ^x"), "LINE 1: '\\u{1b}' x\n                 ^");
    }

    #[test]
    fn long_lines_are_cut() {
        let many = "x".repeat(100);
        assert_eq!(drawn(&format!("a ^b {many}")), format!("LINE 1: a b {}...\n          ^", "x".repeat(56)));
        let end = drawn(&format!("{many} ^b"));
        assert_eq!(end, format!("LINE 1: ...{} b\n{}^", "x".repeat(58), " ".repeat(8 + 3 + 59)));
        let middle = drawn(&format!("{many} ^b {many}"));
        assert_eq!(
            middle,
            format!("LINE 1: ...{} b {}...\n{}^", "x".repeat(49), "x".repeat(8), " ".repeat(8 + 3 + 50))
        );
        let wide = drawn(&format!("{}^b", "漢".repeat(50)));
        assert_eq!(wide, format!("LINE 1: ...{}b\n{}^", "漢".repeat(29), " ".repeat(8 + 3 + 58)));
    }

    #[test]
    fn a_place_outside_the_text_is_none() {
        assert_eq!(caret("abc", 0), None);
        assert_eq!(caret("abc", 5), None);
        assert!(caret("abc", 4).is_some());
    }
}
