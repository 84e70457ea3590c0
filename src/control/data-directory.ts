/** Checks of the data directory, made before control uses the database. */
import type { Clock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import type { Logger } from '#lib/telemetry.ts'
import { followRestored as follow } from '#store/restored.ts'
import type { Store } from '#store/store.ts'

type NodePaths = Readonly<Record<'ingestSnapshot' | 'deliverySnapshot' | 'wal' | 'outbox', string>>

/** Returns whether a node had a configuration here, holds data, or waits to report commits. */
export async function isNodeInUse({ ingestSnapshot, deliverySnapshot, wal, outbox }: NodePaths): Promise<boolean> {
  for (const path of [ingestSnapshot, deliverySnapshot]) if ((await systemFiles.bytes(path)) !== undefined) return true
  const logs = (await systemFiles.list(wal)).filter(({ kind }) => kind === 'directory')
  return logs.length + (await systemFiles.list(outbox)).length > 0
}

export async function followRestored(
  store: Store,
  { restored }: { readonly restored: string },
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Promise<void> {
  if (!(await follow(store, systemFiles, restored, clock.now()))) return
  logger.notice('database restored from a backup: nodes follow it; record what was delivered after it (inlet commits rebuild)')
}
