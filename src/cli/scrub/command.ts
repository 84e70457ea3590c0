/**
 * `inlet scrub`: verifies what is on this node and what was delivered.
 *
 * Law: reads only, so that it also works as another user than the one that Inlet runs as. What cannot be verified is a finding, and the rest is
 * verified all the same.
 */
import { basename, join, relative } from 'node:path'
import type { Config } from '#config/config.ts'
import { MarkerSeal } from '#delivery/publish/marker-seal.ts'
import { nextStepOf } from '#delivery/scrub/advice.ts'
import { BucketScrub, type BucketTally } from '#delivery/scrub/scrub-bucket.ts'
import { type NodeTally, scrubNode } from '#delivery/scrub/scrub-node.ts'
import { readLocalSeqs } from '#delivery/scrub/seq-gaps.ts'
import { type RequestFileCheck, verifyRequests } from '#ingest/idempotency/verify-requests.ts'
import { countNoun } from '#lib/count-noun.ts'
import { errorMessage } from '#lib/error-message.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
import { dayMs } from '#lib/time-units.ts'
import { UserError } from '#lib/user-error.ts'
import { isUuid } from '#lib/uuid.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { idempotencyLimits } from '#model/limits.ts'
import type { Finding, FindingKind } from '#model/scrub.ts'
import { OutboxFiles } from '#node/outbox-files.ts'
import { openObjectStores } from '#objects/open.ts'
import { countCommits } from '#store/jobs/commits-to-scrub.ts'
import { openToRead } from '../operator/store.ts'
import { formatBytes } from '../segments/format.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { Progress } from '../terminal/progress.ts'
import { readDelivered } from './database.ts'

const theNode = 'the node'
const theBuckets = 'the buckets'

export type ScrubFlags = JsonFlags & { readonly sizesOnly: boolean }

type Result = {
  readonly findings: readonly Finding[]
  /** Null: there is no node here, or it cannot be read. */
  readonly node: (NodeTally & { readonly keys: number }) | null
  /** Null: there is no database here, or it cannot be read. */
  readonly buckets: BucketTally | null
}

/** The exit code is 1 if something is found. */
export async function scrub(this: CliContext, flags: ScrubFlags): Promise<void> {
  const config = await this.readConfig()
  const findings: Finding[] = []
  const onFinding = (finding: Finding) => findings.push(finding)
  const node = await orUnreadable(theNode, onFinding, () => verifyNode(this, config, onFinding))
  const buckets = await orUnreadable(theBuckets, onFinding, () => verifyBuckets(this, config, flags, onFinding))
  if (node === null && buckets === null && findings.length === 0)
    throw new UserError(
      `nothing was verified: ${config.paths.data} has neither a node nor a database. Set INLET_DATA_DIR to the data directory of Inlet, or INLET_DATABASE_URL to its database`,
    )
  const result: Result = { findings, node, buckets }
  printResult(this, flags, result, describe(result))
  if (findings.length > 0) this.process.exitCode = 1
}

async function verifyNode(
  { clock }: CliContext,
  { paths }: Config,
  onFinding: (finding: Finding) => void,
): Promise<Result['node']> {
  const files = systemFiles
  const [hasId, hasLog] = [await isThere(paths.nodeId), await isThere(paths.wal)]
  if (!hasId && !hasLog) return null
  if (!hasId) onFinding(describeOwn('missing', 'node/id', 'the id of this node is missing, and its log is there'))
  if (!hasLog)
    onFinding(
      describeOwn('missing', 'node/wal', 'the log of this node is missing: segments that were not delivered are not here'),
    )
  await orUnreadable('node/id', onFinding, () => files.read(paths.nodeId))
  await orUnreadable('node/marker-key', onFinding, async () => {
    // Delivery creates the key before the outbox.
    if ((await MarkerSeal.read(files, paths.markerKey)) !== undefined || !(await isThere(paths.outbox))) return
    const message =
      'the key by which this node signs its markers is missing: signatures were not verified, and the next start creates another key'
    onFinding(describeOwn('missing', 'node/marker-key', message))
  })
  const tally = await scrubNode({
    segments: new LocalSegmentSource({ directory: paths.wal, files, clock }),
    outbox: new OutboxFiles({ directory: paths.outbox, files }),
    onRead: () => undefined,
    onFinding,
    signal: new AbortController().signal,
  })
  return { ...tally, keys: await verifyKeys(clock.now(), paths, onFinding) }
}

