import { PostgresDialect } from 'kysely'
import pg from 'pg'
import { storeLimits } from './limits.ts'

const int8 = 20

export type PostgresOptions = {
  /** Called when an idle connection is lost. The pool opens a new one on demand. */
  readonly onConnectionLost: (error: Error) => void
}

export function postgresDialect(url: string, { onConnectionLost }: PostgresOptions): PostgresDialect {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'inlet',
    max: storeLimits.poolConnectionsMax,
    connectionTimeoutMillis: storeLimits.connectTimeoutMs,
    statement_timeout: storeLimits.statementTimeoutMs,
    idle_in_transaction_session_timeout: storeLimits.statementTimeoutMs,
    types: {
      getTypeParser: ((oid: number, format?: 'text') =>
        oid === int8 ? parseSafeInteger : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  })
  pool.on('error', onConnectionLost)
  // The pool reports only errors of idle connections. For a connection in use, the query fails.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return new PostgresDialect({ pool })
}

function parseSafeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`integer from the database exceeds 2^53: ${text}`)
  return value
}
