//! Names that were changed for the time of planning: a character that is not seen stands behind them.

/// Behind the names of tables that columns have too. U+2060 joins words and has no width.
pub(crate) const MARK: char = '\u{2060}';

/// A table's name or alias as the statement says it.
pub(crate) fn without_mark(name: &str) -> &str {
    name.trim_end_matches(MARK)
}

/// `text` with all names of tables as the statement says them.
pub(crate) fn without_marks(text: &str) -> String {
    text.replace(MARK, "")
}
