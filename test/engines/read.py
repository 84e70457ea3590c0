"""Reads Parquet with one engine, and prints its rows as JSON in one form for all engines: read.py <engine> <file>…

Instants end in Z, decimals and integers are text with every digit, bytes are hexadecimal, and a float is what Python prints.
"""
import datetime
import decimal
import json
import sys
import uuid


def form(value):
    if value is None or isinstance(value, bool):
        return value
    if type(value).__name__ in ('NAType', 'NaTType'):
        return None
    if hasattr(value, 'tolist') and not isinstance(value, (str, bytes)):
        return form(value.tolist())
    if isinstance(value, (list, tuple)):
        return [form(item) for item in value]
    if type(value).__name__ == 'Series':
        return [form(item) for item in value.to_list()]
    if isinstance(value, decimal.Decimal):
        return format(value, 'f')
    if isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec='microseconds')
        if value.tzinfo is None:
            return text
        assert value.utcoffset() == datetime.timedelta(0)
        return text + 'Z'
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return str(value) if isinstance(value, (int, str, uuid.UUID)) else repr(float(value))


def of_arrow(table):
    return [str(field.type) for field in table.schema], table.to_pylist()


def read_duckdb(path):
    import duckdb

    duckdb.sql("SET TimeZone = 'UTC'")
    read = duckdb.sql(f"FROM read_parquet('{path}', hive_partitioning = false)")
    return [str(each) for each in read.types], read.to_arrow_table().to_pylist()


def read_pyarrow(path):
    import pyarrow.parquet

    return of_arrow(pyarrow.parquet.read_table(path))


def read_pandas(path):
    import pandas

    # NumPy's integers have no NULL: pandas would make them doubles.
    frame = pandas.read_parquet(path, dtype_backend='pyarrow')
    rows = [dict(zip(frame.columns, row)) for row in frame.itertuples(index=False, name=None)]
    return [str(each) for each in frame.dtypes], rows


def read_polars(path):
    import polars

    frame = polars.read_parquet(path)
    return [str(each) for each in frame.dtypes], frame.to_dicts()


def read_datafusion(path):
    import datafusion
    import pyarrow

    return of_arrow(pyarrow.table(datafusion.SessionContext().read_parquet(path)))


def read_clickhouse(path):
    import chdb

    source = f"file('{path}', Parquet)"
    names = json.loads(str(chdb.query(f'DESCRIBE {source}', 'JSON')))['data']
    # Its strings are bytes.
    settings = 'SETTINGS output_format_arrow_string_as_string = 0'
    _, rows = of_arrow(chdb.query(f'SELECT * FROM {source} {settings}', 'ArrowTable'))

    def text(value):
        if isinstance(value, list):
            return [text(item) for item in value]
        return value.decode() if isinstance(value, bytes) else value

    blobs = ('blob', 'payload_bytes')
    texts = [{name: value if name in blobs else text(value) for name, value in row.items()} for row in rows]
    return [each['type'] for each in names], texts


def read_spark(path):
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master('local[1]')
        .config('spark.ui.enabled', 'false')
        .config('spark.driver.host', '127.0.0.1')
        .config('spark.driver.bindAddress', '127.0.0.1')
        .config('spark.sql.session.timeZone', 'UTC')
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel('OFF')
    frame = spark.read.parquet(path)
    types = {field.name: field.dataType.simpleString() for field in frame.schema}

    # Python's own conversion fails for the year 1. Spark prints instants in the zone of the session.
    def utc(value):
        if isinstance(value, list):
            return [utc(item) for item in value]
        return value and datetime.datetime.fromisoformat(value).replace(tzinfo=datetime.timezone.utc)

    instants = {name: kind.replace('timestamp', 'string') for name, kind in types.items() if kind in ('timestamp', 'array<timestamp>')}
    printed = frame.select([frame[name].cast(instants[name]) if name in instants else frame[name] for name in types])
    scales = {field.name: field.dataType.scale for field in frame.schema if field.dataType.typeName() == 'decimal'}

    # It returns a small decimal with more zeros than its type has.
    def of(name, value):
        if name in scales and value is not None:
            return value.quantize(decimal.Decimal(1).scaleb(-scales[name]), context=decimal.Context(prec=80))
        return utc(value) if name in instants else value

    return list(types.values()), [{name: of(name, value) for name, value in row.asDict().items()} for row in printed.collect()]


def read(engine, path):
    try:
        types, rows = globals()[f'read_{engine}'](path)
        return {'types': types, 'rows': [{name: form(value) for name, value in row.items()} for row in rows]}
    except Exception as error:
        return {'error': str(error).strip()[:500]}


if __name__ == '__main__':
    engine, *paths = sys.argv[1:]
    print(json.dumps([read(engine, path) for path in paths]))
