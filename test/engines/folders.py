"""Reads a folder of partitions with one engine, and prints id and country of each row as JSON: folders.py <engine> <folder>."""
import json
import sys


def read_duckdb(folder):
    import duckdb

    return duckdb.sql(f"SELECT id, country FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true)").fetchall()


def read_pyarrow(folder):
    import pyarrow.dataset

    return pairs(pyarrow.dataset.dataset(folder, format='parquet', partitioning='hive').to_table().to_pylist())


def read_polars(folder):
    import polars

    return pairs(polars.read_parquet(f'{folder}/**/*.parquet', hive_partitioning=True).to_dicts())


def read_datafusion(folder):
    import datafusion
    import pyarrow

    context = datafusion.SessionContext()
    columns = [('dt', pyarrow.string()), ('country', pyarrow.string())]
    context.register_parquet('orders', folder, table_partition_cols=columns)
    return pairs(pyarrow.table(context.sql('SELECT id, country FROM orders')).to_pylist())


def read_clickhouse(folder):
    import chdb

    statement = f"SELECT id, country FROM file('{folder}/*/*/*.parquet', Parquet) SETTINGS use_hive_partitioning = 1"
    return json.loads(str(chdb.query(statement, 'JSONCompact')))['data']


def read_spark(folder):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master('local[1]')
        .config('spark.ui.enabled', 'false')
        .config('spark.driver.host', '127.0.0.1')
        .config('spark.driver.bindAddress', '127.0.0.1')
        .getOrCreate()
    )
    session.sparkContext.setLogLevel('OFF')
    return [(row['id'], row['country']) for row in session.read.parquet(folder).collect()]


def pairs(rows):
    return [(row['id'], row['country']) for row in rows]


if __name__ == '__main__':
    engine, folder = sys.argv[1:]
    print(json.dumps(sorted([int(id), country] for id, country in globals()[f'read_{engine}'](folder))))
