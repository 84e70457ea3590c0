/**
 * Runs the reader of a damaged file, and says how the damage ended.
 *
 * Law: a judge throws if the damage was silent: something is missing or changed, and nothing was refused, counted or reported; or if something
 * else than what was damaged came to harm.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { openKeyring } from '#auth/secret-key.ts'
import { hashApiKey } from '#auth/secrets.ts'
import { readOrCreateNodeToken, readOrCreateOperatorToken } from '#auth/token-files.ts'
import { readDelivered } from '#cli/scrub/database.ts'
import { dataPaths } from '#config/data-paths.ts'
import { MarkerSeal } from '#delivery/publish/marker-seal.ts'
import { BucketScrub } from '#delivery/scrub/scrub-bucket.ts'
import { scrubNode } from '#delivery/scrub/scrub-node.ts'
import { readScrubState } from '#delivery/scrub/scrub-state.ts'
import { Janitor } from '#delivery/segments/janitor.ts'
import { RequestFiles } from '#ingest/idempotency/request-files.ts'
import { decodeStoredRequest, STORED_REQUEST_BYTES } from '#ingest/idempotency/stored-request.ts'
import { systemClock } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { systemFiles } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { LocalLogWriter } from '#log/local/log-writer.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import type { SegmentCommit } from '#model/commit.ts'
import type { Finding } from '#model/scrub.ts'
import { readBlocked } from '#node/blocked-file.ts'
import { NodeCredential } from '#node/credential.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { Outbox } from '#node/outbox.ts'
import { OutboxFiles } from '#node/outbox-files.ts'
import { RecordedCommits } from '#node/recorded-commits.ts'
import { SnapshotFile } from '#node/snapshot-file.ts'
import { SnapshotSections, type SnapshotUpdate } from '#node/snapshot-sections.ts'
import { DirectoryStores } from '#objects/directory.ts'
import { currentPosition } from '#store/cluster/epoch.ts'
import { claimNodeId } from '#store/nodes/node-credentials.ts'
import { findKeyInUse, openSecrets } from '#store/sealed-secrets.ts'
import { openStore, transact } from '#store/store.ts'
import { SegmentError } from '../../src/log/segment-error.ts'
import { until } from '../support/until.ts'
import { type Populated, readRows } from './populated.ts'

export type Case = {
  /** The intact original. */
  readonly populated: Populated
  /** A copy of the data directory with the damage. */
  readonly data: string
  /** The damaged file, relative to the data directory. */
  readonly path: string
}

/** How the damage ended, with what was said about it. */
export type Verdict = { readonly end: 'no harm' | 'repaired' | 'refused' | 'shown'; readonly said?: string }
export type Judge = (damaged: Case) => Promise<Verdict>

const signal = new AbortController().signal

function listen() {
  const lines: string[] = []
  const stream = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk))
      done()
    },
  })
  return { lines, logger: createLogger('damage', 'warn', undefined, stream) }
}

async function refusedOr(read: () => Promise<Verdict>): Promise<Verdict> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Silent) throw error
    const said = errorMessage(error)
    if (said.length < 10) throw new Silent(`refused without a reason: ${said}`)
    return { end: 'refused', said }
  }
}

export class Silent extends Error {
  override readonly name: string = 'Silent'
}

/** Something else than what was damaged came to harm. No kind of file may accept that. */
export class OtherHarmed extends Silent {
  override readonly name = 'OtherHarmed'
}

