/**
 * Verifies what was delivered: the files in the buckets against the commits of the database, and the markers against both.
 *
 * Owns: what counts as a finding. Does not own: which endpoints are verified, and what happens to a finding.
 * Law: reads only. A file is reported if it is still expected after it was found wrong, because compactions remove files meanwhile. What the
 * role may not read is counted, not reported.
 */
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode } from '#lib/files.ts'
import { isMarkerKind, markerFolder, parseCompactionMarkerKey, parseMarkerKey } from '#model/artifact.ts'
import type { CompactionMarker } from '#model/compaction.ts'
import type { DestinationTarget } from '#model/destination.ts'
import {
  type CommitToScrub,
  type EndpointToScrub,
  type ExpectedFile,
  type Finding,
  type FindingKind,
  type MergedFile,
  type ScrubCommits,
  type ScrubEndpoints,
  scrubPageLimits,
} from '#model/scrub.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { isReadDenied, ObjectStoreError } from '#objects/store-error.ts'
import { decodeCompactionMarker } from '../jobs/compaction-marker.ts'
import { decodeUnitMarker } from '../jobs/unit-marker.ts'
import { decodeMarker, markerBytesMax } from '../publish/marker.ts'
import type { MarkerSeal } from '../publish/marker-seal.ts'
import { nextStepOf } from './advice.ts'
import { ExpiredFiles } from './expired-files.ts'
import { scrubLimits } from './limits.ts'
import { CommittedSeqs, type LocalSeqs, type SeqGap } from './seq-gaps.ts'

/** The database, read directly or through control. */
export interface DeliveredCommits {
  endpoints(after: string | null, signal: AbortSignal): Promise<ScrubEndpoints>
  commits(endpointId: string, after: string | null, signal: AbortSignal): Promise<ScrubCommits>
  /** Returns those of the ids, of commits and of compactions, that are recorded. */
  known(endpointId: string, ids: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>
}

export type BucketTally = {
  commits: number
  files: number
  /** Read in full, and compared with their checksums. */
  readFiles: number
  readBytes: number
  /** Removed by a rule of the bucket, by their age. */
  expired: number
  /** The role may not read them, or their destination was deleted. */
  unverifiable: number
  /** Seqs of this node that neither a commit nor a file has. No proof of a loss: see seq-gaps.ts. */
  gaps: SeqGap[]
}

export type OwnNode = {
  readonly nodeId: string
  /** Undefined: the key is missing or damaged, so signatures are not verified. */
  readonly seal: MarkerSeal | undefined
  readonly localSeqs: (endpointId: string) => Promise<LocalSeqs>
}

export type ScrubBucketOptions = {
  readonly delivered: DeliveredCommits
  readonly stores: ObjectStores
  /** Signs the markers of `nodeId`. Undefined: there is no node here. */
  readonly own: OwnNode | undefined
  /** Whether the files are read and compared with their checksums, not their sizes alone. Markers always are. */
  readonly readsContent: boolean
  /** Waited before each file: a pass is no burst of requests. */
  readonly requestMs: number
  /** Whether a commit of this node waits for control. */
  readonly isReported: (id: string) => boolean
  /** Verifies nothing but what these are about. */
  readonly only?: readonly Finding[]
  readonly onRead: (bytes: number) => Promise<void> | void
  readonly onFinding: (finding: Finding) => void
  readonly onCommits?: (count: number) => void
  readonly clock: Clock
  readonly signal: AbortSignal
}

type Checked = 'intact' | 'missing' | 'unverifiable' | { readonly changed: string } | { readonly unreadable: string }

export class BucketScrub {
  readonly #options: ScrubBucketOptions
  readonly #only: ReadonlySet<string> | undefined
  readonly tally: BucketTally = { commits: 0, files: 0, readFiles: 0, readBytes: 0, expired: 0, unverifiable: 0, gaps: [] }

  constructor(options: ScrubBucketOptions) {
    this.#options = options
    this.#only = options.only && new Set(options.only.map(({ where }) => where))
  }

