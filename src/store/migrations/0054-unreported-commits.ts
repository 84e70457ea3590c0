import { sql } from 'kysely'
import type { Db } from '../store.ts'

/**
 * Adds since when an adopted machine may have delivered what it could not report, in which region, and from when on its markers are read.
 * Machines that were adopted before have neither: their commits are left to the operator, as they were.
 */
export async function up({ schema }: Db): Promise<void> {
  await schema.alterTable('adopted_credentials').addColumn('region', 'text').execute()
  await schema.alterTable('adopted_credentials').addColumn('unreported_since', 'bigint').execute()
  await schema
    .alterTable('missing_commits')
    .addColumn('not_before', 'bigint', (added) => added.notNull().defaultTo(sql.lit(0)))
    .execute()
}
