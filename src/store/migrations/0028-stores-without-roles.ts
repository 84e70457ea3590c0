import type { Db } from '../store.ts'

/** Adds what an account may use without a role, and which headers a store takes. Destinations with a key encrypt with it. */
export async function up(db: Db): Promise<void> {
  const { schema } = db
  await schema.alterTable('accounts').addColumn('allowed_buckets', 'text').execute()
  await schema
    .alterTable('destinations')
    .addColumn('encryption', 'text', (column) => column.notNull().defaultTo('sse-s3'))
    .execute()
  await schema
    .alterTable('destinations')
    .addColumn('checksums', 'text', (column) => column.notNull().defaultTo('standard'))
    .execute()
  await db.updateTable('destinations').set({ encryption: 'kms' }).where('kms_key_arn', 'is not', null).execute()
}
