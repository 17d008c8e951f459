//! ALTER TABLE and TRUNCATE.

use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable as AstAlterTable, AlterTableOperation, DropBehavior, Ident, ObjectName,
    RenameTableNameKind, TableConstraint, Truncate as AstTruncate, TruncateIdentityOption, TruncateTableTarget,
};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::Identity;
use mainstem_storage::{Error, Result};

use super::super::stored::default_text;
use super::super::{TableName, column_name, fold, table_name};
use super::constraints::Constraints;
use super::identity::{identity, nextval};
use super::new_column;
use super::table::NewColumn;

/// ALTER TABLE.
#[derive(Clone, Debug)]
pub(crate) struct AlterTable {
    pub(crate) name: TableName,
    pub(crate) if_exists: bool,
    pub(crate) actions: Vec<AlterAction>,
}

/// One action of an ALTER TABLE.
#[derive(Clone, Debug)]
pub(crate) enum AlterAction {
    AddColumn {
        column: NewColumn,
        constraints: Constraints,
        if_not_exists: bool,
    },
    DropColumn {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    RenameColumn {
        old: String,
        new: String,
    },
    RenameTo(String),
    /// SET DEFAULT, or DROP DEFAULT.
    SetDefault {
        column: String,
        default: Option<String>,
    },
    /// ADD GENERATED ... AS IDENTITY, or SET DEFAULT nextval(...) of a sequence that was made for the column.
    AddIdentity {
        column: String,
        identity: Draws,
    },
    /// OWNER TO: there are no owners.
    OwnerTo,
    /// DROP NOT NULL (true), SET NOT NULL (false).
    SetNullable {
        column: String,
        nullable: bool,
    },
    AddConstraint(Constraints),
    /// ADD FOREIGN KEY, in words: only a dump may say so.
    AddForeignKey(String),
    DropConstraint {
        name: String,
        if_exists: bool,
    },
}

/// Where the numbers of a column come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Draws {
    Identity(Identity),
    /// A sequence of the session: CREATE SEQUENCE.
    Sequence(TableName),
}

/// TRUNCATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Truncate {
    pub(crate) names: Vec<TableName>,
    pub(crate) restart_identity: bool,
}

/// Reads an ALTER TABLE.
pub(in super::super) fn alter_table(alter: AstAlterTable) -> Result<AlterTable> {
    let AstAlterTable { name, if_exists, only: _, operations, location, on_cluster, table_type, end_token: _ } = alter;
    if location.is_some() || on_cluster.is_some() || table_type.is_some() {
        return Err(Error::unsupported("a clause of another database's ALTER TABLE"));
    }
    let mut actions = Vec::with_capacity(operations.len());
    for operation in operations {
        action(operation, &mut actions)?;
    }
    Ok(AlterTable { name: table_name(&name)?, if_exists, actions })
}

fn action(operation: AlterTableOperation, actions: &mut Vec<AlterAction>) -> Result<()> {
    use AlterTableOperation as O;
    actions.push(match operation {
        O::AddColumn { column_keyword: _, if_not_exists, column_def, column_position: None } => {
            let mut constraints = Constraints::default();
            let column = new_column(&column_def, &mut constraints)?;
            AlterAction::AddColumn { column, constraints, if_not_exists }
        }
        O::DropColumn { has_column_keyword: _, column_names, if_exists, drop_behavior } => {
            let cascade = matches!(drop_behavior, Some(DropBehavior::Cascade));
            let drop = |name: &Ident| AlterAction::DropColumn { name: fold(name), if_exists, cascade };
            actions.extend(column_names.iter().map(drop));
            return Ok(());
        }
        O::RenameColumn { old_column_name, new_column_name } => {
            AlterAction::RenameColumn { old: fold(&old_column_name), new: fold(&new_column_name) }
        }
        O::RenameTable { table_name: RenameTableNameKind::To(name) } => AlterAction::RenameTo(bare(&name)?),
        O::AlterColumn { column_name, op } => {
            let column = fold(&column_name);
            match op {
                AlterColumnOperation::SetNotNull => AlterAction::SetNullable { column, nullable: false },
                AlterColumnOperation::DropNotNull => AlterAction::SetNullable { column, nullable: true },
                AlterColumnOperation::SetDefault { value } => match nextval(&value)? {
                    Some(sequence) => AlterAction::AddIdentity { column, identity: Draws::Sequence(sequence) },
                    None => AlterAction::SetDefault { column, default: Some(default_text(&value)?) },
                },
                AlterColumnOperation::AddGenerated { generated_as: Some(generated), sequence_options } => {
                    let identity = Draws::Identity(identity(&generated, sequence_options.as_ref())?);
                    AlterAction::AddIdentity { column, identity }
                }
                AlterColumnOperation::DropDefault => AlterAction::SetDefault { column, default: None },
                other => return Err(Error::unsupported(format_args!("ALTER COLUMN ... {other}"))),
            }
        }
        O::AddConstraint { constraint: key @ TableConstraint::ForeignKey(_), not_valid: _ } => {
            AlterAction::AddForeignKey(key.to_string())
        }
        O::AddConstraint { constraint, not_valid: false } => {
            let mut constraints = Constraints::default();
            constraints.add(constraint)?;
            AlterAction::AddConstraint(constraints)
        }
        O::OwnerTo { new_owner: _ } => AlterAction::OwnerTo,
        // Nothing depends on a constraint.
        O::DropConstraint { if_exists, name, drop_behavior: _ } => {
            AlterAction::DropConstraint { name: fold(&name), if_exists }
        }
        other => return Err(Error::unsupported(format_args!("ALTER TABLE ... {other}"))),
    });
    Ok(())
}

/// A name without a schema: a table stays in its own.
fn bare(name: &ObjectName) -> Result<String> {
    column_name(name)
        .map_err(|_| Error::invalid(sqlstate::SYNTAX, format!("RENAME TO takes a name without a schema, not {name}")))
}

/// Reads a TRUNCATE.
pub(in super::super) fn truncate(truncate: AstTruncate) -> Result<Truncate> {
    let AstTruncate { table_names, partitions, table: _, if_exists, identity, cascade: _, on_cluster } = truncate;
    if partitions.is_some() || if_exists || on_cluster.is_some() {
        return Err(Error::unsupported("a clause of another database's TRUNCATE"));
    }
    let name = |TruncateTableTarget { name, only: _, has_asterisk: _ }: &TruncateTableTarget| table_name(name);
    Ok(Truncate {
        names: table_names.iter().map(name).collect::<Result<_>>()?,
        restart_identity: matches!(identity, Some(TruncateIdentityOption::Restart)),
    })
}