/** Recovers the log as ingest does, and reads it as delivery does. */
export const judgeLog: Judge = async ({ data, path, populated }) => {
  const { wal: directory, outbox } = dataPaths(data)
  const files = systemFiles
  const { lines, logger } = listen()
  const segments = new LocalSegmentSource({ ...system, directory, files })
  const findings: Finding[] = []
  const outboxFiles = new OutboxFiles({ directory: outbox, files })
  await scrubNode({ segments, outbox: outboxFiles, onRead: () => undefined, onFinding: (found) => findings.push(found), signal })
  const isRemoved = (await files.bytes(join(data, path))) === undefined
  const isDelivered = ({ logName, seq }: { logName: string; seq: number }) => logName === populated.delivered && seq < 3
  const wal = new LocalLogWriter({
    ...system,
    ...{ directory, files, logger },
    findDelivered: async (asked) => asked.filter(isDelivered),
  })
  await wal.start()
  // A segment without a file is lost once control was asked about it.
  if (isRemoved && path.endsWith('.open')) await until('the loss to be counted', () => wal.usage.lost.segments > 0)
  const blocked = wal.blocked()
  await wal.stop(AbortSignal.timeout(5_000))
  const said = [...lines, ...blocked.map(({ reason }) => reason), ...findings.map(({ where, message }) => `${where} ${message}`)]
  const expected = { [populated.delivered]: 2, [populated.held]: populated.accepted[populated.held] ?? 0 }
  let isHarmed = false
  for (const [log, records] of Object.entries(expected)) {
    const { found, lost } = await countRecords(segments, log)
    if (found > records) throw new Silent(`${log} has ${found} records instead of ${records}`)
    if (found === records) continue
    isHarmed = true
    // Files of the whole directory may harm every log.
    const isOfAnother = Object.keys(expected).some((other) => other !== log && path.includes(other))
    if (isOfAnother) throw new OtherHarmed(`${log} lost ${records - found} records by damage to ${path}`)
    const isSaid = lost > 0 || said.some((line) => line.includes(log))
    if (!isSaid)
      throw new Silent(`${log} lost ${records - found} of ${records} records, and nothing was said: ${said.join('\n')}`)
  }
  if (isHarmed) return { end: 'shown', said: said.join('\n') }
  return said.length === 0 ? { end: 'no harm' } : { end: 'repaired', said: said.join('\n') }
}

async function countRecords(
  segments: LocalSegmentSource,
  log: string,
): Promise<{ readonly found: number; readonly lost: number }> {
  let found = 0
  let lost = 0
  const listing = await segments.readLog(log).catch(() => ({ segments: [] }))
  for (const segment of listing.segments) {
    if (segment.state === 'quarantined') lost += (await segments.quarantineNote(segment))?.records_lost ?? 0
    if (segment.state !== 'sealed') continue
    try {
      found += await countFrames(segments, segment)
    } catch (error) {
      if (!(error instanceof SegmentError)) {
        lost += 1
        continue
      }
      const salvaged = await segments.salvage(segment)
      if (salvaged.outcome === 'intact') throw error
      lost += Math.max(1, salvaged.recordsLost)
      if (salvaged.outcome === 'salvaged') found += await countFrames(segments, segment)
    }
  }
  return { found, lost }
}

async function countFrames(segments: LocalSegmentSource, segment: Parameters<LocalSegmentSource['open']>[0]): Promise<number> {
  const reader = await segments.open(segment)
  let records = 0
  try {
    for await (const frames of reader.frames(65_536)) for (const { recordCount } of frames) records += recordCount
  } finally {
    await reader.close()
  }
  return records
}

/** A commit is sent as it was, or its segment, which is still in the log, is delivered again. */
export const judgeOutbox: Judge = async ({ data, populated }) => {
  const { outbox: directory, wal } = dataPaths(data)
  const { lines, logger } = listen()
  const sent: SegmentCommit[] = []
  const lost: string[] = []
  const outbox = new Outbox({
    ...system,
    ...{ directory, files: systemFiles, clock: systemClock, logger },
    send: async (commits) => {
      sent.push(...commits)
      return commits.map(({ id }) => id)
    },
    onRecorded: async () => undefined,
    onLost: ({ id }) => lost.push(id),
  })
  await outbox.start()
  await until('the outbox to be empty', () => outbox.size === 0 || outbox.reasonOf(populated.delivered) !== null)
  const held = outbox.reasonOf(populated.delivered)
  await outbox.stop(AbortSignal.timeout(1_000))
  const { segments } = await new LocalSegmentSource({ ...system, directory: wal }).readLog(populated.delivered)
  if (sent.length === 1) {
    const [name = ''] = (await systemFiles.list(join(populated.directory, 'node/outbox'))).map((entry) => entry.name)
    const original = await readFile(join(populated.directory, 'node/outbox', name), 'utf8')
    if (JSON.stringify(sent[0]) !== original.split('\n')[0]) throw new Silent('another commit was sent')
    return { end: 'no harm' }
  }
  if (segments.length === 0) throw new Silent('the commit is lost, and its segment is not in the log')
  if (held !== null) return { end: 'shown', said: held }
  return { end: 'repaired', said: lines.join('') || lost.join(' ') || 'its segment is delivered again' }
}

