import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { Bucket } from './bucket.ts'

/** Removes files that no marker lists, so that nobody who reads folders finds records twice. A role that may not remove them can still deliver. */
export async function removeFiles(
  bucket: Bucket,
  keys: readonly string[],
  { signal, logger }: { readonly signal: AbortSignal; readonly logger: Logger },
): Promise<void> {
  for (const key of keys) {
    const failed = (error: unknown) =>
      logger.warn({ key, reason: errorMessage(error) }, 'file that no marker lists not removed: remove it by hand')
    await bucket.request('write', (store) => store.remove(key, signal).catch(failed))
  }
}