/** Returns how many idempotency keys are intact. */
async function verifyKeys(now: number, paths: Config['paths'], onFinding: (finding: Finding) => void): Promise<number> {
  let keys = 0
  const rows: RequestFileCheck[] = []
  for (const directory of [paths.storedRequests, ...(await findAdopted(paths, onFinding))]) {
    const verify = () => verifyRequests(systemFiles, directory, now - idempotencyLimits.rememberedMs)
    for (const row of (await orUnreadable(relative(paths.node, directory), onFinding, verify)) ?? [])
      rows.push({ ...row, name: relative(paths.node, join(directory, row.name)) })
  }
  for (const { name: where, intact, damaged, gone, unreadable } of rows) {
    keys += intact
    if (unreadable !== undefined) onFinding(describeOwn('unreadable', where, `cannot be read (${unreadable})`))
    if (damaged > 0) onFinding(describeOwn('keys_damaged', where, `${countNoun(damaged, 'idempotency key')} damaged`))
    if (gone > 0) {
      const message = `${countNoun(gone, 'idempotency key')} gone: the file was cut, removed or replaced`
      onFinding(describeOwn('keys_damaged', where, message))
    }
  }
  return keys
}

/** Returns the directories with keys of lost nodes. Others are hand-overs that run. */
async function findAdopted(paths: Config['paths'], onFinding: (finding: Finding) => void): Promise<readonly string[]> {
  const { adoptedRequests } = paths
  const list = () => systemFiles.list(adoptedRequests)
  return ((await orUnreadable(relative(paths.node, adoptedRequests), onFinding, list)) ?? [])
    .filter(({ name, kind }) => kind === 'directory' && isUuid(name.slice(0, 36)))
    .map(({ name }) => join(adoptedRequests, name))
}

async function verifyBuckets(
  context: CliContext,
  config: Config,
  { sizesOnly, json }: ScrubFlags,
  onFinding: (finding: Finding) => void,
): Promise<BucketTally | null> {
  const { paths, databaseUrl, commitsKeptDays } = config
  const { clock } = context
  const files = systemFiles
  if (databaseUrl === '' && !(await isThere(paths.database))) {
    // A node that joined another machine has no database: the buckets are verified where control is.
    const ofControl = await findTracesOfControl(paths)
    if (ofControl !== undefined)
      onFinding(describeOwn('missing', 'inlet.db', `the database is missing, and ${ofControl} is there: no bucket was verified`))
    return null
  }
  await using store = await openToRead(context)
  const { stores, close } = await openObjectStores(config, { ...system, clock })
  const nodeId = Buffer.from((await files.read(paths.nodeId).catch(() => undefined)) ?? [])
    .toString()
    .trim()
  const outbox = new OutboxFiles({ directory: paths.outbox, files })
  const reports = await outbox.list().catch(() => undefined)
  const reported = new Set(reports?.map(({ id }) => id))
  const segments = new LocalSegmentSource({ directory: paths.wal, files, clock })
  const localSeqs = (log: string) => readLocalSeqs(segments, log)
  const total = await countCommits(store.db)
  // With --json, standard output has only the result.
  const progress = new Progress({ output: json ? context.process.stderr : context.process.stdout, label: 'commits', total })
  let done = 0
  const signal = new AbortController().signal
  const delivered = readDelivered(store.db, Math.max(0, clock.now() - commitsKeptDays * dayMs))
  const scrub = new BucketScrub({
    ...{ delivered, stores, clock, signal, onFinding },
    own:
      nodeId === ''
        ? undefined
        : { nodeId, seal: await MarkerSeal.read(files, paths.markerKey).catch(() => undefined), localSeqs },
    readsContent: !sizesOnly,
    // With an outbox that cannot be read, any commit of this node may wait in it.
    isReported: (id) => (reports === undefined ? nodeId !== '' && id.startsWith(nodeId) : reported.has(id)),
    requestMs: 0,
    onRead: () => undefined,
    onCommits: (count) => {
      done += count
      progress.show(done, `${done} of ${total}`)
    },
  })
  try {
    for (let after: string | null = null; ; ) {
      const page = await delivered.endpoints(after, signal)
      for (const endpoint of page.endpoints) await scrub.scrub(endpoint, page.kept_since)
      after = page.next
      if (after === null) return scrub.tally
    }
  } finally {
    close()
  }
}

