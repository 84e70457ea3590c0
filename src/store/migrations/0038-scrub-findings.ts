import { sql } from 'kysely'
import type { Db } from '../store.ts'

/** Adds what the scrub of a node found of an endpoint. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .alterTable('endpoint_lags')
    .addColumn('scrub_findings', 'bigint', (column) => column.notNull().defaultTo(sql.lit(0)))
    .execute()
  await schema.alterTable('endpoint_lags').addColumn('scrub_finding', 'text').execute()
}
