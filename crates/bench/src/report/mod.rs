//! What an experiment found: figures beside their yardsticks, notes, wrong answers.
//!
//! Comes in: figures as the cases end. Goes out: JSON lines at once, if wanted ([`json`]); a table at the end
//! ([`table`]). It does not own: how often a figure was taken (`duel`).

mod json;
mod table;

#[cfg(test)]
mod tests;

use std::io::Write;

use crate::duel::{Duel, Sample, Series};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A second.
    PerSecond,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Millions of bytes.
    Megabytes,
    /// A ratio of two figures.
    Times,
    /// A count.
    Count,
}

impl Unit {
    /// As JSON lines and the table name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Megabytes => "MB",
            Self::Times => "x",
            Self::Count => "",
        }
    }
}

/// What a figure has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reach {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
    /// This share of the yardstick, or more.
    OfYardstick(f64),
    /// This many times the yardstick, or less.
    AtMostOfYardstick(f64),
}

/// What a figure is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Yardstick {
    /// Who or what: `SQLite 3.54.1 in memory`.
    pub name: String,
    /// Its figure.
    pub value: f64,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What was done.
    pub case: String,
    /// What was measured of it: `rate`, `p99`.
    pub metric: &'static str,
    /// In what.
    pub unit: Unit,
    /// The median of the rounds.
    pub value: f64,
    /// The smallest and the largest round.
    pub spread: (f64, f64),
    /// What it is compared with, if that could be measured.
    pub yardstick: Option<Yardstick>,
    /// What it has to reach, if anything was promised.
    pub reach: Option<Reach>,
}

impl Figure {
    /// The median of `series`, compared with nothing; none without rounds.
    #[must_use]
    pub fn of(case: &str, metric: &'static str, unit: Unit, series: &Series) -> Option<Self> {
        let (value, spread) = (series.median()?, series.spread()?);
        Some(Self { case: case.into(), metric, unit, value, spread, yardstick: None, reach: None })
    }

    /// A figure taken once.
    #[must_use]
    pub fn once(case: &str, metric: &'static str, unit: Unit, value: f64) -> Self {
        Self { case: case.into(), metric, unit, value, spread: (value, value), yardstick: None, reach: None }
    }

    /// The same, to be compared.
    #[must_use]
    pub fn beside(mut self, name: &str, value: f64) -> Self {
        self.yardstick = Some(Yardstick { name: name.into(), value });
        self
    }

    /// The same, with what it has to reach.
    #[must_use]
    pub fn to_reach(mut self, reach: Reach) -> Self {
        self.reach = Some(reach);
        self
    }

    /// What it has to reach, in its own unit. None when nothing was promised or the yardstick is missing.
    #[must_use]
    pub fn bound(&self) -> Option<f64> {
        match self.reach? {
            Reach::AtLeast(bound) | Reach::AtMost(bound) => Some(bound),
            Reach::OfYardstick(share) | Reach::AtMostOfYardstick(share) => {
                self.yardstick.as_ref().map(|y| y.value * share)
            }
        }
    }

    /// Whether it reaches that.
    #[must_use]
    pub fn met(&self) -> Option<bool> {
        let bound = self.bound()?;
        Some(match self.reach? {
            Reach::AtMost(_) | Reach::AtMostOfYardstick(_) => self.value <= bound,
            Reach::AtLeast(_) | Reach::OfYardstick(_) => self.value >= bound,
        })
    }

    /// How many times the yardstick it is.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.yardstick.as_ref().filter(|y| y.value > 0.0).map(|y| self.value / y.value)
    }
}

/// What the cases of a [`Duel`] have to reach.
#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    /// Rate, at least.
    pub rate: Option<f64>,
    /// Rate as a share of the first yardstick's, at least; for cases without [`Promise::rate`].
    pub share: Option<f64>,
    /// 99 of 100 operations, in microseconds, at most.
    pub p99_us: Option<f64>,
    /// The longest operation of all rounds, in milliseconds, at most.
    pub worst_ms: Option<f64>,
}

/// What an experiment found so far.
pub struct Report {
    experiment: &'static str,
    figures: Vec<Figure>,
    notes: Vec<String>,
    wrong: Vec<String>,
    settings: json::Settings,
    json: Option<Box<dyn Write>>,
}

impl Report {
    /// An empty report. JSON lines go to `json` as figures come.
    #[must_use]
    pub fn new(experiment: &'static str, scale: &'static str, json: Option<Box<dyn Write>>) -> Self {
        let settings = json::Settings::of(scale);
        Self { experiment, figures: vec![], notes: vec![], wrong: vec![], settings, json }
    }

    /// Adds a figure.
    ///
    /// # Errors
    /// When its JSON line cannot be written.
    pub fn add(&mut self, figure: Figure) -> std::io::Result<()> {
        if let Some(out) = &mut self.json {
            json::write(out, self.experiment, &self.settings, &figure)?;
        }
        self.figures.push(figure);
        Ok(())
    }

    /// Adds rate, p99 and longest operation of a case: the first yardstick is the one that `promise` shares a line
    /// with, others have a line of their own.
    ///
    /// # Errors
    /// As [`Report::add`].
    pub fn add_duel(&mut self, case: &str, duel: &Duel, promise: Promise) -> std::io::Result<()> {
        let worst = |sample: &Sample| sample.worst_ms;
        let longest = duel.series(worst).spread().map(|(_, most)| most);
        let rate = promise.rate.map(Reach::AtLeast).or(promise.share.map(Reach::OfYardstick));
        self.add_compared(case, "rate", Unit::PerSecond, duel, |s| s.rate, rate)?;
        self.add_compared(case, "p99", Unit::Microseconds, duel, |s| s.p99_us, promise.p99_us.map(Reach::AtMost))?;
        if let Some(mut figure) = Figure::of(case, "worst stall", Unit::Milliseconds, &duel.series(worst)) {
            // A stall is not made better by the rounds without one.
            figure.value = longest.unwrap_or(figure.value);
            figure.reach = promise.worst_ms.map(Reach::AtMost);
            self.add(figure)?;
        }
        Ok(())
    }

    fn add_compared(
        &mut self,
        case: &str,
        metric: &'static str,
        unit: Unit,
        duel: &Duel,
        figure: fn(&Sample) -> f64,
        reach: Option<Reach>,
    ) -> std::io::Result<()> {
        let Some(mut first) = Figure::of(case, metric, unit, &duel.series(figure)) else { return Ok(()) };
        first.reach = reach;
        let mut yardsticks = duel.yardsticks(figure).into_iter();
        let plain = first.clone();
        self.add(match yardsticks.next() {
            Some((name, value)) => first.beside(&name, value),
            None => first,
        })?;
        for (name, value) in yardsticks {
            let mut further = plain.clone().beside(&name, value);
            further.reach = None;
            self.add(further)?;
        }
        Ok(())
    }

    /// Adds what a reader of the table has to know. The same note stands there once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a wrong answer.
    pub fn wrong(&mut self, what: impl Into<String>) {
        self.wrong.push(what.into());
    }

    /// Tells what is being done, for whoever waits.
    pub fn progress(&self, what: impl std::fmt::Display) {
        eprintln!("{}: {what}", self.experiment);
    }

    /// What was found.
    #[must_use]
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Answers that were wrong; a line each.
    #[must_use]
    pub fn wrong_answers(&self) -> &[String] {
        &self.wrong
    }

    /// The table, the notes, and what was wrong, as text.
    #[must_use]
    pub fn text(&self) -> String {
        table::text(self)
    }
}
