/** Content of the bodies that a path accepts: records, log records of OpenTelemetry, or events of a tracking API, one by one or in batches. */
export type ContentKind = 'records' | 'logs' | 'event' | 'batch'

/** The paths that take records. The tracking API is that of Segment, which libraries for many languages speak. */
export const recordPaths: ReadonlyMap<string, ContentKind> = new Map([
  ['/v1/ingest', 'records'],
  ['/v1/logs', 'logs'],
  ['/v1/batch', 'batch'],
  ['/v1/b', 'batch'],
  ['/v1/import', 'batch'],
  ['/v1/track', 'event'],
  ['/v1/identify', 'event'],
  ['/v1/page', 'event'],
  ['/v1/screen', 'event'],
  ['/v1/group', 'event'],
  ['/v1/alias', 'event'],
])

/** Before the id of a receipt: what became of its records. */
export const receiptPath = '/v1/ingest/receipts/'

/** Where exporters of OpenTelemetry send what Inlet does not take. */
const otherExports: ReadonlySet<string> = new Set(['/v1/traces', '/v1/metrics'])

/** Returns advice for a request to a path that does not exist. */
export function adviceFor(path: string): string {
  return otherExports.has(path) ? 'of OpenTelemetry only logs are taken, at /v1/logs' : 'send events with POST /v1/ingest'
}