/** A file of keys, or their counts. */
export const judgeKeys: Judge = async ({ data, populated }) => {
  const { lines, logger } = listen()
  const intact = dataPaths(populated.directory).storedRequests
  const names = (await systemFiles.list(intact)).map(({ name }) => name).filter((name) => name.endsWith('.requests'))
  // Two of them, if the hour changed.
  const original = Buffer.concat(await Promise.all(names.map((name) => readFile(join(intact, name)))))
  const ids: Buffer[] = []
  for (let at = 0; at + STORED_REQUEST_BYTES <= original.length; at += STORED_REQUEST_BYTES) {
    const request = decodeStoredRequest(original, at)
    if (request !== undefined) ids.push(Buffer.from(request.id))
  }
  if (ids.length === 0) throw new Error('the original has no keys')
  const { storedRequests: directory } = dataPaths(data)
  const ignored = () => undefined
  const clock = { monotonic: () => 0, surelyBefore: () => Number.NEGATIVE_INFINITY }
  const keys = new RequestFiles({
    ...{ directory, title: 'stored-requests', files: systemFiles, clock, logger },
    ...{ onOpened: ignored, onRemoved: ignored },
  })
  await keys.prepare()
  try {
    const problems = keys.problems()
    if (problems.length > 0) return { end: 'refused', said: problems.join('\n') }
    let missing = 0
    for (const id of ids) if ((await keys.find(id)) === undefined) missing += 1
    if (missing === 0) return { end: 'no harm' }
    if (keys.damaged < missing) throw new Silent(`${missing} keys are forgotten, and ${keys.damaged} counted`)
    return { end: 'shown', said: lines.join('') }
  } finally {
    await keys.close()
  }
}

/** The id of the node, and its copy beside the log. */
export const judgeId: Judge = async ({ data, populated }) =>
  refusedOr(async () => {
    const id = await readOrCreateNodeId(dataPaths(data), system)
    const original = (await readFile(join(populated.directory, 'node/id'), 'utf8')).trim()
    if (id !== original) throw new Silent(`the node continues under another id: ${id}`)
    return { end: 'no harm' }
  })

/** The secret is registered as the node does at every start. Control has the hash of the original. */
export const judgeCredential: Judge = async ({ data }) =>
  refusedOr(async () => {
    const { nodeCredential, nodeId, database } = dataPaths(data)
    const id = (await readFile(nodeId, 'utf8')).trim()
    const { secret, previousSecret } = await NodeCredential.open(id, nodeCredential, system)
    const store = await openStore(database)
    try {
      const previousHash = previousSecret === null ? null : hashApiKey(previousSecret)
      const claim = { hash: hashApiKey(secret), previousHash, joinTokenId: null }
      const answer = await transact(store, (db) => claimNodeId(db, id, claim))
      return answer === 'claimed'
        ? { end: 'no harm' }
        : { end: 'refused', said: `control says that the id of the node is ${answer}` }
    } finally {
      await store.close()
    }
  })

/** Every secret in the database opens with the key, or control does not start and names it. */
export const judgeSecretKey: Judge = async ({ data }) =>
  refusedOr(async () => {
    const { secretKey, database } = dataPaths(data)
    const store = await openStore(database)
    try {
      const inUse = await findKeyInUse(store.db)
      if (inUse === undefined) throw new Error('the original has no encrypted secrets')
      await openSecrets(store.db, await openKeyring({ configured: null, path: secretKey, inUse }))
      return { end: 'no harm' }
    } finally {
      await store.close()
    }
  })

