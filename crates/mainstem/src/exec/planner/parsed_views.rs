//! Queries of views, parsed.
//!
//! Comes in: the text of a view's query. Goes out: its tree, rewritten as far as no setting and no table matters. Of
//! short texts that were used lately the trees are kept: a view is part of many statements. It does not own: what the
//! names in it mean (`planner`).

use datafusion::sql::sqlparser::ast::Statement as Ast;
use mainstem_storage::Result;
use parking_lot::Mutex;

use crate::analyze::{BesideStar, rewrite};
use crate::exec::RecentTexts;
use crate::sql::stored_query;

/// Texts of a generation.
const ENTRIES_MAX: usize = 64;
/// Bytes of the texts of a generation: their trees take some twenty times as many.
const TEXT_BYTES_MAX: usize = 32 << 10;
/// Longest text whose tree is kept.
const LONGEST: usize = 4 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct ParsedViews(Mutex<RecentTexts<Ast>>);

impl Default for ParsedViews {
    fn default() -> Self {
        Self(Mutex::new(RecentTexts::new(ENTRIES_MAX, TEXT_BYTES_MAX)))
    }
}

impl ParsedViews {
    /// The query `text`, rewritten.
    ///
    /// # Errors
    /// Internal for a text that is none.
    pub(super) fn statement(&self, text: &str) -> Result<Ast> {
        if let Some(kept) = self.0.lock().get(text) {
            return Ok(kept.clone());
        }
        let mut statement = Ast::Query(stored_query(text)?);
        rewrite(&mut statement, BesideStar::Mentioned);
        if text.len() <= LONGEST {
            drop(self.0.lock().put(text, statement.clone()));
        }
        Ok(statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_parsed_once_and_the_number_of_trees_is_bounded() {
        let views = ParsedViews::default();
        let first = views.statement("SELECT a, b FROM t WHERE a > 1").unwrap();
        assert_eq!(views.statement("SELECT a, b FROM t WHERE a > 1").unwrap(), first);
        assert_eq!(views.0.lock().iter().count(), 1);
        assert!(views.statement("SELECT 'a").is_err());
        for n in 0..1_000 {
            views.statement(&format!("SELECT a + {n} AS a FROM t")).unwrap();
        }
        views.statement(&format!("SELECT '{}' AS a", "x".repeat(LONGEST))).unwrap();
        assert!(views.0.lock().iter().count() <= 2 * ENTRIES_MAX);
        assert!(views.0.lock().iter().all(|(text, _)| text.len() <= LONGEST));
    }
}
