/**
 * Reads the keys of delivered rows, to rebuild the index of a window.
 *
 * Owns: which files of this node's commits have rows of a view, also after a compaction, and their download. Does not own: the index
 * (windows/key-windows.ts), how keys are read (records/read-keys.ts).
 * Law: the commits are those that control knows, once it has recorded all of this node. A file that somebody removed has no rows: it is counted, and
 * skipped. Memory and scratch space are bounded, however long the window is: files are read in batches.
 */
import { join } from 'node:path'
import { type Clock, isoTimestamp, sleep } from '#lib/clock.ts'
import { digestFile } from '#lib/digest-file.ts'
import type { FairSlots } from '#lib/fair-slots.ts'
import type { Files } from '#lib/files.ts'
import { parseArtifactKind } from '#model/artifact.ts'
import type { CommitToScrub, ExpectedFile } from '#model/scrub.ts'
import type { Control } from '#node/control-client.ts'
import type { Outbox } from '#node/outbox.ts'
import type { ObjectStores } from '#objects/object-store.ts'
import { sessionName } from '#objects/session-name.ts'
import { isReadDenied } from '#objects/store-error.ts'
import type { KeysOfCommit } from '#records/read-keys.ts'
import type { ConversionRunner } from '../convert/conversion-runner.ts'
import { readKeysOf } from '../convert/unit-conversions.ts'
import type { Endpoints } from '../segments/endpoints.ts'
import { type CommittedKeys, type KeysRequest, KeysUnreadable, type WindowView } from '../windows/key-windows.ts'
import { windowLimits } from '../windows/limits.ts'

export type DeliveredKeysOptions = {
  readonly nodeId: string
  readonly control: Pick<Control, 'fetchScrubCommits' | 'findCommits'>
  readonly outbox: Pick<Outbox, 'has' | 'hasAnyOf'>
  readonly endpoints: Endpoints
  readonly stores: ObjectStores
  readonly runner: ConversionRunner
  readonly builds: FairSlots
  readonly memoryBytes: number
  readonly scratch: string
  readonly files: Files
  readonly clock: Clock
}

/** A file with rows of a commit: all of them, or some of a merged file. */
type Source = ExpectedFile & { readonly rows?: { readonly firstRow: number; readonly count: number } }
/** `atMs`: when it was sealed, or an earlier one if the clock went back. */
type Found = { readonly commit: CommitToScrub; readonly atMs: number; readonly sources: readonly Source[] }

/** A day and an hour: files of one day are merged, and the first of them names the merged file. */
const mergedMs = 90_000_000
const outboxWaitMs = 50
const outboxWaits = 100

export class DeliveredKeys implements CommittedKeys {
  readonly #options: DeliveredKeysOptions

  constructor(options: DeliveredKeysOptions) {
    this.#options = options
  }

  async isCommitted(id: string, signal: AbortSignal): Promise<boolean> {
    const { outbox, control } = this.#options
    return outbox.has(id) || (await control.findCommits([id], signal)).commits.length > 0
  }

  async read(request: KeysRequest): Promise<number> {
    const { endpointId, signal } = request
    await this.#waitForReports(endpointId, signal)
    let missing = 0
    const found = await this.#find(request)
    const { files, scratch } = this.#options
    for (const batch of batchesOf(found)) {
      const directory = await files.makeTemporaryDirectory(join(scratch, 'keys-'))
      try {
        missing += await this.#readBatch(batch, request, directory)
      } finally {
        await files.removeTree(directory)
      }
    }
    return missing
  }

