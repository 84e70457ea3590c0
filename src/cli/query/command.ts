/** `inlet query`: SQL over what was delivered, in this process, over files that links of the API bring here. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { type Connection, Database, OutOfMemory } from '#duckdb/database.ts'
import { GiB, MiB } from '#lib/bytes.ts'
import { errorCode } from '#lib/files.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import { UserError } from '#lib/user-error.ts'
import { isUuid } from '#lib/uuid.ts'
import type { TableName } from '#query/query-protocol.ts'
import { createTable, statementError } from '#query/run-statement.ts'
import { inspectStatement, StatementRefused } from '#query/statement.ts'
import { openRemote, type Remote } from '../remote/remote.ts'
import { findEndpoint } from '../resources/find.ts'
import { mayLackCommits } from '../resources/may-lack-commits.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { Progress } from '../terminal/progress.ts'
import { chooseFiles, download, listCommits, tableOf } from './files.ts'
import { type Form, outputOf } from './output.ts'
import { resolveTables } from './tables.ts'

export type QueryFlags = {
  readonly since?: string
  readonly until?: string
  readonly endpoint?: string
  readonly cache?: string
  readonly fetch: number
  readonly json: boolean
  readonly csv: boolean
}

const memoryBytesMin = 256 * MiB
const spillBytesMax = 64 * GiB

export async function query(this: CliContext, flags: QueryFlags, sql: string): Promise<void> {
  if (flags.json && flags.csv) throw new UsageError('--json and --csv exclude each other')
  const form: Form = flags.json ? 'json' : flags.csv || this.process.stdout.isTTY !== true ? 'csv' : 'table'
  const stopping = new AbortController()
  const stop = () => stopping.abort(new UserError('interrupted'))
  process.once('SIGINT', stop)
  const scratch = await mkdtemp(join(tmpdir(), 'inlet-query-')).catch(cannotWrite(tmpdir()))
  try {
    const names = await inspect(sql)
    const remote = await openRemote(this)
    const directory = flags.cache === undefined ? scratch : resolve(flags.cache)
    await mkdir(directory, { recursive: true }).catch(cannotWrite(directory))
    const tables = await fetchTables(this, remote, flags, names, directory, stopping.signal)
    const memoryBytes = Math.max(memoryBytesMin, totalmem() / 2)
    const spill = { directory: join(scratch, 'spill'), bytesMax: spillBytesMax }
    const threads = availableParallelism()
    const database = await Database.open({ directories: [directory, scratch], memoryBytes, spill, threads, optimizesFully: true })
    try {
      const connection = await database.connect()
      for (const table of tables) await createTable(connection, directory, table)
      await print(this, connection, sql, form, stopping.signal)
    } finally {
      database.close()
    }
  } catch (error) {
    throw explain(error, sql)
  } finally {
    process.off('SIGINT', stop)
    await rm(scratch, { recursive: true, force: true })
  }
}

async function print(context: CliContext, connection: Connection, sql: string, form: Form, signal: AbortSignal): Promise<void> {
  const output = outputOf(form, context.process)
  await connection.read(sql, output, { signal })
  output.finish()
}

async function inspect(sql: string): Promise<readonly TableName[]> {
  const database = await Database.open({ directories: [], memoryBytes: memoryBytesMin })
  try {
    return await inspectStatement(await database.connect(), sql)
  } finally {
    database.close()
  }
}

async function fetchTables(
  { process: { stderr } }: CliContext,
  { client }: Remote,
  { since, until, endpoint, fetch: bytesMax }: QueryFlags,
  names: readonly TableName[],
  directory: string,
  signal: AbortSignal,
) {
  // A deleted endpoint is in no list, but what it delivered is there.
  const only = endpoint === undefined || isUuid(endpoint) ? endpoint?.toLowerCase() : (await findEndpoint(client, endpoint)).id
  const tables = await resolveTables(client, names, only, { signal })
  const { commits, mayLackSince } = await listCommits(
    client,
    new Set(tables.flatMap(({ endpoints }) => endpoints)),
    { since, until },
    signal,
  )
  if (mayLackSince !== null) stderr.write(`${mayLackCommits(mayLackSince)}\n`)
  const chosen = tables.map((table) => ({ table, files: chooseFiles(table, commits) }))
  const files = new Map(chosen.flatMap((each) => each.files).map((file) => [`${file.bucket} ${file.key}`, file]))
  const total = [...files.values()].reduce((sum, { bytes }) => sum + bytes, 0)
  if (total > bytesMax)
    throw new UserError(
      `the statement needs ${files.size} files with ${inMegabytes(total)}, more than --fetch allows: choose a time with --since and --until, or raise --fetch`,
    )
  const progress = stderr.isTTY === true ? new Progress({ output: stderr, label: 'fetching', total }) : undefined
  let done = 0
  const onFile = (bytes: number) => {
    done += bytes
    progress?.show(done, inMegabytes(done))
  }
  const missing = await download([...files.values()], { client, directory, signal, onFile })
  if (missing.size > 0)
    stderr.write(`${missing.size} of ${files.size} files are no longer in the bucket: their rows are left out\n`)
  // Two tables can have the same file.
  const gone = new Set([...missing].map(({ bucket, key }) => `${bucket} ${key}`))
  return chosen.map(({ table, files: own }) =>
    tableOf(table, own, new Set(own.filter(({ bucket, key }) => gone.has(`${bucket} ${key}`)))),
  )
}

function cannotWrite(directory: string): (error: unknown) => never {
  return (error) => {
    throw new UserError(`cannot write to ${directory}: ${errorCode(error) ?? error}`)
  }
}

function inMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toLocaleString('en-US', { maximumFractionDigits: 1 })} MB`
}

function explain(error: unknown, sql: string): unknown {
  if (error instanceof OutOfMemory)
    return new UserError(`the statement needs more memory than this machine lets it use: ${error.message}`)
  if (error instanceof StorageFailure) return new UserError(`the disk for temporary files: ${error.message}`)
  const refused = error instanceof StatementRefused ? error : statementError(error, sql)
  if (refused === undefined) return error
  const { message, line, column } = refused.problem
  return new UserError(line === undefined ? message : `line ${line}, column ${column}: ${message}`)
}
