import { SQLDialect } from '@codemirror/lang-sql'

/** Words of statements that only read: a dialect with everything would suggest words that nobody needs here. */
export const duckdb = SQLDialect.define({
  keywords: `all and any as asc between by case cast cross desc distinct else end escape except exclude exists false filter following
    from full group having ilike in inner intersect interval is join last lateral left like limit materialized not null nulls offset on
    or order outer over partition pivot preceding qualify range recursive replace right row rows sample select semi anti asof similar
    some then true try_cast unbounded union unnest unpivot using values when where window with`,
  builtin: `abs approx_count_distinct arg_max arg_min avg ceil coalesce concat count date_diff date_part date_trunc epoch epoch_ms first
    floor json_extract json_extract_string json_keys lag lead length list lower max median min mode now quantile_cont regexp_extract
    regexp_matches round row_number split_part stddev strftime substring sum time_bucket trim upper`,
  types: `bigint blob boolean date decimal double float hugeint integer interval json real smallint struct text time timestamp
    timestamptz tinyint ubigint uinteger usmallint utinyint uuid varchar`,
  operatorChars: '+-*/<>=~!@%^&|`?:',
  doubleDollarQuotedStrings: true,
  caseInsensitiveIdentifiers: true,
})
