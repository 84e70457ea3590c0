import { MiB } from '#lib/bytes.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Logger } from '#lib/telemetry.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { OutboxEntry, OutboxFiles } from './outbox-files.ts'
import type { OutboxQueue } from './outbox-queue.ts'

/** Limit for a batch of several commits, well below the bounds of control: a value in a commit has about ten bytes. */
const batchBytesMax = 2 * MiB

/** Commits that one endpoint adds to a request. */
export type Share = { readonly endpointId: string; readonly queue: OutboxQueue; readonly entries: readonly OutboxEntry[] }

/** The commits of one request, in the order of their shares. */
export type Batch = { readonly shares: readonly Share[]; readonly commits: readonly SegmentCommit[] }

export type LoadOptions = {
  readonly files: OutboxFiles
  /** Called for a damaged entry after it was set aside. */
  readonly onLost: (entry: OutboxEntry) => void
  readonly logger: Logger
}

/** Reads the commits of a request. An endpoint whose entry cannot be read sends those before it; the others are not affected. */
export async function loadBatch(shares: readonly Share[], options: LoadOptions): Promise<Batch> {
  const loaded: Share[] = []
  const commits: SegmentCommit[] = []
  let bytesLeft = batchBytesMax
  for (const { endpointId, queue, entries } of shares) {
    const readable: OutboxEntry[] = []
    for (const entry of entries) {
      const found = await read(queue, entry, options)
      if (found === 'held') break
      if (found === 'lost') continue
      bytesLeft -= found.bytes
      if (bytesLeft < 0 && commits.length > 0) break
      commits.push(found.commit)
      readable.push(entry)
    }
    if (readable.length > 0) loaded.push({ endpointId, queue, entries: readable })
    if (bytesLeft < 0) break
  }
  return { shares: loaded, commits }
}

async function read(
  queue: OutboxQueue,
  entry: OutboxEntry,
  { files, onLost, logger }: LoadOptions,
): Promise<{ readonly commit: SegmentCommit; readonly bytes: number } | 'held' | 'lost'> {
  try {
    const found = await files.read(entry)
    if (typeof found !== 'string') return found
    const file = await files.setAside(entry)
    logger.error(
      { endpoint: entry.endpoint_id, segment: entry.id, file, reason: found },
      'outbox entry damaged and set aside; its commit is made again from the marker in the bucket',
    )
    onLost(entry)
    return 'lost'
  } catch (error) {
    queue.delay(entry, `reading commit ${entry.id} from the outbox failed: ${errorMessage(error)}`)
    return 'held'
  }
}
