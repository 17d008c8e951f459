//! Text of a query in parts: literals that may become parameters, and derived tables that may become tables.

use std::rc::Rc;

use super::types::Type;

/// A constant of a query.
#[derive(Debug)]
pub struct Literal {
    pub text: String,
    pub data_type: Type,
    /// Another value of the type: what a prepared statement is run with before.
    pub other: String,
}

#[derive(Clone, Debug)]
pub enum Part {
    Text(String),
    /// The same `Rc` is the same parameter wherever it stands.
    Literal(Rc<Literal>),
    /// A query in parentheses that refers to nothing outside.
    Derived(Rc<Sql>),
    /// One whose order counts: it is no table in any way.
    Ordered(Rc<Sql>),
    /// A query of WITH, and its name. It stands before a SELECT.
    With(String, Rc<Sql>),
}

/// A query, or a part of one.
#[derive(Clone, Debug, Default)]
pub struct Sql(Vec<Part>);

/// `format!` for [`Sql`]: `{}` stands for the next argument.
pub fn sql(pattern: &str, arguments: &[&Sql]) -> Sql {
    let mut made = Sql::default();
    let mut pieces = pattern.split("{}");
    made.push(pieces.next().unwrap());
    let mut arguments = arguments.iter();
    for piece in pieces {
        made.append(arguments.next().expect("an argument for each place"));
        made.push(piece);
    }
    assert!(arguments.next().is_none(), "{pattern} has too few places");
    made
}

impl From<&str> for Sql {
    fn from(text: &str) -> Self {
        Self(vec![Part::Text(text.into())])
    }
}

impl From<String> for Sql {
    fn from(text: String) -> Self {
        Self(vec![Part::Text(text)])
    }
}

impl From<Literal> for Sql {
    fn from(literal: Literal) -> Self {
        Self(vec![Part::Literal(Rc::new(literal))])
    }
}

impl Sql {
    /// `query` in parentheses, which refers to nothing outside.
    pub fn derived(query: Sql) -> Self {
        Self(vec![Part::Derived(Rc::new(query))])
    }

    /// `query` in parentheses, whose order counts.
    pub fn ordered(query: Sql) -> Self {
        Self(vec![Part::Ordered(Rc::new(query))])
    }

    pub fn with(name: &str, query: Sql) -> Self {
        Self(vec![Part::With(name.into(), Rc::new(query))])
    }

    pub fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push(Part::Text(text.into())),
        }
    }

    pub fn append(&mut self, other: &Sql) {
        for part in &other.0 {
            match part {
                Part::Text(text) => self.push(text),
                other => self.0.push(other.clone()),
            }
        }
    }

    pub fn joined(list: &[Sql], separator: &str) -> Sql {
        let mut made = Sql::default();
        for (at, item) in list.iter().enumerate() {
            if at > 0 {
                made.push(separator);
            }
            made.append(item);
        }
        made
    }

    /// As it is written.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, &mut |literal| literal.text.clone());
        text
    }

    /// With parameters in the places of literals, and these.
    pub fn with_parameters(&self) -> (String, Vec<Rc<Literal>>) {
        let (mut text, mut literals) = (String::new(), Vec::<Rc<Literal>>::new());
        self.write(&mut text, &mut |literal| {
            let known = literals.iter().position(|other| Rc::ptr_eq(other, literal));
            let number = known.unwrap_or_else(|| {
                literals.push(literal.clone());
                literals.len() - 1
            });
            format!("${}", number + 1)
        });
        (text, literals)
    }

    fn write(&self, text: &mut String, literals: &mut dyn FnMut(&Rc<Literal>) -> String) {
        for part in &self.0 {
            match part {
                Part::Text(piece) => text.push_str(piece),
                Part::Literal(literal) => text.push_str(&literals(literal)),
                Part::Derived(query) | Part::Ordered(query) => {
                    text.push('(');
                    query.write(text, literals);
                    text.push(')');
                }
                Part::With(name, query) => {
                    text.push_str(&format!("WITH {name} AS ("));
                    query.write(text, literals);
                    text.push_str(") ");
                }
            }
        }
    }

    /// With a temporary table in the place of each derived one. `steps` are the statements that make them, with the
    /// names of these tables.
    pub fn in_steps(&self, steps: &mut Vec<(String, String)>) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(piece) => text.push_str(piece),
                Part::Literal(literal) => text.push_str(&literal.text),
                Part::Derived(query) => {
                    let inner = query.in_steps(steps);
                    let name = format!("step_{}", steps.len());
                    text.push_str(&format!("(SELECT * FROM {name})"));
                    steps.push((format!("CREATE TEMP TABLE {name} AS {inner}"), name));
                }
                Part::Ordered(query) => text.push_str(&format!("({})", query.in_steps(steps))),
                Part::With(name, query) => {
                    let inner = query.in_steps(steps);
                    steps.push((format!("CREATE TEMP TABLE {name} AS {inner}"), name.clone()));
                }
            }
        }
        text
    }
}

#[test]
fn queries_are_written_in_each_way() {
    let three = Sql::from(Literal { text: "3".into(), data_type: Type::Integer, other: "4".into() });
    let inner = sql("SELECT a FROM t WHERE a = {} LIMIT {}", &[&three, &three]);
    let named = Sql::with("w", inner.clone());
    let query = sql("{}SELECT * FROM w, {} AS d", &[&named, &Sql::derived(inner)]);
    assert_eq!(
        query.text(),
        "WITH w AS (SELECT a FROM t WHERE a = 3 LIMIT 3) SELECT * FROM w, (SELECT a FROM t WHERE a = 3 LIMIT 3) AS d"
    );
    let (text, literals) = query.with_parameters();
    assert!(text.ends_with("(SELECT a FROM t WHERE a = $1 LIMIT $1) AS d"), "{text}");
    assert_eq!(literals.len(), 1);
    let mut steps = vec![];
    assert_eq!(query.in_steps(&mut steps), "SELECT * FROM w, (SELECT * FROM step_1) AS d");
    assert_eq!(steps[1].0, "CREATE TEMP TABLE step_1 AS SELECT a FROM t WHERE a = 3 LIMIT 3");
}