  /** Control must know the commits that this node has made. */
  async #waitForReports(endpointId: string, signal: AbortSignal): Promise<void> {
    const { outbox, clock } = this.#options
    for (let waits = 0; outbox.hasAnyOf(endpointId); waits += 1) {
      if (waits >= outboxWaits) throw new Error('control has not recorded earlier commits of this node yet')
      await sleep(clock, outboxWaitMs, signal)
      signal.throwIfAborted()
    }
  }

  async #find({ endpointId, view, sinceMicros, registered, signal }: KeysRequest): Promise<readonly Found[]> {
    const { control, nodeId } = this.#options
    const sinceMs = sinceMicros / 1_000
    const own: Omit<Found, 'sources'>[] = []
    let atMs = 0
    const merged = new Map<string, Source[]>()
    for (let after = isoTimestamp(Math.max(0, sinceMs - mergedMs)); ; ) {
      const page = await control.fetchScrubCommits({ node_id: nodeId, endpoint_id: endpointId, after }, signal)
      for (const commit of page.commits) {
        addMerged(merged, commit, view, nodeId)
        if (commit.node_id !== nodeId) continue
        atMs = Math.max(atMs, Date.parse(commit.sealed_at))
        const files = commit.files.filter(({ kind }) => isOfView(kind, view))
        if (atMs > sinceMs) own.push({ atMs, commit: { ...commit, merged: [], files } })
      }
      const last = page.commits.at(-1)
      if (page.is_last || last === undefined) break
      after = last.uploaded_at
    }
    const known = await registered(own.map(({ commit }) => commit.id))
    return own.flatMap(({ commit, atMs }) => {
      const inFiles = new Set(commit.files.map(({ kind }) => kind))
      const sources = [...commit.files, ...(merged.get(commit.id) ?? []).filter(({ kind }) => !inFiles.has(kind))]
      return known.has(commit.id) || sources.length === 0 ? [] : [{ commit, atMs, sources }]
    })
  }

  /** Returns the number of files that are gone. */
  async #readBatch(batch: readonly Found[], { endpointId, view, add, signal }: KeysRequest, directory: string): Promise<number> {
    const { runner, builds, endpoints, memoryBytes } = this.#options
    const downloaded = new Map<string, string | undefined>()
    const commits: KeysOfCommit[] = []
    let missing = 0
    for (const { commit, sources } of batch) {
      const files: KeysOfCommit['files'][number][] = []
      for (const source of sources) {
        const name = `${source.sha256}-${source.key.length}`
        if (!downloaded.has(name))
          downloaded.set(name, await this.#download(endpointId, commit, source, join(directory, String(downloaded.size)), signal))
        const path = downloaded.get(name)
        if (path === undefined) missing += 1
        else files.push({ path, ...(source.rows && { rows: source.rows }) })
      }
      if (files.length > 0) commits.push({ id: commit.id, files })
    }
    if (commits.length === 0) return missing
    const { account_id = endpointId, account_weight = 1 } = endpoints.find(endpointId) ?? {}
    const owner = { tenant: account_id, member: endpointId, weight: account_weight }
    const keys = await builds.run(owner, { signal }, (signal) =>
      readKeysOf(runner, { commits, definition: view.definition, directory, memoryBytes, signal }),
    )
    for (const { commit, atMs } of batch) {
      const path = keys.get(commit.id)
      if (path !== undefined) await add({ id: commit.id, seq: commit.seq, sealedAtMicros: atMs * 1_000 }, path)
    }
    return missing
  }

  /** Returns undefined if the file is gone. */
  async #download(
    endpointId: string,
    { target }: CommitToScrub,
    { key, bytes, sha256 }: ExpectedFile,
    path: string,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { stores, endpoints, files } = this.#options
    if (target === null) return undefined
    const { account_id = '' } = endpoints.find(endpointId) ?? {}
    const store = stores.open({ ...target, session: sessionName({ account_id, endpoint_id: endpointId }) })
    try {
      if (!(await store.getFile(key, path, signal, bytes))) return undefined
    } catch (error) {
      if (!isReadDenied(error)) throw error
      throw new KeysUnreadable(`the role may not read ${key}`, { cause: error })
    }
    if ((await digestFile(files, path, signal)).sha256 !== sha256)
      throw new Error(`${key} has changed since it was delivered: its SHA-256 differs`)
    return path
  }
}

function isOfView(text: string, { name, version }: WindowView): boolean {
  const kind = parseArtifactKind(text)
  return kind?.type === 'view' && kind.name === name && kind.version === version && kind.redriveFrom === undefined
}

/** Adds where the rows of this node's commits are in merged files of the view. */
function addMerged(into: Map<string, Source[]>, { merged }: CommitToScrub, view: WindowView, nodeId: string): void {
  for (const { kind, key, bytes, sha256, sources } of merged.filter(({ kind }) => isOfView(kind, view)))
    for (const { id, first_row, rows } of sources)
      if (id.startsWith(nodeId))
        into.set(id, [...(into.get(id) ?? []), { kind, key, bytes, sha256, rows: { firstRow: first_row, count: rows } }])
}

/** Divides commits, in their order, into batches with a bound on the bytes of their different files. */
function* batchesOf(found: readonly Found[]): Iterable<readonly Found[]> {
  let batch: Found[] = []
  let keys = new Set<string>()
  let bytes = 0
  for (const each of found) {
    const more = each.sources.filter(({ key }) => !keys.has(key)).reduce((sum, source) => sum + source.bytes, 0)
    if (batch.length >= windowLimits.rebuildCommits || (batch.length > 0 && bytes + more > windowLimits.rebuildBytes)) {
      yield batch
      ;[batch, keys, bytes] = [[], new Set(), 0]
    }
    batch.push(each)
    bytes += each.sources.filter(({ key }) => !keys.has(key)).reduce((sum, source) => sum + source.bytes, 0)
    for (const { key } of each.sources) keys.add(key)
  }
  if (batch.length > 0) yield batch
}
