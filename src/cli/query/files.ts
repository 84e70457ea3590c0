/**
 * The files of tables: chosen by their commits, downloaded by links of the API.
 *
 * Law: a row is in one file of a table. A file is complete on disk before a statement can read it, and has the bytes that its commit says, also if
 * an earlier query kept it.
 */
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Client } from '#client/client.ts'
import { InletError } from '#client/errors.ts'
import type { Schemas } from '#client/generated/schema.ts'
import { digestFile } from '#lib/digest-file.ts'
import { inParallel } from '#lib/in-parallel.ts'
import { system } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import { type PartitionValue, partitionOf } from '#model/artifact.ts'
import { pageLimits } from '#model/limits.ts'
import { canMeet } from '#query/conditions.ts'
import type { RowRange } from '#query/query-protocol.ts'
import type { TableFiles } from '#query/run-statement.ts'
import type { Table } from './tables.ts'

type Commit = Schemas['Commit']
type Commits = ReadonlyMap<string, readonly Commit[]>

export type ListedCommits = {
  readonly commits: Commits
  /** Since when some may be missing; null if none is. */
  readonly mayLackSince: string | null
}

export type TimeRange = { readonly since: string | undefined; readonly until: string | undefined }

/** A file in the bucket, or a merged one of which only some rows are of the table. */
export type ChosenFile = {
  readonly endpoint: string
  readonly commit: string
  readonly kind: string
  readonly bucket: string
  readonly key: string
  readonly bytes: number
  readonly sha256: string
  readonly ranges: RowRange[] | undefined
  readonly partition: readonly PartitionValue[]
}

const callsAtOnce = 4
const downloadsAtOnce = 8
const attemptsMax = 4
/** Calls wait for each other where control limits their rate. */
const callTimeoutMs = 300_000

/** Lists the commits of endpoints in a range of time. */
export async function listCommits(
  client: Client,
  endpoints: Iterable<string>,
  { since = '', until }: TimeRange,
  signal: AbortSignal,
): Promise<ListedCommits> {
  const commits = new Map<string, readonly Commit[]>()
  let mayLackSince: string | null = null as string | null
  const query = { before: until, limit: pageLimits.max }
  await inParallel(callsAtOnce, endpoints, async (endpoint) => {
    const found: Commit[] = []
    for await (const page of client.listCommits(endpoint, query, { signal, timeoutMs: callTimeoutMs }).pages()) {
      found.push(...page.items.filter(({ uploaded_at }) => uploaded_at >= since))
      // Control of an earlier release does not say it.
      const pageSince = page.may_lack_commits_since ?? null
      if (pageSince !== null && (mayLackSince === null || pageSince < mayLackSince)) mayLackSince = pageSince
      if (page.items.some(({ uploaded_at }) => uploaded_at < since)) break
    }
    commits.set(endpoint, found)
  })
  return { commits, mayLackSince }
}

export function chooseFiles({ name, columns, endpoints, hasKind }: Table, commits: Commits): readonly ChosenFile[] {
  const files = new Map<string, ChosenFile>()
  for (const endpoint of endpoints) {
    for (const { id, bucket, artifacts } of commits.get(endpoint) ?? []) {
      for (const [kind, file] of Object.entries(artifacts)) {
        const partition = partitionOf(kind)
        if (!hasKind(kind) || !canMeet(name.conditions, partition, columns)) continue
        const { key, bytes, sha256 } = file.moved_to ?? file
        const place = `${bucket} ${key}`
        const range = file.moved_to && { first_row: file.moved_to.first_row, rows: file.moved_to.rows }
        const chosen = files.get(place)
        if (chosen !== undefined && range !== undefined) chosen.ranges?.push(range)
        else files.set(place, { endpoint, commit: id, kind, bucket, key, bytes, sha256, ranges: range && [range], partition })
      }
    }
  }
  return [...files.values()]
}

/** The name of a file on disk. A file in a bucket never changes. */
export function localName({ bucket, key }: ChosenFile): string {
  return `${createHash('sha256').update(`${bucket} ${key}`).digest('hex').slice(0, 40)}.parquet`
}

export type Downloads = {
  readonly client: Client
  readonly directory: string
  readonly signal: AbortSignal
  /** Called with the bytes of each file that is there. */
  readonly onFile: (bytes: number) => void
}

/** Brings the files to the directory, but those that are there. Returns those that are no longer in the bucket. */
export async function download(
  files: readonly ChosenFile[],
  { client, directory, signal, onFile }: Downloads,
): Promise<ReadonlySet<ChosenFile>> {
  const missing = new Set<ChosenFile>()
  const links = new Map<string, Promise<Schemas['CommitFiles']>>()
  const failed = new AbortController()
  const ended = AbortSignal.any([signal, failed.signal])
  const linkOf = async ({ endpoint, commit, kind, key }: ChosenFile): Promise<string> => {
    const listing =
      links.get(commit) ?? Promise.resolve(client.listCommitFiles(endpoint, commit, { signal: ended, timeoutMs: callTimeoutMs }))
    links.set(commit, listing)
    const file = (await listing).files.find((each) => each.kind === kind && (each.moved_to?.key ?? each.key) === key)
    if (file === undefined) throw new UserError('files were merged while they were read: run the query again')
    if (file.download_url !== null) return file.download_url
    throw new UserError(`${key} cannot be read: its destination was deleted, or denies reading`)
  }
  await inParallel(
    downloadsAtOnce,
    files,
    async (file) => {
      try {
        const path = join(directory, localName(file))
        if (!(await isIntact(path, file)) && !(await fetchFile(await linkOf(file), path, file, ended))) missing.add(file)
        onFile(file.bytes)
      } catch (error) {
        failed.abort(error)
        throw error
      }
    },
    ended,
  )
  signal.throwIfAborted()
  return missing
}

/** Returns false if the object is gone. */
async function fetchFile(url: string, path: string, file: ChosenFile, signal: AbortSignal): Promise<boolean> {
  const part = `${path}.${process.pid}.part`
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(url, { signal })
      if (response.status === 404) return false
      if (!response.ok || response.body === null)
        throw new InletError(`${new URL(url).origin} responded with status ${response.status}`)
      await pipeline(Readable.fromWeb(response.body), createWriteStream(part), { signal })
      if (!(await isIntact(part, file)))
        throw new InletError(
          `${file.key} does not have the ${file.bytes} bytes, or the SHA-256, that its commit says; run inlet scrub`,
        )
      await rename(part, path)
      return true
    } catch (error) {
      await rm(part, { force: true })
      signal.throwIfAborted()
      if (attempt === attemptsMax)
        throw new UserError(`a file of the bucket could not be fetched: ${error instanceof Error ? error.message : error}`)
    }
  }
}

/** Whether the file is there as its commit says. */
async function isIntact(path: string, { bytes, sha256 }: ChosenFile): Promise<boolean> {
  const found = await digestFile(system.files, path).catch(() => undefined)
  return found?.bytes === bytes && found.sha256 === sha256
}

/** Returns a table over the files that are on disk. */
export function tableOf({ name, columns }: Table, files: readonly ChosenFile[], missing: ReadonlySet<ChosenFile>): TableFiles {
  const read = files.filter((file) => !missing.has(file))
  const own = read.map((file) => {
    const { ranges, partition } = file
    return { file: localName(file), partition, ...(ranges !== undefined && { ranges }) }
  })
  return { name, columns, files: own }
}
