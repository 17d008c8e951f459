//! DESCRIBE and SUMMARIZE: the columns of a table, a query or a file, and what their values are.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType as ArrowType, Field, Int64Type, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement as Ast, TableFactor};
use mainstem_postgres::types::{field_type, sql_words};
use mainstem_storage::catalog::Relation;
use mainstem_storage::schema::{DataType, TableSchema};
use mainstem_storage::{Error, Result};

use super::super::{Outcome, Session};
use crate::exec::Rows;
use crate::sql::{Describe, query_of};

/// What SUMMARIZE computes of each column, beside its count.
const MEASURES: [&str; 8] = ["min", "max", "approx_unique", "avg", "std", "q25", "q50", "q75"];

/// The columns that DESCRIBE gives, or SUMMARIZE.
pub(in crate::session) fn columns(summarizes: bool) -> SchemaRef {
    let text = |name: &&str| Field::new(*name, ArrowType::Utf8View, true);
    if !summarizes {
        let names = ["column_name", "column_type", "null", "key", "default", "extra"];
        return Arc::new(Schema::new(names.iter().map(text).collect::<Vec<_>>()));
    }
    let measure = |name: &&str| match *name {
        "approx_unique" => Field::new(*name, ArrowType::Int64, true),
        _ => text(name),
    };
    let mut fields: Vec<Field> = ["column_name", "column_type"].iter().map(text).collect();
    fields.extend(MEASURES.iter().map(measure));
    fields.push(Field::new("count", ArrowType::Int64, true));
    fields.push(Field::new("null_percentage", ArrowType::Float64, true));
    Arc::new(Schema::new(fields))
}

/// The name of a type as SQL has it.
fn type_name(field: &Field) -> String {
    field_type(field)
        .map_or_else(|| sql_words(&field.data_type().to_string()).to_lowercase(), |data_type| data_type.to_string())
}

impl Session {
    /// Runs a DESCRIBE or SUMMARIZE.
    pub(in crate::session) fn describe_rows(&mut self, describe: &Describe) -> Result<Outcome> {
        let Describe { query, table, summarizes } = describe;
        let (schema, table) = self.read(|env, transaction| {
            if *summarizes {
                // What is summarized is read by another statement.
                env.need_certain_files();
            }
            let plan = env.plan(transaction, Ast::Query(query.clone()), None)?;
            let found = table.as_ref().and_then(|name| env.settings.names().find(&transaction.catalog(), name));
            let table = match found {
                Some((_, Relation::Table(table))) => Some(table),
                _ => None,
            };
            Ok((plan.schema().inner().clone(), table))
        })?;
        let (tag, batch) = if *summarizes {
            ("SUMMARIZE", self.summary(query, &schema)?)
        } else {
            ("DESCRIBE", described(&schema, table.as_deref())?)
        };
        let (schema, batches) = (batch.schema(), vec![batch]);
        Ok(Outcome::with_rows(tag, Rows::Ready { schema, batches, memory: None }))
    }

    fn summary(&mut self, query: &Query, schema: &Schema) -> Result<RecordBatch> {
        let mut items = "count(*)".to_owned();
        for (at, field) in schema.fields().iter().enumerate() {
            let measured = measures(at, field_type(field));
            write!(items, ", count(\"{at}\")").map_err(|_| Error::internal("a text that cannot be written"))?;
            items.extend(measured.into_iter().flat_map(|measure| [", ".to_owned(), measure]));
        }
        let names: Vec<String> = (0..schema.fields().len()).map(|at| format!("\"{at}\"")).collect();
        let mut over = query_of(&format!("SELECT {items} FROM (SELECT 1) AS summarized({})", names.join(", ")))?;
        if let SetExpr::Select(select) = &mut *over.body
            && let Some(from) = select.from.first_mut()
            && let TableFactor::Derived { subquery, .. } = &mut from.relation
        {
            **subquery = query.clone();
        }
        let running = self.start_query(Ast::Query(over))?;
        let mut row = None;
        for batch in running.batches {
            row = Some(batch?);
        }
        let row = row.ok_or_else(|| Error::internal("an aggregate without a row"))?;
        summarized(schema, &row)
    }
}

