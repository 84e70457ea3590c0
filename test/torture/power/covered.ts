import { join } from 'node:path'

/** Returns whether a power loss may touch a path: what a node writes through `Files`. Scratch files are never read after a crash. */
export function coveredBy(data: string): (path: string) => boolean {
  const names = ['wal', 'outbox', 'parked', 'ingest-snapshot.ndjson', 'delivery-snapshot.ndjson']
  const starts = names.map((name) => join(data, 'node', name))
  return (path) => starts.some((start) => path.startsWith(start))
}
