/** Every kind of file that Inlet writes, with the reader that judges damage to it. A file of no kind fails the test. */
import type { DamageName } from './damages.ts'
import {
  type Judge,
  judgeCredential,
  judgeDatabase,
  judgeForPeople,
  judgeId,
  judgeKeys,
  judgeLog,
  judgeMarkerKey,
  judgeNodeToken,
  judgeObject,
  judgeOperatorToken,
  judgeOutbox,
  judgeOwner,
  judgeRecordedCommits,
  judgeRewritten,
  judgeScratch,
  judgeSecretKey,
  judgeSnapshot,
} from './judges.ts'

export type Kind = {
  readonly name: string
  /** Pattern of the path, relative to the data directory. */
  readonly pattern: RegExp
  readonly judge: Judge
  /** Files of it are not alike: another one is not a copy of before. */
  readonly isSingle?: boolean
  /** Damage that nothing notices, and why that is accepted. */
  readonly accepted?: Partial<Record<DamageName, string>>
  /** Why the populated directory has no file of it. */
  readonly absent?: string
}

const id = '[0-9a-f-]{36}'
const object = `buckets/lake/in/let/${id}`
const day = 'dt=\\d{4}-\\d{2}-\\d{2}'
const log = `node/wal/${id}`

const kind = (name: string, pattern: string, judge: Judge, more: Pick<Kind, 'accepted' | 'absent' | 'isSingle'> = {}): Kind => ({
  name,
  pattern: new RegExp(`^${pattern}$`),
  judge,
  ...more,
})

const uncheckedPages =
  'SQLite has no checksums of pages: it refuses a page whose structure is broken, and reads a changed value in a row as it is'

