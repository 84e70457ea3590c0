import { duckdb, formatDialect } from 'sql-formatter'

const options = {
  dialect: duckdb,
  expressionWidth: 120,
  ...({ keywordCase: 'preserve', identifierCase: 'preserve', functionCase: 'preserve', dataTypeCase: 'preserve' } as const),
} as const

/** Breaks the compiler's SQL into indented lines, adding and removing only white space between tokens. */
export function formatSql(sql: string): string {
  try {
    return formatDialect(sql, options)
  } catch {
    // The statement is only for display. If the formatter cannot parse it, it is returned unformatted.
    return sql
  }
}
