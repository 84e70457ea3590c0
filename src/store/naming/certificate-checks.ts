/** Results of control's last check of the certificate at each address of a node. */
import { inChunks } from '../chunks.ts'
import { fromTimeOrNull, toStorableText, toTime, toTimeOrNull } from '../columns.ts'
import type { Db } from '../store.ts'

export type CertificateCheck = {
  readonly node_id: string
  readonly address: string
  readonly port: number
  /** The alternative names of the certificate, as in `DNS:*.fra.example.com`. Empty after a failure. */
  readonly names: string
  readonly not_before: string | null
  readonly not_after: string | null
  /** Why there was no handshake; null after one. */
  readonly error: string | null
  readonly checked_at: string
}

export async function listCertificateChecks(db: Db, nodeIds: readonly string[]): Promise<readonly CertificateCheck[]> {
  const checks: CertificateCheck[] = []
  for (const ids of inChunks(nodeIds)) {
    const rows = await db.selectFrom('certificate_checks').selectAll().where('node_id', 'in', ids).execute()
    checks.push(
      ...rows.map((row) => ({
        ...row,
        not_before: toTimeOrNull(row.not_before),
        not_after: toTimeOrNull(row.not_after),
        checked_at: toTime(row.checked_at),
      })),
    )
  }
  return checks
}

/** Forgets what was seen at addresses that their nodes do not have any more. */
export async function removeCertificateChecks(db: Db, gone: readonly Pick<CertificateCheck, 'node_id' | 'address' | 'port'>[]) {
  for (const { node_id, address, port } of gone)
    await db
      .deleteFrom('certificate_checks')
      .where(({ and }) => and({ node_id, address, port }))
      .execute()
}

/** Replaces what was seen at these addresses, each named once. */
export async function recordCertificateChecks(db: Db, checks: readonly Omit<CertificateCheck, 'checked_at'>[], now: number) {
  for (const some of inChunks(checks))
    await db
      .insertInto('certificate_checks')
      .values(
        some.map((check) => ({
          ...check,
          names: toStorableText(check.names),
          error: check.error === null ? null : toStorableText(check.error),
          not_before: fromTimeOrNull(check.not_before),
          not_after: fromTimeOrNull(check.not_after),
          checked_at: now,
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(['node_id', 'address', 'port']).doUpdateSet(({ ref }) => ({
          names: ref('excluded.names'),
          not_before: ref('excluded.not_before'),
          not_after: ref('excluded.not_after'),
          error: ref('excluded.error'),
          checked_at: ref('excluded.checked_at'),
        })),
      )
      .execute()
}
