import type { Db } from '../store.ts'

/** Keeps the credentials that nodes had before their logs were adopted: a machine that still presents one is told of the adoption. */
export async function up({ schema }: Db): Promise<void> {
  await schema
    .createTable('adopted_credentials')
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('credential_hash', 'text', (column) => column.notNull())
    .addColumn('adopted_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('adopted_credentials_pkey', ['node_id', 'credential_hash'])
    .execute()
}
