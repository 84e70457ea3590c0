/**
 * `inlet backup`: copies the data directory of this machine while Inlet runs.
 *
 * Owns: what is copied, in which order (decision 70), and when the copy counts.
 * Law: each record that was acknowledged before the command began is in the copied log, or is delivered and its commit is in the copied
 * database or outbox. Changes nothing in the data directory.
 */
import { existsSync } from 'node:fs'
import { readdir, realpath, rm, stat } from 'node:fs/promises'
import { join, posix, relative, resolve, sep } from 'node:path'
import type { Config } from '#config/config.ts'
import { isoTimestamp } from '#lib/clock.ts'
import { digestFile } from '#lib/digest-file.ts'
import { errorMessage } from '#lib/error-message.ts'
import { errorCode, systemFiles, writeDurably } from '#lib/files.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import { system } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import { readVersion } from '#lib/version.ts'
import { sealedNameOf } from '#log/local/backup.ts'
import { copySqlite } from '#store/engines/copy-database.ts'
import { formatBytes } from '../segments/format.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printResult } from '../terminal/print-json.ts'
import { type Output, Progress } from '../terminal/progress.ts'
import { copyFile, syncTree } from './copy-file.ts'
import { type BackedUpFile, compileCacheName, type Manifest, manifestName, newManifest } from './manifest.ts'
import { makePrivateDirectory } from './private-directory.ts'
import { explainSystemError, explainSystemErrors } from './system-errors.ts'

export type BackupFlags = JsonFlags & { readonly withBuckets: boolean }

/** A file that is gone when it is copied was renamed, or its segment was delivered: the directory is listed again. */
const listingsMax = 1_000

export async function backup(this: CliContext, { withBuckets, json }: BackupFlags, path: string): Promise<void> {
  const config = await this.readConfig()
  const { paths } = config
  if (!existsSync(paths.node) && !existsSync(paths.database))
    throw new UserError(
      `there is nothing to back up in ${resolve(paths.data)}: set INLET_DATA_DIR to the directory of this Inlet`,
    )
  const to = resolve(path)
  const isNew = await explainSystemErrors(() => prepareTarget(to, paths.data))
  const output = json ? this.process.stderr : this.process.stdout
  try {
    const progress = await progressOf(config, withBuckets, output)
    const copy = new Copy(paths.data, to, progress.onCopied)
    const begun_at = isoTimestamp(this.clock.now())
    const database = await copyAll(copy, config, withBuckets)
    const files = await copy.finish()
    const manifest = newManifest({
      version: await readVersion(),
      begun_at,
      ended_at: isoTimestamp(this.clock.now()),
      node_id: (await readTrimmed(system.files, join(to, relative(paths.data, paths.nodeId)))) ?? null,
      database,
      has_secret_key: files.some(({ path }) => path === relative(paths.data, paths.secretKey)),
      has_buckets: withBuckets && files.some(({ path }) => path.startsWith('buckets/')),
      files,
    })
    await writeDurably(systemFiles, join(to, manifestName), Buffer.from(`${JSON.stringify(manifest, undefined, 1)}\n`))
    progress.end()
    const { files: _, ...facts } = manifest
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    printResult(this, { json }, { directory: to, ...facts, files: files.length, bytes }, describe(to, manifest, bytes, config))
  } catch (error) {
    // A directory that was there may be the root of a disk, which cannot be removed.
    const left = isNew ? [to] : (await systemFiles.list(to)).map(({ name }) => join(to, name))
    for (const each of left) await rm(each, { recursive: true, force: true })
    if (errorCode(error) === 'ENOSPC') throw new UserError(`there is no room for the backup in ${to}: nothing was kept of it`)
    if (errorCode(error) === 'EACCES') throw new UserError(`${errorMessage(error)}: run the backup as the user of Inlet`)
    throw explainSystemError(error)
  }
}

/** See decision 70 for the order. */
async function copyAll(copy: Copy, { databaseUrl, paths }: Config, withBuckets: boolean): Promise<Manifest['database']> {
  const after = [paths.wal, paths.parked, paths.assignments, paths.outbox]
  await copy.settled(paths.data, [...after, ...neverCopied(paths)])
  for (const directory of after) await copy.settled(directory, neverCopied(paths))
  await copy.forgetOpened()
  const database = databaseUrl !== '' ? 'postgres' : existsSync(paths.database) ? 'sqlite' : 'none'
  if (database === 'sqlite') await copy.database(paths.database)
  // Markers are copied first: a marker is written last, so every file that a copied marker lists is copied after it.
  if (withBuckets) for (const which of [isMarker, isAny]) await copy.settled(paths.buckets, [], which)
  return database
}

const isAny = (_path: string) => true
const isMarker = (path: string) => /[\\/]commits[\\/].*\.json$/.test(path)

class Copy {
  readonly #from: string
  readonly #to: string
  readonly #onCopied: (bytes: number) => void
  readonly #files = new Map<string, BackedUpFile>()

  constructor(from: string, to: string, onCopied: (bytes: number) => void) {
    this.#from = from
    this.#to = to
    this.#onCopied = onCopied
  }

