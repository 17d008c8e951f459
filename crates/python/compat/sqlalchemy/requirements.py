"""What Mainstem has of what SQLAlchemy's tests ask for: more than they take for granted in OPEN, less in CLOSED. What is
closed is refused by the engine or by the dialect (docs/sql-differences.md, docs/python.md): foreign keys, indexes, columns of
intervals, parts of JSON. Of what stands in neither list and is closed by SQLAlchemy, these are open questions:
identity_columns (its tests have MINVALUE and CACHE, which the engine refuses), window_range_non_numeric (frames have no
parameters), comment_reflection (there are no comments)."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

OPEN = """
aggregate_order_by autocommit boolean_col_expressions check_constraint_reflection create_or_replace_view create_table_as
create_temp_table_as cast_precision_numerics_many_significant_digits ctes ctes_on_dml ctes_with_values
datetime_historic datetime_literals datetime_timezone datetime_timezone_historic date_historic default_schema_name_switch
delete_from except_ expression_server_defaults fetch_expression fetch_first fetch_no_order_by
has_temp_table implicit_default_schema implicitly_named_constraints
infinity_floats inline_check_constraint_reflection intersect isolation_level  mod_operator_as_percent_sign
nullsordering order_by_label_with_expression percent_schema_names precision_numerics_enotation_small
precision_numerics_many_significant_digits precision_numerics_retains_significant_digits reflects_pk_names regexp_match
regexp_replace savepoints schema_create_delete schemas server_defaults supports_bitwise_and supports_bitwise_not
supports_bitwise_or supports_bitwise_shift supports_bitwise_xor supports_distinct_on supports_is_distinct_from
table_ddl_if_exists table_value_constructor temp_table_names timestamp_microseconds tuple_in tuple_in_w_empty
unicode_ddl unique_constraints_reflect_as_index update_from uuid_data_type views window_functions window_range
window_range_numeric float_or_double_precision_behaves_generically
"""

CLOSED = """
cross_schema_fk_reflection foreign_key_constraint_reflection index_reflection indexes_with_ascdesc
reflect_indexes_with_ascdesc temp_table_reflect_indexes on_update_cascade recursive_fk_cascade
implements_get_lastrowid dbapi_lastrowid json_type json_array_indexes json_index_supplementary_unicode_element
"""


LEVELS = ["AUTOCOMMIT", "READ COMMITTED", "READ UNCOMMITTED", "REPEATABLE READ"]


class Requirements(SuiteRequirements):
    """Made of the lists, and what is no rule."""

    def get_isolation_levels(self, config):
        return {"default": "REPEATABLE READ", "supported": LEVELS}


def _property(rule):
    return property(lambda self: rule)


for name in OPEN.split():
    assert hasattr(SuiteRequirements, name), name
    setattr(Requirements, name, _property(exclusions.open()))
for name in CLOSED.split():
    assert hasattr(SuiteRequirements, name), name
    setattr(Requirements, name, _property(exclusions.closed()))