/// What is computed of column `at`, each as a text.
fn measures(at: usize, data_type: Option<DataType>) -> Vec<String> {
    use DataType as T;
    let column = format!("\"{at}\"");
    let text = |what: String| format!("CAST({what} AS TEXT)");
    let is_number =
        matches!(data_type, Some(T::SmallInt | T::Integer | T::BigInt | T::Real | T::Double | T::Decimal { .. }));
    // Types without an order of their own have that of their texts.
    let ordered = match data_type {
        Some(T::Boolean | T::Uuid | T::Bytea) | None => text(column.clone()),
        Some(_) => column.clone(),
    };
    let none = || "CAST(NULL AS TEXT)".to_owned();
    let of_number = |what: String| if is_number { text(what) } else { none() };
    let share = |share: &str| {
        of_number(format!("approx_percentile_cont({share}) WITHIN GROUP (ORDER BY CAST({column} AS DOUBLE PRECISION))"))
    };
    vec![
        text(format!("min({ordered})")),
        text(format!("max({ordered})")),
        format!("CAST(approx_distinct({ordered}) AS BIGINT)"),
        of_number(format!("avg({column})")),
        of_number(format!("stddev(CAST({column} AS DOUBLE PRECISION))")),
        share("0.25"),
        share("0.5"),
        share("0.75"),
    ]
}

/// The one row of aggregates as a row for each column.
fn summarized(schema: &Schema, row: &RecordBatch) -> Result<RecordBatch> {
    let lost = || Error::internal("an aggregate is lost");
    let number = |at: usize| -> Result<i64> {
        let array = row.columns().get(at).and_then(|array| array.as_primitive_opt::<Int64Type>());
        Ok(array.filter(|array| array.len() == 1).ok_or_else(lost)?.value(0))
    };
    let rows = number(0)?;
    let of_column = 1 + MEASURES.len();
    let places = |measure: usize| (0..schema.fields().len()).map(move |column| 1 + column * of_column + measure);
    let texts = |measure: usize| -> Result<ArrayRef> {
        let one = |at: usize| {
            let array = row.columns().get(at).ok_or_else(lost)?;
            let array = array.as_string_view_opt().filter(|array| array.len() == 1).ok_or_else(lost)?;
            Ok(array.is_valid(0).then(|| array.value(0).to_owned()))
        };
        Ok(Arc::new(StringViewArray::from(places(measure).map(one).collect::<Result<Vec<_>>>()?)))
    };
    let counts = places(0).map(number).collect::<Result<Vec<i64>>>()?;
    let names = schema.fields().iter().map(|field| field.name().clone());
    let types = schema.fields().iter().map(|field| type_name(field));
    let mut arrays: Vec<ArrayRef> =
        vec![Arc::new(StringViewArray::from_iter_values(names)), Arc::new(StringViewArray::from_iter_values(types))];
    for (at, measure) in MEASURES.iter().enumerate() {
        arrays.push(match *measure {
            "approx_unique" => Arc::new(Int64Array::from(places(at + 1).map(number).collect::<Result<Vec<_>>>()?)),
            _ => texts(at + 1)?,
        });
    }
    let share = |count: &i64| (rows > 0).then(|| ((rows - count) as f64 * 10_000.0 / rows as f64).round() / 100.0);
    let shares: Vec<Option<f64>> = counts.iter().map(share).collect();
    arrays.push(Arc::new(Int64Array::from(counts)));
    arrays.push(Arc::new(Float64Array::from(shares)));
    Ok(RecordBatch::try_new(columns(true), arrays)?)
}

/// A row for each column of `schema`, with what `table` says of it.
fn described(schema: &Schema, table: Option<&TableSchema>) -> Result<RecordBatch> {
    let fields = schema.fields();
    let of_table = |field: &Arc<Field>| table.and_then(|table| table.column_named(field.name()));
    let key = |field: &Arc<Field>| {
        let (table, column) = (table?, of_table(field)?);
        let is_unique = table.keys().any(|(_, columns)| columns == [column.id]);
        match () {
            () if table.primary_key.contains(&column.id) => Some("PRI"),
            () if is_unique => Some("UNI"),
            () => None,
        }
    };
    let names = fields.iter().map(|field| Some(field.name().clone()));
    let types = fields.iter().map(|field| Some(type_name(field)));
    let nulls = fields.iter().map(|field| Some(if field.is_nullable() { "YES" } else { "NO" }.to_owned()));
    let keys = fields.iter().map(|field| key(field).map(str::to_owned));
    let defaults = fields.iter().map(|field| of_table(field)?.default.as_deref().map(str::to_owned));
    let extras = fields.iter().map(|field| of_table(field)?.identity.map(|_| "identity".to_owned()));
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(names.collect::<StringViewArray>()),
        Arc::new(types.collect::<StringViewArray>()),
        Arc::new(nulls.collect::<StringViewArray>()),
        Arc::new(keys.collect::<StringViewArray>()),
        Arc::new(defaults.collect::<StringViewArray>()),
        Arc::new(extras.collect::<StringViewArray>()),
    ];
    Ok(RecordBatch::try_new(columns(false), arrays)?)
}