  /** Copies what is in a directory now. Returns whether anything was gone before it was copied. */
  async #copyNow(directory: string, except: readonly string[], which: (path: string) => boolean): Promise<boolean> {
    let isMissing = false
    for (const { path } of await listFiles(directory, except)) {
      const name = relative(this.#from, path).split(sep).join('/')
      if (this.#files.has(name) || !which(path)) continue
      const copied = await copyFile(path, join(this.#to, name), this.#onCopied)
      if (copied === undefined) isMissing = true
      else this.#files.set(name, { path: name, ...copied })
    }
    return isMissing
  }

  /** Copies a directory until no file was renamed or removed meanwhile. */
  async settled(directory: string, except: readonly string[] = [], which = isAny): Promise<void> {
    for (let listings = 0; await this.#copyNow(directory, except, which); listings += 1)
      if (listings > listingsMax) throw new UserError(`${directory} changes faster than it can be copied: repeat the command`)
  }

  /** A segment that was sealed between two listings was copied twice. The sealed file has more. */
  async forgetOpened(): Promise<void> {
    for (const name of this.#files.keys()) {
      const sealed = sealedNameOf(posix.basename(name))
      if (sealed === undefined || !this.#files.has(posix.join(posix.dirname(name), sealed))) continue
      await rm(join(this.#to, name))
      this.#files.delete(name)
    }
  }

  async database(path: string): Promise<void> {
    const name = relative(this.#from, path)
    const copy = join(this.#to, name)
    copySqlite(path, copy)
    const file = await systemFiles.open(copy, 'update')
    await file.sync()
    await file.close()
    const digest = await digestFile(system.files, copy)
    this.#files.set(name, { path: name, ...digest })
    this.#onCopied(digest.bytes)
  }

  async finish(): Promise<readonly BackedUpFile[]> {
    await syncTree(this.#to)
    return [...this.#files.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1))
  }
}

/**
 * Lists files that are made again, and the buckets, which are the destination and copied only on demand. The list of open segments and
 * the counts of idempotency keys may be newer than the copies of what they are about. The configuration of delivery has secrets of accounts that
 * are encrypted in the database: control sends it again.
 */
function neverCopied({ data, scratch, queries, restoring, buckets, ...paths }: Config['paths']): readonly string[] {
  return [
    scratch,
    queries,
    restoring,
    buckets,
    paths.openSegments,
    paths.requestCounts,
    paths.deliverySnapshot,
    join(data, compileCacheName),
  ]
}

/** Reports progress. The total is an estimate, because files come and go meanwhile. */
async function progressOf({ paths }: Config, withBuckets: boolean, output: Output) {
  const except = withBuckets ? neverCopied(paths).filter((path) => path !== paths.buckets) : neverCopied(paths)
  const listed = await listFiles(paths.data, except)
  const total = listed.reduce((sum, { bytes }) => sum + bytes, (await systemFiles.bytes(paths.database)) ?? 0)
  const progress = new Progress({ output, label: 'copied', total })
  let done = 0
  return {
    onCopied: (bytes: number) => {
      done += bytes
      progress.show(Math.min(done, total - 1), formatBytes(done))
    },
    end: () => progress.show(total, formatBytes(done)),
  }
}

/** Locks, temporary files, and the files of a live database, of which a copy is made otherwise. */
const leftOut = /\.(?:lock|lock-journal|tmp|db|db-wal|db-shm|db-journal)$/

type ListedFile = { readonly path: string; readonly bytes: number }

async function listFiles(directory: string, except: readonly string[]): Promise<readonly ListedFile[]> {
  const found: ListedFile[] = []
  let entries: readonly string[]
  try {
    entries = await readdir(directory)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
  for (const name of entries) {
    const path = join(directory, name)
    if (except.includes(path) || leftOut.test(name) || name === 'lost+found') continue
    // Follows a link: a log may be on another disk.
    const entry = await stat(path).catch((error: unknown) => {
      if (errorCode(error) === 'ENOENT') return undefined
      throw error
    })
    if (entry?.isDirectory()) found.push(...(await listFiles(path, except)))
    else if (entry?.isFile()) found.push({ path, bytes: entry.size })
  }
  return found
}

/** Returns whether the directory was created. */
async function prepareTarget(to: string, data: string): Promise<boolean> {
  const entries = await systemFiles.list(to)
  if (entries.length > 0) {
    const isBegun = !entries.some(({ name }) => name === manifestName)
    throw new UserError(
      `${to} is not empty: it ${isBegun ? 'has no manifest.json, so it is no whole backup' : 'is a backup already'}. Name a directory that does not exist yet`,
    )
  }
  const isNew = await makePrivateDirectory(to)
  const inside = relative(await realpath(data), await realpath(to))
  if (inside === '' || (!inside.startsWith('..') && !inside.startsWith(sep))) {
    if (isNew) await rm(to, { recursive: true })
    throw new UserError(`${to} is in the data directory: name a directory elsewhere, best on another disk`)
  }
  return isNew
}

function describe(to: string, { files, database, has_secret_key, has_buckets }: Manifest, bytes: number, config: Config): string {
  const secretKey = has_secret_key
    ? 'It has the secret key and the data of senders: keep it where only you can read it.'
    : config.secretKey === null
      ? 'It has secrets of this node and the data of senders: keep it where only you can read it.'
      : 'It does not have INLET_SECRET_KEY: keep that elsewhere. Without it the credentials in the database cannot be read.'
  const lines = [
    `Backup of ${files.length} files (${formatBytes(bytes)}) in ${to}`,
    secretKey,
    ...(database === 'postgres'
      ? ['The database is in Postgres: copy it now, after this, with pg_dump. See docs/how-to/backup-and-restore.md.']
      : []),
    ...(config.objectStore === 'directory' && !has_buckets
      ? [`The buckets in ${config.paths.buckets} are not in it: --with-buckets adds them.`]
      : []),
  ]
  return `${lines.join('\n')}\n`
}
