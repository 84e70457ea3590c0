import { identifier, type QueryTable } from '../../api/query.ts'

export type ReadyQuery = { readonly title: string; readonly sql: string }

/** Statements that most people write first, for the columns that a table has. */
export function readyQueries({ name, kind, columns }: QueryTable): readonly ReadyQuery[] {
  const time = columns.find(({ type }) => type.startsWith('TIMESTAMP') && !type.endsWith(']'))
  const text = columns.find(({ type }) => type === 'VARCHAR')
  const figure = columns.find(({ type }) => isFigure(type))
  const queries: (ReadyQuery | undefined)[] = [
    latest(name, time?.name),
    { title: 'Count rows', sql: `SELECT count(*) AS rows\nFROM ${name}` },
    time && perMinute(name, time.name),
    kind === 'raw' ? byTopic(name) : text && frequent(name, text.name),
    kind === 'raw' ? undefined : figure && spread(name, figure.name),
    kind === 'raw' ? undefined : nulls(name, columns),
  ]
  return queries.filter((query) => query !== undefined)
}

function isFigure(type: string): boolean {
  return /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|UINTEGER|FLOAT|DOUBLE|DECIMAL(\(.*\))?)$/.test(type)
}

function latest(name: string, time: string | undefined): ReadyQuery {
  if (time === undefined) return { title: 'Look at rows', sql: `SELECT *\nFROM ${name}\nLIMIT 100` }
  return { title: 'Latest rows', sql: `SELECT *\nFROM ${name}\nORDER BY ${identifier(time)} DESC\nLIMIT 100` }
}

function perMinute(name: string, time: string): ReadyQuery {
  const minute = `time_bucket(INTERVAL '1 minute', ${identifier(time)})`
  return {
    title: 'Rows per minute',
    sql: `SELECT ${minute} AS minute, count(*) AS rows\nFROM ${name}\nGROUP BY minute\nORDER BY minute`,
  }
}

function byTopic(name: string): ReadyQuery {
  const sql = `SELECT protocol, topic, count(*) AS records\nFROM ${name}\nGROUP BY ALL\nORDER BY records DESC\nLIMIT 50`
  return { title: 'Records by topic', sql }
}

function frequent(name: string, column: string): ReadyQuery {
  const text = identifier(column)
  const sql = `SELECT ${text}, count(*) AS rows\nFROM ${name}\nGROUP BY ALL\nORDER BY rows DESC\nLIMIT 20`
  return { title: `Most frequent ${column}`, sql }
}

function spread(name: string, column: string): ReadyQuery {
  const figure = identifier(column)
  const measures = [
    `min(${figure}) AS lowest`,
    `quantile_cont(${figure}, 0.5) AS median`,
    `quantile_cont(${figure}, 0.99) AS p99`,
    `max(${figure}) AS highest`,
  ]
  return { title: `Spread of ${column}`, sql: `SELECT ${measures.join(',\n       ')}\nFROM ${name}` }
}

/** At most so many columns: more are not read in one row. */
const nullColumnsMax = 20

function nulls(name: string, columns: QueryTable['columns']): ReadyQuery {
  const counts = columns
    .slice(0, nullColumnsMax)
    .map((column) => `count(*) - count(${identifier(column.name)}) AS ${identifier(column.name)}`)
  return { title: 'NULLs by column', sql: `SELECT count(*) AS all_rows,\n       ${counts.join(',\n       ')}\nFROM ${name}` }
}
