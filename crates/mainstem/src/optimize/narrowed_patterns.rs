//! `LIKE '%express%pack%'`: most rows lack one of the pieces, and a search for one is several times as fast as the
//! machine that a pattern with `%` in its midst is made of.
//!
//! Comes in: an optimised plan that is evaluated next. Goes out: the same, where a pattern of several pieces is only
//! asked about the texts that have the longest of them: `x LIKE '%express%' AND x LIKE '%express%pack%'`. DataFusion
//! evaluates the right side of AND for the rows that the left one leaves, where these are few.
//!
//! Only of a column, which costs nothing to name twice, and patterns whose pieces are characters that mean themselves.
//! NULL stays NULL: both sides are, then.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Like;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::analyze::plan_walk::{rewrite_node, rewrite_nodes};

/// Bytes of a piece below which too many texts have it.
const PIECE_BYTES_MIN: usize = 3;

/// `plan` with such patterns in the expressions of all its nodes.
///
/// # Errors
/// Internal.
pub(crate) fn narrowed_patterns(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_nodes(plan, |node| match node {
        // What the store takes of a filter it takes for itself.
        LogicalPlan::TableScan(_) => Ok(Transformed::no(node)),
        node if has_pattern(&node)? => rewrite_node(node, &|expr, _| Ok(narrowed(expr))),
        node => Ok(Transformed::no(node)),
    })
}

fn has_pattern(node: &LogicalPlan) -> Result<bool> {
    let mut has = false;
    node.apply_expressions(|expr| {
        has |= expr.exists(|expr| Ok(matches!(expr, Expr::Like(_))))?;
        Ok(if has { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has)
}

fn narrowed(expr: Expr) -> Transformed<Expr> {
    let Expr::Like(like) = &expr else { return Transformed::no(expr) };
    let Some(piece) = pattern_of_piece(like) else { return Transformed::no(expr) };
    let matches = |pattern: Expr| Expr::Like(Like { negated: false, pattern: Box::new(pattern), ..like.clone() });
    let both = matches(piece).and(matches((*like.pattern).clone()));
    Transformed::yes(if like.negated { Expr::Not(Box::new(both)) } else { both })
}

/// The pattern of all texts that have the longest piece of the pattern of `like`, if that has several.
fn pattern_of_piece(like: &Like) -> Option<Expr> {
    let is_plain = !like.case_insensitive && like.escape_char.is_none() && matches!(*like.expr, Expr::Column(_));
    let (Expr::Literal(scalar, metadata), true) = (&*like.pattern, is_plain) else { return None };
    let pattern = scalar.try_as_str()??;
    if pattern.contains(['_', '\\']) {
        return None;
    }
    let pieces = pattern.split('%').filter(|piece| !piece.is_empty());
    let longest = pieces.clone().max_by_key(|piece| piece.len()).filter(|piece| piece.len() >= PIECE_BYTES_MIN)?;
    let has = format!("%{longest}%");
    let has = match scalar {
        ScalarValue::Utf8(_) => ScalarValue::Utf8(Some(has)),
        ScalarValue::Utf8View(_) => ScalarValue::Utf8View(Some(has)),
        _ => return None,
    };
    (pieces.count() > 1).then(|| Expr::Literal(has, metadata.clone()))
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn patterns_of_several_pieces_are_narrowed_by_the_longest() {
        let like = |negated, pattern: &str, escape| {
            Expr::Like(Like::new(negated, Box::new(col("x")), Box::new(lit(pattern)), escape, false))
        };
        let plain = |pattern| like(false, pattern, None);
        for (pattern, piece) in [("%express%pack%", "%express%"), ("a%bcd%e", "%bcd%"), ("abc%%ab", "%abc%")] {
            assert_eq!(narrowed(plain(pattern)).data, plain(piece).and(plain(pattern)), "{pattern}");
            let negated = Expr::Not(Box::new(plain(piece).and(plain(pattern))));
            assert_eq!(narrowed(like(true, pattern, None)).data, negated, "{pattern}");
        }
        for pattern in ["%express%", "express%", "", "%", "%a%b%", "%exp_ess%pack%", "%express%pa\\%ck%"] {
            assert!(!narrowed(plain(pattern)).transformed, "{pattern}");
        }
        assert!(!narrowed(like(false, "%express%pack%", Some('!'))).transformed);
        let folded = Like::new(false, Box::new(col("x")), Box::new(lit("%express%pack%")), None, true);
        assert!(!narrowed(Expr::Like(folded)).transformed);
        let computed = Like::new(false, Box::new(col("x") + lit(1)), Box::new(lit("%express%pack%")), None, false);
        assert!(!narrowed(Expr::Like(computed)).transformed);
    }
}