/** Control and its node read the same file at their next start, so they agree on another secret. People and other machines get 401. */
function judgeSharedSecret(read: (data: string) => Promise<string>): Judge {
  return async ({ data, populated }) =>
    refusedOr(async () => {
      const [found, original] = [await read(data), await read(populated.directory)]
      return found === original ? { end: 'no harm' } : { end: 'refused', said: 'others know another secret (401)' }
    })
}

export const judgeNodeToken = judgeSharedSecret((data) => readOrCreateNodeToken(system, dataPaths(data).nodeToken))
export const judgeOperatorToken = judgeSharedSecret((data) => readOrCreateOperatorToken(system, dataPaths(data).operatorToken))

/** Damage is refused. Without the file there is another key: markers of before are no longer known as own: their segments are delivered again, under the same names. */
export const judgeMarkerKey: Judge = async ({ data, populated }) =>
  refusedOr(async () => {
    const content = { id: 'x' }
    const [found, original] = [
      await MarkerSeal.open(system, dataPaths(data).markerKey),
      await MarkerSeal.open(system, dataPaths(populated.directory).markerKey),
    ]
    return found.sign(content) === original.sign(content)
      ? { end: 'no harm' }
      : { end: 'repaired', said: 'a segment that returns is delivered again, under the same names' }
  })

export const judgeSnapshot: Judge = async ({ data, path, populated }) => {
  const { lines, logger } = listen()
  const load = (directory: string) => new SnapshotFile({ path: join(directory, path), files: systemFiles, logger }).load()
  return refusedOr(async () => {
    const [found, original] = [JSON.stringify(await load(data)), JSON.stringify(await load(populated.directory))]
    if (found === original) return { end: 'no harm' }
    // Control sends what is missing.
    if (original.startsWith(found.slice(0, -1))) return { end: 'repaired', said: lines.join('') || 'control sends the rest' }
    throw new Silent('a changed configuration is applied')
  })
}

export const judgeRecordedCommits: Judge = async ({ data, path, populated }) => {
  const { lines, logger } = listen()
  const read = async (directory: string) => {
    const recorded = new RecordedCommits({ path: join(directory, path), files: systemFiles, clock: systemClock, logger })
    await recorded.start()
    await recorded.stop()
    return recorded.toCompare().recorded
  }
  const [found, original] = [await read(data), await read(populated.directory)]
  if (found === null && lines.length > 0) return { end: 'repaired', said: lines.join('') }
  // Removing it also loses the count of the database. Control sends it again.
  if (found === null) return { end: 'repaired', said: 'control says the number again' }
  if (JSON.stringify(found) !== JSON.stringify(original)) throw new Silent('another number is reported to control')
  return { end: 'no harm' }
}

/** Files that a running process writes again, and that a reader ignores if they are damaged. */
export const judgeRewritten: Judge = async ({ data, path }) =>
  refusedOr(async () => {
    await readBlocked(systemFiles, join(data, path), { ...systemClock, now: () => 0 })
    await readScrubState(systemFiles, join(data, path))
    return { end: 'repaired', said: 'written again' }
  })

/** For people alone: no process reads them again. */
export const judgeForPeople: Judge = async () => ({
  end: 'repaired',
  said: 'made anew by a command: inlet sign-in-link, inlet keys create',
})

export const judgeScratch: Judge = async ({ data, path }) => {
  const { scratch } = dataPaths(data)
  const segments = new LocalSegmentSource({ ...system, directory: dataPaths(data).wal })
  await new Janitor({ files: systemFiles, segments }).clearScratch(scratch)
  if ((await systemFiles.list(scratch)).length > 0) throw new Silent(`${path} is left`)
  return { end: 'repaired', said: 'removed at the start' }
}

