"""Reads lines of JSON from a file into typed Parquet with one engine, on one core: engines.py <engine> <lines> <parquet> <columns>

The columns are JSON: a list of {name, type, path}. Prints {version, seconds, rows}; seconds of CPU, without the start of the engine.
"""
import json
import resource
import sys


def tree_of(columns):
    """Returns nested dictionaries of fields, with types as leaves."""
    tree = {}
    for column in columns:
        *parents, last = column['path'][2:].split('.')
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = column['type']
    return tree


def names_of(column):
    return column['path'][2:].split('.')


def with_duckdb(lines, parquet, columns):
    import duckdb

    def type_of(node):
        if isinstance(node, str):
            return node
        return 'STRUCT(' + ', '.join(f'"{name}" {type_of(child)}' for name, child in node.items()) + ')'

    fields = ', '.join(f"'{name}': '{type_of(child)}'" for name, child in tree_of(columns).items())
    select = ', '.join('.'.join(f'"{name}"' for name in names_of(column)) + f' AS "{column["name"]}"' for column in columns)
    connection = duckdb.connect(config={'threads': 1})

    def run():
        connection.execute(
            f"COPY (SELECT {select} FROM read_json('{lines}', format = 'newline_delimited', columns = {{{fields}}}))"
            f" TO '{parquet}' (FORMAT parquet, COMPRESSION zstd)"
        )

    return duckdb.__version__, run


def with_polars(lines, parquet, columns):
    import polars

    types = {
        'UUID': polars.String,
        'VARCHAR': polars.String,
        'TIMESTAMP': polars.String,
        'BIGINT': polars.Int64,
        'INTEGER': polars.Int32,
        'DOUBLE': polars.Float64,
        'BOOLEAN': polars.Boolean,
    }

    def type_of(node):
        if isinstance(node, str):
            return types[node]
        return polars.Struct({name: type_of(child) for name, child in node.items()})

    def expression(column):
        first, *rest = names_of(column)
        value = polars.col(first)
        for name in rest:
            value = value.struct.field(name)
        if column['type'] == 'TIMESTAMP':
            value = value.str.to_datetime(time_unit='us', time_zone='UTC')
        return value.alias(column['name'])

    schema = {name: type_of(child) for name, child in tree_of(columns).items()}

    def run():
        read = polars.scan_ndjson(lines, schema=schema)
        read.select([expression(column) for column in columns]).sink_parquet(parquet, compression='zstd')

    return polars.__version__, run


def with_pyarrow(lines, parquet, columns):
    import pyarrow
    import pyarrow.json
    import pyarrow.parquet

    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    types = {
        'UUID': pyarrow.string(),
        'VARCHAR': pyarrow.string(),
        'TIMESTAMP': pyarrow.timestamp('us', 'UTC'),
        'BIGINT': pyarrow.int64(),
        'INTEGER': pyarrow.int32(),
        'DOUBLE': pyarrow.float64(),
        'BOOLEAN': pyarrow.bool_(),
    }

    def type_of(node):
        if isinstance(node, str):
            return types[node]
        return pyarrow.struct([(name, type_of(child)) for name, child in node.items()])

    schema = pyarrow.schema([(name, type_of(child)) for name, child in tree_of(columns).items()])

    def value_of(table, column):
        first, *rest = names_of(column)
        value = table[first]
        for name in rest:
            value = pyarrow.compute.struct_field(value, name)
        return value

    def run():
        import pyarrow.compute

        options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior='ignore')
        table = pyarrow.json.read_json(lines, pyarrow.json.ReadOptions(use_threads=False), options)
        result = pyarrow.table({column['name']: value_of(table, column) for column in columns})
        pyarrow.parquet.write_table(result, parquet, compression='zstd')

    return pyarrow.__version__, run


def with_clickhouse(lines, parquet, columns):
    import chdb

    types = {
        'UUID': 'Nullable(UUID)',
        'VARCHAR': 'Nullable(String)',
        'TIMESTAMP': "Nullable(DateTime64(6, 'UTC'))",
        'BIGINT': 'Nullable(Int64)',
        'INTEGER': 'Nullable(Int32)',
        'DOUBLE': 'Nullable(Float64)',
        'BOOLEAN': 'Nullable(Bool)',
    }

    def type_of(node):
        if isinstance(node, str):
            return types[node]
        return 'Tuple(' + ', '.join(f'{name} {type_of(child)}' for name, child in node.items()) + ')'

    structure = ', '.join(f'{name} {type_of(child)}' for name, child in tree_of(columns).items()).replace("'", "\\'")
    select = ', '.join('.'.join(f'`{name}`' for name in names_of(column)) + f' AS `{column["name"]}`' for column in columns)

    def run():
        chdb.query(
            f"SELECT {select} FROM file('{lines}', 'JSONEachRow', '{structure}') INTO OUTFILE '{parquet}' FORMAT Parquet"
            " SETTINGS max_threads = 1, input_format_parallel_parsing = 0, output_format_parallel_formatting = 0,"
            " input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort',"
            " output_format_parquet_compression_method = 'zstd', output_format_parquet_parallel_encoding = 0"
        )

    return chdb.query('SELECT version()').bytes().decode().strip().strip('"'), run


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


engines = {'DuckDB': with_duckdb, 'Polars': with_polars, 'pyarrow': with_pyarrow, 'ClickHouse': with_clickhouse}
engine, lines, parquet, columns = sys.argv[1:]
version, run = engines[engine](lines, parquet, json.loads(columns))
before = cpu_seconds()
run()
seconds = cpu_seconds() - before

import pyarrow.parquet  # Only after the measurement.

rows = pyarrow.parquet.read_metadata(parquet).num_rows
print(json.dumps({'version': version, 'seconds': seconds, 'rows': rows}))
