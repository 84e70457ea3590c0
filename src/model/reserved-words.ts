/**
 * Words that the engines which read files reserve: as the name of a column, a query must quote them.
 *
 * Sources: DuckDB 2.0 `duckdb_keywords()` (reserved, type_function); https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html (ANSI mode);
 * https://trino.io/docs/current/language/reserved.html, which Athena shares; https://cloud.google.com/bigquery/docs/reference/standard-sql/lexical;
 * https://docs.snowflake.com/en/sql-reference/reserved-keywords; Postgres 15 `pg_get_keywords()` (R, T);
 * https://docs.aws.amazon.com/redshift/latest/dg/r_pg_keywords.html. Those with an address as SQLFluff 4.5 lists them.
 */
const reserved = {
  DuckDB: `
    all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check collate
    collation column columns concurrently constraint create cross default deferrable desc describe distinct do else end
    except false fetch for foreign freeze from full generated glob group having ilike in initially inner intersect into is
    isnull join lambda lateral leading left like limit map natural not notnull null offset on only or order outer overlaps
    pivot pivot_longer pivot_wider placing positional primary qualify references returning right select semi show similar
    some struct summarize symmetric table tablesample then to trailing true try_cast tuple union unique unpack unpivot using
    variadic verbose when where window with`,
  Spark: `
    all and any as authorization both case cast check collate column constraint create cross current_date current_time
    current_timestamp current_user else end escape except false fetch filter for foreign from full grant group having in
    inner intersect into is join leading natural not null on only or order outer overlaps primary references select
    session_user some table then to trailing union unique unknown user using when where with`,
  Trino: `
    alter and as between by case cast constraint create cross cube current_catalog current_date current_path current_role
    current_schema current_time current_timestamp current_user deallocate delete describe distinct drop else end escape
    except execute exists extract false for from full function group grouping having in inner insert intersect into is join
    json_array json_exists json_object json_query json_table json_value left like listagg localtime localtimestamp natural
    normalize not null on or order outer prepare recursive right rollup select skip table then trim true uescape union
    unnest using values when where with`,
  BigQuery: `
    aggregate all and any array as asc assert_rows_modified at between by case cast clone collate contains corresponding
    create cross cube current default define desc distinct else end enum escape except exclude exists extend false fetch
    following for from full group grouping groups hash having if ignore in include inner intersect interval into is join
    lateral left like limit lookup merge new no not null nulls of on or order outer over partition pivot preceding primary
    proto range recursive respect right rollup rows select set some struct tablesample then to treat true unbounded union
    unnest unpivot using when where window with within`,
  Snowflake: `
    all alter and any as between by cast check connect constraint create current current_date current_time current_timestamp
    delete distinct drop else exists false following for from full grant group having ilike in increment inner insert
    intersect into is join lateral left like localtime localtimestamp minus natural not null of on or order qualify regexp
    revoke right rlike row rows sample select set some start table tablesample then to trigger try_cast union unique update
    using values when whenever where with`,
  Postgres: `
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column
    concurrently constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze from
    full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit localtime
    localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references returning
    right select session_user similar some symmetric table tablesample then to trailing true union unique user using
    variadic verbose when where window with`,
  Redshift: `
    aes128 aes256 all allowoverwrite analyse analyze and any append array as asc authorization az64 between binary
    blanksasnull both bytedict case cast check collate column comprows compupdate constraint create credentials cross
    current_date current_time current_timestamp current_user current_user_id datetime default deferrable defrag delimiters
    delta delta32k desc disable distinct do else emptyasnull enable encrypt encryption end except explicit_ids false
    fillrecord for foreign freeze from full globaldict256 globaldict64k grant group having identity ignore ignoreblanklines
    ignoreheader ilike in initially inner intersect into is isnull join leading left like limit localtime localtimestamp lun
    luns lzo minus mostly16 mostly32 mostly8 natural new not notnull null nulls off offset oid old on only open or order
    outer overlaps parallel partition percent permissions pivot placing primary raw readratio recover references rejectlog
    resort respect restore right runlength select session_user similar snapshot some sysdate system table tag tdes text255
    text32k then timestamp to top trailing true truncatecolumns union unique unnest unpivot user using verbose when where
    with within without`,
} as const

const enginesByWord = new Map<string, string[]>()
for (const [engine, words] of Object.entries(reserved)) {
  for (const word of words.trim().split(/\s+/)) enginesByWord.set(word, [...(enginesByWord.get(word) ?? []), engine])
}

/** Returns the engines in which the name is a reserved word. Case is ignored. */
export function reservingEngines(name: string): readonly string[] {
  return enginesByWord.get(name.toLowerCase()) ?? []
}