  /** Throws what reading the database threw, or the signal's reason. A bucket that cannot be reached is a finding. */
  async scrub(endpoint: EndpointToScrub, keptSince: string): Promise<void> {
    try {
      await this.#scrub(endpoint, keptSince)
    } catch (error) {
      this.#options.signal.throwIfAborted()
      if (!(error instanceof ObjectStoreError)) throw error
      const message = `its files cannot be verified: ${errorMessage(error)}`
      const next_step = 'validate the destinations of the endpoint, then scrub again'
      this.#options.onFinding({ kind: 'unreadable', endpoint_id: endpoint.id, where: endpoint.id, message, next_step })
    }
  }

  async #scrub(endpoint: EndpointToScrub, keptSince: string): Promise<void> {
    const { delivered, signal, clock, onCommits, own, only } = this.#options
    const seqs = new CommittedSeqs()
    const expired = new ExpiredFiles(clock.now())
    for (let after: string | null = null; ; ) {
      const page: ScrubCommits = await delivered.commits(endpoint.id, after, signal)
      let doubtful: Finding[] = []
      for (const { node_id, seq } of page.commits) if (node_id === own?.nodeId) seqs.add(seq)
      for (const commit of page.commits) doubtful.push(...(await this.#verify(endpoint, commit, expired)))
      if (doubtful.length > 0) {
        const again = await delivered.commits(endpoint.id, after, signal)
        const expected = new Set(again.commits.flatMap(keysOf))
        doubtful = doubtful.filter(({ where }) => expected.has(where))
        for (const found of doubtful) this.#options.onFinding(found)
      }
      this.tally.commits += page.commits.length
      onCommits?.(page.commits.length)
      const last = page.commits.at(-1)
      if (page.is_last || last === undefined) break
      after = last.uploaded_at
    }
    if (this.#only === undefined) await this.#findGaps(endpoint, seqs, expired)
    if (only === undefined || only.some(({ kind }) => kind === 'commit_missing'))
      for (const target of endpoint.targets) await this.#findUnknownMarkers(endpoint, target, keptSince)
  }

  /** Call it when all commits were verified. */
  async #findGaps(endpoint: EndpointToScrub, seqs: CommittedSeqs, expired: ExpiredFiles): Promise<void> {
    const { own } = this.#options
    const { missing, expired: count } = expired.close()
    this.tally.expired += count
    for (const { kind, bucket, key } of missing) this.#report(endpoint, missingKind(kind), bucket, key, isGone, kind)
    const gaps = own === undefined ? [] : seqs.gaps(endpoint.id, await own.localSeqs(endpoint.id))
    this.tally.gaps.push(...gaps.slice(0, scrubLimits.findingsMax - this.tally.gaps.length))
  }

  /** Returns what is wrong with the files of a commit. */
  async #verify(endpoint: EndpointToScrub, commit: CommitToScrub, expired: ExpiredFiles): Promise<readonly Finding[]> {
    const { target, files, merged, uploaded_at: uploadedAt } = commit
    if (target === null) {
      this.tally.unverifiable += files.length + merged.length
      return []
    }
    const { bucket } = target
    const store = this.#open(endpoint, target)
    const findings: Finding[] = []
    for (const file of [...files, ...merged]) {
      const { kind, key } = file
      if (!this.#isWanted(bucket, key)) continue
      const checked = await this.#check(store, file)
      if (checked === 'intact') expired.found(kind, uploadedAt)
      else if (checked === 'missing') {
        if ('marker_key' in file || this.#only !== undefined || expired.isMissing({ kind, key, bucket, uploadedAt }))
          findings.push(describe(endpoint.id, missingKind(kind), bucket, key, isGone, kind))
      } else if (checked !== 'unverifiable' && 'unreadable' in checked) {
        findings.push(describe(endpoint.id, 'unreadable', bucket, key, checked.unreadable))
      } else if (checked !== 'unverifiable') {
        expired.found(kind, uploadedAt)
        const changed = isMarkerKind(kind) ? await this.#explainMarker(store, commit, key, checked.changed) : checked.changed
        findings.push(describe(endpoint.id, changedKind(kind), bucket, key, changed, kind))
      }
    }
    for (const file of merged) {
      if (!this.#isWanted(bucket, file.marker_key)) continue
      const problem = await this.#verifyCompactionMarker(store, endpoint, target, file)
      if (problem !== undefined)
        findings.push(describe(endpoint.id, problem.kind, bucket, file.marker_key, problem.message, file.kind))
    }
    return findings
  }

  #isWanted(bucket: string, key: string): boolean {
    return this.#only === undefined || this.#only.has(`${bucket}/${key}`)
  }

  async #check(store: ObjectStore, { kind, key, bytes, sha256 }: ExpectedFile): Promise<Checked> {
    const { signal, clock, onRead, readsContent, requestMs } = this.#options
    if (requestMs > 0) await sleep(clock, requestMs, signal)
    signal.throwIfAborted()
    this.tally.files += 1
    return this.#unlessDenied(async () => {
      const facts = await store.head(key, signal)
      if (facts === undefined) return 'missing'
      if (facts.bytes !== bytes) return { changed: `has ${facts.bytes} bytes instead of ${bytes}` }
      if (facts.sha256 !== undefined && facts.sha256 !== sha256) return { changed: otherContent }
      if (!readsContent && !isMarkerKind(kind)) return 'intact'
      const found = await store.digest(key, { signal, onRead })
      if (found === undefined) return 'missing'
      this.tally.readFiles += 1
      this.tally.readBytes += found.bytes
      return found.sha256 === sha256 ? 'intact' : { changed: otherContent }
    })
  }

