import { z } from 'zod'
import { MayLackCommitsSince } from './commit.ts'
import { Id } from './id.ts'
import { queryLimits } from './limits.ts'
import { Timestamp, TimestampInput } from './timestamp.ts'

export const RunQuery = z
  .strictObject({
    sql: z
      .string()
      .min(1)
      .max(queryLimits.sqlCharsMax)
      .refine((text) => text.isWellFormed() && !text.includes('\0'), 'must be well-formed text without NUL')
      .meta({ description: 'one SELECT statement in the dialect of DuckDB', examples: ['SELECT * FROM orders LIMIT 100'] }),
    since: TimestampInput.optional().meta({ description: 'reads only files that were delivered at this time or later' }),
    until: TimestampInput.optional().meta({ description: 'reads only files that were delivered before this time' }),
    endpoint_id: Id.optional().meta({ description: 'reads only files of this endpoint' }),
    max_rows: z.int().min(1).max(queryLimits.rowsMax).default(queryLimits.rowsDefault),
  })
  .refine(({ since, until }) => since === undefined || until === undefined || since < until, {
    path: ['until'],
    message: 'must be later than since',
  })
export type RunQuery = z.infer<typeof RunQuery>

/** A table that the statement names, and what was read of it. */
export const QueriedTable = z.object({
  name: z.string().meta({ description: 'as the statement names it', examples: ['orders'] }),
  kind: z.enum(['view', 'raw']),
  view_id: Id.nullable(),
  view_version: z.int().nullable(),
  endpoint_id: Id.nullable().meta({ description: 'of `raw`: whose records they are' }),
  files: z.int().meta({ description: 'files that were read, the newest ones' }),
  bytes: z.int(),
  missing: z.int().meta({ description: 'files that are no longer in the bucket' }),
  complete: z.boolean().meta({
    description:
      'whether all files in the time range were read; if not, the result is about the rows since `oldest`, unless `may_lack_commits_since` is set',
  }),
  may_lack_commits_since: MayLackCommitsSince,
  oldest: Timestamp.nullable().meta({ description: 'when the oldest file that was read was delivered; null without a file' }),
  newest: Timestamp.nullable(),
})
export type QueriedTable = z.infer<typeof QueriedTable>

const Row = z.array(z.any()).meta({
  description:
    'values in the order of the columns; BIGINT, HUGEINT and DECIMAL are strings, times are ISO 8601 and instants end in `Z`, NaN and infinities are strings',
})

export const QueryResult = z.object({
  columns: z.array(z.object({ name: z.string(), type: z.string() })),
  rows: z.array(Row),
  row_count: z.int().meta({ description: 'number of `rows`' }),
  truncated: z.enum(['rows', 'bytes']).nullable().meta({
    description: 'whether the statement has more rows than `max_rows`, or than fit into a response; null if `rows` has all',
  }),
  tables: z.array(QueriedTable),
  elapsed_ms: z.int().meta({ description: 'how long the statement ran' }),
})
export type QueryResult = z.infer<typeof QueryResult>
