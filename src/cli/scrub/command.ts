/** `inlet scrub`: verifies what is on this node and what was delivered. Reads only. */
import type { Config } from '#config.ts'
import { MarkerSeal } from '#delivery/commit/marker-seal.ts'
import { BucketScrub, type BucketTally } from '#delivery/scrub/scrub-bucket.ts'
import { type NodeTally, scrubNode } from '#delivery/scrub/scrub-node.ts'
import { readLocalSeqs } from '#delivery/scrub/seq-gaps.ts'
import { systemFiles } from '#lib/files.ts'
import type { Finding } from '#model/scrub.ts'
import { OutboxFiles } from '#node/outbox-files.ts'
import { openObjectStores } from '#objects/open.ts'
import { countCommits } from '#store/commits-to-scrub.ts'
import { SegmentDirectory } from '#wal/segment-directory.ts'
import type { CliContext } from '../context.ts'
import { type JsonFlags, printResult } from '../print-json.ts'
import { Progress } from '../progress.ts'
import { formatBytes } from '../segments/format.ts'
import { openCommandStore } from '../store.ts'
import { readDelivered } from './database.ts'

export type ScrubFlags = JsonFlags & { readonly sizesOnly: boolean }

type Result = {
  readonly findings: readonly Finding[]
  /** Null: there is no node here. */
  readonly node: NodeTally | null
  /** Null: there is no database here. */
  readonly buckets: BucketTally | null
}

/** The exit code is 1 if something is found. */
export async function scrub(this: CliContext, flags: ScrubFlags): Promise<void> {
  const config = await this.readConfig()
  const findings: Finding[] = []
  const onFinding = (finding: Finding) => findings.push(finding)
  const node = await verifyNode(config, onFinding)
  const buckets = await verifyBuckets(this, config, flags, onFinding)
  const result: Result = { findings, node, buckets }
  printResult(this, flags, result, describe(result))
  if (findings.length > 0) this.process.exitCode = 1
}

async function verifyNode({ paths }: Config, onFinding: (finding: Finding) => void): Promise<NodeTally | null> {
  const files = systemFiles
  if ((await files.changedAt(paths.wal)) === undefined) return null
  return scrubNode({
    segments: new SegmentDirectory({ directory: paths.wal, files }),
    outbox: new OutboxFiles({ directory: paths.outbox, files }),
    onRead: () => undefined,
    onFinding,
    signal: new AbortController().signal,
  })
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
  // A node that joined another machine has no database: the buckets are verified where control is.
  if (databaseUrl === '' && (await files.bytes(paths.database)) === undefined) return null
  await using store = await openCommandStore(context)
  const { stores, close } = await openObjectStores(config, { clock })
  const nodeId = Buffer.from((await files.read(paths.nodeId)) ?? [])
    .toString()
    .trim()
  const reported = new Set((await new OutboxFiles({ directory: paths.outbox, files }).list()).map(({ id }) => id))
  const segments = new SegmentDirectory({ directory: paths.wal, files })
  const localSeqs = (log: string) => readLocalSeqs(segments, log)
  const total = await countCommits(store.db)
  // With --json, standard output has only the result.
  const progress = new Progress({ output: json ? context.process.stderr : context.process.stdout, label: 'commits', total })
  let done = 0
  const signal = new AbortController().signal
  const delivered = readDelivered(store.db, Math.max(0, clock.now() - commitsKeptDays * 86_400_000))
  const scrub = new BucketScrub({
    ...{ delivered, stores, clock, signal, onFinding },
    own: nodeId === '' ? undefined : { nodeId, seal: await MarkerSeal.open(paths.markerKey), localSeqs },
    readsContent: !sizesOnly,
    isReported: (id) => reported.has(id),
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

function describe({ findings, node, buckets }: Result): string {
  const lines = findings.map(({ kind, where, message, next_step }) => `${kind}  ${where}\n  ${message}\n  → ${next_step}\n`)
  const ofNode =
    node === null
      ? 'this node     there is none in this data directory\n'
      : `this node     ${node.segments} segments, ${node.reports} reports to control\n`
  return `${lines.join('')}${ofNode}${describeBuckets(buckets)}${
    findings.length === 0 ? 'nothing is damaged\n' : `${findings.length} ${findings.length === 1 ? 'finding' : 'findings'}\n`
  }`
}

function describeBuckets(buckets: BucketTally | null): string {
  if (buckets === null) return 'the buckets   not verified: the database is on another machine, run inlet scrub there\n'
  const { commits, files, readFiles, readBytes, expired, unverifiable, gaps } = buckets
  const more = [
    ...(expired === 0 ? [] : [`${expired} files have expired: a rule of the bucket removed them by their age`]),
    ...(unverifiable === 0
      ? []
      : [`${unverifiable} could not be verified: the role may not read, or the destination was deleted`]),
  ]
  for (const { endpoint_id, from, to } of gaps)
    more.push(
      `no segment and no commit has seq ${from === to ? from : `${from} to ${to}`} of ${endpoint_id}: skipped by a failed append or a crash, discarded, or removed before its delivery`,
    )
  const read = `${readFiles} of them read in full (${formatBytes(readBytes)})`
  return `the buckets   ${commits} commits, ${files} files, ${read}\n${more.map((line) => `              ${line}\n`).join('')}`
}