  async #unlessDenied(check: () => Promise<Checked>): Promise<Checked> {
    try {
      return await check()
    } catch (error) {
      this.#options.signal.throwIfAborted()
      // The store itself says that the content does not match its checksum.
      if (error instanceof ObjectStoreError && error.reason === 'damaged') return { changed: errorMessage(error) }
      // A local bucket is on a disk that may fail for a single file.
      if (errorCode(error) !== undefined && !(error instanceof ObjectStoreError))
        return { unreadable: `cannot be read (${errorCode(error)})` }
      if (!isReadDenied(error)) throw error
      this.tally.unverifiable += 1
      return 'unverifiable'
    }
  }

  async #explainMarker(store: ObjectStore, { node_id }: CommitToScrub, key: string, changed: string): Promise<string> {
    const { own, signal } = this.#options
    if (own?.nodeId !== node_id || own.seal === undefined) return changed
    const body = await store.get(key, signal)
    return body !== undefined && own.seal.isOwn(body)
      ? 'is a marker that this node signed, but not the one of its commit'
      : `${changed}, and this node did not sign it`
  }

  async #verifyCompactionMarker(
    store: ObjectStore,
    endpoint: EndpointToScrub,
    target: DestinationTarget,
    merged: MergedFile,
  ): Promise<{ readonly kind: FindingKind; readonly message: string } | undefined> {
    const { signal } = this.#options
    let body: Uint8Array | undefined
    const checked = await this.#unlessDenied(async () => {
      body = await store.get(merged.marker_key, signal)
      return body === undefined ? 'missing' : 'intact'
    })
    if (checked === 'missing') return { kind: 'marker_missing', message: isGone }
    if (checked !== 'unverifiable' && checked !== 'intact' && 'unreadable' in checked)
      return { kind: 'unreadable', message: checked.unreadable }
    if (body === undefined) return undefined
    const marker = decodeCompactionMarker(body)
    const isRight = marker?.endpoint_id === endpoint.id && marker.id === merged.id && isListed(marker, merged)
    const { id, bucket, region } = marker?.destination ?? {}
    const isHere = id === target.id && bucket === target.bucket && region === target.region
    return isRight && isHere ? undefined : { kind: 'marker_changed', message: 'does not list what the compaction merged' }
  }

  /** Finds markers that are newer than the oldest commits, and of no commit. */
  async #findUnknownMarkers(endpoint: EndpointToScrub, target: DestinationTarget, keptSince: string): Promise<void> {
    const { signal, isReported } = this.#options
    const store = this.#open(endpoint, target)
    const oldest = `dt=${keptSince.slice(0, 10)}`
    let keys = new Map<string, string>()
    let unknown = 0
    const checkKeys = async () => {
      const known = await this.#options.delivered.known(endpoint.id, [...keys.keys()], signal)
      for (const [id, key] of keys) {
        if (known.has(id) || isReported(id) || unknown >= scrubLimits.unknownMarkersMax) continue
        unknown += 1
        const problem = await this.#judgeUnknown(store, endpoint, id, key)
        if (problem !== undefined) this.#report(endpoint, 'commit_missing', target.bucket, key, problem)
      }
      keys = new Map()
    }
    try {
      for await (const { key } of store.list(markerFolder(target.prefix, endpoint.id), signal)) {
        const id = parseCompactionMarkerKey(key)?.id ?? parseMarkerKey(key)?.commitId
        // The day of the oldest commits itself may have some that are no longer kept.
        if (id === undefined || dayOf(key) <= oldest) continue
        keys.set(id, key)
        if (keys.size === scrubPageLimits.lookupsMax) await checkKeys()
      }
      await checkKeys()
    } catch (error) {
      signal.throwIfAborted()
      if (!isReadDenied(error)) throw error
      this.tally.unverifiable += 1
    }
  }

  /** Returns why a marker without a commit is reported; undefined if it is none of this endpoint, or may not have been reported yet. */
  async #judgeUnknown(store: ObjectStore, endpoint: EndpointToScrub, id: string, key: string): Promise<string | undefined> {
    const { signal, clock, own } = this.#options
    const facts = await store.head(key, signal)
    if (facts === undefined) return undefined
    const body = facts.bytes > markerBytesMax ? undefined : await store.get(key, signal)
    const compaction = body && decodeCompactionMarker(body)
    if (compaction !== undefined) {
      const isNew = clock.now() - Date.parse(compaction.compacted_at) < scrubLimits.unreportedMs
      return isNew || compaction.endpoint_id !== endpoint.id ? undefined : `the database does not have the compaction ${id}`
    }
    const marker = body && (decodeMarker(key, body) ?? decodeUnitMarker(key, body))
    if (body === undefined || marker === undefined)
      return 'the database has no commit of it, and it is damaged or not a marker of Inlet'
    if (marker.endpoint_id !== endpoint.id) return undefined
    if (clock.now() - Date.parse(marker.uploaded_at) < scrubLimits.unreportedMs) return undefined
    if (own?.nodeId === marker.node_id && own.seal?.isOwn(body) === false && 'wal_bytes' in marker)
      return 'the database has no commit of it, and this node did not sign it: someone else may have written it'
    return `the database has no commit ${id} of ${marker.records} records`
  }

  #open(endpoint: EndpointToScrub, target: DestinationTarget): ObjectStore {
    const session = sessionName({ account_id: endpoint.account_id, endpoint_id: endpoint.id })
    return this.#options.stores.open({ ...target, session })
  }

  #report(endpoint: EndpointToScrub, kind: FindingKind, bucket: string, key: string, message: string, of?: string): void {
    this.#options.onFinding(describe(endpoint.id, kind, bucket, key, message, of))
  }
}

