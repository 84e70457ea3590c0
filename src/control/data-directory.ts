/** Checks of the data directory, made before control uses the database. */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { findFirstDelivery, noteMissingCommits } from '#store/commits/missing-commits.ts'
import { applyRestore as apply } from '#store/commits/restored.ts'
import { newestHeartbeat } from '#store/nodes/nodes.ts'
import { type Store, transact } from '#store/store.ts'

type NodePaths = Readonly<Record<'ingestSnapshot' | 'deliverySnapshot' | 'wal' | 'outbox', string>>

/** Returns whether a node had a configuration here, holds data, or waits to report commits. */
export async function isNodeInUse({ ingestSnapshot, deliverySnapshot, wal, outbox }: NodePaths): Promise<boolean> {
  for (const path of [ingestSnapshot, deliverySnapshot]) if ((await systemFiles.bytes(path)) !== undefined) return true
  const logs = (await systemFiles.list(wal)).filter(({ kind }) => kind === 'directory')
  return logs.length + (await systemFiles.list(outbox)).length > 0
}

export async function applyRestore(
  store: Store,
  { restored }: { readonly restored: string },
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<void> {
  if (!(await apply(store, systemFiles, restored, clock.now()))) return
  logger.notice('database restored from a backup: nodes follow it; record what was delivered after it (inlet commits rebuild)')
}

/** Notes that commits may be missing, if the write-ahead log of the database was damaged. SQLite has opened the database without them. */
export async function noteDamagedLog(
  store: Store,
  database: string,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<void> {
  const since = (await newestHeartbeat(store.db)) ?? (await findFirstDelivery(store.db))
  await transact(store, (db) => noteMissingCommits(db, null, since, clock.now()))
  logger.error(
    { path: `${database}-wal`, since: isoTimestamp(since) },
    'the log of the database is damaged: what was written last is lost, and commits may be missing; record them again (inlet commits rebuild). docs/how-to/lost-database.md',
  )
}