/** The database as control opens it: equal rows, or refused. */
export const judgeDatabase: Judge = async ({ data, populated }) =>
  refusedOr(async () => {
    const rows = await readRows(data)
    if (rows === populated.rows) return { end: 'no harm' }
    const rollback = await findRollbackOf(data)
    if (rollback !== undefined) return { end: 'shown', said: rollback }
    const findings: Finding[] = []
    await scrubBuckets(data, (finding) => findings.push(finding))
    if (findings.length > 0) return { end: 'shown', said: findings.map(({ message }) => message).join('\n') }
    throw new Silent('the database has other rows')
  })

/** Returns why ingest refuses the configuration of this database, as it does when control offers it. */
async function findRollbackOf(data: string): Promise<string | undefined> {
  const { ingestSnapshot, database } = dataPaths(data)
  const sections = new SnapshotSections(['installation', 'keys', 'endpoints'])
  const updates = await new SnapshotFile({ path: ingestSnapshot, files: systemFiles, logger: listen().logger }).load()
  let last: SnapshotUpdate | undefined
  for (const update of updates) {
    sections.apply(update)
    last = update
  }
  if (last === undefined) throw new Error('the original has no stored configuration')
  const store = await openStore(database)
  try {
    return sections.findRollback({ ...last, end: { ...last.end, position: await currentPosition(store.db) } })
  } finally {
    await store.close()
  }
}

async function scrubBuckets(data: string, onFinding: (finding: Finding) => void): Promise<void> {
  const { buckets, markerKey, nodeId, database } = dataPaths(data)
  const store = await openStore(database)
  try {
    const delivered = readDelivered(store.db, 0)
    const own = {
      nodeId: (await readFile(nodeId, 'utf8')).trim(),
      seal: await MarkerSeal.open(system, markerKey),
      localSeqs: async () => ({ seqs: [], highWater: undefined }),
    }
    const later = { ...systemClock, now: () => Date.now() + 3_600_000 }
    const scrub = new BucketScrub({
      ...{ delivered, own, clock: later, signal, requestMs: 0, readsContent: true, onFinding },
      stores: new DirectoryStores({ ...system, root: buckets }),
      // Its commit waits in the outbox.
      isReported: (id) => id.endsWith('-000000000003'),
      onRead: () => undefined,
    })
    const { endpoints, kept_since } = await delivered.endpoints(null, signal)
    for (const endpoint of endpoints) await scrub.scrub(endpoint, kept_since)
  } finally {
    await store.close()
  }
}

/** The scrub finds the damaged object, and no other. */
export const judgeObject: Judge = async ({ data, path, populated }) => {
  const findings: Finding[] = []
  await scrubBuckets(data, (finding) => findings.push(finding))
  const key = path.slice('buckets/'.length)
  const others = findings.filter(({ where }) => where !== key)
  if (others.length > 0) throw new OtherHarmed(`other files are reported: ${JSON.stringify(others)}`)
  if (findings.length > 0) return { end: 'shown', said: findings.map(({ message }) => message).join('\n') }
  // White space at the end of a marker says nothing.
  const textOf = async (directory: string) =>
    JSON.stringify(parseJson(await readFile(join(directory, path), 'utf8')) ?? 'no JSON')
  if ((await textOf(data)) === (await textOf(populated.directory)) && path.endsWith('.json')) return { end: 'no harm' }
  throw new Silent('the scrub finds nothing')
}

/** The folder of a bucket belongs to its account. */
export const judgeOwner: Judge = async ({ data, populated }) =>
  refusedOr(async () => {
    const owner = (await readFile(join(populated.directory, 'buckets/.owners/lake'), 'utf8')).trim().split(' ').at(-1) ?? ''
    const target = { bucket: 'lake', external_id: owner }
    const store = new DirectoryStores({ ...system, root: join(data, 'buckets') }).open(target)
    const found = await Array.fromAsync(store.list(''))
    if (found.length === 0) throw new Silent('the bucket of the account is another, empty folder')
    return { end: 'repaired', said: 'the folder has its owner again' }
  })