export const kinds: readonly Kind[] = [
  kind('a sealed segment', `${log}/\\d{12}-[a-z0-9]{10}\\.wal`, judgeLog, {
    accepted: { remove: 'a segment that somebody removes leaves a gap of seqs, which inlet scrub lists' },
  }),
  kind('an open segment', `${log}/\\d{12}-[a-z0-9]{10}\\.open`, judgeLog),
  kind('the high water of a log', `${log}/high-water`, judgeLog),
  kind('the list of open segments', 'node/wal/open-segments', judgeLog),
  kind('the key of salts', 'node/wal/salt-key', judgeLog),
  kind('a quarantined segment and its note', `${log}/\\d{12}-[a-z0-9]{10}\\.quarantine(\\.json)?`, judgeLog, {
    absent: 'nothing is damaged; test/crash/wal-salvage.test.ts',
  }),
  kind('a segment that is repaired', `${log}/\\d{12}-[a-z0-9]{10}\\.(poisoned|salvage)`, judgeLog, {
    absent: 'no disk failed; test/crash/wal-faults.test.ts',
  }),
  kind('the mark of a closed log', `${log}/closed`, judgeLog, { absent: 'no endpoint drains; test/crash/wal-close.test.ts' }),
  kind('the id of the node', 'node/id', judgeId),
  kind('the id beside the log', 'node/wal/node-id', judgeId),
  kind('a report in the outbox', `node/outbox/${id}\\.${id}-[a-z0-9]{10}-\\d{12}\\.json`, judgeOutbox),
  kind('idempotency keys', 'node/stored-requests/\\d+\\.requests', judgeKeys),
  kind('the counts of idempotency keys', 'node/stored-requests/counts', judgeKeys),
  kind('a damaged file of keys that was kept', 'node/stored-requests/\\d+\\.quarantine', judgeForPeople, {
    absent: 'no key is damaged; src/ingest/idempotency/damaged-requests.test.ts',
  }),
  kind('the credential of the node', 'node/credential', judgeCredential),
  kind('the key of markers', 'node/marker-key', judgeMarkerKey),
  kind('a stored snapshot', 'node/(ingest|delivery)-snapshot\\.ndjson', judgeSnapshot, { isSingle: true }),
  kind('reasons of blocked logs, and the state of the scrub', 'node/((ingest|delivery)-blocked|scrub)\\.json', judgeRewritten),
  kind('the number of recorded commits', 'node/recorded-commits\\.json', judgeRecordedCommits, { isSingle: true }),
  kind('the newest timelines of the database', 'database-timelines\\.json', judgeForPeople, {
    absent: 'only on Postgres; src/store/cluster/timeline-file.test.ts damages it',
  }),
  kind('the mark of a restore', 'restored\\.json', judgeForPeople, {
    absent: 'only between inlet restore and the next start, which refuses it if it is damaged; test/store/restored.test.ts',
  }),
  kind('a parked segment', `node/parked/${id}-[a-z0-9]{10}-\\d{12}\\.parked\\.json`, judgeForPeople, {
    absent: 'nothing fails to convert; delivery reads damage as an unknown reason, and every start tries again',
  }),
  kind('the links of traces', 'node/trace-links(/.*)?', judgeForPeople, { absent: 'traces are off, and hold no data' }),
  kind('an assignment', 'node/assignments/.+', judgeForPeople, {
    absent: 'inlet segments deliver writes it and waits for its end',
  }),
  kind('certificates of the node and of control', 'node/(certificate|control-ca)\\.pem', judgeForPeople, {
    absent: 'without TLS; fetched again from control',
  }),
  kind('an index of keys', `node/windows/${id}/${id}\\.db(-journal)?`, judgeForPeople, {
    absent: 'no view has a window; src/delivery/windows/key-index.test.ts and test/delivery/windows.test.ts damage it',
  }),
  kind('scratch of conversions', 'node/scratch/.+', judgeScratch, { absent: 'no conversion was running' }),
  kind('locks', '(inlet\\.db|node/(ingest|delivery))\\.lock(-journal)?', judgeRewritten),
  kind('the database', 'inlet\\.db', judgeDatabase, {
    accepted: {
      'flip in the middle': uncheckedPages,
      'flip at the tail': uncheckedPages,
      'cut by a byte': uncheckedPages,
    },
  }),
  kind('the log of the database', 'inlet\\.db-wal', judgeDatabase),
  kind('the index of the log of the database', 'inlet\\.db-shm', judgeDatabase),
  kind('the secret of the nodes', 'node-token', judgeNodeToken),
  kind('the token of the operator', 'operator-token', judgeOperatorToken),
  kind('the key of secrets', 'secret-key', judgeSecretKey),
  kind('for people: the first key and the first link', '(first-api-key|sign-in-link)', judgeForPeople),
  kind('the development CA', 'development-ca\\.pem', judgeForPeople, { absent: 'without TLS; made anew' }),
  kind('the owner of a bucket folder', 'buckets/\\.owners/.+', judgeOwner),
  kind('an upload that is not complete', 'buckets/\\.incoming/.+', judgeForPeople, {
    absent: 'none was interrupted; overwritten',
  }),
  kind('a marker', `${object}/commits/${day}/${id}-[a-z0-9]{10}-\\d{12}(\\.[a-z_0-9-]+)?\\.json`, judgeObject),
  kind('the marker of a compaction', `${object}/commits/${day}/compact-${id}\\.json`, judgeObject),
  kind('a raw segment', `${object}/segments/${day}/.+\\.wal\\.zst`, judgeObject),
  kind('raw Parquet', `${object}/parquet/${day}/.+\\.parquet`, judgeObject),
  kind('Parquet of a view', `${object}/views/numbers/v1/${day}/.+\\.parquet`, judgeObject),
  kind('dead letters', `${object}/dlq/numbers/v1/${day}/.+\\.ndjson\\.gz`, judgeObject),
  kind('a merged file', `${object}/compacted/(parquet|views/numbers/v1)/${day}/compact-.+\\.parquet`, judgeObject),
]

export function kindsOf(path: string): readonly Kind[] {
  return kinds.filter(({ pattern }) => pattern.test(path))
}