/** Returns the name of something that only control leaves in its data directory; undefined if there is nothing. */
async function findTracesOfControl(paths: Config['paths']): Promise<string | undefined> {
  // A node that joined may have a folder of buckets that it shares with control.
  const more = (await isThere(paths.node)) ? [] : [paths.buckets]
  for (const path of [paths.secretKey, paths.operatorToken, `${paths.database}.lock`, ...more])
    if (await isThere(path)) return basename(path)
  return undefined
}

async function isThere(path: string): Promise<boolean> {
  return (await systemFiles.changedAt(path)) !== undefined
}

/** Returns null, and reports why, if `read` throws. */
async function orUnreadable<T>(where: string, onFinding: (finding: Finding) => void, read: () => Promise<T>): Promise<T | null> {
  try {
    return await read()
  } catch (error) {
    onFinding(describeOwn('unreadable', where, `cannot be verified: ${errorMessage(error)}`))
    return null
  }
}

function describeOwn(kind: FindingKind, where: string, message: string): Finding {
  return { kind, endpoint_id: null, where, message, next_step: nextStepOf(kind) }
}

function describe({ findings, node, buckets }: Result): string {
  const lines = findings.map(({ kind, where, message, next_step }) => `${kind}  ${where}\n  ${message}\n  → ${next_step}\n`)
  const isUnread = (wheres: readonly string[]) => findings.some(({ where }) => wheres.includes(where))
  const noNode = isUnread([theNode]) ? 'not verified: see above' : 'there is none in this data directory'
  const noBuckets = isUnread([theBuckets, 'inlet.db'])
    ? 'not verified: see above'
    : 'not verified: the database is on another machine, run inlet scrub there'
  const ofNode =
    node === null
      ? noNode
      : `${countNoun(node.segments, 'segment')}, ${countNoun(node.reports, 'report')} to control, ${countNoun(node.keys, 'idempotency key')}`
  const ofBuckets = buckets === null ? `the buckets   ${noBuckets}\n` : describeBuckets(buckets)
  const end = findings.length === 0 ? 'nothing is damaged' : countNoun(findings.length, 'finding')
  return `${lines.join('')}this node     ${ofNode}\n${ofBuckets}${end}\n`
}

function describeBuckets(buckets: BucketTally): string {
  const { commits, files, readFiles, readBytes, expired, unverifiable, gaps } = buckets
  const more = [
    ...(expired === 0 ? [] : [`${countNoun(expired, 'file')} expired: a rule of the bucket removed them by their age`]),
    ...(unverifiable === 0
      ? []
      : [`${unverifiable} could not be verified: the role may not read, or the destination was deleted`]),
  ]
  for (const { endpoint_id, from, to } of gaps)
    more.push(
      `${endpoint_id} has no segment and no commit with seq ${from === to ? from : `${from} to ${to}`}: skipped by a failed append or a crash, discarded, or removed before its delivery`,
    )
  const read = `${readFiles} of them read in full (${formatBytes(readBytes)})`
  return `the buckets   ${countNoun(commits, 'commit')}, ${countNoun(files, 'file')}, ${read}\n${more.map((line) => `              ${line}\n`).join('')}`
}