const isGone = 'is not in the bucket'
const otherContent = 'has other content than was delivered: its SHA-256 differs'

function describe(endpoint_id: string, kind: FindingKind, bucket: string, key: string, message: string, of?: string): Finding {
  return { kind, endpoint_id, where: `${bucket}/${key}`, message, next_step: nextStepOf(kind, of) }
}

function keysOf({ target, files, merged }: CommitToScrub): readonly string[] {
  const bucket = target?.bucket ?? ''
  return [...files, ...merged]
    .map(({ key }) => `${bucket}/${key}`)
    .concat(merged.map(({ marker_key }) => `${bucket}/${marker_key}`))
}

function missingKind(kind: string): FindingKind {
  return isMarkerKind(kind) ? 'marker_missing' : 'file_missing'
}

function changedKind(kind: string): FindingKind {
  return isMarkerKind(kind) ? 'marker_changed' : 'file_changed'
}

function dayOf(key: string): string {
  return /\/(dt=\d{4}-\d{2}-\d{2})\//.exec(key)?.[1] ?? ''
}

function isListed({ compacted }: CompactionMarker, { kind, key, bytes, rows, sha256, sources }: MergedFile): boolean {
  const isSame = compacted.kind === kind && compacted.key === key && compacted.bytes === bytes && compacted.rows === rows
  const listed = new Set(compacted.sources.map(nameOfSource))
  return isSame && compacted.sha256 === sha256 && sources.every((source) => listed.has(nameOfSource(source)))
}

function nameOfSource({ id, first_row, rows }: MergedFile['sources'][number]): string {
  return `${id} ${first_row} ${rows}`
}
