//! A loser tree: the least of k heads, with log2(k) comparisons after each step (Knuth, volume 3, section 5.4.1).

/// Node 0 holds the winner, nodes 1.. the losers of their matches; leaf `i` stands below node `(i + k) / 2`.
#[derive(Debug)]
pub(super) struct LoserTree {
    nodes: Vec<usize>,
}

const NOBODY: usize = usize::MAX;

impl LoserTree {
    /// Plays all matches of `leaves` leaves. `less(a, b)`: head `a` goes before head `b`.
    pub fn new(leaves: usize, less: impl Fn(usize, usize) -> bool) -> Self {
        let mut nodes = vec![NOBODY; leaves.max(1)];
        for leaf in 0..leaves {
            let mut winner = leaf;
            let mut node = (leaf + leaves) / 2;
            while node > 0 && winner != NOBODY {
                let waiting = nodes[node];
                if waiting == NOBODY || less(waiting, winner) {
                    nodes[node] = winner;
                    winner = waiting;
                }
                node /= 2;
            }
            if winner != NOBODY {
                nodes[0] = winner;
            }
        }
        Self { nodes }
    }

    /// The least head; `None` without leaves.
    #[inline]
    pub fn winner(&self) -> Option<usize> {
        self.nodes.first().copied().filter(|leaf| *leaf != NOBODY)
    }

    /// Plays the winner's matches again: its head has changed.
    #[inline]
    pub fn replay(&mut self, less: impl Fn(usize, usize) -> bool) {
        let mut winner = self.nodes[0];
        let mut node = (winner + self.nodes.len()) / 2;
        while node > 0 {
            if less(self.nodes[node], winner) {
                std::mem::swap(&mut self.nodes[node], &mut winner);
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }

    /// The least head but the winner's: all it has to beat stand on its own way up.
    pub fn challenger(&self, less: impl Fn(usize, usize) -> bool) -> Option<usize> {
        let mut best = None;
        let mut node = (self.winner()? + self.nodes.len()) / 2;
        while node > 0 {
            let loser = self.nodes[node];
            if best.is_none_or(|best| less(loser, best)) {
                best = Some(loser);
            }
            node /= 2;
        }
        best
    }
}
